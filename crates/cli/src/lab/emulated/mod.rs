//! `anabranch lab emulate`: what the simulator says, held against real sockets.

mod drive;
mod reports;
mod table;

use super::at;
use super::progress::Progress;
use super::run::find;
use super::stoppable;
use crate::exit::{Failure, Outcome, print};
use crate::overwrite::Files;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::metrics::FlowMetric;
use anabranch_lab::run::{Emulated, run_one};
use anabranch_lab::scenario::{Choice, Measure, Of, Point, Seeds};
use drive::Ran;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use table::Compared;

const EXAMPLES: &str = "\
Examples:
  anabranch lab emulate weather/spike-one-3s --at sender=live
  anabranch lab emulate weather/spike-one-3s weather/handover --at sender=live --runs 5 --out real.csv
  anabranch lab emulate my-scenario.toml --set topology.path1.rate=4mbit

An idle emulator runs beside each run; a run beside which it lost packets or was late does not count and is done again,
twice at most. Exit codes: 0 done, all within the simulator's intervals; 1 a value lies outside, or the network failed; 2 a
mistake in a scenario, or one that an emulator cannot carry out; 3 the control failed too often, the machine is too busy; 130
stopped.";

/// Run scenarios on real sockets through the emulator, in real time, and hold what comes of it against the simulator's
/// intervals
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct EmulateArgs {
    /// Scenarios: EXPERIMENT/SCENARIO of `lab list`, or files
    #[arg(value_name = "NAME|FILE", required = true)]
    what: Vec<String>,
    /// Only where a sweep key has this value: sender=live; repeatable, also for several values of one key
    #[arg(long, value_name = "KEY=VALUE")]
    at: Vec<String>,
    /// Runs of each on real sockets
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    runs: u16,
    /// Simulate with this many seeds and not the scenario's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    seeds: Option<u64>,
    /// Runs on real sockets at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Set a key of every scenario: topology.path1.delay=90ms, duration=60s; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write every value to this file, as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Attempts at a run beside which the control failed.
const ATTEMPTS: u64 = 3;

/// A point that is run.
struct Case {
    scenario: String,
    at: String,
    point: Point,
    seeds: u64,
}

/// Runs the command.
pub async fn run(args: EmulateArgs) -> Outcome {
    stoppable(move |stop| work(&args, stop)).await
}

fn work(args: &EmulateArgs, stop: &AtomicBool) -> Outcome {
    let cases = cases(args)?;
    let read = args.what.iter().map(Path::new).filter(|p| p.is_file());
    read.fold(Files::default(), |files, path| files.reads("an experiment", Some(path)))
        .writes("--out", args.out.as_deref())
        .check()?;
    // A folder that cannot be written is known before minutes are spent.
    let out = args.out.as_deref().map(table::File::open).transpose()?;
    let real = real(args, &cases, stop)?;
    let mut compared = Vec::new();
    for (case, ran) in cases.iter().zip(&real) {
        let simulated = simulated(case, stop)?;
        compared.push(Compared::new(case, ran, &simulated));
    }
    if let Some(out) = out {
        out.write(&compared)?;
    }
    print(&table::text(&compared))?;
    table::verdict(&compared)
}

/// What is run, with what real sockets show of it.
fn cases(args: &EmulateArgs) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for what in &args.what {
        let mut e: Experiment = find(what)?;
        super::run::set(&mut e, &args.set)?;
        let e = e.chosen(Choice { quick: false, seeds: args.seeds.map(Seeds::up_to) }).map_err(Failure::usage)?;
        for (s, mut point) in at::points(&e, "--at", &args.at)? {
            // What could have been at best is the simulator's business.
            let bound = |m: &Measure| matches!(&m.of, Of::Flow(_, FlowMetric::Framed(of)) if of.is_bound());
            point.plan.measures.retain(|m| !m.parts().into_iter().any(bound));
            let name = |e: String| Failure::usage(format!("{}: {e}", s.name));
            Emulated::new(&point.plan, 1).map_err(|e| name(e.to_string()))?;
            let keys = s.keys().into_iter().zip(&point.values).map(|((k, _), v)| format!("{k}={v}"));
            cases.push(Case {
                scenario: s.name.clone(),
                at: keys.collect::<Vec<_>>().join(" "),
                seeds: s.seeds,
                point,
            });
        }
    }
    if cases.is_empty() {
        return Err(Failure::usage(format!("no point is at {}", args.at.join(" "))));
    }
    Ok(cases)
}

/// All runs on real sockets, some at a time; of each case those beside which the control was well.
fn real(args: &EmulateArgs, cases: &[Case], stop: &AtomicBool) -> Result<Vec<Vec<Ran>>, Failure> {
    let total = cases.len() * usize::from(args.runs);
    let (next, done, progress) = (AtomicUsize::new(0), AtomicUsize::new(0), Progress::new());
    progress.tell(0, total);
    let ran: Mutex<Vec<Vec<Ran>>> = Mutex::new(cases.iter().map(|_| Vec::new()).collect());
    let failure = Mutex::new(None);
    let one = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Failure::network(format!("the runtime cannot be started: {e}")))?;
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            // Repeats of a case lie far apart: what disturbs the machine for a while disturbs one of each.
            let (Some(case), true) = (cases.get(i % cases.len()), i < total) else { return Ok(()) };
            for attempt in 0..ATTEMPTS {
                if stop.load(Ordering::Relaxed) {
                    return Err(Failure::Interrupted);
                }
                let seed = 1 + (i / cases.len()) as u64 + attempt * u64::from(args.runs);
                let plan = case.point.of_seed(seed).map_err(Failure::usage)?;
                let run = runtime.block_on(drive::run(&plan, seed))?;
                if run.control.ok {
                    let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(of_case) = ran.get_mut(i % cases.len()) {
                        of_case.push(run);
                    }
                    break;
                }
                eprintln!("anabranch: {}: a run does not count: {}", case.scenario, run.control.line());
            }
            progress.tell(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    std::thread::scope(|s| {
        for _ in 0..usize::from(args.jobs).min(total) {
            s.spawn(|| {
                let result: Result<(), Failure> = one();
                if let Err(e) = result {
                    next.store(total, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                }
            });
        }
    });
    progress.end();
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None => Ok(ran.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// The values of each seed, by metric.
fn simulated(case: &Case, stop: &AtomicBool) -> Result<Vec<Vec<Option<f64>>>, Failure> {
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let rows = |first: u64| {
        let seeds = (1 + first..=case.seeds).step_by(jobs as usize);
        let row = |seed| match stop.load(Ordering::Relaxed) {
            true => Err(Failure::Interrupted),
            false => run_one(&case.point, seed).map(|r| r.values).map_err(Failure::usage),
        };
        seeds.map(row).collect::<Result<Vec<_>, _>>()
    };
    let parts = std::thread::scope(|s| {
        let threads: Vec<_> = (0..jobs).map(|first| s.spawn(move || rows(first))).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err(Failure::network("a run failed"))))
            .collect::<Vec<_>>()
    });
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
