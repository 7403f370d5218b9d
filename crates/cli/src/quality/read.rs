//! A recording from a file: a transport stream as it is, or out of a capture.

use super::capture::{Capture, Flow};
use super::progress::Progress;
use crate::exit::Failure;
use crate::input::detect;
use crate::interrupt::Interrupt;
use anabranch_media::quality::Recording;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes read at once.
pub const PIECE: usize = 256 << 10;

/// A recording of a stream, and the file that a decoder is to read of it.
pub struct Source {
    pub recording: Recording,
    path: PathBuf,
    is_capture: bool,
    /// The transport stream of a capture or a pipe, for a decoder.
    taken_out: Option<NamedTempFile>,
}

impl Source {
    /// Does it say when each packet came?
    pub fn is_capture(&self) -> bool {
        self.is_capture
    }

    /// A file with the transport stream alone.
    pub fn stream(&self) -> &Path {
        self.taken_out.as_ref().map_or(&self.path, NamedTempFile::path)
    }
}

/// A port chooses among the streams of a capture; elsewhere it would do nothing.
pub fn refuse_port_without_capture(port: Option<u16>, read: &[&Source]) -> Result<(), Failure> {
    if port.is_some() && !read.iter().any(|s| s.is_capture) {
        return Err(Failure::usage(
            "--port is for captures (pcap, pcapng), and what was read is a transport stream: remove it",
        ));
    }
    Ok(())
}

/// What a path calls standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads all of a file, or of standard input for `-`.
pub fn read(path: &Path, port: Option<u16>, progress: &Progress, interrupt: &Interrupt) -> Result<Source, Failure> {
    let name = if is_stdin(path) { "standard input".into() } else { path.display().to_string() };
    let wrong = |e: io::Error| Failure::usage(format!("cannot read {name}: {e}"));
    let (mut file, total): (Box<dyn Read>, u64) = if is_stdin(path) {
        (Box::new(io::stdin().lock()), 0)
    } else {
        let file = File::open(path).map_err(wrong)?;
        let total = file.metadata().map_err(wrong)?.len();
        (Box::new(file), total)
    };
    let mut head = Vec::new();
    file.by_ref().take(detect::HEAD as u64).read_to_end(&mut head).map_err(wrong)?;
    let capture = Capture::of(&head);
    if let Some(film) = detect::film(&head).filter(|_| capture.is_none() && !detect::is_transport_stream(&head)) {
        let source = if is_stdin(path) { "-".into() } else { path.display().to_string() };
        return Err(Failure::usage(format!(
            "{name} is {film}; what is read is a transport stream, as `send` took it or `recv` wrote it, or a capture of one; this makes one of it: ffmpeg -i {source} -c copy -f mpegts film.ts"
        )));
    }
    let from = Cursor::new(head).chain(file);
    let job = Job { name, path, total, progress, interrupt };
    match capture {
        Some(capture) => job.capture(capture, from, port),
        None => job.stream(from),
    }
}

/// A file that is read.
struct Job<'a> {
    name: String,
    path: &'a Path,
    /// Bytes of it, where that is known.
    total: u64,
    progress: &'a Progress,
    interrupt: &'a Interrupt,
}

impl Job<'_> {
    fn wrong(&self, e: &io::Error) -> Failure {
        Failure::usage(format!("cannot read {}: {e}", self.name))
    }

    /// So many bytes are read; is the user still interested?
    fn tell(&self, done: u64) -> Result<(), Failure> {
        if self.total > 0 {
            self.progress.tell(&format!("reading {}", self.name), done, self.total);
        }
        if self.interrupt.has_come() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// A transport stream as it is. A decoder reads a copy of what comes through a pipe.
    fn stream(self, mut from: impl Read) -> Result<Source, Failure> {
        let mut copy = if is_stdin(self.path) { Some(Copy::new()?) } else { None };
        let (mut recording, mut piece, mut done) = (Recording::new(), vec![0; PIECE], 0);
        loop {
            let n = from.read(&mut piece).map_err(|e| self.wrong(&e))?;
            let bytes = piece.get(..n).unwrap_or(&[]);
            recording.push(None, bytes);
            copy.as_mut().map_or(Ok(()), |copy| copy.write(bytes))?;
            done += n as u64;
            self.tell(done)?;
            if n == 0 {
                break;
            }
        }
        recording.finish();
        Ok(Source { recording, path: self.path.to_owned(), is_capture: false, taken_out: copy.map(|c| c.0) })
    }

    /// The stream out of a capture.
    fn capture(self, capture: Capture, from: impl Read, port: Option<u16>) -> Result<Source, Failure> {
        let (mut recording, mut copy) = (Recording::new(), Copy::new()?);
        let mut capture = capture.reading(BufReader::with_capacity(PIECE, from));
        let mut flow = Flow::new(port);
        while let Some(packet) = capture.next().map_err(|e| self.wrong(&e))? {
            if let Some(stream) = flow.stream(packet.link, &packet.bytes) {
                recording.push(Some(packet.at), stream);
                copy.write(stream)?;
            }
            self.tell(packet.read)?;
        }
        if recording.bytes().0 == 0 {
            let which = port.map_or(String::new(), |p| format!(" to port {p}"));
            let name = self.name;
            return Err(Failure::usage(format!("{name}: no datagram{which} in this capture has a transport stream")));
        }
        recording.finish();
        Ok(Source { recording, path: self.path.to_owned(), is_capture: true, taken_out: Some(copy.0) })
    }
}

/// The stream alone, for a decoder.
struct Copy(NamedTempFile);

impl Copy {
    fn new() -> Result<Self, Failure> {
        let file = NamedTempFile::with_suffix(".ts");
        let wrong = |e| Failure::usage(format!("cannot write to {}: {e}", std::env::temp_dir().display()));
        file.map(Copy).map_err(wrong)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let wrong = |e| Failure::usage(format!("cannot write a copy of the stream: {e}"));
        self.0.write_all(bytes).map_err(wrong)
    }
}
