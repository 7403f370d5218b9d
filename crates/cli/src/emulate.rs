//! `anabranch emulate`: paths with rate, delay and loss, without special rights.

use crate::exit::{Failure, Outcome};
use crate::input::plain;
use crate::interrupt::Interrupt;
use crate::units;
use anabranch_emulator::{Emulator, EmulatorConfig, EmulatorError, EmulatorStats, LinkCounters, PathStats};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

const WORDS: &str = "\
Words of a path, each with its value; a later word wins:
  listen ADDRESS:PORT     where the relay takes datagrams
  to ADDRESS:PORT         where it passes them on to
  from ADDRESS            address it sends from, towards the target
  name WORD               name in statistics and of the random streams
  rate 6mbit              speed, a second: bit, kbit, mbit, gbit, byte, kbyte, …, or unlimited
  delay 30ms [4ms [distribution normal]]
                          time on the way, with jitter
  jitter 4ms [normal]     even spread of plus or minus this, or a normal or exponential one
  order kept|free         may jitter make packets overtake each other?
  loss FORM               0.1%; 1% burst 5; gemodel p=1% r=20%; timed good=450ms bad=50ms; packets 3,17;
                          pattern 00100; outages 2s-4s; none
  corrupt FORM            0.1%: one wrong bit in so many packets; bits 1e-6; blocks; none
  loss-at wire|entry      is a lost packet lost after it used the rate, or before?
  arq 7                   how often the link sends again what was lost on the wire
  limit 40, limit-bytes 60000
                          packets and bytes held; none for no limit
  queue FORM              drop-tail; red thresh=5 maxthresh=15; codel target=5ms interval=100ms
  overhead 28             header bytes that count for the rate
  mtu 1400                largest datagram taken
  duplicate 1%, reorder 5%
                          share of packets that arrive twice, that skip the delay
  up.WORD, down.WORD      for one direction: up is from the senders to the target
  at TIME WORDS…          what follows happens then; also down or cut, up or restore, and rebind (other ports)
  every TIME              the schedule starts again each time
docs/EMULATE.md has them in full, with the keys of a TOML file.";

const EXAMPLES: &str = "\
Examples:
  A Wi-Fi and a 3G link in front of a receiver on port 9899:
    anabranch emulate \\
      --path 'name wlan listen 127.0.0.1:7001 to 127.0.0.1:9899 rate 6mbit delay 30ms loss 0.1% limit 40' \\
      --path 'name 3g listen 127.0.0.1:7002 to 127.0.0.1:9899 rate 4mbit delay 160ms down.delay 5ms limit 40'
  A path that is cut after 7 seconds and comes back after 10:
    anabranch emulate --path 'listen 127.0.0.1:7001 to 127.0.0.1:9899 delay 9ms at 7s down at 9s up'
  From a file, with statistics as JSON lines:
    anabranch emulate --config links.toml --stats json

Exit codes: 0 done; 1 the network failed (port in use); 2 wrong flags or configuration; 130 interrupted.";

/// Emulate links between two ports of this machine: UDP relays, no root
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = format!("All words of a path are in --help.\n\n{EXAMPLES}"), after_long_help = format!("{WORDS}\n\n{EXAMPLES}"))]
pub struct EmulateArgs {
    /// A path in netem's words; repeatable
    #[arg(long = "path", value_name = "TEXT", required_unless_present = "config")]
    pub paths: Vec<String>,
    /// Paths and seed from a TOML file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "seed"])]
    pub config: Option<PathBuf>,
    /// Seed of all random streams
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = units::patience)]
    pub duration: Option<Duration>,
    /// Form of the statistics
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub stats: EmulateFormat,
    /// Time between statistics
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::time)]
    pub stats_interval: Duration,
    /// JSON: the same as --stats json
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// How statistics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EmulateFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
    /// No statistics.
    None,
}

/// One direction of one path over an interval.
#[derive(Serialize)]
struct Row<'a> {
    event: &'static str,
    t: f64,
    path: &'a str,
    direction: &'static str,
    up: bool,
    packets: u64,
    bytes: u64,
    rate_bps: f64,
    lost: u64,
    damaged: u64,
    dropped_queue: u64,
    dropped_down: u64,
    dropped_mtu: u64,
    dropped_arq: u64,
    repeated: u64,
    backlog_packets: u64,
    clients: usize,
}

/// What the machine added since the start.
#[derive(Serialize)]
struct MachineRow {
    event: &'static str,
    t: f64,
    late_p50_ms: f64,
    late_p99_ms: f64,
    late_max_ms: f64,
    receive_drops: Option<u64>,
    send_errors: u64,
    overflow: u64,
    refused: u64,
}

pub(crate) fn config(args: &EmulateArgs) -> Result<EmulatorConfig, Failure> {
    let Some(path) = &args.config else {
        let config = EmulatorConfig::from_texts(args.paths.iter().map(String::as_str));
        return Ok(config.map_err(Failure::usage)?.with_seed(args.seed));
    };
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("cannot read {}: {}", path.display(), plain(&e))))?;
    EmulatorConfig::from_toml(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}

impl From<EmulatorError> for Failure {
    fn from(e: EmulatorError) -> Self {
        match e {
            EmulatorError::Config(_) | EmulatorError::NoSuchPath(_) => Failure::usage(e),
            _ => Failure::network(e),
        }
    }
}

