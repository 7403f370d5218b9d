//! From a table of runs to a quantity: a metric at a point of the sweep, averaged, compared, in the unit asked for.

pub(crate) mod dimension;
mod expression;
mod unit;

pub use expression::{Expression, ExpressionError};
pub use unit::{check_unit, convert, number_of};

use crate::results::Table;
use crate::statistics::{Draws, Measured};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Values of sweep keys, as written in the scenario: `{ rbuf = "16KB" }`.
pub type Point = BTreeMap<String, String>;

/// Two settings of one key, set against each other seed by seed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The sweep key: `policy`.
    pub key: String,
    /// One value of it.
    pub a: String,
    /// The other one.
    pub b: String,
    /// The metric of the other one, where it is another: what one flow has beside what a second one has elsewhere.
    #[serde(default, rename = "metric-of-b", skip_serializing_if = "Option::is_none")]
    pub metric_of_b: Option<String>,
    /// How they are compared.
    #[serde(rename = "as")]
    pub how: How,
}

/// How two settings are compared. Means are over the seeds; every interval is of paired seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// `(a - b) / b`: what a gains over b.
    Advantage,
    /// `|a - b| / a`: how much b takes away from a.
    Impact,
    /// `a - b`, in the metric's unit.
    Difference,
    /// `|a - b|`, in the metric's unit: how far apart they are, whichever is higher.
    Distance,
    /// `a / b`.
    Ratio,
}

impl How {
    /// The comparison of two numbers; `None` when it cannot be had.
    pub fn of(self, a: &Measured, b: &Measured) -> Option<Measured> {
        match self {
            How::Advantage => a.relative_to(b),
            How::Impact => b.relative_to(a).map(Measured::absolute),
            How::Difference => a.minus(b),
            How::Distance => a.minus(b).map(Measured::absolute),
            How::Ratio => a.over(b),
        }
    }

    /// True when the result has no unit.
    pub const fn relative(self) -> bool {
        !matches!(self, How::Difference | How::Distance)
    }

    /// True when the result is an absolute value, of a mean whose sign may not be sure.
    pub const fn folded(self) -> bool {
        matches!(self, How::Impact | How::Distance)
    }
}

/// What a claim or a figure speaks about.
#[derive(Clone, Copy, Debug)]
pub struct Quantity<'a> {
    /// Name of the metric.
    pub metric: &'a str,
    /// Keys over whose values the mean is taken first, within each seed.
    pub average: &'a [String],
    /// A comparison, if any.
    pub compare: Option<&'a Compare>,
    /// What is taken of the seeds.
    pub take: Take,
}

/// What is taken of the seeds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Take {
    /// Their mean.
    #[default]
    Mean,
    /// A percentile over them, from 0 to 100.
    Percentile(f64),
    /// The median over them of the highest value at the points that are averaged otherwise.
    MedianOfMaxima,
}

impl<'a> Quantity<'a> {
    /// The metric itself.
    pub const fn of(metric: &'a str) -> Self {
        Quantity { metric, average: &[], compare: None, take: Take::Mean }
    }
}

/// Why a quantity cannot be had from a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Gap {
    /// The metric is not in the table.
    #[error("scenario `{scenario}` does not measure `{metric}`")]
    Metric {
        /// Where it was looked for.
        scenario: String,
        /// What was looked for.
        metric: String,
    },
    /// The key is not swept.
    #[error("scenario `{scenario}` does not sweep `{key}`")]
    Key {
        /// Where it was looked for.
        scenario: String,
        /// What was looked for.
        key: String,
    },
    /// A key of the sweep was not mentioned.
    #[error(
        "nothing is said about `{key}`, which scenario `{scenario}` sweeps: name it in `at`, `each`, `over` or `average`"
    )]
    Open {
        /// The scenario.
        scenario: String,
        /// The key.
        key: String,
    },
    /// No seed has a run at every point needed.
    #[error("scenario `{scenario}` has no complete runs at {point}")]
    Runs {
        /// The scenario.
        scenario: String,
        /// The point.
        point: String,
    },
    /// A formula that gives nothing to compare with.
    #[error("the formula {0}")]
    Formula(String),
    /// A quotient by zero.
    #[error("cannot divide by zero at {0}")]
    Zero(String),
    /// Units that do not fit each other.
    #[error("`{from}` cannot be shown in `{to}`")]
    Unit {
        /// What it is measured in.
        from: String,
        /// What was asked for.
        to: String,
    },
}

/// Reads quantities from one table, all over the same seeds.
#[derive(Debug)]
pub struct Reader<'t> {
    table: &'t Table,
    seeds: Option<BTreeSet<u64>>,
    common: RefCell<Option<BTreeSet<u64>>>,
}

impl<'t> Reader<'t> {
    /// A reader of all seeds.
    pub fn new(table: &'t Table) -> Self {
        Reader { table, seeds: None, common: RefCell::new(None) }
    }

