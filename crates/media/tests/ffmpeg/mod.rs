//! Streams that ffmpeg makes of its test pattern, and what it decodes of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs ffmpeg with these arguments, which writes to `to`.
pub fn ffmpeg(args: &[&str], to: &Path) {
    let done = Command::new("ffmpeg").args(["-v", "error", "-y"]).args(args).arg(to).status();
    assert!(done.expect("ffmpeg starts").success(), "{args:?}");
}

/// So many frames by this encoder, in a file that nothing else has, or none where the encoder is not there. `inputs` come
/// beside the pattern, `more` are what the encoder is to do.
pub fn encoded(
    test: &str,
    frames: usize,
    inputs: &[&str],
    encoder: &str,
    more: &[&str],
    ending: &str,
) -> Option<PathBuf> {
    let known = Command::new("ffmpeg").args(["-hide_banner", "-encoders"]).output();
    if !known.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains(&format!(" {encoder} "))) {
        println!("SKIPPED {test}: no ffmpeg with {encoder}");
        return None;
    }
    let path = std::env::temp_dir().join(format!("anabranch-media-{test}-{}.{ending}", std::process::id()));
    let frames = frames.to_string();
    let source = ["-f", "lavfi", "-i", "testsrc2=size=320x192:rate=25,noise=alls=10:allf=t:all_seed=3"];
    let coding = ["-frames:v", &frames, "-pix_fmt", "yuv420p", "-threads", "1", "-c:v", encoder];
    ffmpeg(&[&source[..], inputs, &coding, more].concat(), &path);
    Some(path)
}

/// What ffmpeg decodes: time stamp to a sum over the picture.
#[allow(dead_code, reason = "not every test decodes")]
pub fn decoded(file: &Path) -> BTreeMap<i64, String> {
    let out = Command::new("ffmpeg")
        // One thread: what fails in one picture then takes no others with it.
        .args(["-v", "quiet", "-threads", "1", "-copyts", "-i"])
        .arg(file)
        .args(["-map", "0:v", "-enc_time_base", "-1", "-f", "framemd5", "-"])
        .output()
        .expect("ffmpeg starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = |l: &str| {
        let fields: Vec<&str> = l.split(',').map(str::trim).collect();
        Some((fields.get(2)?.parse().ok()?, (*fields.last()?).to_owned()))
    };
    text.lines().filter(|l| !l.starts_with('#')).filter_map(line).collect()
}
