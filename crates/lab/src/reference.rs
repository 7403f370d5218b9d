//! Values that were measured elsewhere, by another simulator or in a kernel, to stand beside ours: `[[reference]]`.

mod table;

pub(crate) use table::read;

use crate::quantity::{Compare, How, Point, Quantity};
use crate::results::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `[[reference]]` in a scenario, or in a file of claims or figures: a CSV file with a column for each sweep key and
/// `value`, and if need be `metric`, `scenario`, `low` and `high`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reference {
    /// Who measured it: `ns-2.35`.
    pub name: String,
    /// The file, beside the one that names it.
    pub file: String,
    /// The scenario that it was measured for; none when the file has a column for it, or there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// The metric; none when the file has a column for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The values are of this comparison, whose key has no column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// The values are means over these keys, which have no column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub average: Vec<String>,
    /// Where all of it was measured: keys that have no column.
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub at: Point,
    /// The unit of the values; the metric's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// How it was measured: a sentence for the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the file says, before it is read.
    #[serde(default, skip_serializing)]
    pub(crate) text: String,
    /// What it holds, in the metrics' own units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
}

/// One value of a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The scenario.
    pub scenario: String,
    /// The metric.
    pub metric: String,
    /// Where in the sweep.
    pub at: Point,
    /// The value.
    pub value: f64,
    /// Both ends of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

/// A value of a reference at one place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Who measured it.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Both ends of its interval.
    pub interval: Option<(f64, f64)>,
}

impl Elsewhere {
    /// Everything times `k`, which is positive: another unit.
    #[must_use]
    pub fn scaled(self, k: f64) -> Self {
        Elsewhere { value: self.value * k, interval: self.interval.map(|(a, b)| (a * k, b * k)), ..self }
    }
}

impl Reference {
    /// What was measured of a quantity, in its own unit: as the file has it, or worked out from what the file has of both
    /// sides of a comparison and of all that a mean is over. `table` says which points that mean has.
    pub fn quantity(&self, q: Quantity<'_>, at: &Point, table: &Table) -> Option<Elsewhere> {
        let whole = |value, interval| Elsewhere { name: self.name.clone(), value, interval };
        if self.compare.as_ref() == q.compare {
            return self.mean(q, at, table).map(|(value, interval)| whole(value, interval));
        }
        let c = q.compare.filter(|_| self.compare.is_none())?;
        let side = |value: &String, metric| {
            let mut at = at.clone();
            at.insert(c.key.clone(), value.clone());
            self.mean(Quantity { metric, ..q }, &at, table).map(|v| v.0)
        };
        // Of another metric it may be in another unit.
        let (a, b) = (side(&c.a, q.metric)?, side(&c.b, q.metric).filter(|_| c.metric_of_b.is_none())?);
        let value = match c.how {
            How::Advantage => a / b - 1.0,
            How::Impact => (b / a - 1.0).abs(),
            How::Difference => a - b,
            How::Distance => (a - b).abs(),
            How::Ratio => a / b,
        };
        value.is_finite().then(|| whole(value, None))
    }

    fn mean(&self, q: Quantity<'_>, at: &Point, table: &Table) -> Option<(f64, Option<(f64, f64)>)> {
        let of_it = |r: &&Row| r.scenario == table.scenario && r.metric == q.metric;
        let averaged: BTreeSet<&String> = q.average.iter().collect();
        if averaged == self.average.iter().collect() {
            let row = self.rows.iter().filter(of_it).find(|r| r.at == *at)?;
            return Some((row.value, row.interval));
        }
        if !self.average.is_empty() {
            return None;
        }
        let key = |name: &String| table.keys.iter().position(|k| k == name);
        let fixed = |r: &crate::results::Row| at.iter().all(|(k, v)| key(k).and_then(|i| r.point.get(i)) == Some(v));
        let points: BTreeSet<&Vec<String>> = table.rows.iter().filter(|r| fixed(r)).map(|r| &r.point).collect();
        let value = |point: &Vec<String>| {
            let here: Point = table.keys.iter().cloned().zip(point.iter().cloned()).collect();
            self.rows.iter().filter(of_it).find(|r| r.at == here).map(|r| r.value)
        };
        let values: Vec<f64> = points.into_iter().map(value).collect::<Option<_>>()?;
        crate::statistics::mean(&values).map(|v| (v, None))
    }
}

#[cfg(test)]
mod tests;
