//! `anabranch lab frames`: a film's frames for `video-trace`.

use crate::exit::{Failure, Outcome, print};
use crate::interrupt::Interrupt;
use crate::quality::{Progress, codec_name, read, refuse_port_without_capture};
use anabranch_media::Class;
use anabranch_media::quality::{Frame, Recording};
use anabranch_media::ts::PACKET_LEN;
use std::fmt::Write;
use std::path::PathBuf;

/// Print a film's frames as traffic of a scenario (`video-trace`)
#[derive(Clone, Debug, clap::Args)]
pub struct FramesArgs {
    /// A transport stream, or a capture of one in UDP or RTP
    #[arg(value_name = "FILM")]
    film: PathBuf,
    /// UDP port of the stream in a capture [default: that of the first datagram with a transport stream]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

/// Runs the command.
pub fn run(args: &FramesArgs) -> Outcome {
    let progress = Progress::new();
    let film = read(&args.film, args.port, &progress, &Interrupt::install())?;
    progress.end();
    refuse_port_without_capture(args.port, &[&film])?;
    let text = trace(&film.recording).ok_or_else(|| {
        Failure::usage(format!("{}: no transport stream with frames of known classes", args.film.display()))
    })?;
    print(&text)
}

/// A line for each frame in decoding order; none where there are no frames, or none has a class.
fn trace(film: &Recording) -> Option<String> {
    let frames = film.frames();
    frames.iter().find(|f| f.picture.class.is_some())?;
    let ticks = frames.iter().map(|f| f.time).max()? - frames.iter().map(|f| f.time).min()?;
    let fps = match ticks {
        0 => 25.0,
        _ => (frames.len() - 1) as f64 * 90_000.0 / ticks as f64,
    };
    let bytes: u64 = frames.iter().map(size).sum();
    let rate = bytes as f64 * 8.0 * fps / frames.len() as f64 / 1e6;
    let mut out = String::new();
    let codec = film.codec().map_or("video", codec_name);
    let _ = writeln!(
        out,
        "# {} frames of {codec} in decoding order: class, bytes, and how many frames before it those are that it needs.",
        frames.len()
    );
    let _ = writeln!(
        out,
        "# Bytes are those of its transport packets. With fps = {} they are {rate:.2} Mbit/s.",
        rounded(fps)
    );
    for (number, f) in frames.iter().enumerate() {
        // What others may refer to has to come, and a frame that cannot be read may be such a one.
        let class = f.picture.class.unwrap_or(Class::P);
        let _ = writeln!(out, "{class} {} needs {}", size(f), needs(number as u64, f));
    }
    Some(out)
}

/// How far before frame `number` each frame is that it needs, the nearest first.
fn needs(number: u64, frame: &Frame) -> String {
    let needs = &frame.picture.needs;
    let within = needs.units.iter().rev().map(|unit| number - unit);
    // One in front of the film is further away than its first frame.
    let back: Vec<String> = within.chain(needs.missing.then_some(number + 1)).map(|n| n.to_string()).collect();
    if back.is_empty() { "none".to_owned() } else { back.join(" ") }
}

/// Bytes of a frame's packets.
fn size(frame: &Frame) -> u64 {
    u64::from(frame.packets) * PACKET_LEN as u64
}

/// Frames a second to three digits behind the point, without those that are 0.
fn rounded(fps: f64) -> f64 {
    (fps * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::{Duration, Instant};
    use anabranch_lab::metrics::{Dependence, Video};
    use anabranch_media::quality::Comparison;
    use anabranch_sim::traffic::VideoTrace;
    use std::process::{Command, Stdio};

    const CLIP: &[u8] = include_bytes!("../../../media/clips/demo.ts");

    /// A film that ffmpeg makes, none where it cannot.
    fn encoded(dir: &tempfile::TempDir, encoder: &str, params: &[&str]) -> Option<Vec<u8>> {
        let path = dir.path().join("film.mkv");
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25", "-frames:v", "60"]);
        ffmpeg.args(["-threads", "1", "-pix_fmt", "yuv420p", "-c:v", encoder]).args(params).arg(&path);
        ffmpeg.stdin(Stdio::null()).stderr(Stdio::null()).status().ok().filter(|s| s.success())?;
        let stream = dir.path().join("film.ts");
        let mut copy = Command::new("ffmpeg");
        copy.args(["-v", "error", "-y", "-i"]).arg(&path).args(["-c", "copy", "-f", "mpegts"]).arg(&stream);
        copy.stdin(Stdio::null()).status().ok().filter(|s| s.success())?;
        std::fs::read(stream).ok()
    }

    fn recording(packets: impl Iterator<Item = impl AsRef<[u8]>>) -> Recording {
        let mut film = Recording::new();
        packets.for_each(|p| film.push(None, p.as_ref()));
        film.finish();
        film
    }

    /// The stream's packets, each with the number of its frame.
    fn packets(stream: &[u8]) -> Vec<(Option<usize>, &[u8])> {
        let pid = recording(std::iter::once(stream)).video_pid().expect("a video");
        let mut frames = 0;
        let numbered = |p| {
            let packet = anabranch_media::ts::Packet::new(p).expect("a packet");
            frames += usize::from(packet.pid() == pid && packet.payload_unit_start());
            ((packet.pid() == pid).then(|| frames - 1), p)
        };
        stream.chunks(PACKET_LEN).map(numbered).collect()
    }

    /// What the lab makes of a trace whose frames are whole but for those that are lost.
    fn judged(trace: &VideoTrace, lost: &[usize]) -> Vec<bool> {
        let end = Instant::ZERO + Duration::from_secs(3_600);
        let frames = trace.frames.iter().enumerate().map(|(i, f)| (f.0, Instant::ZERO, !lost.contains(&i)));
        let needs = Dependence::Named(trace.needs.clone().expect("a film's trace says what frames need"));
        Video::decodable_of(frames, Duration::ZERO, needs, end).into_iter().map(|d| d == Some(true)).collect()
    }

    /// Whatever the groups of pictures are like: a frame counts as decodable in a run of the lab where `quality` says so.
    #[test]
    fn the_lab_and_quality_agree_on_what_can_be_decoded() {
        const MPEG2: &[&str] = &["-bf", "2", "-g", "12"];
        const X264: &[&str] = &["-bf", "8", "-x264-params", "b-pyramid=normal:open-gop=1:keyint=24:ref=4:scenecut=0"];
        const REFRESHED: &[&str] = &["-x264-params", "intra-refresh=1:bframes=0:keyint=20"];
        const LAYERS: &[&str] = &["-x265-params", "temporal-layers=1:bframes=7:b-adapt=0:keyint=32:log-level=none"];
        const LOW: &[&str] = &["-preset", "10", "-g", "24", "-svtav1-params", "pred-struct=1:hierarchical-levels=3"];
        let dir = tempfile::tempdir().expect("a folder");
        let mut films = vec![("the clip", CLIP.to_vec())];
        // Without its first I picture, frames refer to what is in front of the film.
        let cut = packets(CLIP).into_iter().filter(|(f, _)| *f != Some(0)).flat_map(|(_, p)| p.to_vec());
        films.push(("the clip from its second frame on", cut.collect()));
        for (name, encoder, params) in [
            ("MPEG-2, open groups", "mpeg2video", MPEG2),
            ("H.264, a pyramid in open groups", "libx264", X264),
            ("H.264, refreshed in parts", "libx264", REFRESHED),
            ("H.265, temporal layers", "libx265", LAYERS),
            ("AV1, random access", "libsvtav1", &["-preset", "10", "-g", "24"]),
            ("AV1, low delay", "libsvtav1", LOW),
        ] {
            match encoded(&dir, encoder, params) {
                Some(film) => films.push((name, film)),
                None => eprintln!("SKIPPED {name}: no ffmpeg with {encoder}"),
            }
        }
        for (name, film) in films {
            let (packets, sent) = (packets(&film), recording(std::iter::once(&film)));
            let text = trace(&sent).expect("frames");
            let trace = VideoTrace::parse(&text, 25.0, true).expect("a trace");
            let count = trace.frames.len();
            let singly = (0..count).map(|lost| vec![lost]);
            let several = (0..12).map(|n| (0..count).filter(|i| (i * 7 + n * 5) % 19 == 0).collect());
            let (mut lost_frames, mut undecodable) = (0, 0);
            for lost in std::iter::once(Vec::new()).chain(singly).chain(several) {
                let came = packets.iter().filter(|(f, _)| f.is_none_or(|f| !lost.contains(&f)));
                let found = Comparison::of(&sent, &recording(came.map(|(_, p)| p))).expect("one stream");
                let truth: Vec<bool> = found.results.iter().map(|r| r.decodable).collect();
                assert_eq!(judged(&trace, &lost), truth, "{name} without {lost:?}");
                if lost.len() == 1 {
                    (lost_frames, undecodable) = (lost_frames + 1, undecodable + truth.iter().filter(|d| !**d).count());
                }
            }
            println!("{name}: {:.2} frames undecodable for one that is lost", undecodable as f64 / lost_frames as f64);
        }
    }

    #[test]
    fn what_is_no_film_has_no_frames() {
        let mut film = Recording::new();
        film.push(None, &[0x47; PACKET_LEN * 20]);
        film.finish();
        assert_eq!(trace(&film), None);
    }

    #[test]
    fn frames_a_second_read_well() {
        assert_eq!([25.0, 29.970_03, 30.000_004].map(|f| rounded(f).to_string()), ["25", "29.97", "30"]);
    }
}
