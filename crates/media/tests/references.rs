//! References as they are read from headers, against what a decoder does: bits in the middle of a frame are flipped, behind
//! its headers, and every frame that does not refer to it, directly or not, has to come out of ffmpeg unchanged.

use anabranch_base::Instant;
use anabranch_media::picture::{Picture, Pictures};
use anabranch_media::quality::Recording;
use anabranch_media::ts::{PACKET_LEN, Packet, VideoCodec};
use anabranch_media::{Class, Packetiser, PacketiserConfig};
use ffmpeg::{decoded, encoded};
use std::path::Path;

mod ffmpeg;

const FRAMES: usize = 60;

/// Which frames refer to frame `damaged`, directly or not; it is one of them.
fn touched(pictures: &[Picture], damaged: usize) -> Vec<bool> {
    let mut touched: Vec<bool> = Vec::new();
    for (i, p) in pictures.iter().enumerate() {
        let by = p.needs.units.iter().any(|n| touched[*n as usize]);
        touched.push(i == damaged || by);
    }
    touched
}

/// Damages some frames, one at a time, and looks at what becomes of the others. `write` writes the stream with one damaged,
/// unless it has too few bytes.
fn check(test: &str, pictures: &[Picture], times: &[i64], whole: &Path, write: impl Fn(usize, &Path) -> bool) {
    assert!(pictures.iter().all(|p| p.needs.known), "{test}: every header is understood");
    let original = decoded(whole);
    assert_eq!(original.len(), FRAMES, "{test}");
    assert!(times.iter().all(|t| original.contains_key(t)), "{test}: time stamps are the stream's");
    let file = whole.with_extension("cut.".to_owned() + whole.extension().and_then(|e| e.to_str()).unwrap_or("ts"));
    let (mut changed, mut foretold, mut given_up) = (0, 0, 0);
    for damaged in (0..pictures.len() - 1).step_by(pictures.len() / 12) {
        if !write(damaged, &file) {
            continue;
        }
        let now = decoded(&file);
        // A decoder may give up at what it cannot make sense of, as ffmpeg with dav1d does for the rest of a stream.
        if now.len() < FRAMES {
            given_up += 1;
            continue;
        }
        for (i, touched) in touched(pictures, damaged).into_iter().enumerate() {
            let same = now.get(&times[i]) == original.get(&times[i]);
            assert!(same || touched, "{test}: frame {i} is another one with {damaged}, to which it does not refer");
            changed += usize::from(!same);
            foretold += usize::from(touched);
        }
    }
    println!("{test}: {changed} frames changed of {foretold} that were expected to; given up {given_up} times");
    assert!(foretold > 0 && given_up < 10, "{test}: {given_up}");
    // What may refer to a frame mostly does.
    assert!(changed * 10 >= foretold * 5, "{test}: {changed} of {foretold}");
    let _ = (std::fs::remove_file(&file), std::fs::remove_file(whole));
}

/// The classes of the video's frames as `send` reads them, from the first bytes of each.
fn sent_as(ts: &[u8]) -> Vec<Option<Class>> {
    let mut p = Packetiser::new(PacketiserConfig::default());
    for (i, piece) in ts.chunks(7 * PACKET_LEN).enumerate() {
        p.push(Instant::from_millis(i as u64), piece);
    }
    p.finish(Instant::from_millis(ts.len() as u64));
    let mut classes: Vec<(u32, Option<Class>)> = Vec::new();
    while let Some(m) = p.poll_message() {
        let class = m.header.class_known.then_some(m.header.frame_class);
        match classes.last_mut().filter(|(frame, _)| *frame == m.header.frame) {
            Some((_, known)) => *known = class,
            None => classes.push((m.header.frame, class)),
        }
    }
    // What is in front of the first picture is no frame of the video.
    classes.into_iter().skip_while(|(_, class)| class.is_none()).map(|(_, class)| class).collect()
}

/// Where each packet is, and its frame if it is one of the video.
fn frames_of(ts: &[u8], pid: u16) -> Vec<(usize, Option<usize>)> {
    let mut frame = None;
    let place = |(i, p): (usize, &[u8])| {
        let packet = Packet::new(p).expect("a packet");
        if packet.pid() == pid && packet.payload_unit_start() {
            frame = Some(frame.map_or(0, |f: usize| f + 1));
        }
        (i * PACKET_LEN, frame.filter(|_| packet.pid() == pid))
    };
    ts.chunks(PACKET_LEN).enumerate().map(place).collect()
}

