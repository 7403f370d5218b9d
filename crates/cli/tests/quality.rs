//! `anabranch quality` on the clip, damaged at known places.

mod common;

use common::*;
use serde_json::Value;
use std::process::Command;

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
    let text = file(&dir, "text", b"nothing was received\n");
    let gs = file(&dir, "gs", &b"Good Golly ".repeat(2_000));
    for other in [&noise, &text, &gs] {
        run(&["quality", CLIP, other, "--no-decoding"]).check(2, Some("no transport stream is in it"));
    }
    // Where nothing came, all is missing.
    let r = json(&[CLIP, &file(&dir, "empty", b""), "--no-decoding"]);
    assert_eq!(r["frames"]["missing"].as_u64(), Some(96));
    let partly = file(&dir, "partly", &[vec![0; 50_000], clip()].concat());
    let strange = run(&["quality", CLIP, &partly, "--no-decoding"]);
    assert_eq!(strange.code(), Some(0));
    assert!(strange.stderr.contains("bytes are no transport stream"), "{}", strange.stderr);
    run(&["quality", CLIP]).check(2, Some("<RECEIVED>"));
    // Sound alone came: that is a result.
    let r = json(&[CLIP, &other, "--no-decoding"]);
    assert_eq!(r["decodable_share"].as_f64(), Some(0.0));
}

