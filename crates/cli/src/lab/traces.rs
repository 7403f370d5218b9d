//! Traces of single runs, beside the results.

use super::at;
use crate::exit::{Failure, Outcome, print};
use anabranch_lab::experiment::Experiment;
use anabranch_lab::run::{TraceNames, run_traced_as};
use anabranch_lab::scenario::{Point, Scenario, Seeds};
use anabranch_lab::trace::Outputs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// More runs than this leave traces only by mistake: each takes some tens of megabytes.
const MOST: usize = 40;

/// What runs leave behind for looking at them; docs/TRACES.md tells the formats.
#[derive(Clone, Debug, clap::Args)]
pub struct TraceFlags {
    /// Leave captures of the packets of each host in OUT/trace (pcapng, for Wireshark)
    #[arg(long)]
    pcap: bool,
    /// Leave a table of every event of every packet in OUT/trace (CSV)
    #[arg(long)]
    csv: bool,
    /// Leave an event log in OUT/trace (JSON lines): windows, queues, losses with their true cause, decisions with reasons
    #[arg(long)]
    log: bool,
    /// Leave a table of the frames of each film that a viewer watches in OUT/trace (CSV)
    #[arg(long)]
    frames: bool,
    /// Trace only where a sweep key has this value: loss=5%; repeatable, also for several values of one key
    #[arg(long, value_name = "KEY=VALUE")]
    trace_at: Vec<String>,
    /// Trace the runs of this seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    trace_seed: u64,
}

impl TraceFlags {
    fn outputs(&self) -> Outputs {
        Outputs { pcap: self.pcap, csv: self.csv, log: self.log, frames: self.frames }
    }

    /// Finds mistakes before anything runs.
    ///
    /// # Errors
    /// Flags that fit no run.
    pub fn check(&self, e: &Experiment) -> Outcome {
        if self.outputs().is_empty() {
            return match self.trace_at.first() {
                Some(_) => Err(Failure::usage("--trace-at says where; say what with --pcap, --csv, --log or --frames")),
                None => Ok(()),
            };
        }
        let runs = at::points(e, "--trace-at", &self.trace_at)?;
        let seeds = e.scenarios.iter().map(Scenario::all_seeds).max_by_key(|s| s.count).unwrap_or(Seeds::up_to(1));
        if !(seeds.first..=seeds.last()).contains(&self.trace_seed) {
            let (first, last) = (seeds.first, seeds.last());
            return Err(Failure::usage(format!("--trace-seed {}: there are seeds {first} to {last}", self.trace_seed)));
        }
        let watched =
            |p: &Point| p.of_seed(self.trace_seed).is_ok_and(|plan| plan.flows.iter().any(|f| f.playout.is_some()));
        if self.frames && !runs.is_empty() && !runs.iter().any(|(_, p)| watched(p)) {
            return Err(Failure::usage("--frames: no flow there has a viewer: give it a `playout` (docs/LAB.md)"));
        }
        match runs.len() {
            0 => Err(Failure::usage(format!("no run is at {}", self.trace_at.join(" ")))),
            n if n > MOST => Err(Failure::usage(format!(
                "{n} runs would leave traces, which is more than {MOST}: choose some with --trace-at KEY=VALUE"
            ))),
            _ => Ok(()),
        }
    }

    /// Runs what is to be traced and leaves its files in `dir/trace`.
    ///
    /// # Errors
    /// A file that cannot be written; `stop` was set.
    pub fn leave(&self, e: &Experiment, dir: &Path, stop: &AtomicBool) -> Outcome {
        if self.outputs().is_empty() {
            return Ok(());
        }
        let folder = dir.join("trace");
        let names = TraceNames::new(&e.scenarios).map_err(Failure::usage)?;
        for (scenario, point) in at::points(e, "--trace-at", &self.trace_at)? {
            if stop.load(Ordering::Relaxed) {
                eprintln!("anabranch: stopped; the traces that are named are whole");
                return Err(Failure::Interrupted);
            }
            let made = run_traced_as(&names, scenario, &point, self.trace_seed, &folder, self.outputs());
            let (_, files) = made.map_err(Failure::usage)?;
            files.iter().try_for_each(|f| print(&format!("{}\n", f.display())))?;
        }
        Ok(())
    }
}
