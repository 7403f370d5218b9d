//! The files of a trace. The first error is kept and reported at the end; a simulation does not stop for it. Until then
//! they are called `NAME.part`, so that an earlier trace stays whole until a later one is.

use super::line::Line;
use crate::metrics::FrameRow;
use crate::numbers::csv_field;
use anabranch_base::Instant;
use anabranch_wire::{Direction, InterfaceId, LinkType, PcapngWriter};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What a run leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outputs {
    /// A pcapng capture for each host that packets leave from or arrive at.
    pub pcap: bool,
    /// Every event of every packet, as CSV.
    pub csv: bool,
    /// The event log, JSON lines.
    pub log: bool,
    /// Every frame of films that are watched, as CSV.
    pub frames: bool,
}

impl Outputs {
    /// All of them.
    pub const ALL: Outputs = Outputs { pcap: true, csv: true, log: true, frames: true };

    /// True when nothing was asked for.
    pub fn is_empty(self) -> bool {
        self == Outputs::default()
    }
}

/// Why a trace could not be written; names the file.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

type Out = BufWriter<File>;

/// The head of the packet trace.
const CSV_HEAD: &str = "time,event,place,from,to,size,kind,flow,path,number,tsn,cause,ecn\n";

/// The head of the table of frames.
const FRAMES_HEAD: &str = "flow,frame,class,time,bytes,packets,came,in-time,whole,decodable\n";

/// Open files.
pub(super) struct Files {
    dir: PathBuf,
    stem: String,
    outputs: Outputs,
    csv: Option<(PathBuf, Out)>,
    log: Option<(PathBuf, Out)>,
    frames: Option<(PathBuf, Out)>,
    captures: BTreeMap<String, Capture>,
    /// Names of files that are still called otherwise.
    parts: Vec<PathBuf>,
    failure: Option<TraceError>,
}

struct Capture {
    path: PathBuf,
    writer: PcapngWriter<Out>,
    interfaces: BTreeMap<String, InterfaceId>,
}

/// A row of the packet trace.
pub(super) struct CsvRow<'a> {
    pub at: Instant,
    pub event: &'a str,
    pub place: &'a str,
    pub from: &'a str,
    pub to: &'a str,
    pub size: u32,
    pub kind: &'a str,
    pub flow: &'a str,
    pub path: Option<usize>,
    pub number: u64,
    pub numbers: &'a [u64],
    pub cause: &'a str,
    pub ecn: &'a str,
}

impl Files {
    /// Creates the folder and the files that are wanted from the start: `STEM.csv`, `STEM.jsonl`; captures
    /// `STEM-HOST.pcapng` follow with their first packet, and `STEM-frames.csv` with its first flow.
    pub(super) fn create(dir: &Path, stem: &str, outputs: Outputs) -> Result<Self, TraceError> {
        std::fs::create_dir_all(dir).map_err(|source| TraceError { path: dir.to_path_buf(), source })?;
        let mut files = Files {
            csv: None,
            log: None,
            frames: None,
            dir: dir.to_path_buf(),
            stem: stem.to_owned(),
            outputs,
            captures: BTreeMap::new(),
            parts: Vec::new(),
            failure: None,
        };
        let path = |ending: &str| dir.join(format!("{stem}.{ending}"));
        files.csv = outputs.csv.then(|| files.open(path("csv"))).transpose()?;
        files.log = outputs.log.then(|| files.open(path("jsonl"))).transpose()?;
        if let Some((_, out)) = &mut files.csv {
            let written = out.write_all(CSV_HEAD.as_bytes());
            files.keep(written, Which::Csv);
        }
        Ok(files)
    }

    fn open(&mut self, path: PathBuf) -> Result<(PathBuf, Out), TraceError> {
        match File::create(part(&path)) {
            Ok(file) => {
                self.parts.push(path.clone());
                Ok((path, BufWriter::with_capacity(1 << 16, file)))
            }
            Err(source) => Err(TraceError { path, source }),
        }
    }

