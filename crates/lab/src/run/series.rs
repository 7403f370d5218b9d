//! What was noted over time, as lines of CSV.

use super::build::Scene;
use super::folder::{fields, quoted};
use super::parts::SERIES;
use super::samples::Samples;
use crate::metrics::Record;
use crate::results::{Over, Table, Timeline};
use crate::scenario::{Noted, Plan};
use anabranch_base::Duration;
use std::fmt::Write as _;
use std::path::Path;

/// What a scenario asked for of one run: time (s), series, path, value. Rates and shares are of the bin that begins at
/// the time, states are as they were at the time.
pub(super) fn lines(plan: &Plan, scene: &Scene, samples: &Samples) -> String {
    let mut out = String::new();
    let width = plan.bin.as_secs_f64();
    let bins = if plan.series.is_empty() { 0 } else { plan.duration.as_nanos() / plan.bin.as_nanos().max(1) } as usize;
    let mut all = vec![0u64; bins];
    for l in scene.flows.iter().filter(|_| bins > 0) {
        add(&mut all, l.record.borrow().bins());
    }
    let time = |bins: usize| (bins as u64 * plan.bin.as_nanos()) as f64 / 1e9;
    let mut line = |time: f64, name: &str, path: Option<usize>, value: Option<f64>| {
        let path = path.map_or(String::new(), |p| p.to_string());
        let value = value.map_or(String::new(), |v| v.to_string());
        let _ = writeln!(out, "{time},{},{path},{value}", quoted(name));
    };
    for (f, l) in plan.flows.iter().zip(&scene.flows) {
        let record = l.record.borrow();
        let mut asked: Vec<Noted> = Vec::new();
        for s in plan.series.iter().filter(|s| s.covers(&f.group) && !s.what.sampled()) {
            // What two names ask for is written once.
            if !asked.contains(&s.what) {
                asked.push(s.what);
            }
        }
        for what in asked {
            let name = format!("{}.{}", f.name, what.name());
            if what.due() {
                let parts = of_dues(&record, what, plan.bin, bins).into_iter().flatten().enumerate();
                parts.for_each(|(bin, value)| line(time(bin), &name, None, value));
                continue;
            }
            let own = [record.bins().to_vec()];
            let paths: Vec<Vec<u64>> = record.path_bins().to_vec();
            let (parts, by_path) = if what.by_path() { (paths.as_slice(), true) } else { (own.as_slice(), false) };
            for (path, part) in parts.iter().enumerate() {
                for bin in 0..bins {
                    let at = |b: &Vec<u64>| b.get(bin).copied().unwrap_or(0);
                    let whole = if by_path { parts.iter().map(at).sum() } else { all.get(bin).copied().unwrap_or(0) };
                    let value = match what {
                        Noted::Share | Noted::PathShare => (whole > 0).then(|| at(part) as f64 / whole as f64),
                        _ => Some(at(part) as f64 * 8.0 / width),
                    };
                    line(time(bin), &name, by_path.then_some(path + 1), value);
                }
            }
        }
    }
    for s in &samples.all {
        for (bin, value) in s.values.iter().enumerate() {
            line(time(bin + 1), &s.name, s.path, *value);
        }
    }
    out
}

/// The part of what was due in each bin; none in one in which nothing was.
fn of_dues(record: &Record, what: Noted, bin: Duration, bins: usize) -> Option<Vec<Option<f64>>> {
    let mut all = vec![(0, 0); bins];
    record.each_due(|d| {
        let number = d.at.as_nanos() / bin.as_nanos().max(1);
        if let Some((part, whole)) = all.get_mut(number as usize) {
            *part += if what == Noted::Late { d.late } else { d.unusable() };
            *whole += d.packets;
        }
    })?;
    Some(all.into_iter().map(|(part, whole)| (whole > 0).then(|| part as f64 / whole as f64)).collect())
}

fn add(sum: &mut [u64], bins: &[u64]) {
    sum.iter_mut().zip(bins).for_each(|(s, b)| *s += b);
}

/// Reads what the runs of a scenario noted, from the folder.
///
/// # Errors
/// One line that names the file.
pub fn read(dir: &Path, table: &Table) -> Result<Timeline, String> {
    let path = SERIES.of_scenario(dir, &table.scenario);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let mut out = Timeline { scenario: table.scenario.clone(), keys: table.keys.clone(), lines: Vec::new() };
    for (i, line) in text.lines().enumerate().skip(1) {
        let wrong = || format!("{}: line {} is not as it was written", path.display(), i + 1);
        let f = fields(line);
        let (point, rest) = f.get(1..).and_then(|f| f.split_at_checked(table.keys.len())).ok_or_else(wrong)?;
        let [seed, time, name, path_, value] = rest else { return Err(wrong()) };
        let number = |text: &String| text.parse::<f64>().map_err(|_| wrong());
        let seed = seed.parse().map_err(|_| wrong())?;
        let path_ = if path_.is_empty() { None } else { Some(path_.parse().map_err(|_| wrong())?) };
        let sample = (number(time)?, if value.is_empty() { None } else { Some(number(value)?) });
        let same = |l: &&mut Over| l.seed == seed && l.path == path_ && l.name == *name && l.point == point;
        match out.lines.last_mut().filter(same) {
            Some(l) => l.samples.push(sample),
            None => {
                let (point, name) = (point.to_vec(), name.clone());
                out.lines.push(Over { point, seed, name, path: path_, samples: vec![sample] });
            }
        }
    }
    Ok(out)
}
