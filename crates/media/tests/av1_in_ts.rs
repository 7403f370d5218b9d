//! AV1 in transport streams as ffmpeg makes them: private data without a registration.

use anabranch_base::Instant;
use anabranch_media::picture::Pictures;
use anabranch_media::quality::{Comparison, Recording};
use anabranch_media::ts::{PACKET_LEN, Packet, VideoCodec};
use anabranch_media::{Class, Packetiser, PacketiserConfig};
use ffmpeg::{encoded, ffmpeg};
use std::path::{Path, PathBuf};

mod ffmpeg;

const FRAMES: usize = 60;

/// A film with sound.
fn film(test: &str, encoder: &str, more: &[&str], ending: &str) -> Option<PathBuf> {
    encoded(test, FRAMES, &["-f", "lavfi", "-i", "sine=duration=2.4"], encoder, more, ending)
}

/// The classes of the video's frames as `send` reads them.
fn sent_as(ts: &[u8]) -> Vec<Class> {
    let mut p = Packetiser::new(PacketiserConfig::default());
    let mut classes: Vec<(u32, Class)> = Vec::new();
    for (i, piece) in ts.chunks(7 * PACKET_LEN).enumerate() {
        p.push(Instant::from_millis(i as u64), piece);
    }
    p.finish(Instant::from_millis(ts.len() as u64));
    while let Some(m) = p.poll_message() {
        let h = m.header;
        match classes.last_mut().filter(|(frame, _)| *frame == h.frame) {
            Some((_, class)) => *class = h.frame_class,
            None if h.class_known => classes.push((h.frame, h.frame_class)),
            None => {}
        }
    }
    classes.into_iter().map(|(_, class)| class).collect()
}

fn recording(ts: &[u8]) -> Recording {
    let mut r = Recording::new();
    r.push(None, ts);
    r.finish();
    r
}

/// What a film's temporal units are, by another container.
fn classes_of(film: &Path) -> Vec<Option<Class>> {
    let ivf = film.with_extension("ivf");
    ffmpeg(&["-i", film.to_str().expect("a name"), "-an", "-c", "copy"], &ivf);
    let file = std::fs::read(&ivf).expect("it was written");
    let mut rest = &file[32..];
    let mut pictures = Pictures::new(VideoCodec::Av1);
    let mut classes = Vec::new();
    while let Some(head) = rest.first_chunk::<12>() {
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        classes.push(pictures.push(&rest[12..12 + len]).class);
        rest = &rest[12 + len..];
    }
    let _ = std::fs::remove_file(ivf);
    classes
}

/// From a film to classes and to a comparison, by `ffmpeg -c copy -f mpegts`.
fn check(test: &str, encoder: &str, more: &[&str], ending: &str) {
    let Some(film) = film(test, encoder, more, ending) else { return };
    let file = film.with_extension("ts");
    ffmpeg(&["-i", film.to_str().expect("a name"), "-c", "copy", "-f", "mpegts"], &file);
    let ts = std::fs::read(&file).expect("it was written");
    let sent = recording(&ts);
    assert_eq!((sent.codec(), sent.frames().len()), (Some(VideoCodec::Av1), FRAMES), "{test}");
    let classes: Vec<Option<Class>> = sent.frames().iter().map(|f| f.picture.class).collect();
    assert_eq!(classes, classes_of(&film), "{test}");
    assert_eq!(sent_as(&ts).into_iter().map(Some).collect::<Vec<_>>(), classes, "{test}: `send` has the same classes");
    let count = |class: Class| classes.iter().filter(|c| **c == Some(class)).count();
    println!("{test}: {} I, {} P, {} B", count(Class::I), count(Class::P), count(Class::B));
    assert!(count(Class::I) >= 2 && count(Class::P) > 0);
    let found = Comparison::of(&sent, &sent).expect("there is a video");
    assert_eq!((found.undecodable, found.unknown, found.before), ([0; 4], 0, 0), "{test}");
    // Without the second key frame its group cannot be decoded.
    let second = classes.iter().skip(1).position(|c| *c == Some(Class::I)).expect("a second one") + 1;
    let (pid, mut frame) = (sent.video_pid().expect("a video"), 0);
    let keep = |p: &&[u8]| {
        let packet = Packet::new(p).expect("a packet");
        frame += usize::from(packet.pid() == pid && packet.payload_unit_start());
        packet.pid() != pid || frame != second + 1
    };
    let received: Vec<u8> = ts.chunks(PACKET_LEN).filter(keep).flatten().copied().collect();
    let found = Comparison::of(&sent, &recording(&received)).expect("there is a video");
    assert_eq!(found.missing, [1, 0, 0, 0], "{test}");
    assert!(found.undecodable.iter().sum::<u64>() > 10, "{test}: {:?}", found.undecodable);
    let _ = (std::fs::remove_file(&film), std::fs::remove_file(&file));
}

const SVT: [&str; 6] = ["-preset", "12", "-g", "24", "-qp", "40"];
const AOM: [&str; 8] = ["-cpu-used", "8", "-g", "24", "-lag-in-frames", "19", "-b:v", "200k"];

#[test]
fn from_mp4() {
    check("from_mp4", "libsvtav1", &SVT, "mp4");
}

#[test]
fn from_fragments() {
    let fragments = ["-movflags", "frag_keyframe+empty_moov"];
    check("from_fragments", "libsvtav1", &[&SVT[..], &fragments].concat(), "mp4");
}

#[test]
fn from_matroska() {
    check("from_matroska", "libaom-av1", &AOM, "mkv");
}

#[test]
fn from_libaom_in_mp4() {
    check("from_libaom_in_mp4", "libaom-av1", &AOM, "mp4");
}