/// Pictures are left out then, and the line says why.
#[test]
fn an_ffmpeg_that_fails_is_named_as_the_reason() {
    let (dir, _) = scratch();
    let fake = dir.path().join("ffmpeg");
    std::fs::write(&fake, "#!/bin/sh\necho 'error while loading shared libraries: libavfilter.so.9' >&2\nexit 127\n")
        .expect("it is written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&fake, mode).expect("it can be run");
    let path = format!("PATH={}:/usr/bin:/bin", dir.path().display());
    let ended = start_in(&["env", &path], &["quality", CLIP, CLIP, "--json"]).wait();
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let why = "PSNR, SSIM, VMAF: ffmpeg failed: error while loading shared libraries: libavfilter.so.9";
    assert_eq!(rows_of(&ended.out())["not_measured"][0].as_str(), Some(why));
}

/// What is printed of frames whose references cannot be read is what was counted.
#[test]
fn scrambled_frames_count_as_decodable_when_they_are_whole() {
    let (dir, _) = scratch();
    let scrambled = |stream: Vec<u8>| {
        let is_video = |p: &[u8]| u16::from_be_bytes([p[1] & 0x1f, p[2]]) == VIDEO;
        let mut stream = stream;
        stream.chunks_mut(PACKET).filter(|p| is_video(p)).for_each(|p| p[3] |= 0x80);
        stream
    };
    let sent = file(&dir, "sent.ts", &scrambled(clip()));
    let received = file(&dir, "received.ts", &scrambled(without(&[0, 24])));
    let r = json(&[&sent, &received, "--no-decoding"]);
    let unknown = &r["by_class"]["unknown"];
    assert_eq!((unknown["frames"].as_u64(), unknown["undecodable"].as_u64()), (Some(96), Some(2)), "{r}");
    let text = run(&["quality", &sent, &received, "--no-decoding"]).out();
    let line = "References of 96 frames are not known; each counts as decodable when it is whole\n";
    assert!(text.contains(line), "{text}");
}

/// Containers and wider packets have nothing that could be compared, on either side.
#[test]
fn other_containers_are_refused() {
    let (dir, _) = scratch();
    let wide = |before: usize, after: usize| -> Vec<u8> {
        clip().chunks(PACKET).take(100).flat_map(|p| [&vec![7; before][..], p, &vec![9; after]].concat()).collect()
    };
    let begins = |head: &[u8]| [head, &noise(20_000, 3)].concat();
    for (content, what) in [
        (begins(b"\0\0\0\x20ftypisom\0\0\x02\0"), "is an MP4 film"),
        (begins(b"\x1a\x45\xdf\xa3"), "is a Matroska or WebM film"),
        (begins(b"FLV\x01\x05"), "is an FLV film"),
        (begins(b"RIFF\x10\0\0\0AVI LIST"), "is an AVI film"),
        (wide(4, 0), "packets of 192 bytes (M2TS"),
        (wide(0, 16), "packets of 204 bytes (parity"),
    ] {
        let other = file(&dir, "other", &content);
        for args in [[CLIP, &other], [&other, CLIP]] {
            let ended = run(&[&["quality", "--no-decoding"], &args[..]].concat());
            ended.check(2, Some(what));
            let how = format!("this makes one of it: ffmpeg -i {other} -c copy -f mpegts film.ts");
            assert!(ended.stderr.contains(&how), "{}", ended.stderr);
        }
        run(&["lab", "frames", &other]).check(2, Some("ffmpeg -i"));
    }
}

#[test]
fn standard_input_and_output() {
    let (dir, _) = scratch();
    let received = file(&dir, "received.ts", &without(&[2]));
    let stdin = |path: &str| std::fs::File::open(path).expect("it is there").into();
    for (args, from) in [([CLIP, "-"], received.as_str()), (["-", &received], CLIP)] {
        let e = start_with(&["quality", args[0], args[1], "--no-decoding", "--csv", "-"], stdin(from)).wait();
        assert_eq!(e.code(), Some(0), "{}", e.stderr);
        assert!(e.out().starts_with("frame,pts,"), "{}", e.out());
        assert_eq!(e.out().lines().count(), 97);
        assert!(e.stderr.contains("H.264 of 3.84 s"), "{}", e.stderr);
        let e = start_with(&["quality", args[0], args[1], "--json", "--no-decoding"], stdin(from)).wait();
        assert_eq!(rows_of(&e.out())["by_class"]["B"]["missing"], 1);
    }
    if has("ffmpeg", "standard_input_and_output") {
        let e = start_with(&["quality", CLIP, "-", "--json"], stdin(&received)).wait();
        assert_eq!(rows_of(&e.out())["pictures_equal"], 95);
    }
    run(&["quality", "-", "-"]).check(2, Some("only one of SENT and RECEIVED"));
    run(&["quality", CLIP, CLIP, "--csv", "-", "--json"]).check(2, Some("--csv - and --json"));
    assert!(!std::path::Path::new("-").exists(), "no file is called so");
}

/// Without times of arrival there is nothing that a buffer could hold.
#[test]
fn a_buffer_without_a_capture_is_refused() {
    let (dir, _) = scratch();
    let capture = file(&dir, "capture.pcap", &capture(&[]));
    for sent in [CLIP, &capture] {
        let args = ["quality", sent, CLIP, "--no-decoding", "--buffer", "0ms"];
        run(&args).check(2, Some("--buffer is for a RECEIVED that is a capture"));
    }
    run(&["quality", CLIP, &capture, "--no-decoding", "--buffer", "100ms"]).check(0, None);
}

/// A port chooses among the streams of a capture; beside transport streams it would do nothing.
#[test]
fn a_port_without_a_capture_is_refused() {
    let (dir, _) = scratch();
    let received = file(&dir, "received.pcap", &capture(&[]));
    let what = "--port is for captures (pcap, pcapng)";
    for port in ["99", "5000"] {
        let ended = run(&["quality", CLIP, CLIP, "--no-decoding", "--port", port]);
        ended.check(2, Some(what));
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        run(&["lab", "frames", CLIP, "--port", port]).check(2, Some(what));
    }
    for args in [[CLIP, &received], [&received, CLIP], [&received, &received]] {
        run(&[&["quality", "--no-decoding", "--port", "5000"], &args[..]].concat()).check(0, None);
    }
}

fn rows_of(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// A stream that ffmpeg makes of its test pattern, or none where it cannot.
fn made(dir: &tempfile::TempDir, name: &str, test: &str, encoder: &str, more: &[&str]) -> Option<String> {
    let known = Command::new("ffmpeg").args(["-hide_banner", "-encoders"]).output();
    if !known.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains(&format!(" {encoder} "))) {
        eprintln!("SKIPPED {test}: no ffmpeg with {encoder}");
        return None;
    }
    let path = dir.path().join(name).display().to_string();
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=320x192:rate=25", "-frames:v", "50"]);
    ffmpeg.args(["-threads", "1", "-c:v", encoder]).args(more).arg(&path);
    ffmpeg.status().expect("ffmpeg starts").success().then_some(path)
}

/// A stream without one frame of the video, by its number in decoding order.
fn less(path: &str, pid: u16, lost: usize) -> Vec<u8> {
    let mut frames = 0;
    let keep = |p: &&[u8]| {
        let is_video = u16::from_be_bytes([p[1] & 0x1f, p[2]]) == pid;
        frames += usize::from(is_video && p[1] & 0x40 != 0);
        !is_video || frames != lost + 1
    };
    std::fs::read(path).expect("a stream").chunks(PACKET).filter(keep).flatten().copied().collect()
}

/// The PSNR of all pictures, from those of each in a table.
fn of_all(csv: &str) -> f64 {
    let text = std::fs::read_to_string(csv).expect("it was written");
    let column = text.lines().next().expect("a header").split(',').position(|c| c == "psnr_db").expect("it is there");
    let values: Vec<f64> = text.lines().skip(1).filter_map(|l| l.split(',').nth(column)?.parse().ok()).collect();
    -10.0 * (values.iter().map(|db| 10f64.powf(-db / 10.0)).sum::<f64>() / values.len() as f64).log10()
}

#[test]
fn psnr_is_by_the_peak_of_the_bit_depth() {
    const NAME: &str = "psnr_is_by_the_peak_of_the_bit_depth";
    let (dir, _) = scratch();
    let mut found = Vec::new();
    for (format, name) in [("yuv420p", "8.ts"), ("yuv420p10le", "10.ts"), ("yuv444p10le", "444.ts")] {
        let more = ["-pix_fmt", format, "-preset", "ultrafast", "-bf", "0", "-g", "25"];
        let Some(sent) = made(&dir, name, NAME, "libx264", &more) else { return };
        // The last frame of a group: every other picture is equal.
        let received = file(&dir, "received.ts", &less(&sent, VIDEO, 24));
        let csv = dir.path().join("frames.csv").display().to_string();
        let r = json(&[&sent, &received, "--csv", &csv]);
        assert_eq!((r["pictures"].as_u64(), r["pictures_equal"].as_u64()), (Some(50), Some(49)), "{format}");
        let psnr = r["psnr_db"].as_f64().expect("a number");
        assert!((psnr - of_all(&csv)).abs() < 0.001, "{format}: {psnr} and {}", of_all(&csv));
        found.push(psnr);
    }
    // One picture with eight bits and with ten.
    assert!((found[0] - found[1]).abs() < 1.0, "{found:?}");
}

#[test]
fn av1_as_ffmpeg_writes_it_is_compared_and_decoded() {
    const NAME: &str = "av1_as_ffmpeg_writes_it_is_compared_and_decoded";
    let (dir, _) = scratch();
    for encoder in ["libsvtav1", "libaom-av1"] {
        let fast: &[&str] = if encoder == "libsvtav1" { &["-preset", "12"] } else { &["-cpu-used", "8"] };
        let more = [&["-pix_fmt", "yuv420p", "-g", "24", "-movflags", "frag_keyframe+empty_moov"], fast].concat();
        let Some(film) = made(&dir, "film.mp4", NAME, encoder, &more) else { continue };
        // As docs/USE.md has it, for a file.
        let sent = dir.path().join("sent.ts").display().to_string();
        let mut copy = Command::new("ffmpeg");
        copy.args(["-v", "error", "-y", "-i", &film, "-c", "copy", "-f", "mpegts", &sent]);
        assert!(copy.status().expect("ffmpeg starts").success());
        let same = json(&[&sent, &sent]);
        assert_eq!((same["codec"].as_str(), same["frames"]["frames"].as_u64()), (Some("AV1"), Some(50)));
        assert_eq!((same["references_unknown"].as_u64(), same["references_missing"].as_u64()), (Some(0), Some(0)));
        assert_eq!((same["pictures"].as_u64(), same["pictures_equal"].as_u64()), (Some(50), Some(50)), "{same}");
        let received = file(&dir, "received.ts", &less(&sent, VIDEO, 48));
        let r = json(&[&sent, &received]);
        assert_eq!((r["frames"]["missing"].as_u64(), r["pictures"].as_u64()), (Some(1), Some(50)), "{r}");
        assert!((10.0..60.0).contains(&r["psnr_db"].as_f64().expect("a number")), "{r}");
        let classes = |c: &str| r["by_class"][c]["frames"].as_u64().expect("a number");
        assert!(classes("I") >= 2 && classes("P") > 0 && classes("unknown") == 0, "{r}");
    }
}

/// Behind a loss, whenever it is, the pictures that can be decoded are decoded as they were sent.
#[test]
fn av1_recovers_from_a_loss_at_the_next_key_frame() {
    const NAME: &str = "av1_recovers_from_a_loss_at_the_next_key_frame";
    let (dir, _) = scratch();
    let low_delay = ["-preset", "12", "-svtav1-params", "pred-struct=1:hierarchical-levels=3"];
    for (name, encoder, fast) in [
        ("aom", "libaom-av1", &["-cpu-used", "8"][..]),
        ("aom-live", "libaom-av1", &["-usage", "realtime", "-cpu-used", "8", "-b:v", "300k"]),
        ("svt", "libsvtav1", &["-preset", "12"]),
        ("svt-low-delay", "libsvtav1", &low_delay),
        ("rav1e", "librav1e", &["-speed", "10", "-b:v", "300k"]),
    ] {
        let more = [&["-pix_fmt", "yuv420p", "-g", "20"], fast].concat();
        let Some(film) = made(&dir, &format!("{name}.mkv"), NAME, encoder, &more) else { continue };
        let sent = dir.path().join("sent.ts").display().to_string();
        let mut copy = Command::new("ffmpeg");
        copy.args(["-v", "error", "-y", "-i", &film, "-c", "copy", "-f", "mpegts", &sent]);
        assert!(copy.status().expect("ffmpeg starts").success());
        for lost in [1, 3, 22, 41] {
            let received = file(&dir, "received.ts", &less(&sent, VIDEO, lost));
            let csv = dir.path().join("frames.csv").display().to_string();
            let r = json(&[&sent, &received, "--csv", &csv]);
            let text = std::fs::read_to_string(&csv).expect("it was written");
            let mut rows = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
            let header = rows.next().expect("a header");
            let at = |c: &str| header.iter().position(|h| *h == c).expect("it is there");
            let (decodable, psnr) = (at("decodable"), at("psnr_db"));
            let wrong = rows.filter(|r| r[decodable] == "1" && r[psnr] != "inf").collect::<Vec<_>>();
            assert!(wrong.is_empty(), "{name} without frame {lost}: {wrong:?}");
            let whole = r["decodable_share"].as_f64().expect("a number") * 50.0;
            assert!(r["pictures_equal"].as_u64().expect("a number") as f64 >= whole - 0.1, "{name}, {lost}: {r}");
        }
    }
}

/// A capture of the clip at its constant rate, in which the packets of some frames of the video come 2 s late.
fn capture(late: &[usize]) -> Vec<u8> {
    let mut file = [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 8], &[0, 0, 1, 0], &101u32.to_le_bytes()].concat();
    let mut frame = 0;
    for (i, packet) in clip().chunks(PACKET).enumerate() {
        let is_video = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]) == VIDEO;
        frame += usize::from(is_video && packet[1] & 0x40 != 0);
        let is_late = is_video && frame > 0 && late.contains(&(frame - 1));
        let micros = 1_000_000_000 + i as u32 * 188 + if is_late { 2_000_000 } else { 0 };
        let length = 28 + packet.len() as u16;
        let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39, 0x13, 0x88];
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip.extend((length - 20).to_be_bytes());
        ip.extend([0, 0]);
        ip.extend(packet);
        for v in [micros / 1_000_000, micros % 1_000_000, ip.len() as u32, ip.len() as u32] {
            file.extend(v.to_le_bytes());
        }
        file.extend(ip);
    }
    file
}

