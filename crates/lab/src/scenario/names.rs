//! Names that become columns and files, and how much may be asked for.

use super::plan::{Measure, covers};
use super::set;
use super::sweep::Sweep;
use crate::document::{Part, Problem, Table};

/// Most seeds of a scenario, as of `--seeds`.
pub(super) const SEEDS: u64 = 1_000_000;
/// Most points of a scenario's sweeps.
const POINTS: usize = 1_000_000;
/// Columns of `results.csv` that are no sweep's.
pub(super) const COLUMNS: [&str; 3] = ["scenario", "seed", "fingerprint"];
/// Columns of a series file that are no sweep's, where there is one.
const OF_SERIES: [&str; 4] = ["time", "series", "path", "value"];

/// May this be the name of a file? Of a scenario, of an experiment, of a figure.
///
/// # Errors
/// The name has another form; the error says which form a name needs.
pub fn of_file(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '%');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let what = "it needs letters, digits, blanks and `-`, `_`, `.`, `+`, `%` alone";
        return Err(format!("`{name}` becomes the name of files: {what}"));
    }
    Ok(())
}

/// What the table of a cable calls it: one without a name is called after its ends.
pub(super) fn cable_name(cable: &Table) -> Option<String> {
    let ends = || Some(format!("{}-{}", cable.text("from")?, cable.text("to")?));
    cable.text("name").map(str::to_owned).or_else(ends)
}

/// How messages name a file that another one names: from the same place as that one.
pub(crate) fn beside(file: &str, other: &str) -> String {
    if other.starts_with('/') {
        return other.to_owned();
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in other.split('/') {
        match part {
            ".." if parts.last().is_some_and(|p| !matches!(*p, "" | "." | "..")) => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

pub(super) fn seeds(part: Part<'_>, n: u64) -> Result<(), Problem> {
    if (1..=SEEDS).contains(&n) {
        return Ok(());
    }
    Err(part.at("seeds", format!("is {n}, and must lie between 1 and {SEEDS}")))
}

/// Names of sweeps must differ, from each other and from the other columns.
pub(super) fn of_sweeps(whole: Part<'_>, sweeps: &[Sweep], measures: &[Measure], series: bool) -> Result<(), Problem> {
    let taken = |name: &str| COLUMNS.contains(&name) || series && OF_SERIES.contains(&name);
    for (i, s) in sweeps.iter().enumerate() {
        let wrong = |key: &str, what: &str| Err(s.wrong(key, what));
        if s.name.is_empty() || taken(&s.name) || measures.iter().any(|m| m.name == s.name) {
            return wrong("name", "is a column of the results already: choose another one");
        }
        let before = &sweeps[..i];
        if before.iter().any(|b| b.name == s.name) {
            return wrong("name", "there are two sweeps of this name");
        }
        for key in &s.sets {
            if key.starts_with("flow.") && key.ends_with(".name") {
                return Err(s.wrong_key(key, "the name of a flow stays: metrics go by it"));
            }
            let meets = |b: &&Sweep| b.sets.iter().any(|k| overrules(key, k));
            if let Some(other) = before.iter().find(meets) {
                return Err(s.wrong_key(key, format!("`{key}` overrules what the sweep `{}` sets", other.name)));
            }
        }
    }
    let points = sweeps.iter().try_fold(1_usize, |n, s| n.checked_mul(s.values.len()));
    if points.is_none_or(|n| n > POINTS) {
        return Err(whole.at("sweep", format!("makes more than {POINTS} points: choose fewer values")));
    }
    Ok(())
}

/// Does what sets `key` overrule all of what was set by `before`: the same key, a table around it, a star over it?
fn overrules(key: &str, before: &str) -> bool {
    let (parts, all) = (set::parts(key), set::parts(before));
    parts.len() <= all.len() && parts.iter().zip(&all).all(|(part, own)| covers(part, own))
}
