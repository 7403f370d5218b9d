//! `anabranch lab frames`: a film's frames for `video-trace`.

use crate::exit::{Failure, Outcome, print};
use crate::interrupt::Interrupt;
use crate::quality::{Progress, codec_name, read};
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
    let text = trace(&film.recording).ok_or_else(|| {
        Failure::usage(format!("{}: no transport stream with frames of known classes", args.film.display()))
    })?;
    print(&text)
}

/// A line for each frame in the order they are sent; none where there are no frames, or none has a class.
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
        "# Class and bytes of each frame in the order they are sent: {} frames of {codec}.",
        frames.len()
    );
    let _ = writeln!(
        out,
        "# Bytes are those of its transport packets. With fps = {} they are {rate:.2} Mbit/s.",
        rounded(fps)
    );
    for f in frames {
        // What others may refer to has to come, and a frame that cannot be read may be such a one.
        let class = f.picture.class.unwrap_or(Class::P);
        let _ = writeln!(out, "{class} {}", size(f));
    }
    Some(out)
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
