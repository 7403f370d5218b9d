//! Choosing points of sweeps by the values of their keys.

use crate::exit::Failure;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::scenario::{Point, Scenario};

/// The points at which the keys have these values, each written KEY=VALUE: all of them where there are none. `flag` is the
/// one that they were given with.
///
/// # Errors
/// A key that no scenario sweeps, or a value that it does not have.
pub fn points<'e>(e: &'e Experiment, flag: &str, pairs: &[String]) -> Result<Vec<(&'e Scenario, Point)>, Failure> {
    let mut wanted = Vec::new();
    for pair in pairs {
        let wrong = || Failure::usage(format!("{flag} {pair}: write KEY=VALUE, such as loss=5%"));
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
        let (key, value) = (key.trim(), value.trim());
        let keys: Vec<_> = e.scenarios.iter().flat_map(Scenario::keys).filter(|k| k.0 == key).collect();
        if !keys.iter().any(|k| k.1.iter().any(|v| v == value)) {
            let there = match keys.first() {
                Some((_, values)) => format!("`{key}` is one of {}", values.join(", ")),
                None => format!("no scenario sweeps `{key}`"),
            };
            return Err(Failure::usage(format!("{flag} {pair}: {there}")));
        }
        wanted.push((key, value));
    }
    let mut all = Vec::new();
    for scenario in &e.scenarios {
        let keys = scenario.keys();
        for point in scenario.points().map_err(Failure::usage)? {
            let has =
                |(key, value): &(&str, &str)| keys.iter().zip(&point.values).any(|((k, _), v)| k == key && v == value);
            if wanted.iter().all(has) {
                all.push((scenario, point));
            }
        }
    }
    Ok(all)
}
