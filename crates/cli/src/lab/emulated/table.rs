//! What real sockets gave beside what the simulator gives.

use super::Case;
use super::drive::Ran;
use crate::exit::{Failure, Outcome};
use anabranch_lab::statistics::{mean, prediction};
use anabranch_report::Table;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Probability that the mean of all real runs of a metric lies in its interval when real sockets do as the simulator does:
/// with ten scenarios of six metrics one of seventeen sets of runs has a value outside.
const PROBABILITY: f64 = 0.999;

/// A point and what came of it.
pub struct Compared {
    scenario: String,
    at: String,
    metrics: Vec<Metric>,
}

struct Metric {
    name: String,
    real: Vec<f64>,
    simulated: Vec<f64>,
}

impl Compared {
    /// Values that only one side has are left out.
    pub fn new(case: &Case, ran: &[Ran], simulated: &[Vec<Option<f64>>]) -> Self {
        let of = |i: usize, rows: &mut dyn Iterator<Item = &Vec<Option<f64>>>| -> Vec<f64> {
            rows.filter_map(|r| r.get(i).copied().flatten()).collect()
        };
        let metric = |(i, m): (usize, &anabranch_lab::scenario::Measure)| Metric {
            name: m.name.clone(),
            real: of(i, &mut ran.iter().map(|r| &r.values)),
            simulated: of(i, &mut simulated.iter()),
        };
        let all = case.point.plan.measures.iter().enumerate().map(metric);
        let metrics = all.filter(|m| ran.is_empty() || !m.real.is_empty() && !m.simulated.is_empty()).collect();
        Compared { scenario: case.scenario.clone(), at: case.at.clone(), metrics }
    }
}

impl Metric {
    /// At least from the smallest to the largest value simulated: the longest of several recoveries is not normal, and what
    /// the simulator itself gave is no deviation from it.
    fn interval(&self) -> Option<(f64, f64)> {
        let (low, high) = prediction(&self.simulated, self.real.len(), PROBABILITY)?;
        Some(self.simulated.iter().fold((low, high), |(l, h), v| (l.min(*v), h.max(*v))))
    }

    /// None where there is nothing to judge.
    fn fits(&self) -> Option<bool> {
        let (low, high) = self.interval()?;
        let real = mean(&self.real)?;
        Some((low..=high).contains(&real))
    }
}

/// The table for people.
pub fn text(compared: &[Compared]) -> String {
    let mut t = Table::new("")
        .text("scenario")
        .text("at")
        .text("metric")
        .text("real sockets")
        .text("simulator")
        .text("its interval")
        .text("");
    for c in compared {
        for m in &c.metrics {
            let number = |v: f64| format!("{v:.4}");
            let middle = |v: &[f64]| mean(v).map_or_else(|| "-".to_owned(), number);
            let between = m.interval().map_or_else(String::new, |(l, h)| format!("{l:.4} to {h:.4}"));
            let word = match m.fits() {
                Some(true) => "within",
                Some(false) => "OUTSIDE",
                None => "not known",
            };
            t.push([
                c.scenario.clone(),
                c.at.clone(),
                m.name.clone(),
                middle(&m.real),
                middle(&m.simulated),
                between,
                word.into(),
            ]);
        }
    }
    t.to_text()
}

/// Done when no value lies outside its interval and every scenario has a run beside which the control was well.
///
/// # Errors
/// A value outside, or else a scenario without such a run.
pub fn verdict(compared: &[Compared]) -> Outcome {
    let unknown: Vec<&str> =
        compared.iter().filter(|c| c.metrics.iter().all(|m| m.real.is_empty())).map(|c| c.scenario.as_str()).collect();
    let all = || compared.iter().flat_map(|c| &c.metrics).filter_map(Metric::fits);
    let (outside, judged) = (all().filter(|fits| !fits).count(), all().count());
    if outside > 0 {
        return Err(Failure::network(format!("{outside} of {judged} values lie outside the simulator's intervals")));
    }
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        return Err(Failure::Unfit(format!("the control failed beside every run of {names}: the machine is too busy")));
    }
    Ok(())
}

/// A file for all values.
pub struct File {
    path: PathBuf,
    file: std::fs::File,
}

impl File {
    /// Opens it, and leaves what it holds until there is something to take its place.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Failure::usage(format!("cannot write {}: {e}", path.display())))?;
        Ok(File { path: path.to_path_buf(), file })
    }

    /// A line for each value of each run.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(mut self, compared: &[Compared]) -> Outcome {
        let mut text = String::from("scenario,at,metric,where,value\n");
        for c in compared {
            for m in &c.metrics {
                for (place, values) in [("real", &m.real), ("simulated", &m.simulated)] {
                    values.iter().for_each(|v| text += &format!("{},{},{},{place},{v}\n", c.scenario, c.at, m.name));
                }
            }
        }
        let path = self.path.display();
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(|e| Failure::usage(format!("cannot write {path}: {e}")))
    }
}
