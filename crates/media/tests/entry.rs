//! Streams of which the beginning is cut off, against what ffmpeg decodes of them: a frame that counts as decodable comes
//! out as it does of the whole stream.

use anabranch_media::quality::{Comparison, Recording};
use anabranch_media::ts::{PACKET_LEN, Packet};
use ffmpeg::{decoded, encoded};

mod ffmpeg;

const FRAMES: usize = 75;

/// The stream without the packets of the video in front of frame `begin`.
fn from_frame(ts: &[u8], pid: u16, begin: usize) -> Vec<u8> {
    let mut frames = 0;
    let keep = |p: &&[u8]| {
        let packet = Packet::new(p).expect("a packet");
        frames += usize::from(packet.pid() == pid && packet.payload_unit_start());
        packet.pid() != pid || frames > begin
    };
    ts.chunks(PACKET_LEN).filter(keep).flatten().copied().collect()
}

fn recording(ts: &[u8]) -> Recording {
    let mut r = Recording::new();
    r.push(None, ts);
    r.finish();
    r
}

/// Cuts at every third frame. Gives how many frames counted as decodable, came out as they should, and were there.
fn check(test: &str, encoder: &str, more: &[&str]) {
    let Some(path) = encoded(test, FRAMES, &[], encoder, more, "ts") else { return };
    let ts = std::fs::read(&path).expect("it was written");
    let whole = recording(&ts);
    assert_eq!(whole.frames().len(), FRAMES, "{test}");
    assert!(whole.frames().iter().all(|f| f.picture.needs.known && !f.picture.needs.missing), "{test}");
    let original = decoded(&path);
    assert_eq!(original.len(), FRAMES, "{test}");
    let pid = whole.video_pid().expect("a video");
    let cut = path.with_extension("cut.ts");
    let (mut counted, mut right, mut all) = (0, 0, 0);
    for begin in (1..FRAMES - 10).step_by(3) {
        let rest = from_frame(&ts, pid, begin);
        let recording = recording(&rest);
        let found = Comparison::of(&recording, &recording).expect("it is one stream");
        std::fs::write(&cut, &rest).expect("written");
        let now = decoded(&cut);
        for (i, (frame, result)) in recording.frames().iter().zip(&found.results).enumerate() {
            let pts = frame.pts.expect("a time stamp") as i64;
            let same = now.get(&pts).is_some_and(|sum| original.get(&pts) == Some(sum));
            assert!(same || !result.decodable, "{test}: frame {i} from frame {begin} on is another one, or none");
            counted += usize::from(result.decodable);
            right += usize::from(same);
            all += 1;
        }
    }
    println!("{test}: {counted} frames counted as decodable, {right} came out as they should, of {all}");
    assert!(counted * 2 > all, "{test}: {counted} of {all}");
    // A decoder conceals, and what it shows may be right by chance.
    assert!(counted * 100 >= right * 95, "{test}: {counted}, {right}");
    let _ = (std::fs::remove_file(&cut), std::fs::remove_file(&path));
}

#[test]
fn h264_in_closed_groups() {
    let x264 = "keyint=15:min-keyint=15:scenecut=0:bframes=2:b-adapt=0:ref=3";
    check("h264_in_closed_groups", "libx264", &["-x264-params", x264]);
}

#[test]
fn h264_in_open_groups() {
    let x264 = "keyint=15:min-keyint=15:scenecut=0:bframes=3:b-adapt=0:open-gop=1:b-pyramid=normal:ref=3";
    check("h264_in_open_groups", "libx264", &["-x264-params", x264]);
}

#[test]
fn h265_in_open_groups() {
    let x265 = "log-level=none:keyint=15:min-keyint=15:scenecut=0:bframes=3:b-adapt=0:open-gop=1:ref=3";
    check("h265_in_open_groups", "libx265", &["-x265-params", x265]);
}

#[test]
fn h265_in_closed_groups_with_leading_pictures() {
    let x265 = "log-level=none:keyint=15:min-keyint=15:scenecut=0:bframes=3:b-adapt=0:open-gop=0:radl=2";
    check("h265_in_closed_groups_with_leading_pictures", "libx265", &["-x265-params", x265]);
}

#[test]
fn mpeg2_in_open_groups() {
    check("mpeg2_in_open_groups", "mpeg2video", &["-g", "15", "-bf", "2", "-b:v", "2M"]);
}

#[test]
fn mpeg2_in_closed_groups() {
    check(
        "mpeg2_in_closed_groups",
        "mpeg2video",
        &["-g", "15", "-bf", "2", "-b:v", "2M", "-flags", "+cgop", "-sc_threshold", "1000000000"],
    );
}
