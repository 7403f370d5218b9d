//! Measurements as tables.

use crate::claims::{Judgement, Step, Verdict};
use crate::numbers::{decimals, interval_text, number_text};
use crate::quantity::convert;
use crate::reference::Elsewhere;
use crate::results::Table as Runs;
use crate::statistics::Estimate;
use anabranch_report::{Cell, Table, Verdict as Mark};
use std::collections::BTreeMap;

/// The verdict of a claim as a mark.
fn mark(j: &Judgement) -> Mark {
    let word = j.word();
    match j.verdict {
        Some(Verdict::Reproduced) => Mark::pass(word),
        Some(Verdict::Compatible | Verdict::Conditional) => Mark::warn(word),
        Some(Verdict::Contradicted) => Mark::fail(word),
        Some(Verdict::NotTestable) | None => Mark::info(word),
    }
}

/// The claims with their verdicts, the reason below each.
pub(super) fn claims(judgements: &[Judgement]) -> Table {
    let mut table = Table::new("")
        .text("claim")
        .text("what is claimed")
        .text("verdict")
        .text("printed")
        .text("ours, 95 % interval");
    let elsewhere = judgements.iter().flat_map(|j| &j.steps).any(|s| !s.elsewhere.is_empty());
    if elsewhere {
        table = table.text("measured elsewhere");
    }
    for j in judgements {
        let mut row: Vec<Cell> = vec![
            j.id.as_str().into(),
            j.says.as_str().into(),
            mark(j).into(),
            j.printed.replace("; ", "\n").into(),
            ours(j).into(),
        ];
        if elsewhere {
            row.push(others(j).into());
        }
        table.push(row);
        if j.verdict.is_some() {
            table.push_remark(sentence(&j.reason));
        }
        if !j.note.is_empty() {
            table.push_remark(sentence(&j.note));
        }
    }
    table
}

fn ours(j: &Judgement) -> String {
    let unit = if j.unit.is_empty() { String::new() } else { format!(" {}", j.unit) };
    if j.steps.len() > 5 {
        return format!("{} steps, see below", j.steps.len());
    }
    // One line for each, which does not break within.
    let each = j.steps.iter().map(|s| format!("{}{unit}", interval_text(&s.ours)).replace(' ', "\u{a0}"));
    each.collect::<Vec<_>>().join("\n")
}

