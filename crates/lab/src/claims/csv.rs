//! `claims.csv`.

use super::{Judgement, Step};
use crate::numbers::csv_field;
use crate::reference::Elsewhere;
use std::fmt::Write as _;

/// `claims.csv`: `id,verdict,printed,ours,ci_low,ci_high,note,p,run_low,run_high,run_p,reference,reference_low,
/// reference_high`; several numbers in one field are parted by `; `.
///
/// `printed` and `ours` have the same unit, which `note` begins with. Where nothing but a form is claimed, `printed` is
/// that form in words.
///
/// `verdict` is `reproduced`, `compatible with one run`, `conditional`, `contradicted`, `not testable`, or `none` in a
/// form that gives none. `note` is the reason, then the claim's own note. `p` is the two-sided p-value of each number,
/// adjusted for all of its claim; the next three are of further runs, where a printed value is held against those. What others measured follows their name,
/// `ns-2: 0.1; 0.2 | kernel: 0.1; `.
pub fn to_csv(judgements: &[Judgement]) -> String {
    let mut out = String::from(
        "id,verdict,printed,ours,ci_low,ci_high,note,p,run_low,run_high,run_p,reference,reference_low,reference_high\n",
    );
    for j in judgements {
        let join = |f: &dyn Fn(&Step) -> String| j.steps.iter().map(f).collect::<Vec<_>>().join("; ");
        let end = |e: Option<f64>| e.map_or(String::new(), |v| v.to_string());
        let note = [j.reason.as_str(), j.note.as_str()];
        let unit = if j.unit.is_empty() { String::new() } else { format!("in {}: ", j.unit) };
        let note: Vec<&str> = note.into_iter().filter(|n| !n.is_empty()).collect();
        let fields = [
            j.id.clone(),
            j.word(),
            j.stated.clone(),
            join(&|s| s.ours.mean.to_string()),
            join(&|s| end(s.ours.interval.map(|i| i.0))),
            join(&|s| end(s.ours.interval.map(|i| i.1))),
            format!("{unit}{}", note.join(". ")),
            join(&|s| end(s.p)),
            some(j, &|s| s.further.map(|f| f.0)),
            some(j, &|s| s.further.map(|f| f.1)),
            some(j, &|s| s.further_p),
            elsewhere(j, &|e| Some(e.value)),
            elsewhere(j, &|e| e.interval.map(|i| i.0)),
            elsewhere(j, &|e| e.interval.map(|i| i.1)),
        ];
        let fields: Vec<String> = fields.iter().map(|f| csv_field(f)).collect();
        let _ = writeln!(out, "{}", fields.join(","));
    }
    out
}

/// A field that stays empty where no step has it.
fn some(j: &Judgement, f: &dyn Fn(&Step) -> Option<f64>) -> String {
    let all: Vec<Option<f64>> = j.steps.iter().map(f).collect();
    let text = |v: &Option<f64>| v.map_or(String::new(), |v| v.to_string());
    if all.iter().all(Option::is_none) { String::new() } else { all.iter().map(text).collect::<Vec<_>>().join("; ") }
}

/// Who measured the steps of a claim as well, in the order in which they come first.
pub(crate) fn others(steps: &[Step]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in steps.iter().flat_map(|s| &s.elsewhere).map(|e| e.name.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn elsewhere(j: &Judgement, f: &dyn Fn(&Elsewhere) -> Option<f64>) -> String {
    let of = |name: &str| -> Option<String> {
        let one = |s: &Step| s.elsewhere.iter().find(|e| e.name == name).and_then(f);
        let all: Vec<Option<f64>> = j.steps.iter().map(one).collect();
        let text = |v: &Option<f64>| v.map_or(String::new(), |v| v.to_string());
        let there = all.iter().any(Option::is_some);
        there.then(|| format!("{name}: {}", all.iter().map(text).collect::<Vec<_>>().join("; ")))
    };
    others(&j.steps).into_iter().filter_map(of).collect::<Vec<_>>().join(" | ")
}
