//! The files of a trace. The first error is kept and told at the end; a simulation does not stop for it.

use super::line::Line;
use crate::numbers::csv_field;
use anabranch_base::Instant;
use anabranch_wire::{Direction, Encapsulation, InterfaceId, LinkType, PcapngWriter};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What a run leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outputs {
    /// A pcapng capture for each host that SCTP packets leave from or arrive at.
    pub pcap: bool,
    /// Every event of every packet, as CSV.
    pub csv: bool,
    /// The event log, JSON lines.
    pub log: bool,
}

impl Outputs {
    /// All of them.
    pub const ALL: Outputs = Outputs { pcap: true, csv: true, log: true };

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

/// Open files.
pub(super) struct Files {
    dir: PathBuf,
    stem: String,
    outputs: Outputs,
    csv: Option<(PathBuf, Out)>,
    log: Option<(PathBuf, Out)>,
    captures: BTreeMap<String, Capture>,
    failure: Option<TraceError>,
    scratch: Vec<u8>,
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
    /// `STEM-HOST.pcapng` follow with their first packet.
    pub(super) fn create(dir: &Path, stem: &str, outputs: Outputs) -> Result<Self, TraceError> {
        std::fs::create_dir_all(dir).map_err(|source| TraceError { path: dir.to_path_buf(), source })?;
        let open = |wanted: bool, ending: &str| {
            let path = dir.join(format!("{stem}.{ending}"));
            wanted.then(|| create(path)).transpose()
        };
        let mut files = Files {
            csv: open(outputs.csv, "csv")?,
            log: open(outputs.log, "jsonl")?,
            dir: dir.to_path_buf(),
            stem: stem.to_owned(),
            outputs,
            captures: BTreeMap::new(),
            failure: None,
            scratch: Vec::new(),
        };
        if let Some((_, out)) = &mut files.csv {
            let written = out.write_all(CSV_HEAD.as_bytes());
            files.keep(written, Which::Csv);
        }
        Ok(files)
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

    /// Adds an SCTP packet to the capture of a host, on the interface of that name.
    pub(super) fn capture(
        &mut self,
        host: &str,
        interface: &str,
        at: Instant,
        direction: Direction,
        (source, destination): (IpAddr, IpAddr),
        packet: &[u8],
    ) {
        if !self.outputs.pcap {
            return;
        }
        if !self.captures.contains_key(host) {
            let path = self.dir.join(format!("{}-{}.pcapng", self.stem, safe(host)));
            match create(path).and_then(|(path, out)| {
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
        self.scratch.clear();
        Encapsulation::ip(source, destination).wrap(packet, &mut self.scratch);
        let written = capture.write(interface, at, direction, &self.scratch);
        self.keep(written, Which::Capture(host));
    }

    fn keep(&mut self, written: io::Result<()>, which: Which<'_>) {
        let Err(source) = written else { return };
        let path = match which {
            Which::Csv => self.csv.take().map(|f| f.0),
            Which::Log => self.log.take().map(|f| f.0),
            Which::Capture(host) => self.captures.get(host).map(|c| c.path.clone()),
        };
        let path = path.unwrap_or_else(|| self.dir.clone());
        self.failure.get_or_insert(TraceError { path, source });
    }

    /// Writes out what is buffered and names the files.
    pub(super) fn finish(&mut self) -> Result<Vec<PathBuf>, TraceError> {
        let mut all = Vec::new();
        for (path, mut out) in self.csv.take().into_iter().chain(self.log.take()) {
            let flushed = out.flush();
            self.failed(flushed, &path);
            all.push(path);
        }
        for (_, mut capture) in std::mem::take(&mut self.captures) {
            let flushed = capture.writer.flush();
            self.failed(flushed, &capture.path);
            all.push(capture.path);
        }
        match self.failure.take() {
            Some(e) => Err(e),
            None => Ok(all),
        }
    }

    fn failed(&mut self, result: io::Result<()>, path: &Path) {
        if let Err(source) = result {
            self.failure.get_or_insert(TraceError { path: path.to_path_buf(), source });
        }
    }
}

enum Which<'a> {
    Csv,
    Log,
    Capture(&'a str),
}

impl Capture {
    fn write(&mut self, interface: &str, at: Instant, direction: Direction, packet: &[u8]) -> io::Result<()> {
        let id = match self.interfaces.get(interface) {
            Some(id) => *id,
            None => {
                let id = self.writer.add_interface(interface, LinkType::RAW_IP)?;
                self.interfaces.insert(interface.to_owned(), id);
                id
            }
        };
        self.writer.packet(id, at.as_nanos(), direction, packet)
    }
}

fn create(path: PathBuf) -> Result<(PathBuf, Out), TraceError> {
    match File::create(&path) {
        Ok(file) => Ok((path, BufWriter::with_capacity(1 << 16, file))),
        Err(source) => Err(TraceError { path, source }),
    }
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
