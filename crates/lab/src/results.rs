//! What an experiment measured: one row for each point of a sweep and seed.

use crate::metrics::is_share;
use crate::statistics::Estimator;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which form of an experiment was run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// All points and seeds: the only form that gives verdicts.
    Full,
    /// Few points and seeds, to see that it works.
    Quick,
    /// All points, with seeds or keys of the user's choice.
    Custom,
}

/// A quantity that runs measure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Metric {
    /// Name, as in scenario files and column heads: `main.goodput`.
    pub name: String,
    /// Unit for people: `bit/s`, `s`, or empty for a share or a count.
    pub unit: String,
}

impl Metric {
    /// Its mean over seeds, which for a part of a whole has an interval between 0 and 1.
    pub fn mean(&self, by_seed: &BTreeMap<u64, f64>) -> Option<Estimator> {
        if is_share(&self.name) { Estimator::share(by_seed) } else { Estimator::mean(by_seed) }
    }
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The value of each sweep key, in the order of [`Table::keys`], as written in the scenario.
    pub point: Vec<String>,
    /// Its seed. Runs of one seed at different points are paired.
    pub seed: u64,
    /// One value for each of [`Table::metrics`]; `None` where the run had nothing to measure.
    pub values: Vec<Option<f64>>,
    /// Hash of everything the run delivered.
    pub fingerprint: u64,
}

/// All runs of one scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The scenario's name: `e2-case1`.
    pub scenario: String,
    /// Sweep keys: `rbuf`, `loss`, `policy`.
    pub keys: Vec<String>,
    /// What was measured.
    pub metrics: Vec<Metric>,
    /// The runs, ordered by point as the scenario lists them, then seed.
    pub rows: Vec<Row>,
}

/// All scenarios of an experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name: `rtx-csi`.
    pub experiment: String,
    /// Which form was run.
    pub form: Form,
    /// One table for each scenario.
    pub tables: Vec<Table>,
}

/// What one run noted over time: one line of a plot.
#[derive(Clone, PartialEq, Debug)]
pub struct Over {
    /// The value of each sweep key.
    pub point: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// What was noted: `main.cwnd`.
    pub name: String,
    /// Of which path, from 1.
    pub path: Option<usize>,
    /// Seconds since the start, and the value if there was one.
    pub samples: Vec<(f64, Option<f64>)>,
}

/// How often one run saw each delay, of those that one metric is the mean of.
#[derive(Clone, PartialEq, Debug)]
pub struct Counted {
    /// The value of each sweep key.
    pub point: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The metric: `main.delay`.
    pub metric: String,
    /// Delays in seconds, to three significant digits, and how often each came.
    pub counts: Vec<(f64, u64)>,
}

/// The delays that all runs of one scenario saw.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    /// The scenario.
    pub scenario: String,
    /// Its sweep keys.
    pub keys: Vec<String>,
    /// Its runs.
    pub runs: Vec<Counted>,
}

/// What all runs of one scenario noted over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// The scenario.
    pub scenario: String,
    /// Its sweep keys.
    pub keys: Vec<String>,
    /// The lines.
    pub lines: Vec<Over>,
}
