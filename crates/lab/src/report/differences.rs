//! What each setting of a key gains over the first one, seed by seed.

use crate::numbers::csv_field;
use crate::quantity::values_of;
use crate::results::{Metric, Row, Table as Runs};
use crate::statistics::{Estimate, Estimator};
use anabranch_report::{Cell, Table, Verdict as Mark};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One comparison at one point of the other keys.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Difference<'a> {
    pub(crate) scenario: &'a str,
    /// The key whose settings are compared.
    pub(crate) key: &'a str,
    /// The first setting of it, which the other one is held against.
    pub(crate) base: String,
    pub(crate) value: String,
    /// The other keys.
    pub(crate) at: Vec<(&'a str, &'a str)>,
    pub(crate) metric: &'a Metric,
    /// `value - base`, in the metric's unit.
    pub(crate) difference: Estimate,
    /// The difference as a share of the base, unless that is 0.
    pub(crate) relative: Option<Estimate>,
}

/// Every key with words among its settings (a policy, a profile, on and off) is compared; of a scale of numbers alone
/// the figures tell more.
pub(crate) fn of(runs: &Runs) -> Vec<Difference<'_>> {
    let named = |key: &&String| {
        let values = values_of(runs, key);
        values.len() > 1 && !values.iter().all(|v| quantity(v))
    };
    runs.keys.iter().filter(named).flat_map(|key| along(runs, key)).collect()
}

/// A number, alone or with a unit: `16KB`, `2 packets`, `1%`, but not `10.0.0.1` or `2-way`.
fn quantity(value: &str) -> bool {
    let number = value.trim_end_matches(|c: char| c.is_alphabetic() || "%/ ".contains(c));
    number.parse::<f64>().is_ok()
}

fn along<'a>(runs: &'a Runs, key: &'a str) -> Vec<Difference<'a>> {
    let Some(place) = runs.keys.iter().position(|k| k == key) else { return Vec::new() };
    let values = values_of(runs, key);
    let Some((base, others)) = values.split_first() else { return Vec::new() };
    // Points of the other keys in the order of the scenario, each with its runs by setting.
    let mut order: Vec<Vec<&str>> = Vec::new();
    let mut runs_at: BTreeMap<Vec<&str>, BTreeMap<&str, Vec<&Row>>> = BTreeMap::new();
    for row in &runs.rows {
        let rest = row.point.iter().enumerate().filter(|(i, _)| *i != place);
        let at: Vec<&str> = rest.map(|(_, v)| v.as_str()).collect();
        let Some(value) = row.point.get(place) else { continue };
        let settings = runs_at.entry(at.clone()).or_insert_with(|| {
            order.push(at);
            BTreeMap::new()
        });
        settings.entry(value).or_default().push(row);
    }
    let other_keys: Vec<&str> = runs.keys.iter().map(String::as_str).filter(|k| *k != key).collect();
    let mut all = Vec::new();
    for at in &order {
        let Some(settings) = runs_at.get(at) else { continue };
        for value in others {
            for (m, metric) in runs.metrics.iter().enumerate() {
                let mean = |setting: &str| {
                    let rows = settings.get(setting)?.iter();
                    let by_seed = rows.filter_map(|r| Some((r.seed, r.values.get(m).copied().flatten()?)));
                    Some(by_seed.collect::<BTreeMap<u64, f64>>())
                };
                let Some((a, b)) = mean(value).zip(mean(base)) else { continue };
                let Some((difference, relative)) = paired(a, b) else { continue };
                all.push(Difference {
                    scenario: &runs.scenario,
                    key,
                    base: base.clone(),
                    value: value.clone(),
                    at: other_keys.iter().copied().zip(at.iter().copied()).collect(),
                    metric,
                    difference,
                    relative,
                });
            }
        }
    }
    all
}

/// `a - b` over the seeds that both have, and that as a share of `b`.
fn paired(mut a: BTreeMap<u64, f64>, mut b: BTreeMap<u64, f64>) -> Option<(Estimate, Option<Estimate>)> {
    a.retain(|seed, _| b.contains_key(seed));
    b.retain(|seed, _| a.contains_key(seed));
    let (a, b) = (Estimator::mean(&a)?, Estimator::mean(&b)?);
    Some((a.minus(&b)?.estimate(), a.relative_to(&b).map(|r| r.estimate())))
}

