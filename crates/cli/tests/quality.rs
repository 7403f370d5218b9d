//! `anabranch quality` on the clip, damaged at known places.

mod common;

use common::*;
use serde_json::Value;

const PACKET: usize = 188;
const VIDEO: u16 = 0x100;

/// The clip without these frames of the video, by their numbers in decoding order.
fn without(lost: &[usize]) -> Vec<u8> {
    let mut frame = None;
    let keep = |p: &&[u8]| {
        if u16::from_be_bytes([p[1] & 0x1f, p[2]]) != VIDEO {
            return true;
        }
        if p[1] & 0x40 != 0 {
            frame = Some(frame.map_or(0, |f: usize| f + 1));
        }
        !frame.is_some_and(|f| lost.contains(&f))
    };
    clip().chunks(PACKET).filter(keep).flatten().copied().collect()
}

fn json(args: &[&str]) -> Value {
    let ended = run(&[&["quality"], args, &["--json"]].concat());
    // On a slow machine standard error says how far it is.
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.out()).expect("JSON")
}

#[test]
fn what_was_lost_is_found_by_class() {
    let (dir, _) = scratch();
    let received = file(&dir, "received.ts", &without(&[2, 24]));
    let csv = dir.path().join("frames.csv").display().to_string();
    let r = json(&[CLIP, &received, "--no-decoding", "--csv", &csv]);
    let class = |c: &str| {
        let of = |field: &str| r["by_class"][c][field].as_u64().expect("a number");
        (of("frames"), of("missing"), of("damaged"), of("undecodable"))
    };
    // A B picture, and the I picture of a group of 24 frames.
    assert_eq!((class("I"), class("P"), class("B")), ((4, 1, 0, 1), (32, 0, 0, 8), (60, 1, 0, 16)));
    assert_eq!((r["codec"].as_str(), r["references_unknown"].as_u64()), (Some("H.264"), Some(0)));
    assert!((r["decodable_share"].as_f64().expect("a number") - 71.0 / 96.0).abs() < 1e-9);
    assert_eq!(r["stalls"].as_array().map(Vec::len), Some(1), "40 ms are no stall, 960 ms are one: {r}");
    assert!((r["stalled_s"].as_f64().expect("a number") - 0.96).abs() < 1e-6);
    assert_eq!(r["psnr_db"], Value::Null);
    let lines = std::fs::read_to_string(&csv).expect("it was written");
    assert_eq!(lines.lines().count(), 97);
    assert!(lines.lines().nth(3).expect("frame 2").contains(",0,missing,0,0,"), "{lines}");
    let text = run(&["quality", CLIP, &received, "--no-decoding"]);
    assert_eq!(text.code(), Some(0), "{}", text.stderr);
    for needle in ["cannot be decoded", "H.264 of 3.84 s", "Stalls, by time stamps: 1, 0.96 s", "Not measured: PSNR"] {
        assert!(text.out().contains(needle), "{needle}: {}", text.out());
    }
}

#[test]
fn lost_pictures_count_as_the_ones_before_them() {
    const NAME: &str = "lost_pictures_count_as_the_ones_before_them";
    if !has("ffmpeg", NAME) {
        return;
    }
    let (dir, _) = scratch();
    let same = json(&[CLIP, CLIP]);
    assert_eq!((same["pictures"].as_u64(), same["pictures_equal"].as_u64()), (Some(96), Some(96)));
    assert_eq!((same["psnr_db"].clone(), same["ssim"].as_f64()), (Value::Null, Some(1.0)));
    let received = file(&dir, "received.ts", &without(&[2]));
    let csv = dir.path().join("frames.csv").display().to_string();
    let r = json(&[CLIP, &received, "--csv", &csv]);
    // One picture is another one, and every one has a counterpart.
    assert_eq!((r["pictures"].as_u64(), r["pictures_equal"].as_u64()), (Some(96), Some(95)));
    assert!((30.0..60.0).contains(&r["psnr_db"].as_f64().expect("a number")), "{r}");
    assert!((0.9..1.0).contains(&r["ssim"].as_f64().expect("a number")), "{r}");
    let lines = std::fs::read_to_string(&csv).expect("it was written");
    let differs = |l: &&str| l.contains(",missing,") != l.contains(",inf,");
    assert_eq!(lines.lines().skip(1).filter(differs).count(), 96, "{lines}");
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let (dir, _) = scratch();
    let noise = file(&dir, "noise", &noise(50_000, 7));
    let other = file(&dir, "other.ts", &without(&(0..96).collect::<Vec<_>>()));
    run(&["quality", CLIP, "/no/such/file"]).check(2, Some("cannot read /no/such/file"));
    run(&["quality", &noise, CLIP]).check(2, Some("no video is found in it"));
    let strange = run(&["quality", CLIP, &noise, "--no-decoding"]);
    assert_eq!(strange.code(), Some(0));
    assert!(strange.stderr.contains("50000 of 50000 bytes are no transport stream"), "{}", strange.stderr);
    run(&["quality", CLIP]).check(2, Some("<RECEIVED>"));
    // Sound alone came: that is a result.
    let r = json(&[CLIP, &other, "--no-decoding"]);
    assert_eq!(r["decodable_share"].as_f64(), Some(0.0));
}
