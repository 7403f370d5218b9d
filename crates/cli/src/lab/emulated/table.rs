//! What real sockets gave beside what the simulator gives.

use super::Case;
use super::drive::Ran;
use crate::exit::{Failure, Outcome};
use anabranch_lab::metrics::unit_of;
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
    /// A line for the control beside each real run.
    controls: Vec<String>,
}

struct Metric {
    name: String,
    real: Vec<f64>,
    simulated: Vec<f64>,
    /// What the emulator itself may have added, in the metric's unit: of a time the 99th percentile of the control's error
    /// on the mean of the runs, of anything else nothing.
    added: f64,
}

/// Where a value of real sockets lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    Within,
    /// It is above the interval by less than the emulator itself added.
    LessAdded,
    Outside,
}

impl Compared {
    /// Values that only one side has are left out.
    pub fn new(case: &Case, ran: &[Ran], simulated: &[Vec<Option<f64>>]) -> Self {
        let of = |i: usize, rows: &mut dyn Iterator<Item = &Vec<Option<f64>>>| -> Vec<f64> {
            rows.filter_map(|r| r.get(i).copied().flatten()).collect()
        };
        let errors: Vec<f64> = ran.iter().map(|r| r.control.delay_error_p99_ms / 1e3).collect();
        let error = mean(&errors).unwrap_or(0.0);
        let metric = |(i, m): (usize, &anabranch_lab::scenario::Measure)| Metric {
            name: m.name.clone(),
            real: of(i, &mut ran.iter().map(|r| &r.values)),
            simulated: of(i, &mut simulated.iter()),
            added: if unit_of(&m.name) == Some("s") { error } else { 0.0 },
        };
        let all = case.point.plan.measures.iter().enumerate().map(metric);
        let metrics = all.filter(|m| ran.is_empty() || !m.real.is_empty() && !m.simulated.is_empty()).collect();
        let controls = ran.iter().map(|r| r.control.line()).collect();
        Compared { scenario: case.scenario.clone(), at: case.at.clone(), metrics, controls }
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
    fn fits(&self) -> Option<Fit> {
        let (low, high) = self.interval()?;
        let real = mean(&self.real)?;
        Some(match () {
            () if (low..=high).contains(&real) => Fit::Within,
            () if real > high && real - self.added <= high => Fit::LessAdded,
            () => Fit::Outside,
        })
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
                Some(Fit::Within) => "within".to_owned(),
                Some(Fit::LessAdded) => format!("within, less {:.2} ms of the control's", m.added * 1e3),
                Some(Fit::Outside) => "OUTSIDE".to_owned(),
                None => "not known".to_owned(),
            };
            t.push([
                c.scenario.clone(),
                c.at.clone(),
                m.name.clone(),
                middle(&m.real),
                middle(&m.simulated),
                between,
                word,
            ]);
        }
    }
    let line = |c: &Compared, line: &String| format!("control beside {} {}: {line}\n", c.scenario, c.at);
    let controls = compared.iter().flat_map(|c| c.controls.iter().map(move |l| line(c, l)));
    controls.fold(t.to_text() + "\n", |text, line| text + &line)
}

/// Done when no value lies outside its interval and every scenario has a run beside which the control was well.
///
/// # Errors
/// A value outside, or else a scenario without such a run.
pub fn verdict(compared: &[Compared]) -> Outcome {
    let unknown: Vec<&str> =
        compared.iter().filter(|c| c.metrics.iter().all(|m| m.real.is_empty())).map(|c| c.scenario.as_str()).collect();
    let all = || compared.iter().flat_map(|c| &c.metrics).filter_map(Metric::fits);
    let (outside, judged) = (all().filter(|fits| *fits == Fit::Outside).count(), all().count());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_emulator_adds_is_taken_off_times_only_and_never_helps_below() {
        let metric = |real: f64, added| Metric {
            name: "m".into(),
            real: vec![real],
            simulated: vec![0.050, 0.050, 0.050],
            added,
        };
        assert_eq!(metric(0.050, 0.0).fits(), Some(Fit::Within));
        assert_eq!(metric(0.0503, 0.0004).fits(), Some(Fit::LessAdded));
        assert_eq!(metric(0.0503, 0.0).fits(), Some(Fit::Outside));
        assert_eq!(metric(0.0505, 0.0004).fits(), Some(Fit::Outside));
        assert_eq!(metric(0.0499, 0.0004).fits(), Some(Fit::Outside));
    }
}