/// All of them as CSV.
pub(crate) fn to_csv(all: &[Difference<'_>]) -> String {
    let mut out = String::from(
        "scenario,key,value,base,at,metric,unit,difference,ci_low,ci_high,relative,relative_low,relative_high,seeds\n",
    );
    let ends = |e: &Estimate| e.interval.map_or([String::new(), String::new()], |(l, h)| [l, h].map(|v| v.to_string()));
    for d in all {
        let at: Vec<String> = d.at.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let [low, high] = ends(&d.difference);
        let mean = d.relative.map(|r| r.mean.to_string()).unwrap_or_default();
        let [relative_low, relative_high] = d.relative.as_ref().map(ends).unwrap_or_default();
        let words = [d.scenario, d.key, &d.value, &d.base, &at.join(" "), &d.metric.name, &d.metric.unit];
        let words: Vec<String> = words.iter().map(|w| csv_field(w)).collect();
        let _ = writeln!(
            out,
            "{},{},{low},{high},{mean},{relative_low},{relative_high},{}",
            words.join(","),
            d.difference.mean,
            d.difference.seeds
        );
    }
    out
}

/// The comparisons along one key as a table: what changes by how many per cent.
pub(crate) fn table(all: &[&Difference<'_>]) -> Table {
    let keys = all.first().map(|d| d.at.iter().map(|(k, _)| *k).collect::<Vec<_>>()).unwrap_or_default();
    let key = all.first().map_or("", |d| d.key);
    let mut table = keys.iter().fold(Table::new(""), |t, k| t.text(*k));
    table = table.text(key).text("metric").number("difference", "%", 2).text("so?");
    for d in all {
        let Some(r) = d.relative.map(|r| r.scaled(100.0)) else { continue };
        let mut cells: Vec<Cell> = d.at.iter().map(|(_, v)| Cell::from((*v).to_owned())).collect();
        cells.push(d.value.clone().into());
        cells.push(d.metric.name.clone().into());
        cells.push(match r.interval {
            Some((low, high)) => (r.mean, low, high).into(),
            None => r.mean.into(),
        });
        cells.push(match r.interval {
            Some((low, _)) if low > 0.0 => Mark::info("more").into(),
            Some((_, high)) if high < 0.0 => Mark::info("less").into(),
            _ => Cell::Empty,
        });
        table.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds that differ by far more than the two policies, of which one is 10 % above the other.
    fn runs() -> Runs {
        let mut rows = Vec::new();
        for loss in ["1%", "2%"] {
            for (policy, gain) in [("cmt", 1.0), ("live", 1.1)] {
                for seed in 1..=3 {
                    let value = (policy, seed) != ("live", 3) || loss == "1%";
                    let value = value.then_some(gain * 10f64.powi(seed as i32));
                    let point = vec![loss.to_owned(), policy.to_owned()];
                    rows.push(Row { point, seed, values: vec![value, Some(0.0)], fingerprint: 0 });
                }
            }
        }
        let metric = |name: &str, unit: &str| Metric { name: name.into(), unit: unit.into() };
        let metrics = vec![metric("main.goodput", "bit/s"), metric("main.lost", "")];
        Runs { scenario: "s".into(), keys: vec!["loss".into(), "policy".into()], metrics, rows }
    }

    #[test]
    fn seeds_are_compared_with_themselves() {
        let runs = runs();
        let all = of(&runs);
        // Loss is a scale and is not compared; two losses, one other policy, two metrics.
        assert_eq!(all.len(), 4);
        let d = &all[0];
        assert_eq!((d.key, d.base.as_str(), d.value.as_str(), d.at[0]), ("policy", "cmt", "live", ("loss", "1%")));
        let r = d.relative.expect("the base is not 0");
        let (low, high) = r.interval.expect("three seeds");
        assert!((r.mean - 0.1).abs() < 1e-9 && high - low < 1e-9, "{r:?}");
        assert!((d.difference.mean - 37.0).abs() < 1e-9, "a tenth of the mean of 10, 100 and 1,000");
        // Seed 3 has no partner at 2 %: both means are over seeds 1 and 2.
        assert_eq!((all[2].difference.seeds, all[2].relative.map(|r| r.seeds)), (2, Some(2)));
        assert!((all[2].difference.mean - 5.5).abs() < 1e-9);
        // There is no share of nothing.
        assert_eq!((all[1].relative, all[1].difference.mean), (None, 0.0));
    }

    #[test]
    fn only_scales_are_left_to_the_figures() {
        let compared = |values: [&str; 2]| {
            let mut runs = runs();
            for (old, new) in ["cmt", "live"].iter().zip(values) {
                runs.rows.iter_mut().filter(|r| r.point[1] == *old).for_each(|r| r.point[1] = new.to_owned());
            }
            !of(&runs).is_empty()
        };
        for words in [["2 packets", "RFC 9260"], ["1%", "none"], ["10.0.0.1", "10.0.0.2"], ["2-way", "3-way"]] {
            assert!(compared(words), "{words:?}");
        }
        for scale in [["1%", "2%"], ["2 packets", "4 packets"], ["-1.5", "+3"], ["16KB", "1e3"], ["10us", "20µs"]] {
            assert!(!compared(scale), "{scale:?}");
        }
    }

    #[test]
    fn as_csv() {
        let runs = runs();
        let csv = to_csv(&of(&runs));
        let line = csv.lines().nth(3).expect("a line");
        assert!(line.starts_with("s,policy,live,cmt,loss=2%,main.goodput,bit/s,5.5"), "{line}");
        assert_eq!(csv.lines().map(|l| l.split(',').count()).collect::<Vec<_>>(), [14; 5]);
    }
}