/// Runs the command.
pub async fn run(args: EmulateArgs) -> Outcome {
    if args.stats_interval < Duration::from_millis(10) {
        return Err(Failure::usage("--stats-interval is at least 10ms"));
    }
    let format = if args.json { EmulateFormat::Json } else { args.stats };
    let config = config(&args)?;
    allow_files();
    let interrupt = Interrupt::install();
    let emulator = Emulator::start(config)?;
    let mut last = emulator.stats();
    announce(format, &last);
    let end = async {
        match args.duration {
            Some(d) => tokio::time::sleep(d).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(end);
    let mut tick = tokio::time::interval(args.stats_interval);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tick.tick().await;
    let outcome = loop {
        tokio::select! {
            _ = tick.tick() => {
                let stats = emulator.stats();
                interval(format, &last, &stats);
                last = stats;
            }
            () = &mut end => break Ok(()),
            () = interrupt.wait() => break Err(Failure::Interrupted),
        }
    };
    totals(format, &emulator.stop());
    outcome
}

/// Each sender of a path takes a socket: as many open files as this user may have.
fn allow_files() {
    let raised =
        getrlimit(Resource::RLIMIT_NOFILE).and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        tracing::debug!(%error, "the number of open files stays as it is");
    }
}

fn announce(format: EmulateFormat, stats: &EmulatorStats) {
    for p in &stats.paths {
        match format {
            EmulateFormat::Text => print(&format!("path {} listens on {}", p.name, p.listen)),
            EmulateFormat::Json => {
                print(&serde_json::json!({"event": "listen", "path": p.name, "address": p.listen}).to_string());
            }
            EmulateFormat::None => {}
        }
    }
}

fn interval(format: EmulateFormat, last: &EmulatorStats, now: &EmulatorStats) {
    let seconds = now.running.saturating_sub(last.running).as_secs_f64();
    for (before, p) in last.paths.iter().zip(&now.paths) {
        for row in rows("stats", now.running.as_secs_f64(), seconds, p, Some(before)) {
            write_row(format, &row);
        }
    }
}

fn totals(format: EmulateFormat, stats: &EmulatorStats) {
    let t = stats.running.as_secs_f64();
    for p in &stats.paths {
        for row in rows("total", t, t, p, None) {
            write_row(format, &row);
        }
    }
    let m = &stats.machine;
    let row = MachineRow {
        event: "machine",
        t: tidy(t),
        late_p50_ms: m.lateness.p50.as_millis_f64(),
        late_p99_ms: m.lateness.p99.as_millis_f64(),
        late_max_ms: m.lateness.max.as_millis_f64(),
        receive_drops: m.receive_drops,
        send_errors: m.send_errors,
        overflow: m.overflow,
        refused: stats.paths.iter().map(|p| p.refused).sum(),
    };
    match format {
        EmulateFormat::Json => json(&row),
        EmulateFormat::Text => print(&format!(
            "{:8.1} s  the machine: late by {:.2} ms (half), {:.2} ms (99 %), {:.2} ms (most); {} not read in time, \
             {} not sent, {} too many, {} of senders for whom there was no room",
            t,
            row.late_p50_ms,
            row.late_p99_ms,
            row.late_max_ms,
            row.receive_drops.map_or("?".into(), |n| n.to_string()),
            row.send_errors,
            row.overflow,
            row.refused,
        )),
        EmulateFormat::None => {}
    }
}

/// Both directions of a path since `before`, or since the start.
fn rows<'a>(event: &'static str, t: f64, seconds: f64, p: &'a PathStats, before: Option<&PathStats>) -> [Row<'a>; 2] {
    let zero = LinkCounters::default();
    let directions = [
        ("up", p.up_is_up, p.up, before.map_or(zero, |b| b.up), p.up_backlog.packets),
        ("down", p.down_is_up, p.down, before.map_or(zero, |b| b.down), p.down_backlog.packets),
    ];
    directions.map(|(direction, up, now, before, backlog_packets)| {
        let bytes = now.delivered.bytes - before.delivered.bytes;
        Row {
            event,
            t: tidy(t),
            path: &p.name,
            direction,
            up,
            packets: now.delivered.packets - before.delivered.packets,
            bytes,
            rate_bps: if seconds > 0.0 { tidy(bytes as f64 * 8.0 / seconds) } else { 0.0 },
            lost: now.dropped_loss.packets - before.dropped_loss.packets,
            damaged: now.damaged.packets - before.damaged.packets,
            dropped_queue: now.dropped_queue.packets - before.dropped_queue.packets,
            dropped_down: now.dropped_down.packets - before.dropped_down.packets,
            dropped_mtu: now.dropped_mtu.packets - before.dropped_mtu.packets,
            dropped_arq: now.dropped_repeats.packets - before.dropped_repeats.packets,
            repeated: now.repeated.packets - before.repeated.packets,
            backlog_packets,
            clients: p.clients,
        }
    })
}

fn tidy(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

fn write_row(format: EmulateFormat, r: &Row<'_>) {
    match format {
        EmulateFormat::Json => json(r),
        EmulateFormat::Text => {
            let total = if r.event == "total" { "in all " } else { "" };
            print(&format!(
                "{:8.1} s  {} {}{}: {total}{} packets, {:.2} Mbit/s, lost {}, queue full {}, cut {}, waiting {}",
                r.t,
                r.path,
                r.direction,
                if r.up { "" } else { " (cut)" },
                r.packets,
                r.rate_bps / 1e6,
                r.lost + r.dropped_arq,
                r.dropped_queue,
                r.dropped_down,
                r.backlog_packets,
            ));
        }
        EmulateFormat::None => {}
    }
}

fn json(row: &impl Serialize) {
    match serde_json::to_string(row) {
        Ok(line) => print(&line),
        Err(error) => tracing::warn!(%error, "a row cannot be written"),
    }
}

/// A reader that has gone must not end the emulator.
fn print(line: &str) {
    if let Err(error) = writeln!(io::stdout(), "{line}") {
        tracing::debug!(%error, "statistics cannot be written");
    }
}
