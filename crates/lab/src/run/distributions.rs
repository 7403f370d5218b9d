//! How often runs saw each delay, as lines of CSV: kept where a figure draws it.

use super::folder::{fields, quoted};
use super::measure::Measured;
use super::parts::DISTRIBUTIONS;
use crate::results::{Counted, Distribution, Table};
use crate::scenario::Plan;
use std::fmt::Write as _;
use std::path::Path;

/// What a scenario asked for of one run: metric, delay (s), count.
pub(super) fn lines(plan: &Plan, measured: &Measured<'_>) -> String {
    let mut out = String::new();
    for m in &plan.distributions {
        for (delay, count) in measured.delays_of(m).iter().flat_map(|d| d.counts()) {
            let _ = writeln!(out, "{},{delay},{count}", quoted(&m.name));
        }
    }
    out
}

/// Reads the distributions of all runs of a scenario, from the folder.
///
/// # Errors
/// One line that names the file.
pub fn read(dir: &Path, table: &Table) -> Result<Distribution, String> {
    let path = DISTRIBUTIONS.of_scenario(dir, &table.scenario);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let mut out = Distribution { scenario: table.scenario.clone(), keys: table.keys.clone(), runs: Vec::new() };
    for (i, line) in text.lines().enumerate().skip(1) {
        let wrong = || format!("{}: line {} is not as it was written", path.display(), i + 1);
        let f = fields(line);
        let (point, rest) = f.get(1..).and_then(|f| f.split_at_checked(table.keys.len())).ok_or_else(wrong)?;
        let [seed, metric, delay, count] = rest else { return Err(wrong()) };
        let seed = seed.parse().map_err(|_| wrong())?;
        let counted = (delay.parse().map_err(|_| wrong())?, count.parse().map_err(|_| wrong())?);
        let same = |r: &&mut Counted| r.seed == seed && r.metric == *metric && r.point == point;
        match out.runs.last_mut().filter(same) {
            Some(r) => r.counts.push(counted),
            None => {
                let (point, metric) = (point.to_vec(), metric.clone());
                out.runs.push(Counted { point, seed, metric, counts: vec![counted] });
            }
        }
    }
    Ok(out)
}
