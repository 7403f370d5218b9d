//! Two scenarios as one table, so that they can be compared: which of them a run is of becomes a key.

use crate::claims::Shape;
use crate::quantity::{Compare, Gap};
use crate::results::{Results, Row, Table};

/// The key of a comparison whose sides are scenarios: `compare = { key = "scenario", a = "case1", b = "case2" }`.
pub const SCENARIO: &str = "scenario";

impl Compare {
    /// The two scenarios that it sets against each other, if it does.
    pub fn scenarios(&self) -> Option<[&str; 2]> {
        (self.key == SCENARIO).then_some([self.a.as_str(), self.b.as_str()])
    }
}

/// Both tables as one, with [`SCENARIO`] as its first key and the metrics that both have.
///
/// # Errors
/// [`Gap::Key`] when they do not sweep the same keys.
pub fn join(a: &Table, b: &Table) -> Result<Table, Gap> {
    let lacks = |of: &Table, key: &str| Gap::Key { scenario: of.scenario.clone(), key: key.to_owned() };
    if let Some(key) = a.keys.iter().find(|k| !b.keys.contains(k)) {
        return Err(lacks(b, key));
    }
    if let Some(key) = b.keys.iter().find(|k| !a.keys.contains(k)) {
        return Err(lacks(a, key));
    }
    let metrics: Vec<_> = a.metrics.iter().filter(|m| b.metrics.contains(m)).cloned().collect();
    let rows = [a, b].into_iter().flat_map(|t| {
        // Either may list keys and metrics in an order of its own.
        let keys: Vec<usize> = a.keys.iter().filter_map(|k| t.keys.iter().position(|own| own == k)).collect();
        let columns: Vec<usize> = metrics.iter().filter_map(|m| t.metrics.iter().position(|own| own == m)).collect();
        t.rows.iter().map(move |r| {
            let point = keys.iter().filter_map(|k| r.point.get(*k)).cloned();
            Row {
                point: std::iter::once(t.scenario.clone()).chain(point).collect(),
                seed: r.seed,
                values: columns.iter().map(|c| r.values.get(*c).copied().flatten()).collect(),
                fingerprint: r.fingerprint,
            }
        })
    });
    let rows = rows.collect();
    let keys = std::iter::once(SCENARIO.to_owned()).chain(a.keys.iter().cloned()).collect();
    Ok(Table { scenario: format!("{} and {}", a.scenario, b.scenario), keys, metrics, rows })
}

/// The two scenarios of the results as one table.
///
/// # Errors
/// As [`join`], or [`Gap::Runs`] for one that was not run.
pub fn find(pair: [&str; 2], results: &Results) -> Result<Table, Gap> {
    let [a, b] = pair.map(|name| {
        let found = results.tables.iter().find(|t| t.scenario == name);
        found.ok_or_else(|| Gap::Runs { scenario: name.to_owned(), point: "any point".to_owned() })
    });
    join(a?, b?)
}

/// Checks each of the two scenarios as it will be in the joined table, before anything runs.
///
/// # Errors
/// What is wrong, for people: there is no such scenario, they do not sweep the same keys, a key that is not held to
/// values of the comparison's own (`free`) has others in one than in the other, or what `fits` says.
pub fn check(
    pair: [&str; 2],
    all: &[Shape<'_>],
    free: &[&str],
    fits: impl Fn(&Shape<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let find = |name: &str| all.iter().find(|s| s.name == name).ok_or_else(|| format!("there is no scenario `{name}`"));
    let [a, b] = pair.map(find);
    let (a, b) = (a?, b?);
    if a.name == b.name {
        return Err(format!("it compares scenario `{}` with itself", a.name));
    }
    let names = pair.map(str::to_owned);
    for (s, other) in [(a, b), (b, a)] {
        if let Some((key, _)) = s.keys.iter().find(|k| !other.keys.iter().any(|o| o.0 == k.0)) {
            let [name, lacks] = [s.name, other.name];
            return Err(format!("scenario `{name}` sweeps `{key}` and `{lacks}` does not: they cannot be compared"));
        }
        for (key, values) in s.keys.iter().filter(|k| free.contains(&k.0)) {
            let others = other.keys.iter().find(|o| o.0 == *key).map_or(&[][..], |o| o.1);
            if let Some(value) = values.iter().find(|v| !others.contains(v)) {
                let [name, lacks] = [s.name, other.name];
                return Err(format!(
                    "scenario `{name}` has `{key}` {value} and `{lacks}` has not: name values that both have"
                ));
            }
        }
        let keys = std::iter::once((SCENARIO, &names[..])).chain(s.keys.iter().copied()).collect();
        fits(&Shape {
            name: s.name,
            keys,
            metrics: s.metrics.clone(),
            series: Vec::new(),
            defined: s.defined.clone(),
        })?;
    }
    Ok(())
}