/// [`check`] for a transport stream.
fn check_ts(test: &str, encoder: &str, more: &[&str], codec: VideoCodec) -> Vec<Picture> {
    let Some(path) = encoded(test, FRAMES, &[], encoder, more, "ts") else { return Vec::new() };
    let ts = std::fs::read(&path).expect("it was written");
    let mut r = Recording::new();
    r.push(None, &ts);
    r.finish();
    assert_eq!((r.codec(), r.frames().len()), (Some(codec), FRAMES), "{test}");
    let pid = r.video_pid().expect("a video");
    let pictures: Vec<Picture> = r.frames().iter().map(|f| f.picture.clone()).collect();
    let times: Vec<i64> = r.frames().iter().map(|f| f.pts.expect("a time stamp") as i64).collect();
    assert_eq!(
        sent_as(&ts),
        pictures.iter().map(|p| p.class).collect::<Vec<_>>(),
        "{test}: `send` has the same classes"
    );
    let packets: Vec<(usize, Option<usize>)> = frames_of(&ts, pid);
    check(test, &pictures, &times, &path, |damaged, to| {
        let own: Vec<usize> = packets.iter().filter(|(_, f)| *f == Some(damaged)).map(|(at, _)| *at).collect();
        // The last packet but one of three or more: far behind the headers, and no filling in it.
        let Some(at) = own.len().checked_sub(2).filter(|n| *n > 0).and_then(|n| own.get(n)) else { return false };
        let mut other = ts.clone();
        other[at + 60..at + 70].iter_mut().for_each(|b| *b ^= 0x5a);
        std::fs::write(to, other).is_ok()
    });
    pictures
}

fn count(pictures: &[Picture], class: Class) -> usize {
    pictures.iter().filter(|p| p.class == Some(class)).count()
}

#[test]
fn h264_with_a_pyramid() {
    let x264 = "keyint=24:min-keyint=24:scenecut=0:bframes=3:b-adapt=0:b-pyramid=normal:ref=4:weightp=2";
    let p = check_ts("h264_with_a_pyramid", "libx264", &["-x264-params", x264], VideoCodec::H264);
    if !p.is_empty() {
        // Two of the three B frames between anchors are needed by nothing.
        assert_eq!(count(&p, Class::I), 3);
        assert!((25..=32).contains(&count(&p, Class::B)), "{}", count(&p, Class::B));
    }
}

#[test]
fn h264_with_open_groups() {
    let x264 = "keyint=20:min-keyint=20:scenecut=0:bframes=2:b-adapt=0:open-gop=1:b-pyramid=strict:ref=3";
    check_ts("h264_with_open_groups", "libx264", &["-x264-params", x264], VideoCodec::H264);
}

#[test]
fn h264_without_b_frames() {
    let more = ["-tune", "zerolatency", "-x264-params", "keyint=30:ref=1:slices=3:intra-refresh=0:scenecut=0"];
    check_ts("h264_without_b_frames", "libx264", &more, VideoCodec::H264);
}

#[test]
fn h265_with_a_pyramid() {
    let x265 = "log-level=none:keyint=24:min-keyint=24:scenecut=0:bframes=4:b-adapt=0:b-pyramid=1:ref=3:open-gop=0";
    let p = check_ts("h265_with_a_pyramid", "libx265", &["-x265-params", x265], VideoCodec::H265);
    if !p.is_empty() {
        assert_eq!(count(&p, Class::I), 3);
        assert!(count(&p, Class::B) > 20, "{}", count(&p, Class::B));
    }
}

#[test]
fn h265_with_temporal_layers_and_open_groups() {
    let x265 = "log-level=none:keyint=20:min-keyint=20:scenecut=0:bframes=3:b-adapt=0:temporal-layers=1:open-gop=1";
    let p = check_ts("h265_with_temporal_layers_and_open_groups", "libx265", &["-x265-params", x265], VideoCodec::H265);
    assert!(p.is_empty() || p.iter().any(|p| p.layer > 0), "layers are read");
}

/// AV1 in IVF, whose frames are temporal units with their time stamps.
fn check_av1(test: &str, encoder: &str, more: &[&str]) {
    let Some(path) = encoded(test, FRAMES, &[], encoder, more, "ivf") else { return };
    let file = std::fs::read(&path).expect("it was written");
    let (head, mut rest) = file.split_at(32);
    let mut units: Vec<(&[u8], &[u8])> = Vec::new();
    while let Some(frame) = rest.first_chunk::<12>() {
        let len = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        units.push((&rest[..12], &rest[12..12 + len]));
        rest = &rest[12 + len..];
    }
    let mut pictures = Pictures::new(VideoCodec::Av1);
    let pictures: Vec<Picture> = units.iter().map(|u| pictures.push(u.1)).collect();
    for start_codes in [false, true] {
        let ts = av1_in_ts(&units, start_codes);
        let mut r = Recording::new();
        r.push(None, &ts);
        r.finish();
        assert_eq!(r.codec(), Some(VideoCodec::Av1));
        let of: Vec<Picture> = r.frames().iter().map(|f| f.picture.clone()).collect();
        assert!(of == pictures, "{test}: in a transport stream, start codes {start_codes}");
        assert_eq!(r.frames()[2].time, 7_200);
        assert_eq!(
            sent_as(&ts),
            pictures.iter().map(|p| p.class).collect::<Vec<_>>(),
            "{test}: `send` has the same classes"
        );
    }
    let time = |u: &(&[u8], &[u8])| i64::from(u32::from_le_bytes([u.0[4], u.0[5], u.0[6], u.0[7]]));
    let times: Vec<i64> = units.iter().map(time).collect();
    assert_eq!(pictures.len(), FRAMES, "one frame is shown of each temporal unit");
    assert!(pictures.iter().all(|p| p.class.is_some()) && count(&pictures, Class::I) >= 2);
    assert!(count(&pictures, Class::B) > 0, "some frames are needed by nothing");
    check(test, &pictures, &times, &path, |damaged, to| {
        let mut cut = head.to_vec();
        for (i, (frame, unit)) in units.iter().enumerate() {
            cut.extend_from_slice(frame);
            cut.extend_from_slice(unit);
            // In the first frame of the unit.
            let from = cut.len() - unit.len() + 150;
            if i == damaged && unit.len() > 400 {
                cut[from..from + 10].iter_mut().for_each(|b| *b ^= 0x5a);
            }
        }
        units[damaged].1.len() > 400 && std::fs::write(to, cut).is_ok()
    });
}

