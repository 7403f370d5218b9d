//! Writes rows as JSON, CSV or text.

use super::collect::Collector;
use super::prometheus::{Page, Snapshot};
use super::range::Range;
use super::rows::{PathRow, Row, StreamRow, Totals, VERSION};
use super::{Format, StatsArgs};
use crate::exit::Failure;
use crate::input::plain;
use crate::monitor::lock;
use crate::overwrite::beside;
use anabranch_net::{Event, Instant, PathReport, TimedEvent};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const CSV_HEADER: &str = "session,t,path,local,remote,state,\
    srtt_ms_min,srtt_ms_avg,srtt_ms_max,rto_ms_min,rto_ms_avg,rto_ms_max,\
    cwnd_bytes_min,cwnd_bytes_avg,cwnd_bytes_max,in_flight_bytes_min,in_flight_bytes_avg,in_flight_bytes_max,\
    send_bps_min,send_bps_avg,send_bps_max,receive_bps_min,receive_bps_avg,receive_bps_max,\
    delivery_bps_min,delivery_bps_avg,delivery_bps_max,\
    packets_sent,bytes_sent,data_sent,data_retransmitted,packets_received,bytes_received,\
    lost_by_report,lost_by_timeout,timeouts,\
    capacity_bps_min,capacity_bps_avg,capacity_bps_max";

/// Writes the statistics of one session after another.
pub struct Reporter {
    sink: Arc<Mutex<Sink>>,
    session: u32,
    intervals: Option<Format>,
    quiet: bool,
    began: Instant,
    who: (&'static str, &'static str, String),
    /// The name of the stream, where there are several.
    name: Option<String>,
    collector: Collector,
}

/// Where lines go, whoever writes them.
struct Sink {
    out: Box<dyn Write + Send>,
    sessions: u32,
    page: Page,
    /// The file that holds the page, replaced whole.
    page_file: Option<PathBuf>,
}

impl Sink {
    fn write_page(&mut self) {
        let text = self.page.render();
        let written = match &self.page_file {
            Some(path) => replace(path, &text),
            None => writeln!(self.out, "{text}").and_then(|()| self.out.flush()),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "statistics cannot be written");
        }
    }
}

/// A reader sees the old page or the new one, never a half.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path);
    std::fs::write(&new, text)?;
    std::fs::rename(&new, path)
}

/// A row and whose it is.
#[derive(Serialize)]
struct Line<'a> {
    session: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    streamid: Option<&'a str>,
    #[serde(flatten)]
    row: &'a Row,
}

impl Reporter {
    /// Opens where statistics go: the file, or standard output, or standard error when the stream itself goes to
    /// standard output.
    pub fn open(args: &StatsArgs, stdout_taken: bool) -> Result<Self, Failure> {
        args.check()?;
        let page_file = args.stats_file.clone().filter(|_| args.intervals() == Some(Format::Prometheus));
        let wrong = |path: &Path, e| Failure::usage(format!("cannot write {}: {}", path.display(), plain(&e)));
        let out: Box<dyn Write + Send> = match &args.stats_file {
            Some(path) if page_file.is_some() => {
                replace(path, "").map_err(|e| wrong(path, e))?;
                Box::new(io::sink())
            }
            Some(path) => Box::new(BufWriter::new(File::create(path).map_err(|e| wrong(path, e))?)),
            None if stdout_taken => Box::new(io::stderr()),
            None => Box::new(io::stdout()),
        };
        Ok(Reporter {
            sink: Arc::new(Mutex::new(Sink { out, sessions: 0, page: Page::default(), page_file })),
            session: 0,
            intervals: args.intervals(),
            quiet: args.quiet,
            began: anabranch_net::now(),
            who: Default::default(),
            name: None,
            collector: Collector::default(),
        })
    }

    /// Are rows written from time to time, or only the totals?
    pub fn has_rows(&self) -> bool {
        self.intervals.is_some()
    }

    /// One more that writes to the same place, for a session at the same time.
    pub fn another(&self) -> Self {
        Reporter {
            sink: self.sink.clone(),
            session: 0,
            intervals: self.intervals,
            quiet: self.quiet,
            began: anabranch_net::now(),
            who: Default::default(),
            name: None,
            collector: Collector::default(),
        }
    }

    /// All rows of the next session carry the name of its stream.
    pub fn name_stream(&mut self, name: Option<String>) {
        self.name = name;
    }

    /// A session begins.
    pub fn begin(&mut self, command: &'static str, mode: &'static str, peer: String, latency_ms: u64) {
        self.began = anabranch_net::now();
        self.collector = Collector::default();
        self.session = {
            let mut sink = lock(&self.sink);
            sink.page.begin();
            sink.sessions += 1;
            sink.sessions - 1
        };
        self.who = (command, mode, peer.clone());
        if self.intervals == Some(Format::Csv) && self.session == 0 {
            self.line(CSV_HEADER);
        }
        self.row(&Row::Begin { version: VERSION, command, mode, peer, latency_ms });
    }

