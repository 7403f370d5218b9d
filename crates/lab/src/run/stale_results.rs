//! Output of an earlier run in the folder, which the new results replace: says what would be lost, and removes what is
//! stale.

use super::folder::{Manifest, ScenarioRun, read};
use super::parts::{DISTRIBUTIONS, SERIES};
use super::resolved::{Resolved, changes};
use super::traced::TraceNames;
use crate::experiment::Experiment;
use crate::report;
use crate::results::{Results, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// The results that a folder held before.
#[derive(Debug)]
pub struct StaleResults {
    manifest: Manifest,
    results: Results,
}

impl StaleResults {
    /// None where there are none that can be read: then nothing there is known to be ours.
    pub fn read(dir: &Path) -> Option<StaleResults> {
        let (manifest, results) = read(dir).ok()?;
        Some(StaleResults { manifest, results })
    }

    /// Which of its runs the results of `new` will not have, in words; `None` when they have all of them.
    pub fn missing_from(&self, new: &Manifest) -> Option<String> {
        self.manifest.scenarios.iter().find_map(|s| match new.scenarios.iter().find(|n| n.name == s.name) {
            None => Some(format!("scenario `{}`", s.name)),
            // Formats name their parameters differently.
            Some(_) if self.manifest.format != new.format => None,
            Some(n) => gone(s, n),
        })
    }

    /// After the results of `e` were written: removes figures, series, distributions, traces and the Parquet file that earlier
    /// results left and that are not of the new ones. `written` is what the report wrote now; traces of runs that are
    /// the same stay.
    ///
    /// # Errors
    /// The first file that cannot be removed; the others are.
    pub fn clear(
        &self,
        dir: &Path,
        e: &Experiment,
        new: &Manifest,
        results: &Results,
        written: &[PathBuf],
    ) -> Result<(), (PathBuf, io::Error)> {
        let mut stale = if dir.join("trace").is_dir() { self.traces(new, results) } else { Vec::new() };
        stale.extend(report::files(&self.manifest.about, &self.results).map(|f| Path::new("figures").join(f)));
        let noted = |s: &str| e.scenarios.iter().any(|n| n.name == s && !n.series.is_empty());
        let series = self.manifest.scenarios.iter().map(|s| s.name.as_str()).filter(|s| !noted(s));
        stale.extend(series.map(|s| SERIES.of_scenario(Path::new(""), s)));
        let kept = |s: &str| e.scenarios.iter().any(|n| n.name == s && !n.distributions.is_empty());
        let gone = self.manifest.scenarios.iter().map(|s| s.name.as_str()).filter(|s| !kept(s));
        stale.extend(gone.map(|s| DISTRIBUTIONS.of_scenario(Path::new(""), s)));
        if self.results != *results {
            stale.push("results.parquet".into());
        }
        let mut failed = None;
        for path in stale.iter().map(|f| dir.join(f)).filter(|p| !written.contains(p)) {
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => drop(failed.get_or_insert((path, e))),
                _ => {}
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The files that tracing its runs may have left, without those of runs that `new` has as well.
    fn traces(&self, new: &Manifest, results: &Results) -> Vec<PathBuf> {
        let names = |m: &Manifest| TraceNames::of(m.scenarios.iter().flat_map(points));
        let (before, now) = (names(&self.manifest), names(new));
        let mut stale = Vec::new();
        for table in &self.results.tables {
            let Some(s) = self.manifest.scenarios.iter().find(|s| s.name == table.scenario) else { continue };
            let n = new.scenarios.iter().find(|n| n.name == s.name);
            let alike = |point: &[String]| match n {
                Some(_) if self.manifest.format != new.format => true,
                Some(n) => all(s, point) == all(n, point),
                None => false,
            };
            let alike: BTreeMap<&[String], bool> = s.points.iter().map(|p| (&p.values[..], alike(&p.values))).collect();
            let rows = results.tables.iter().filter(|t| t.scenario == s.name).flat_map(|t| &t.rows);
            let rows: BTreeSet<(&[String], u64, u64)> = rows.map(run).collect();
            let hosts = s.resolved.get("topology.hosts").and_then(|h| h.as_array()).into_iter().flatten();
            let hosts: Vec<&str> = hosts.filter_map(|h| h.as_str()).collect();
            for row in &table.rows {
                let stem = before.stem(&s.name, &row.point, row.seed);
                let same = rows.contains(&run(row)) && alike.get(&row.point[..]) == Some(&true);
                if !same || now.stem(&s.name, &row.point, row.seed) != stem {
                    let captures = hosts.iter().map(|h| crate::trace::capture(&stem, h));
                    let files = [format!("{stem}.csv"), format!("{stem}.jsonl"), crate::trace::frames(&stem)]
                        .into_iter()
                        .chain(captures);
                    stale.extend(files.map(|f| Path::new("trace").join(f)));
                }
            }
        }
        stale
    }
}

/// Identity of a run, with what came of it.
fn run(r: &Row) -> (&[String], u64, u64) {
    (&r.point, r.seed, r.fingerprint)
}

fn points(s: &ScenarioRun) -> impl Iterator<Item = (String, Vec<String>)> + '_ {
    s.points.iter().map(|p| (s.name.clone(), p.values.clone()))
}

/// Every parameter at a point; None where there is no such point.
fn all(s: &ScenarioRun, point: &[String]) -> Option<Resolved> {
    let changes = &s.points.iter().find(|p| p.values == point)?.changes;
    let mut all = s.resolved.clone();
    all.extend(changes.clone());
    // Null is what a point has not.
    all.retain(|_, v| !v.is_null());
    Some(all)
}

/// What `new` has not of `s`, of the same name.
fn gone(s: &ScenarioRun, new: &ScenarioRun) -> Option<String> {
    for p in &s.points {
        let (Some(was), Some(is)) = (all(s, &p.values), all(new, &p.values)) else {
            let keys = s.keys.iter().zip(&p.values).map(|((k, _), v)| format!("{k} = {v}"));
            let keys: Vec<String> = keys.collect();
            return Some(if keys.is_empty() { "a single point".to_owned() } else { keys.join(", ") });
        };
        let other = changes(&is, &was);
        if let Some((key, value)) = other.iter().next() {
            let now = is.get(key).map_or("nothing".to_owned(), ToString::to_string);
            let more = match other.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            return Some(format!("{key} = {value}, now {now}{more}"));
        }
    }
    (s.seeds > new.seeds).then(|| format!("seeds up to {}", s.seeds))
}