/// Temporal units as the mapping to transport streams has them: each in a PES packet of private data, registered as AV01,
/// its open bitstream units behind start codes or as they are.
fn av1_in_ts(units: &[(&[u8], &[u8])], start_codes: bool) -> Vec<u8> {
    let mut ts = Vec::new();
    let mut counters = [0u8; 0x200];
    let mut put = |pid: u16, start: bool, payload: &[u8]| {
        let mut p = vec![0x47, (pid >> 8) as u8 | if start { 0x40 } else { 0 }, pid as u8];
        let counter = &mut counters[usize::from(pid)];
        let room = 184 - payload.len();
        p.push(if room > 0 { 0x30 } else { 0x10 } | *counter);
        *counter = (*counter + 1) & 15;
        if room > 0 {
            p.push(room as u8 - 1);
            p.extend([0].iter().chain(std::iter::repeat(&0xff)).take(room - 1));
        }
        p.extend(payload);
        ts.extend(p);
    };
    let section = |table: u8, id: u16, body: &[u8]| {
        let mut s = vec![0, table, 0xb0, (body.len() + 9) as u8];
        s.extend(id.to_be_bytes());
        s.extend([0xc1, 0, 0]);
        s.extend(body);
        let crc = s[1..].iter().fold(u32::MAX, |crc, b| {
            (0..8).fold(crc ^ u32::from(*b) << 24, |c, _| if c >> 31 == 1 { c << 1 ^ 0x04c1_1db7 } else { c << 1 })
        });
        s.extend(crc.to_be_bytes());
        s
    };
    put(0, true, &section(0, 1, &[0, 1, 0xe0, 0x20]));
    put(0x20, true, &section(2, 1, &[0xe1, 0x00, 0xf0, 0, 0x06, 0xe1, 0x00, 0xf0, 6, 5, 4, b'A', b'V', b'0', b'1']));
    for (i, (_, unit)) in units.iter().enumerate() {
        let stamp = i as u64 * 3_600 + 90_000;
        let mut pes = vec![0, 0, 1, 0xbd, 0, 0, 0x84, 0x80, 5, 0x21 | (stamp >> 29) as u8 & 0xe];
        pes.extend(((stamp >> 14) as u16 | 1).to_be_bytes());
        pes.extend(((stamp << 1) as u16 | 1).to_be_bytes());
        if start_codes {
            pes.extend(with_start_codes(unit));
        } else {
            pes.extend(*unit);
        }
        for (n, payload) in pes.chunks(184).enumerate() {
            put(0x100, n == 0, payload);
        }
    }
    ts
}

/// A start code in front of each unit, and a 3 wherever two zeros have something small behind them.
fn with_start_codes(unit: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < unit.len() {
        let mut end = at + 1;
        let (mut size, mut shift) = (0usize, 0);
        loop {
            let byte = unit[end];
            size |= usize::from(byte & 0x7f) << shift;
            (end, shift) = (end + 1, shift + 7);
            if byte & 0x80 == 0 {
                break;
            }
        }
        end += size;
        out.extend([0, 0, 1]);
        let mut zeros = 0;
        for b in &unit[at..end] {
            if zeros >= 2 && *b <= 3 {
                out.push(3);
                zeros = 0;
            }
            zeros = if *b == 0 { zeros + 1 } else { 0 };
            out.push(*b);
        }
        at = end;
    }
    out
}

#[test]
fn av1_of_libaom() {
    check_av1("av1_of_libaom", "libaom-av1", &["-cpu-used", "8", "-g", "24", "-lag-in-frames", "19", "-b:v", "200k"]);
}

#[test]
fn av1_of_svt() {
    check_av1("av1_of_svt", "libsvtav1", &["-preset", "12", "-g", "24", "-qp", "40"]);
}