    /// The session was lost, for this reason.
    pub fn lost(&mut self, why: String) {
        self.link(&Row::Link {
            t: self.seconds(anabranch_net::now()),
            state: "lost",
            why: Some(why),
            latency_ms: None,
        });
    }

    /// It has begun anew; counters go on.
    pub fn again(&mut self, latency_ms: u64) {
        self.collector.renew();
        let t = self.seconds(anabranch_net::now());
        self.link(&Row::Link { t, state: "connected", why: None, latency_ms: Some(latency_ms) });
    }

    fn link(&mut self, row: &Row) {
        if self.intervals.is_some() {
            self.row(row);
            self.flush();
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, now: Instant, paths: &[PathReport]) {
        self.collector.sample(now, paths);
    }

    /// The end of an interval.
    pub fn interval(&mut self, now: Instant, stream: StreamRow) {
        let t = self.seconds(now);
        let rows = self.collector.rows(t);
        match self.intervals {
            None => return,
            Some(Format::Prometheus) => return self.page(t, &rows, &stream),
            _ => {}
        }
        for row in rows {
            self.row(&Row::Stats(row));
        }
        self.row(&Row::Stream { t, stream });
        self.flush();
    }

    /// Something happened.
    pub fn event(&mut self, e: &TimedEvent) {
        let t = self.seconds(e.at);
        let row = match &e.event {
            Event::PathAdded { path } => Row::PathAdded { t, path: path.0 },
            Event::PathChanged { path, from, to, reason } => {
                let [from, to] = [*from, *to].map(super::collect::state_name);
                Row::Path { t, path: path.0, from, to, reason: reason.as_str() }
            }
            Event::PacketSize { path, size } => Row::PacketSize { t, path: path.0, bytes: *size },
            Event::TakenOver { path, after } => Row::TakenOver { t, path: path.0, after_ms: after.as_millis_f64() },
            _ => return,
        };
        tracing::info!("{}", text(&row));
        if self.intervals.is_some() {
            self.row(&row);
            self.flush();
        }
    }

    /// The end of the session.
    pub fn totals(
        &mut self,
        command: &'static str,
        ended: String,
        stream: StreamRow,
        received: Option<crate::session::Done>,
    ) {
        let duration_s = self.seconds(anabranch_net::now());
        let paths = self.collector.totals();
        if self.intervals == Some(Format::Prometheus) {
            // The last interval has said everything.
            lock(&self.sink).page.end(self.session);
            return;
        }
        let totals = Totals { command, duration_s, ended, stream, received, paths };
        if !self.quiet {
            self.row(&Row::Totals(totals));
        }
        self.flush();
    }

    /// Tells the state of all sessions anew.
    fn page(&self, t: f64, rows: &[PathRow], stream: &StreamRow) {
        let (command, mode, peer) = &self.who;
        let totals = self.collector.totals();
        let (session, totals) = (self.session, totals.as_slice());
        let mut sink = lock(&self.sink);
        let name = self.name.as_deref();
        sink.page.set(&Snapshot { session, command, mode, peer, name, t, rows, totals, stream });
        sink.write_page();
    }

    fn seconds(&self, at: Instant) -> f64 {
        (at.since(self.began).as_secs_f64() * 1e3).round() / 1e3
    }

    fn row(&self, row: &Row) {
        let json = |row: &Row| {
            let line = Line { session: self.session, streamid: self.name.as_deref(), row };
            serde_json::to_string(&line)
                .unwrap_or_else(|e| serde_json::json!({"event": "error", "what": e.to_string()}).to_string())
        };
        let line = match (self.intervals, row) {
            (Some(Format::Json), row) => json(row),
            (Some(Format::Csv), Row::Stats(r)) => csv(self.session, r),
            (Some(Format::Csv), row) => format!("# {}", json(row)),
            (None, Row::Begin { .. }) | (Some(Format::Prometheus), _) => return,
            (Some(Format::Text) | None, row) => text(row),
        };
        self.line(&line);
    }

    fn line(&self, line: &str) {
        if let Err(error) = writeln!(lock(&self.sink).out, "{line}") {
            tracing::debug!(%error, "statistics cannot be written");
        }
    }

    fn flush(&self) {
        if let Err(error) = lock(&self.sink).out.flush() {
            tracing::debug!(%error, "statistics cannot be written");
        }
    }
}

fn csv(session: u32, r: &PathRow) -> String {
    let mut s = format!("{session},{},{},{},{},{}", r.t, r.path, r.local, r.remote, r.state);
    // Writing to a String cannot fail.
    let put = |s: &mut String, range: Option<Range>| {
        let _ = match range {
            Some(Range { min, avg, max }) => write!(s, ",{min},{avg},{max}"),
            None => write!(s, ",,,"),
        };
    };
    for range in [r.srtt_ms, r.rto_ms, r.cwnd_bytes, r.in_flight_bytes, r.send_bps, r.receive_bps, r.delivery_bps] {
        put(&mut s, range);
    }
    let c = &r.counters;
    let counts = [
        c.packets_sent,
        c.bytes_sent,
        c.data_sent,
        c.data_retransmitted,
        c.packets_received,
        c.bytes_received,
        c.lost_by_report,
        c.lost_by_timeout,
        c.timeouts,
    ];
    for n in counts {
        let _ = write!(s, ",{n}");
    }
    // Columns are only added at the end.
    put(&mut s, r.capacity_bps);
    s
}

/// A row for people.
fn text(row: &Row) -> String {
    match row {
        Row::Begin { command, mode, peer, latency_ms, .. } => {
            let latency = if *latency_ms > 0 { format!(", latency {latency_ms} ms") } else { String::new() };
            format!("{command}: {mode} with {peer}{latency}")
        }
        Row::Stats(r) => {
            let lost = r.counters.lost_by_report + r.counters.lost_by_timeout;
            let mean = |x: Option<Range>, unit: f64| x.map_or("-".into(), |x| format!("{:.1}", x.avg / unit));
            let span = r.srtt_ms.map_or(String::new(), |x| format!(" ({:.1} to {:.1})", x.min, x.max));
            format!(
                "{:8.1} s  path {} {} to {}: {}, rtt {} ms{span}, window {} kB, out {} Mbit/s, in {} Mbit/s, lost {lost}",
                r.t,
                r.path,
                r.local,
                r.remote,
                r.state,
                mean(r.srtt_ms, 1.0),
                mean(r.cwnd_bytes, 1e3),
                mean(r.send_bps, 1e6),
                mean(r.receive_bps, 1e6),
            )
        }
        Row::Stream { t, stream } => format!("{t:8.1} s  stream: {}", stream_text(stream)),
        Row::Link { t, state, why, .. } => {
            let why = why.as_ref().map_or(String::new(), |why| format!(" ({why})"));
            format!("{t:8.1} s  session {state}{why}")
        }
        Row::PathAdded { t, path } => format!("{t:8.1} s  path {path} added"),
        Row::Path { t, path, from, to, reason } => format!("{t:8.1} s  path {path}: {from} -> {to} ({reason})"),
        Row::PacketSize { t, path, bytes } => {
            format!("{t:8.1} s  path {path}: carries no larger packets than {bytes} bytes of SCTP")
        }
        Row::TakenOver { t, path, after_ms } => {
            format!("{t:8.1} s  path {path}: taken over {after_ms:.1} ms after its last delivery")
        }
        Row::Totals(t) => totals_text(t),
    }
}

fn stream_text(s: &StreamRow) -> String {
    let mut out = format!("{} messages, {} bytes", s.messages, s.bytes);
    let more = [
        (s.frames, "frames"),
        (s.frames_unusable, "of them unusable"),
        (s.late, "messages late"),
        (s.lost, "lost"),
        (s.abandoned, "given up"),
        (s.dropped_bytes, "bytes dropped before they were sent"),
        (s.reconnects, "reconnections"),
    ];
    for (n, what) in more {
        if n > 0 {
            let _ = write!(out, ", {n} {what}");
        }
    }
    if let Some(p) = s.parity {
        let (restored, cost) = (p.repaired + p.repaired_by_peer, p.parity_bytes_sent);
        let _ = write!(out, ", {restored} chunks restored from parity");
        if cost > 0 {
            let _ = write!(out, " of {cost} bytes");
        }
    }
    if s.usable_middle_bps > 0 {
        let [low, middle] = [s.usable_low_bps, s.usable_middle_bps].map(|n| n as f64 / 1e6);
        let _ = write!(out, "; the paths carry {low:.1} to {middle:.1} Mbit/s");
    }
    if s.connected == Some(false) {
        out.push_str(", not connected");
    }
    out
}

fn totals_text(t: &Totals) -> String {
    let verb = if t.command == "recv" { "received" } else { "sent" };
    let mut out = format!("{}: {} after {:.1} s; {verb} {}", t.command, t.ended, t.duration_s, stream_text(&t.stream));
    if let Some(d) = &t.received {
        let _ = write!(out, "\n  the receiver put out {} messages, {} bytes", d.messages, d.bytes);
        if d.frames > 0 {
            let _ = write!(out, "; {} of {} frames unusable", d.frames_unusable, d.frames);
        }
    }
    for p in &t.paths {
        let c = &p.counters;
        let rtt = p.srtt_ms.map_or("-".into(), |r| format!("{:.1}/{:.1}/{:.1}", r.min, r.avg, r.max));
        let _ = write!(
            out,
            "\n  path {} {} to {}: {}, sent {} packets {} bytes ({} bytes repeated), received {} packets {} bytes, \
             rtt {rtt} ms, lost {}",
            p.path,
            p.local,
            p.remote,
            p.state,
            c.packets_sent,
            c.bytes_sent,
            c.data_retransmitted,
            c.packets_received,
            c.bytes_received,
            c.lost_by_report + c.lost_by_timeout,
        );
    }
    out
}