    /// A row for each frame of a flow that is watched: the file `STEM-frames.csv` is there once there is one.
    pub(super) fn frames(&mut self, flow: &str, rows: impl Iterator<Item = FrameRow>) {
        if !self.outputs.frames || self.failure.is_some() {
            return;
        }
        if self.frames.is_none() {
            let opened = match self.open(self.dir.join(frames(&self.stem))) {
                Ok(opened) => opened,
                Err(e) => {
                    self.failure.get_or_insert(e);
                    return;
                }
            };
            let (_, out) = self.frames.insert(opened);
            let written = out.write_all(FRAMES_HEAD.as_bytes());
            self.keep(written, Which::Frames);
        }
        for (number, r) in rows.enumerate() {
            let Some((_, out)) = &mut self.frames else { break };
            let (at, whole) = (Seconds(r.at), r.whole.map_or(String::new(), |t| Seconds(t).to_string()));
            let decodable = r.decodable.map_or("", |d| if d { "1" } else { "0" });
            let (class, bytes, packets) = (r.class, r.bytes, r.packets);
            let written = writeln!(
                out,
                "{},{number},{class:?},{at},{bytes},{packets},{},{},{whole},{decodable}",
                csv_field(flow),
                r.came,
                r.in_time
            );
            self.keep(written, Which::Frames);
        }
    }

    pub(super) fn wants(&self) -> Outputs {
        self.outputs
    }

    pub(super) fn log(&mut self, line: &Line) {
        let Some((_, out)) = &mut self.log else { return };
        let written =
            serde_json::to_writer(&mut *out, line).map_err(io::Error::from).and_then(|()| out.write_all(b"\n"));
        self.keep(written, Which::Log);
    }

    pub(super) fn row(&mut self, r: &CsvRow<'_>) {
        let Some((_, out)) = &mut self.csv else { return };
        let numbers: Vec<String> = r.numbers.iter().map(u64::to_string).collect();
        let path = r.path.map_or(String::new(), |p| p.to_string());
        let written = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{path},{},{},{},{}",
            Seconds(r.at),
            r.event,
            csv_field(r.place),
            csv_field(r.from),
            csv_field(r.to),
            r.size,
            r.kind,
            csv_field(r.flow),
            r.number,
            numbers.join(" "),
            r.cause,
            r.ecn
        );
        self.keep(written, Which::Csv);
    }

    /// Adds a packet to the capture of a host, on the interface of that name; `length` is what it has on the wire.
    pub(super) fn capture(
        &mut self,
        host: &str,
        interface: &str,
        at: Instant,
        direction: Direction,
        packet: &[u8],
        length: u32,
    ) {
        if !self.outputs.pcap {
            return;
        }
        if !self.captures.contains_key(host) {
            let numbered = (2..).map(|n| capture(&self.stem, &format!("{host}-{n}")));
            // Hosts that differ in other letters alone have captures of their own.
            let mut paths = std::iter::once(capture(&self.stem, host)).chain(numbered).map(|n| self.dir.join(n));
            let Some(path) = paths.find(|p| !self.parts.contains(p)) else { return };
            match self.open(path).and_then(|(path, out)| {
                let writer = PcapngWriter::new(out, "anabranch");
                let writer = writer.map_err(|source| TraceError { path: path.clone(), source })?;
                Ok(Capture { path, writer, interfaces: BTreeMap::new() })
            }) {
                Ok(capture) => drop(self.captures.insert(host.to_owned(), capture)),
                Err(e) => {
                    self.failure.get_or_insert(e);
                    return;
                }
            }
        }
        let Some(capture) = self.captures.get_mut(host) else { return };
        let written = capture.write(interface, at, direction, packet, length);
        self.keep(written, Which::Capture(host));
    }

    fn keep(&mut self, written: io::Result<()>, which: Which<'_>) {
        let Err(source) = written else { return };
        let path = match which {
            Which::Csv => self.csv.take().map(|f| f.0),
            Which::Log => self.log.take().map(|f| f.0),
            Which::Frames => self.frames.take().map(|f| f.0),
            Which::Capture(host) => self.captures.get(host).map(|c| c.path.clone()),
        };
        let path = path.unwrap_or_else(|| self.dir.clone());
        self.failure.get_or_insert(TraceError { path, source });
    }

    /// Writes out what is buffered, gives the files their names and tells these. After a failure no file is left.
    pub(super) fn finish(&mut self) -> Result<Vec<PathBuf>, TraceError> {
        let mut all = Vec::new();
        for (path, mut out) in [self.csv.take(), self.log.take(), self.frames.take()].into_iter().flatten() {
            let flushed = out.flush();
            self.failed(flushed, &path);
            all.push(path);
        }
        for (_, mut capture) in std::mem::take(&mut self.captures) {
            let flushed = capture.writer.flush();
            self.failed(flushed, &capture.path);
            all.push(capture.path);
        }
        if self.failure.is_none() {
            for path in std::mem::take(&mut self.parts) {
                let named = std::fs::rename(part(&path), &path);
                if named.is_err() {
                    self.parts.push(path.clone());
                }
                self.failed(named, &path);
            }
        }
        self.clear();
        match self.failure.take() {
            Some(e) => Err(e),
            None => Ok(all),
        }
    }

    /// Removes what has no name yet.
    fn clear(&mut self) {
        // A failure before this one is the one to report.
        self.parts.drain(..).for_each(|path| drop(std::fs::remove_file(part(&path))));
    }

    fn failed(&mut self, result: io::Result<()>, path: &Path) {
        if let Err(source) = result {
            self.failure.get_or_insert(TraceError { path: path.to_path_buf(), source });
        }
    }
}