    /// A reader of only those seeds that had a value wherever this one was asked, so that all pairs are complete.
    #[must_use]
    pub fn narrowed(&self) -> Self {
        Reader { table: self.table, seeds: self.common.borrow().clone(), common: RefCell::new(None) }
    }

    /// The table.
    pub fn table(&self) -> &'t Table {
        self.table
    }

    /// The quantity at a point.
    ///
    /// # Errors
    /// [`Gap`] says what is missing.
    pub fn quantity(&self, q: Quantity<'_>, at: &Point) -> Result<Measured, Gap> {
        let Some(c) = q.compare else { return self.mean(q, at) };
        let side = |value: &String, metric: &str| {
            let mut at = at.clone();
            at.insert(c.key.clone(), value.clone());
            let own = Quantity { metric, ..q };
            let factor = convert(self.unit_of(metric)?, self.unit_of(q.metric)?);
            let factor = factor.ok_or_else(|| Gap::Metric { scenario: words(&at), metric: metric.to_owned() })?;
            let measured = self.mean(own, &at)?;
            // What is in the unit already stays the very same number.
            if factor == 1.0 { Ok(measured) } else { measured.line(factor, 0.0).ok_or_else(|| Gap::Zero(words(&at))) }
        };
        let (a, b) = (side(&c.a, q.metric)?, side(&c.b, c.metric_of_b.as_deref().unwrap_or(q.metric))?);
        c.how.of(&a, &b).ok_or_else(|| Gap::Zero(words(at)))
    }

    /// What is taken of the seeds of a metric at a point, averaged within each seed over the keys of `q.average`.
    fn mean(&self, q: Quantity<'_>, at: &Point) -> Result<Measured, Gap> {
        let by_seed = self.by_seed(q, at)?;
        let metric = self.table.metrics.iter().find(|m| m.name == q.metric);
        let taken = match q.take {
            Take::Mean => metric.and_then(|m| m.mean(&by_seed)).map(Measured::Pulled),
            Take::Percentile(p) => Draws::percentile(&by_seed, p / 100.0).map(Measured::Drawn),
            Take::MedianOfMaxima => Draws::percentile(&by_seed, 0.5).map(Measured::Drawn),
        };
        taken.ok_or_else(|| self.no_runs(at))
    }

    /// The metric of each seed at a point, averaged over the keys of `q.average`, or the highest there.
    ///
    /// # Errors
    /// [`Gap`] says what is missing.
    pub fn by_seed(&self, q: Quantity<'_>, at: &Point) -> Result<BTreeMap<u64, f64>, Gap> {
        let t = self.table;
        let scenario = || t.scenario.clone();
        let metric = t.metrics.iter().position(|m| m.name == q.metric);
        let metric = metric.ok_or_else(|| Gap::Metric { scenario: scenario(), metric: q.metric.to_owned() })?;
        for key in at.keys().chain(q.average) {
            if !t.keys.contains(key) {
                return Err(Gap::Key { scenario: scenario(), key: key.clone() });
            }
        }
        let fixed: Vec<Option<&String>> = t.keys.iter().map(|k| at.get(k)).collect();
        if let Some(key) = t.keys.iter().find(|k| !at.contains_key(*k) && !q.average.contains(k)) {
            return Err(Gap::Open { scenario: scenario(), key: key.clone() });
        }
        let here = t.rows.iter().filter(|r| fixed.iter().zip(&r.point).all(|(f, v)| f.is_none_or(|f| f == v)));
        let mut points = BTreeSet::new();
        let mut sums: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
        for row in here {
            points.insert(&row.point);
            if let Some(v) = row.values.get(metric).copied().flatten() {
                let sum = sums.entry(row.seed).or_default();
                *sum = match (q.take, sum.1) {
                    (Take::MedianOfMaxima, 1..) => (sum.0.max(v), sum.1 + 1),
                    _ => (sum.0 + v, sum.1 + 1),
                };
            }
        }
        // A seed that lacks one of the averaged points would shift the mean.
        let whole = sums.into_iter().filter(|(_, s)| s.1 == points.len());
        let kept = whole.filter(|(seed, _)| self.seeds.as_ref().is_none_or(|s| s.contains(seed)));
        let share = |points: usize| if q.take == Take::MedianOfMaxima { 1.0 } else { points as f64 };
        let by_seed: BTreeMap<u64, f64> = kept.map(|(seed, s)| (seed, s.0 / share(s.1))).collect();
        // A point without runs is a gap of its own, not one that leaves no seed to the others.
        if by_seed.is_empty() {
            return Err(self.no_runs(at));
        }
        let here: BTreeSet<u64> = by_seed.keys().copied().collect();
        let common = self.common.replace(None);
        self.common.replace(Some(common.map_or(here.clone(), |c| c.intersection(&here).copied().collect())));
        Ok(by_seed)
    }

    fn no_runs(&self, at: &Point) -> Gap {
        Gap::Runs { scenario: self.table.scenario.clone(), point: words(at) }
    }

    /// By what to multiply a quantity to have it in `unit` (its own when that is `None`).
    ///
    /// # Errors
    /// [`Gap::Unit`] when they measure different things, [`Gap::Metric`] for an unknown metric.
    pub fn factor(&self, q: Quantity<'_>, unit: Option<&str>) -> Result<f64, Gap> {
        let from = self.unit(q)?;
        let to = unit.unwrap_or(from);
        convert(from, to).ok_or_else(|| Gap::Unit { from: from.to_owned(), to: to.to_owned() })
    }

    /// The unit of a metric of the table.
    fn unit_of(&self, name: &str) -> Result<&'t str, Gap> {
        let metric = self.table.metrics.iter().find(|m| m.name == name);
        let gap = || Gap::Metric { scenario: self.table.scenario.clone(), metric: name.to_owned() };
        Ok(metric.ok_or_else(gap)?.unit.as_str())
    }

    /// The unit in which a quantity is measured.
    ///
    /// # Errors
    /// [`Gap::Metric`] for an unknown metric.
    pub fn unit(&self, q: Quantity<'_>) -> Result<&'t str, Gap> {
        let unit = self.unit_of(q.metric)?;
        Ok(if q.compare.is_some_and(|c| c.how.relative()) { "" } else { unit })
    }
}