/// What others measured, a line for each of ours.
fn others(j: &Judgement) -> String {
    if j.steps.len() > 5 && j.steps.iter().any(|s| !s.elsewhere.is_empty()) {
        return "see below".to_owned();
    }
    let each = j.steps.iter().map(|s| others_of(s, &j.unit).replace(' ', "\u{a0}"));
    each.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn others_of(step: &Step, unit: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let one = |e: &Elsewhere| {
        let number = interval_text(&Estimate { mean: e.value, interval: e.interval, seeds: 0 });
        format!("{}: {number}{unit}", e.name)
    };
    step.elsewhere.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// Every step of every claim that has several, and whether it is as claimed where there are verdicts.
pub(super) fn steps(judgements: &[Judgement]) -> Table {
    let verdicts = judgements.iter().any(|j| j.verdict.is_some());
    let mut table = Table::new("").text("claim").text("step").text("ours, 95 % interval").text("claimed");
    if verdicts {
        table = table.text("p").text("so?");
    }
    let elsewhere = judgements.iter().flat_map(|j| &j.steps).any(|s| !s.elsewhere.is_empty());
    if elsewhere {
        table = table.text("measured elsewhere");
    }
    for j in judgements.iter().filter(|j| j.steps.len() > 1) {
        let unit = if j.unit.is_empty() { String::new() } else { format!(" {}", j.unit) };
        for s in &j.steps {
            use crate::claims::{Outcome as O, Test as T};
            let claimed = match s.test {
                T::Above(x) => format!("> {}{unit}", number_text(x)),
                T::Below(x) => format!("< {}{unit}", number_text(x)),
                T::AtLeast(x) => format!("\u{2265} {}{unit}", number_text(x)),
                T::AtMost(x) => format!("\u{2264} {}{unit}", number_text(x)),
                T::Within(x) => format!("within \u{b1}{}{unit}", number_text(x)),
                T::Is(x, _) => format!("{}{unit}", number_text(x)),
            };
            let so = match s.outcome {
                O::Supported => Mark::pass("yes"),
                O::OneRun => Mark::warn("one run may"),
                O::Opposed => Mark::fail("no"),
                O::Undecided => Mark::warn("undecided"),
            };
            let mut row: Vec<Cell> = vec![
                j.id.as_str().into(),
                s.what.as_str().into(),
                format!("{}{unit}", interval_text(&s.ours)).into(),
                claimed.into(),
            ];
            if verdicts {
                row.push(s.p.map(p_text).unwrap_or_default().into());
                row.push(so.into());
            }
            if elsewhere {
                row.push(others_of(s, &j.unit).into());
            }
            table.push(row);
        }
    }
    table
}

/// A p-value as papers print it.
fn p_text(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// The mean of each metric at each point of a sweep with its interval, over the seeds.
pub(super) fn measurements(runs: &Runs) -> Table {
    let points = points(runs);
    let mut columns: Vec<(String, Vec<Option<Estimate>>)> = Vec::new();
    for (i, metric) in runs.metrics.iter().enumerate() {
        let all: Vec<Option<Estimate>> = points.values().map(|rows| mean_of(runs, rows, i)).collect();
        let largest = all.iter().flatten().map(|e| e.mean.abs()).fold(0.0, f64::max);
        let unit = readable(&metric.unit, largest);
        let factor = convert(&metric.unit, unit).unwrap_or(1.0);
        let heading = if unit.is_empty() { metric.name.clone() } else { format!("{} ({unit})", metric.name) };
        columns.push((heading, all.into_iter().map(|e| e.map(|e| e.scaled(factor))).collect()));
    }
    let mut table = runs.keys.iter().fold(Table::new(""), Table::text);
    for (heading, all) in &columns {
        let places = all.iter().flatten().map(decimals).max().unwrap_or(2).min(4);
        table = table.number(heading.clone(), "", places);
    }
    for (row, (_, rows)) in points.iter().enumerate() {
        let point = rows.first().and_then(|r| runs.rows.get(*r)).map(|r| r.point.clone()).unwrap_or_default();
        let mut cells: Vec<Cell> = point.into_iter().map(Cell::from).collect();
        for (_, all) in &columns {
            cells.push(match all.get(row).copied().flatten() {
                Some(Estimate { mean, interval: Some((low, high)), .. }) => (mean, low, high).into(),
                Some(e) => e.mean.into(),
                None => Cell::Empty,
            });
        }
        table.push(cells);
    }
    table
}

/// The rows of each point, points in the order of the scenario.
fn points(runs: &Runs) -> BTreeMap<usize, Vec<usize>> {
    let mut first: BTreeMap<&[String], usize> = BTreeMap::new();
    let mut points: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, row) in runs.rows.iter().enumerate() {
        let place = *first.entry(&row.point).or_insert(i);
        points.entry(place).or_default().push(i);
    }
    points
}

fn mean_of(runs: &Runs, rows: &[usize], metric: usize) -> Option<Estimate> {
    let value = |r: &usize| {
        let row = runs.rows.get(*r)?;
        Some((row.seed, row.values.get(metric).copied().flatten()?))
    };
    let by_seed: BTreeMap<u64, f64> = rows.iter().filter_map(value).collect();
    Some(runs.metrics.get(metric)?.mean(&by_seed)?.estimate())
}

/// The unit for numbers up to `largest`.
fn readable(unit: &str, largest: f64) -> &str {
    match unit {
        "bit/s" if largest >= 1e6 => "Mbit/s",
        "bit/s" if largest >= 1e3 => "kbit/s",
        "s" if largest > 0.0 && largest < 1.0 => "ms",
        "byte" | "bytes" | "B" if largest >= 1e6 => "MB",
        "byte" | "bytes" | "B" if largest >= 1e4 => "kB",
        other => other,
    }
}