/// A run that fails finishes nothing.
impl Drop for Files {
    fn drop(&mut self) {
        self.clear();
    }
}

enum Which<'a> {
    Csv,
    Log,
    Frames,
    Capture(&'a str),
}

impl Capture {
    fn write(&mut self, interface: &str, at: Instant, way: Direction, packet: &[u8], length: u32) -> io::Result<()> {
        let id = match self.interfaces.get(interface) {
            Some(id) => *id,
            None => {
                let id = self.writer.add_interface(interface, LinkType::RAW_IP)?;
                self.interfaces.insert(interface.to_owned(), id);
                id
            }
        };
        self.writer.packet_cut(id, at.as_nanos(), way, packet, length)
    }
}

/// What a file is called until it is whole.
fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// The capture of a host of the run whose files begin with `stem`.
pub(crate) fn capture(stem: &str, host: &str) -> String {
    format!("{stem}-{}.pcapng", safe(host))
}

/// The name of the table of frames.
pub(crate) fn frames(stem: &str) -> String {
    format!("{stem}-frames.csv")
}

/// A node's name as part of a file name.
fn safe(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect()
}

/// Seconds with all nine decimals.
struct Seconds(Instant);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Outputs = Outputs { pcap: false, csv: true, log: true, frames: false };

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_earlier_trace_stays_until_a_later_one_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let csv = dir.path().join("a.csv");
        std::fs::write(&csv, "whole").unwrap();
        let files = Files::create(dir.path(), "a", BOTH).unwrap();
        assert_eq!(std::fs::read(&csv).unwrap(), b"whole");
        drop(files);
        assert_eq!((std::fs::read(&csv).unwrap(), names(dir.path())), (b"whole".to_vec(), vec!["a.csv".to_owned()]));
        let mut files = Files::create(dir.path(), "a", BOTH).unwrap();
        assert_eq!(files.finish().unwrap(), [csv.clone(), dir.path().join("a.jsonl")]);
        assert_eq!((std::fs::read_to_string(&csv).unwrap().as_str(), names(dir.path()).len()), (CSV_HEAD, 2));
    }

    #[test]
    fn hosts_of_like_names_have_captures_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::create(dir.path(), "a", Outputs { pcap: true, ..Outputs::default() }).unwrap();
        for host in ["h.1", "h 1", "h.1"] {
            files.capture(host, "10.0.0.1", Instant::ZERO, Direction::Out, &[0x45; 20], 20);
        }
        assert_eq!(files.finish().unwrap().len(), 2);
        assert_eq!(names(dir.path()), ["a-h-1-2.pcapng", "a-h-1.pcapng"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_leaves_no_halves() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("a.jsonl");
        std::fs::write(&log, "whole").unwrap();
        // Every write to this one fails.
        std::os::unix::fs::symlink("/dev/full", dir.path().join("a.csv.part")).unwrap();
        let failed = Files::create(dir.path(), "a", BOTH).unwrap().finish().unwrap_err();
        assert!(failed.to_string().contains("a.csv: No space left"), "{failed}");
        assert_eq!((std::fs::read(&log).unwrap(), names(dir.path())), (b"whole".to_vec(), vec!["a.jsonl".to_owned()]));
    }
}
