//! `anabranch bench`: what the engine costs, and how full it keeps a path; beside other stacks when asked.
//!
//! Each figure is measured by a process of its own, so that no run finds memory or caches that another has warmed.
//! Stacks take turns, round by round: what else the machine does falls on all of them.

mod cell;
mod cpu;
mod memory;
mod pair;
mod path;
mod row;
mod run;
mod sockets;
mod summary;

use crate::exit::{Failure, Outcome};
use anabranch_policy::registry::Profile;
use anabranch_report::write_atomically;
use cell::{Cell, Test, Transport};
use indicatif::{ProgressBar, ProgressStyle};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use summary::Series;

const EXAMPLES: &str = "\
Examples:
  anabranch bench --quick
  anabranch bench --test bulk --transport udp --rounds 9
  anabranch bench --peer dcsctp=target/bench/peer-dcsctp --out bench-out

CPU is user and system time of both ends together; packets carry 1200 bytes, windows are 1 MiB.
A peer is a program that is called as TEST TRANSPORT SIZE COUNT SEED and prints lines
test,stack,transport,size,metric,value; see benches/README.md.";

/// Measure what the engine costs, beside other stacks when asked
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    one: Option<One>,
    /// Only this test (may be given more than once)
    #[arg(long = "test", value_name = "TEST")]
    tests: Vec<Test>,
    /// Only this transport (may be given more than once)
    #[arg(long = "transport", value_name = "TRANSPORT")]
    transports: Vec<Transport>,
    /// Rounds; figures are medians over them
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Payload of a bulk run, bytes; the other tests are scaled with it
    #[arg(long, default_value_t = 200_000_000, value_parser = clap::value_parser!(u64).range(1_000_000..))]
    bytes: u64,
    /// Two rounds of little data: a first look
    #[arg(long, conflicts_with_all = ["rounds", "bytes"])]
    quick: bool,
    /// Policies of our stack
    #[arg(long, default_value = "sctp")]
    profile: String,
    /// Another stack beside ours (may be given more than once)
    #[arg(long = "peer", value_name = "NAME=COMMAND", value_parser = parse_peer)]
    peers: Vec<(String, String)>,
    /// Write bench.json and bench.txt here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum One {
    /// One run, as lines of the harness: test,stack,transport,size,metric,value
    #[command(hide = true)]
    Row(run::RowArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table
    Text,
    /// bench.json
    Json,
}

fn parse_peer(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, command)) if !name.is_empty() && !command.is_empty() => Ok((name.to_owned(), command.to_owned())),
        _ => Err("a peer is written NAME=COMMAND".to_owned()),
    }
}

/// Runs the benchmark, or one row of it.
pub async fn run(args: BenchArgs) -> Outcome {
    if let Some(One::Row(row)) = args.one {
        return run::row(&row).await;
    }
    tokio::task::spawn_blocking(move || all(&args)).await.map_err(Failure::network)?
}

/// What would show only as a run without figures.
fn check(args: &BenchArgs) -> Outcome {
    Profile::named(&args.profile).map_err(Failure::usage)?;
    let runs =
        |program: &Path| std::fs::metadata(program).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    for (name, program) in &args.peers {
        let found = match program.contains('/') {
            true => runs(Path::new(program)),
            false => std::env::var_os("PATH")
                .is_some_and(|dirs| std::env::split_paths(&dirs).any(|dir| runs(&dir.join(program)))),
        };
        if !found {
            return Err(Failure::usage(format!("--peer {name}={program}: there is no such program")));
        }
    }
    Ok(())
}

fn all(args: &BenchArgs) -> Outcome {
    check(args)?;
    let (rounds, bytes) = if args.quick { (2, 20_000_000) } else { (args.rounds, args.bytes as usize) };
    let wanted = |c: &Cell| {
        (args.tests.is_empty() || args.tests.contains(&c.test))
            && (args.transports.is_empty() || args.transports.contains(&c.transport))
    };
    let cells: Vec<Cell> = Cell::all().into_iter().filter(wanted).collect();
    if cells.is_empty() {
        return Err(Failure::usage("no test runs over that transport"));
    }
    let ours = std::env::current_exe().map_err(Failure::network)?;
    let mut stacks = vec!["anabranch".to_owned()];
    stacks.extend(args.peers.iter().map(|(name, _)| name.clone()));
    let mut series: Vec<Series> = cells
        .iter()
        .flat_map(|cell| stacks.iter().map(|s| Series { stack: s.clone(), cell: *cell, rounds: Vec::new() }))
        .collect();
    let bar = progress(rounds as usize * series.len());
    for round in 0..rounds {
        // What a peer does not know it is not asked again.
        for s in series.iter_mut().filter(|s| round == 0 || !s.rounds.is_empty()) {
            bar.set_message(format!("{}, {}", s.stack, s.cell));
            let peer = args.peers.iter().find(|(name, _)| *name == s.stack);
            let mut command = match peer {
                Some((_, program)) => Command::new(program),
                None => {
                    let mut c = Command::new(&ours);
                    c.args(["bench", "row"]);
                    c
                }
            };
            command.args(s.cell.words(peer.is_some(), bytes)).arg(round.to_string());
            environment(&mut command, &s.cell, &args.profile);
            let rows = measure(&mut command);
            if rows.is_empty() && peer.is_none() {
                return Err(Failure::network(format!("{}: no figure; run it alone with -v", s.cell)));
            }
            if !rows.is_empty() {
                s.rounds.push(rows);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    tell(args, &series, &stacks)
}

fn progress(length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {eta} left  {msg}");
    let bar = ProgressBar::new(length as u64);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

/// Settings that all stacks get in the same words; see `benches/README.md`.
fn environment(command: &mut Command, cell: &Cell, profile: &str) {
    let window = cell.window.to_string();
    let settings = [("MTU", "1200"), ("RWND", &window), ("SNDBUF", &window), ("PROFILE", profile)];
    command.envs(settings);
    // A bottleneck of 100 Mbit/s, 20 ms there and back, a queue of one bandwidth-delay product.
    command.envs([("RATE_MBIT", "100"), ("RTT_MS", "20"), ("QLEN_KB", "250"), ("LOSS", "0")]);
}

/// The rows that a run prints; none when it fails.
fn measure(command: &mut Command) -> Vec<row::Row> {
    match command.stdin(Stdio::null()).stderr(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().filter_map(row::Row::parse).map(in_our_units).collect()
        }
        Ok(output) => {
            tracing::info!(?command, status = %output.status, "a run failed");
            Vec::new()
        }
        Err(error) => {
            tracing::warn!(?command, %error, "a run could not be started");
            Vec::new()
        }
    }
}

/// The harness of the peers says one figure in megabytes.
fn in_our_units(row: row::Row) -> row::Row {
    match row.metric.as_str() {
        "goodput_MB_per_virtual_s" => row::Row::new("goodput_bytes_s", row.value * 1e6),
        _ => row,
    }
}

fn tell(args: &BenchArgs, series: &[Series], stacks: &[String]) -> Outcome {
    let json = summary::to_json(series).map_err(Failure::network)?;
    let text = summary::table(series, stacks).to_text();
    if let Some(dir) = &args.out {
        std::fs::create_dir_all(dir).map_err(|e| Failure::usage(format!("{}: {e}", dir.display())))?;
        for (name, contents) in [("bench.json", &json), ("bench.txt", &text)] {
            write_atomically(dir.join(name), contents.as_bytes()).map_err(Failure::usage)?;
        }
    }
    crate::exit::print(&match args.format {
        Format::Text => text + "\n",
        Format::Json => json + "\n",
    })
}
