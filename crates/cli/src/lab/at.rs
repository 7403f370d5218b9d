//! Choosing points of sweeps by the values of their keys.

use crate::exit::Failure;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::scenario::{Point, Scenario};

/// Keys and the values of each, from pairs that are written KEY=VALUE: several of one key are either of them. `flag` is the
/// one that they were given with.
///
/// # Errors
/// A pair without `=`.
pub fn values<'p>(flag: &str, pairs: &'p [String]) -> Result<Vec<(&'p str, Vec<&'p str>)>, Failure> {
    let mut wanted: Vec<(&str, Vec<&str>)> = Vec::new();
    for pair in pairs {
        let wrong = || Failure::usage(format!("{flag} {pair}: write KEY=VALUE, such as loss=5%"));
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
        match wanted.iter_mut().find(|(k, _)| *k == key.trim()) {
            Some((_, values)) => values.push(value.trim()),
            None => wanted.push((key.trim(), vec![value.trim()])),
        }
    }
    Ok(wanted)
}

/// The points at which each of the keys has one of its values: all of them where there are none.
///
/// # Errors
/// A key that no scenario sweeps, or a value that it does not have.
pub fn points<'e>(e: &'e Experiment, flag: &str, pairs: &[String]) -> Result<Vec<(&'e Scenario, Point)>, Failure> {
    let wanted = values(flag, pairs)?;
    for (key, value) in wanted.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value))) {
        let keys: Vec<_> = e.scenarios.iter().flat_map(Scenario::keys).filter(|k| k.0 == *key).collect();
        if !keys.iter().any(|k| k.1.iter().any(|v| v == value)) {
            let there = match keys.first() {
                Some((_, values)) => format!("`{key}` is one of {}", values.join(", ")),
                None => format!("no scenario sweeps `{key}`"),
            };
            return Err(Failure::usage(format!("{flag} {key}={value}: {there}")));
        }
    }
    let mut all = Vec::new();
    for scenario in &e.scenarios {
        let keys = scenario.keys();
        for point in scenario.points().map_err(Failure::usage)? {
            let has = |(key, values): &(&str, Vec<&str>)| {
                keys.iter().zip(&point.values).any(|((k, _), v)| k == key && values.contains(&v.as_str()))
            };
            if wanted.iter().all(has) {
                all.push((scenario, point));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels of the points that these pairs choose, or what is wrong with them.
    fn chosen(pairs: &[&str]) -> Result<Vec<String>, String> {
        let experiment = Experiment::shipped("rtx-csi/e1").expect("shipped").expect("no mistake");
        let pairs: Vec<String> = pairs.iter().map(|p| (*p).to_owned()).collect();
        let points = points(&experiment, "--trace-at", &pairs).map_err(|e| e.to_string())?;
        Ok(points.into_iter().map(|(_, p)| p.values.join(" ")).collect())
    }

    #[test]
    fn values_of_one_key_are_either_and_those_of_two_both() {
        let all = chosen(&[]).expect("all");
        let with = |value: &str| all.iter().filter(|p| p.split(' ').any(|v| v == value)).cloned().collect::<Vec<_>>();
        let (small, large) = (with("16KB"), with("64KB"));
        assert!(!small.is_empty() && !large.is_empty() && small.len() + large.len() < all.len());
        assert_eq!(chosen(&["rbuf=16KB"]), Ok(small.clone()));
        let either = chosen(&["rbuf=64KB", "rbuf=16KB"]).expect("either");
        assert!(either.len() == small.len() + large.len() && small.iter().all(|p| either.contains(p)));
        assert_eq!(chosen(&["rbuf=16KB", "rbuf = 16KB"]), Ok(small));
        assert!(chosen(&["rbuf=16KB", "rbuf=7KB"]).is_err_and(|e| e.contains("rbuf=7KB: `rbuf` is one of 16KB")));
        assert!(chosen(&["rbuf"]).is_err_and(|e| e.contains("write KEY=VALUE")));
    }
}
