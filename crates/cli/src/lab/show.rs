//! Results on a terminal.

use anabranch_lab::claims::{Judgement, Verdict};
use anabranch_lab::results::{Results, Table};
use std::path::Path;

/// Most points of one scenario that are printed.
const POINTS: usize = 40;

/// A table of means for each scenario, the verdicts, and where the page is.
pub fn text(results: &Results, judgements: &[Judgement], page: &Path) -> String {
    let mut out = String::new();
    for t in &results.tables {
        out += &format!("\n{}\n{}", t.scenario, table(t));
    }
    if judgements.iter().any(|j| j.verdict.is_some()) {
        out += &format!("\nClaims: {}\n", Verdict::counts(judgements));
    }
    out + &format!("\n{}\n", page.display())
}

fn table(t: &Table) -> String {
    let mut lines = vec![t.keys.iter().cloned().chain(t.metrics.iter().map(head)).collect::<Vec<_>>()];
    let mut points: Vec<&[String]> = Vec::new();
    for r in &t.rows {
        if !points.contains(&r.point.as_slice()) {
            points.push(&r.point);
        }
    }
    for point in points.iter().take(POINTS) {
        let rows: Vec<_> = t.rows.iter().filter(|r| r.point == **point).collect();
        let mean = |i: usize| {
            let values = rows.iter().filter_map(|r| Some((r.seed, (*r.values.get(i)?)?))).collect();
            let e = t.metrics.get(i).and_then(|m| m.mean(&values)).map(|e| e.estimate());
            let Some(e) = e else { return "-".to_owned() };
            let half = e.interval.map_or(String::new(), |(low, high)| format!(" ±{}", short((high - low) / 2.0)));
            format!("{}{half}", short(e.mean))
        };
        lines.push(point.iter().cloned().chain((0..t.metrics.len()).map(mean)).collect());
    }
    let width = |i: usize| lines.iter().filter_map(|l| l.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).map(width).collect();
    let mut out = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(c, w)| format!("{c:>w$}")).collect();
        out += &format!("  {}\n", cells.join("  "));
    }
    if points.len() > POINTS {
        out += &format!("  and {} points more: see results.csv\n", points.len() - POINTS);
    }
    out
}

fn head(m: &anabranch_lab::results::Metric) -> String {
    if m.unit.is_empty() { m.name.clone() } else { format!("{} {}", m.name, m.unit) }
}

/// Four significant digits; large numbers with k, M or G.
fn short(v: f64) -> String {
    let (v, unit) = match v.abs() {
        a if a >= 1e9 => (v / 1e9, "G"),
        a if a >= 1e6 => (v / 1e6, "M"),
        a if a >= 1e4 => (v / 1e3, "k"),
        _ => (v, ""),
    };
    let digits = if v == 0.0 { 0 } else { (3 - v.abs().log10().floor() as i32).clamp(0, 6) as usize };
    let text = format!("{v:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all: Vec<String> = [0.0, 0.0571234, 41.0, 8_515_118.6, 12_345.0, -0.5].into_iter().map(short).collect();
        assert_eq!(all, ["0", "0.05712", "41", "8.515M", "12.35k", "-0.5"]);
    }
}
