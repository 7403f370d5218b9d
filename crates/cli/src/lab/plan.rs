//! `anabranch lab plan`.

use super::selection::Selection;
use crate::exit::{Failure, Outcome, print};
use anabranch_lab::run::run_one;
use anabranch_lab::scenario::{Point, Scenario};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Points of a scenario that are tried.
const TRIED: usize = 5;
/// No further one is tried once those of a scenario have taken so long.
const ENOUGH: Duration = Duration::from_secs(5);

/// Say how many runs an experiment has and about how long they take, from a few that are tried
#[derive(Clone, Debug, clap::Args)]
pub struct PlanArgs {
    #[command(flatten)]
    selection: Selection,
    /// Runs at a time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

/// Runs the command.
pub async fn run(args: PlanArgs) -> Outcome {
    super::stoppable(move |stop| {
        let selected = args.selection.find()?;
        let jobs = super::run::jobs(args.jobs);
        let width = selected.experiment.scenarios.iter().map(|s| s.name.len()).max().unwrap_or(0).max("all".len());
        let (mut runs, mut all) = (0, 0.0);
        for s in &selected.experiment.scenarios {
            let points = s.points().map_err(Failure::usage)?;
            let each = tried(s, &points, stop)?;
            let count = points.len() * s.seeds as usize;
            let (points, seeds) = (points.len(), s.seeds);
            let time = time(each * count as f64 / jobs as f64);
            print(&format!("{:width$}  {points:>5} points x {seeds:>4} seeds = {count:>7} runs  {time}\n", s.name))?;
            runs += count;
            all += each * count as f64;
        }
        let time = time(all / jobs as f64);
        print(&format!("{:width$}  {runs:>33} runs  {time} with {jobs} at a time\n", "all"))
    })
    .await
}

/// Mean time of a run, seconds, from some that are spread over the points.
fn tried(s: &Scenario, points: &[Point], stop: &AtomicBool) -> Result<f64, Failure> {
    let step = points.len().div_ceil(TRIED).max(1);
    let (began, mut n) = (Instant::now(), 0);
    for point in points.iter().step_by(step) {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        if n > 0 && began.elapsed() > ENOUGH {
            break;
        }
        run_one(point, s.first_seed).map_err(|e| Failure::usage(format!("{}: {e}", s.name)))?;
        n += 1;
    }
    Ok(if n > 0 { began.elapsed().as_secs_f64() / f64::from(n) } else { 0.0 })
}

/// In words, to about two digits.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("about {s:.1} s"),
        s if s < 120.0 => format!("about {s:.0} s"),
        s if s < 7_200.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {:.1} h", s / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_in_units_people_use() {
        let words = [0.34, 12.3, 119.0, 600.0, 7_200.0 * 4.0].map(super::time);
        assert_eq!(words, ["about 0.3 s", "about 12 s", "about 119 s", "about 10 min", "about 8.0 h"]);
    }
}
