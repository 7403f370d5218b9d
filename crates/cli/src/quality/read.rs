//! A recording from a file: a transport stream as it is, or out of a capture.

use super::capture::{Capture, Flow};
use super::progress::Progress;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use anabranch_media::quality::Recording;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes read at once.
pub const PIECE: usize = 256 << 10;

/// A recording of a stream, and the file that a decoder is to read of it.
pub struct Source {
    pub recording: Recording,
    path: PathBuf,
    /// The transport stream of a capture, for a decoder.
    taken_out: Option<NamedTempFile>,
}

impl Source {
    /// A file with the transport stream alone.
    pub fn stream(&self) -> &Path {
        self.taken_out.as_ref().map_or(&self.path, NamedTempFile::path)
    }
}

/// Reads all of a file.
pub fn read(path: &Path, port: Option<u16>, progress: &Progress, interrupt: &Interrupt) -> Result<Source, Failure> {
    let wrong = |e: std::io::Error| Failure::usage(format!("cannot read {}: {e}", path.display()));
    let mut file = File::open(path).map_err(wrong)?;
    let total = file.metadata().map_err(wrong)?.len();
    let mut head = [0; 4];
    let known = file.read(&mut head).map_err(wrong)?;
    file.rewind().map_err(wrong)?;
    let what = format!("reading {}", path.display());
    let mut recording = Recording::new();
    let Some(capture) = head.get(..known).and_then(Capture::of) else {
        let (mut piece, mut done) = (vec![0; PIECE], 0);
        loop {
            let n = file.read(&mut piece).map_err(wrong)?;
            recording.push(None, piece.get(..n).unwrap_or(&[]));
            done += n as u64;
            progress.tell(&what, done, total);
            if interrupt.has_come() {
                return Err(Failure::Interrupted);
            }
            if n == 0 {
                break;
            }
        }
        recording.finish();
        return Ok(Source { recording, path: path.to_owned(), taken_out: None });
    };
    let mut taken_out = NamedTempFile::with_suffix(".ts")
        .map_err(|e| Failure::usage(format!("cannot write to {}: {e}", std::env::temp_dir().display())))?;
    let mut capture = capture.reading(BufReader::with_capacity(PIECE, file));
    let mut flow = Flow::new(port);
    while let Some(packet) = capture.next().map_err(wrong)? {
        if let Some(stream) = flow.stream(packet.link, &packet.bytes) {
            recording.push(Some(packet.at), stream);
            taken_out
                .write_all(stream)
                .map_err(|e| Failure::usage(format!("cannot write a copy of the stream: {e}")))?;
        }
        progress.tell(&what, packet.read, total);
        if interrupt.has_come() {
            return Err(Failure::Interrupted);
        }
    }
    if recording.bytes().0 == 0 {
        let which = port.map_or(String::new(), |p| format!(" to port {p}"));
        return Err(Failure::usage(format!(
            "{}: no datagram{which} in this capture has a transport stream",
            path.display()
        )));
    }
    recording.finish();
    Ok(Source { recording, path: path.to_owned(), taken_out: Some(taken_out) })
}