/// The values of a key, in the order of the scenario.
pub fn values_of(table: &Table, key: &str) -> Vec<String> {
    let Some(place) = table.keys.iter().position(|k| k == key) else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let all = table.rows.iter().filter_map(|r| r.point.get(place));
    all.filter(|v| seen.insert(v.as_str())).cloned().collect()
}

/// A point in words: `rbuf 16KB, policy rtx_csi`.
pub fn words(at: &Point) -> String {
    let parts: Vec<String> = at.iter().map(|(k, v)| format!("{k} {v}")).collect();
    if parts.is_empty() { "all points".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Metric, Row};

    /// Keys p and l; value = 10·p + l + seed/10, except that seed 3 has no value at p 2, l 2.
    fn table() -> Table {
        let mut rows = Vec::new();
        for p in [1, 2] {
            for l in [1, 2] {
                for seed in 1..=3 {
                    let there = (p, l, seed) != (2, 2, 3);
                    let value = there.then_some(f64::from(10 * p + l) + seed as f64 / 10.0);
                    rows.push(Row {
                        point: vec![p.to_string(), l.to_string()],
                        seed,
                        values: vec![value],
                        fingerprint: 0,
                    });
                }
            }
        }
        let metrics = vec![Metric { name: "m".into(), unit: "bit/s".into() }];
        Table { scenario: "s".into(), keys: vec!["p".into(), "l".into()], metrics, rows }
    }

    fn at(pairs: &[(&str, &str)]) -> Point {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn averages_take_only_whole_seeds() {
        let t = table();
        let average = ["l".to_owned()];
        let q = Quantity { average: &average, ..Quantity::of("m") };
        let r = Reader::new(&t);
        let one = r.by_seed(q, &at(&[("p", "1")])).unwrap();
        assert_eq!(one.len(), 3);
        assert!((one[&1] - 11.6).abs() < 1e-9);
        assert_eq!(r.by_seed(q, &at(&[("p", "2")])).unwrap().len(), 2);
        // A second reading is over the seeds that both points have.
        let r = r.narrowed();
        assert_eq!(r.by_seed(q, &at(&[("p", "1")])).unwrap().len(), 2);
    }

    #[test]
    fn comparisons() {
        let t = table();
        let r = Reader::new(&t);
        let value = |how| {
            let c = Compare { key: "p".into(), a: "1".into(), b: "2".into(), metric_of_b: None, how };
            let q = Quantity { compare: Some(&c), ..Quantity::of("m") };
            r.quantity(q, &at(&[("l", "1")])).unwrap().value()
        };
        let (a, b) = (11.2, 21.2);
        for (how, expected) in [
            (How::Advantage, (a - b) / b),
            (How::Impact, (b - a) / a),
            (How::Difference, a - b),
            (How::Ratio, a / b),
            (How::Distance, b - a),
        ] {
            assert!((value(how) - expected).abs() < 1e-9, "{how:?}");
        }
    }

    #[test]
    fn gaps_are_named() {
        let t = table();
        let r = Reader::new(&t);
        let q = |metric| Quantity { metric, average: &[], compare: None, take: Take::Mean };
        let gap = |q, at: &Point| r.quantity(q, at).unwrap_err().to_string();
        assert!(gap(q("x"), &at(&[])).contains("does not measure `x`"));
        assert!(gap(q("m"), &at(&[("p", "1"), ("z", "1")])).contains("does not sweep `z`"));
        assert!(gap(q("m"), &at(&[("p", "1")])).contains("nothing is said about `l`"));
        assert!(gap(q("m"), &at(&[("p", "9"), ("l", "1")])).contains("no complete runs at l 1, p 9"));
    }
}
