//! One metric over all scenarios of an experiment.

use crate::claims::Shape;
use crate::numbers::decimals;
use crate::quantity::values_of;
use crate::results::{Results, Table as Runs};
use crate::statistics::Estimate;
use anabranch_report::{Cell, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[[overview]]`: a table with a row for each scenario.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Overview {
    /// Heading of the table.
    pub title: String,
    /// What is shown: the mean over the seeds.
    pub metric: String,
    /// The key of the sweeps whose values are its columns.
    pub key: String,
    /// Metrics of the first column's runs shown beside it: what does not depend on the key.
    #[serde(default)]
    pub beside: Vec<String>,
}

impl Overview {
    /// What is wrong with it, if anything, for these scenarios.
    pub(crate) fn check(&self, scenarios: &[Shape<'_>]) -> Result<(), String> {
        if !scenarios.iter().any(|s| s.keys.iter().any(|k| k.0 == self.key)) {
            return Err(format!("overview `{}`: `key`: no scenario sweeps `{}`", self.title, self.key));
        }
        let measured = |m: &&String| scenarios.iter().any(|s| s.metrics.contains(&m.as_str()));
        match [&self.metric].into_iter().chain(&self.beside).find(|m| !measured(m)) {
            Some(lost) => Err(format!("overview `{}`: no scenario measures `{lost}`", self.title)),
            None => Ok(()),
        }
    }

    /// The table.
    pub(super) fn table(&self, results: &Results) -> Table {
        let mut columns: Vec<String> = Vec::new();
        for value in results.tables.iter().flat_map(|t| values_of(t, &self.key)) {
            if !columns.contains(&value) {
                columns.push(value);
            }
        }
        let rows: Vec<(&str, Vec<Option<Estimate>>)> = results
            .tables
            .iter()
            .filter(|t| t.keys.contains(&self.key))
            .map(|t| {
                let own = columns.iter().map(|v| mean(t, &self.metric, &self.key, Some(v)));
                let first = values_of(t, &self.key).into_iter().next();
                let beside = self.beside.iter().map(|m| mean(t, m, &self.key, first.as_deref()));
                (t.scenario.as_str(), own.chain(beside).collect())
            })
            .collect();
        let names = columns.iter().chain(&self.beside);
        let mut table = Table::new(self.title.clone()).text("scenario");
        for (i, name) in names.enumerate() {
            let places = rows.iter().filter_map(|r| r.1.get(i)?.as_ref()).map(decimals).max().unwrap_or(2).min(3);
            table = table.number(name.as_str(), "", places);
        }
        for (scenario, all) in rows {
            let number = |e: Option<Estimate>| e.map_or(Cell::Empty, |e| e.mean.into());
            let cells: Vec<Cell> = [Cell::from(scenario)].into_iter().chain(all.into_iter().map(number)).collect();
            table.push(cells);
        }
        table
    }
}

/// The mean of a metric over the seeds, of the runs with this value of the key.
fn mean(t: &Runs, metric: &str, key: &str, value: Option<&str>) -> Option<Estimate> {
    let column = t.metrics.iter().position(|m| m.name == metric)?;
    let place = t.keys.iter().position(|k| k == key)?;
    let here = t.rows.iter().filter(|r| r.point.get(place).map(String::as_str) == value);
    let mut by_seed: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (seed, v) in here.filter_map(|r| Some((r.seed, r.values.get(column).copied().flatten()?))) {
        let sum = by_seed.entry(seed).or_default();
        *sum = (sum.0 + v, sum.1 + 1.0);
    }
    let by_seed = by_seed.into_iter().map(|(seed, (sum, n))| (seed, sum / n)).collect();
    Some(t.metrics.get(column)?.mean(&by_seed)?.estimate())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Form, Metric, Row};

    fn runs(scenario: &str, senders: &[(&str, f64)]) -> Runs {
        let row = |&(sender, v): &(&str, f64), seed| Row {
            point: vec![sender.to_owned()],
            seed,
            values: vec![Some(v + seed as f64), Some(9.0)],
            fingerprint: 0,
        };
        let metric = |name: &str| Metric { name: name.to_owned(), unit: String::new() };
        Runs {
            scenario: scenario.to_owned(),
            keys: vec!["sender".to_owned()],
            metrics: vec![metric("a.whole"), metric("a.bound")],
            rows: senders.iter().flat_map(|s| [row(s, 1), row(s, 3)]).collect(),
        }
    }

    #[test]
    fn scenarios_are_rows_and_values_of_the_key_columns() {
        let (title, key) = ("Whole frames".to_owned(), "sender".to_owned());
        let o = Overview { title, metric: "a.whole".into(), key, beside: vec!["a.bound".into()] };
        let tables = vec![runs("one", &[("live", 0.0), ("cmt", 5.0)]), runs("two", &[("live", 1.0), ("alone", 2.0)])];
        let text = o.table(&Results { experiment: "e".into(), form: Form::Full, tables }).to_text();
        let line = |n: usize| text.lines().nth(n).unwrap_or_default().split_whitespace().collect::<Vec<_>>();
        assert_eq!(line(1), ["scenario", "live", "cmt", "alone", "a.bound"], "{text}");
        let numbers = |n: usize| -> Vec<Option<f64>> { line(n).iter().skip(1).map(|w| w.parse().ok()).collect() };
        assert_eq!(numbers(3), [Some(2.0), Some(7.0), None, Some(9.0)], "{text}");
        assert_eq!(numbers(4), [Some(3.0), None, Some(4.0), Some(9.0)], "{text}");
    }

    #[test]
    fn what_is_neither_measured_nor_swept_is_named() {
        let check = |metric: &str, key: &str| {
            let o = Overview { title: "T".into(), metric: metric.into(), key: key.into(), beside: vec![] };
            let values = ["live".to_owned()];
            let keys = vec![("sender", values.as_slice())];
            o.check(&[Shape { name: "s", keys, metrics: vec!["a.whole"], series: vec![], defined: vec![] }])
        };
        assert_eq!(check("a.whole", "sender"), Ok(()));
        assert_eq!(check("a.hole", "sender"), Err("overview `T`: no scenario measures `a.hole`".into()));
        assert_eq!(check("a.whole", "lender"), Err("overview `T`: `key`: no scenario sweeps `lender`".into()));
    }
}