#[test]
fn late_frames_are_counted_by_class() {
    let (dir, _) = scratch();
    // Nothing; two B pictures; the last I picture and all of its group but the picture that takes their place.
    for (late, expected) in [(vec![], [0, 0, 0]), (vec![2, 26], [0, 0, 2]), (vec![72], [1, 7, 15])] {
        let received = file(&dir, "received.pcap", &capture(&late));
        let args = [CLIP, &received, "--no-decoding", "--buffer", "100ms"];
        let r = json(&args);
        assert_eq!(r["by_arrival"].as_bool(), Some(true));
        let of = |c: &str| (r["by_class"][c]["late"].as_u64(), r["by_class"][c]["late_share"].as_f64());
        for (class, (count, all)) in ["I", "P", "B"].iter().zip(expected.into_iter().zip([4, 32, 60])) {
            assert_eq!(of(class), (Some(count), Some(count as f64 / f64::from(all))), "{class} of {late:?}: {r}");
        }
        let sum: u64 = expected.iter().sum();
        assert_eq!((r["frames_late"].as_u64(), r["frames"]["late"].as_u64()), (Some(sum), Some(sum)));
        assert!((r["frames"]["late_share"].as_f64().expect("a number") - sum as f64 / 96.0).abs() < 1e-9);
        let text = run(&[&["quality"], &args[..]].concat());
        let line = format!("too late to be shown: {sum}: I {} of 4", expected[0]);
        assert_eq!(text.out().contains(&line), sum > 0, "{}", text.out());
    }
}

/// The lab's example has the frames of the clip, and whoever has a film makes such a file with one command.
#[test]
fn a_film_becomes_traffic_of_the_lab() {
    let ended = run(&["lab", "frames", CLIP]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/examples/clip.txt");
    assert_eq!(ended.out(), std::fs::read_to_string(shipped).expect("there is one"));
    let frames: Vec<_> = ended.out().lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect();
    let of = |class: &str| frames.iter().filter(|l| l.starts_with(class)).count();
    assert_eq!([of("I "), of("P "), of("B ")], [4, 32, 60]);

    let (dir, _) = scratch();
    let none = run(&["lab", "frames", &file(&dir, "none.ts", &[7; 1_000])]);
    assert_eq!(none.code(), Some(2));
    assert!(none.stderr.contains("no transport stream with frames of known classes"), "{}", none.stderr);
}
