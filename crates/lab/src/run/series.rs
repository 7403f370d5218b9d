//! What was noted over time, as lines of CSV: one file for each run, and one of a scenario's runs in order.

use super::build::Scene;
use super::folder::{fields, quoted};
use super::samples::Samples;
use crate::metrics::Record;
use crate::results::{Over, Table, Timeline};
use crate::scenario::{Noted, Plan};
use anabranch_base::Duration;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

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

/// Where the lines of a run are kept.
pub(super) fn part(dir: &Path, run: u64) -> PathBuf {
    dir.join("series").join("runs").join(format!("{run:016x}.csv"))
}

/// Keeps the lines of a run.
pub(super) fn keep(dir: &Path, run: u64, lines: &str) -> io::Result<()> {
    std::fs::create_dir_all(dir.join("series").join("runs"))?;
    whole(&part(dir, run), |new| std::fs::write(new, lines))
}

/// Writes a file under another name first, of which nothing is left when that fails.
fn whole(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = path.with_extension("new");
    let written = write(&new).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        // The first error is the one to report.
        drop(std::fs::remove_file(&new));
    }
    written
}

/// Writes one scenario's file from those of its runs, each with what precedes its lines.
pub(super) fn join(dir: &Path, scenario: &str, head: &str, runs: &[(u64, String)]) -> io::Result<()> {
    let path = dir.join("series").join(format!("{scenario}.csv"));
    whole(&path, |new| {
        let mut out = BufWriter::new(File::create(new)?);
        writeln!(out, "{head}time,series,path,value")?;
        for (run, before) in runs {
            for line in std::fs::read_to_string(part(dir, *run))?.lines() {
                writeln!(out, "{before}{line}")?;
            }
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    })
}

/// Reads what the runs of a scenario noted, from the folder.
///
/// # Errors
/// One line that names the file.
pub fn read(dir: &Path, table: &Table) -> Result<Timeline, String> {
    let path = dir.join("series").join(format!("{}.csv", table.scenario));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let names = |of: PathBuf| -> Vec<_> {
            std::fs::read_dir(of).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
        };
        keep(dir.path(), 1, "0,a,,1\n").unwrap();
        let series = dir.path().join("series");
        // The second run is not there; nor can a file take the place of a folder.
        assert!(join(dir.path(), "tiny", "", &[(1, String::new()), (2, String::new())]).is_err());
        assert_eq!(names(series.clone()), ["runs"]);
        std::fs::create_dir_all(part(dir.path(), 3).join("x")).unwrap();
        assert!(keep(dir.path(), 3, "0,a,,1\n").is_err());
        assert!(names(series.join("runs")).iter().all(|n| n.ends_with(".csv")));
    }
}
