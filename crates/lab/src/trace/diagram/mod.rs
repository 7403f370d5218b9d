//! A time sequence from an event log: TSNs or segments over time per path, retransmissions, losses, acknowledgements,
//! and below them windows, flight, times and queues.

mod numbers;
mod plots;

use super::line::{Line, Why};
use anabranch_report::{Cell, Drawing, Fact, Page, Section, Table};
use numbers::Numbers;
use std::collections::BTreeMap;
use std::io::BufRead;

/// Retransmissions that the page lists one by one.
const LISTED: usize = 500;

/// What to draw.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The flow; when not given the first of SCTP that sent data, or else the first of TCP.
    pub flow: Option<String>,
    /// From this time, seconds.
    pub from: f64,
    /// To this time, seconds; infinite for all.
    pub to: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options { flow: None, from: 0.0, to: f64::INFINITY }
    }
}

/// Why nothing can be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiagramError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] std::io::Error),
    /// A line is not one of an event log.
    #[error("line {line} is not of an event log (the .jsonl file of `lab run --log`): {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// There is no such flow.
    #[error("no flow `{flow}` of SCTP or TCP sent data here; {there}")]
    Flow {
        /// What was asked for.
        flow: String,
        /// What there is.
        there: String,
    },
    /// Nothing happened.
    #[error("{0}")]
    Empty(String),
}

/// A diagram, laid out.
#[derive(Clone, Debug)]
pub struct Diagram {
    title: String,
    lead: String,
    facts: Vec<Fact>,
    drawings: Vec<Drawing>,
    legend: &'static str,
    choices: Table,
    decisions: Table,
    list: Table,
}

/// Reads an event log.
///
/// # Errors
/// [`DiagramError::Read`], [`DiagramError::Line`].
pub fn read(log: impl BufRead) -> Result<Vec<Line>, DiagramError> {
    let mut lines = Vec::new();
    for (i, text) in log.lines().enumerate() {
        let text = text?;
        if text.trim().is_empty() {
            continue;
        }
        let line = serde_json::from_str(&text);
        lines.push(line.map_err(|e| DiagramError::Line { line: i + 1, what: e.to_string() })?);
    }
    Ok(lines)
}

/// Lays out the diagram of one flow.
///
/// # Errors
/// [`DiagramError::Flow`], [`DiagramError::Empty`].
pub fn lay_out(lines: &[Line], options: &Options) -> Result<Diagram, DiagramError> {
    let flow = choose(lines, options.flow.as_deref())?;
    let inside = |t: f64| options.from <= t && t <= options.to;
    let mine: Vec<&Line> =
        lines.iter().filter(|l| about(l).is_some_and(|(t, f)| inside(t) && f.is_none_or(|f| f == flow))).collect();
    if !mine.iter().any(|l| matches!(l, Line::Data { .. } | Line::Retransmission { .. })) {
        return Err(DiagramError::Empty(format!(
            "flow `{flow}` sent nothing between {} s and {} s: choose other times with --from and --to",
            options.from, options.to
        )));
    }
    let paths = path_names(lines, &flow);
    let numbers = Numbers::of(lines, &flow).unwrap_or(Numbers::Tsns(0));
    let (scenario, point, seed) = lines
        .iter()
        .find_map(|l| match l {
            Line::Run { scenario, point, seed, .. } => Some((scenario.as_str(), point.as_str(), *seed)),
            _ => None,
        })
        .unwrap_or(("", "", 0));
    let point = if point.is_empty() { String::new() } else { format!(", {point}") };
    Ok(Diagram {
        title: format!("Flow {flow}: what was sent when"),
        lead: format!("Scenario {scenario}{point}, seed {seed}. {}", numbers.origin()),
        facts: facts(&mine, numbers),
        drawings: plots::all(&mine, &paths, &flow, numbers, options),
        legend: numbers.legend(),
        choices: choices(&mine, &paths),
        decisions: decisions(&mine, &paths, numbers),
        list: list(&mine, numbers),
    })
}

impl Diagram {
    /// As a page of its own.
    pub fn page(&self, version: &str) -> Page {
        let mut sequence = Section::new("Time sequence").paragraph(self.legend);
        for d in &self.drawings {
            sequence = sequence.drawings(std::slice::from_ref(d));
        }
        let mut page = Page::new(self.title.clone()).lead(self.lead.clone()).facts(&self.facts).section(sequence);
        if !self.choices.is_empty() {
            let choices = Section::new("Paths of new data")
                .paragraph(
                    "Who chose the path of each packet: the path scheduler by its name where several paths had room; \
                     alone: no other path had any; dormant: no path was active. The log has the paths with room, and \
                     each path\u{2019}s window and bytes in flight, packet by packet.",
                )
                .table(&self.choices);
            page = page.section(choices);
        }
        if !self.decisions.is_empty() {
            let decisions = Section::new("Retransmissions")
                .paragraph(
                    "Why something was sent again, as the sender saw it, where it went, and what decided for that path \
                     when the policy tells (RTX-CSI: window, then threshold, then recent timeouts, then their age, then \
                     a draw; dormant: no path was active).",
                )
                .table(&self.decisions)
                .details_table(format!("One by one (the first {LISTED})"), &self.list);
            page = page.section(decisions);
        }
        page.footer(format!("anabranch {version}"))
    }

    /// The time sequence and the windows below it as one drawing.
    pub fn drawing(&self) -> Drawing {
        Drawing::column(self.title.clone(), &self.drawings)
    }
}

/// When, and of which flow; a queue belongs to all of them.
fn about(line: &Line) -> Option<(f64, Option<&str>)> {
    match line {
        Line::Run { .. } => None,
        Line::Data { t, flow, .. }
        | Line::Retransmission { t, flow, .. }
        | Line::Sack { t, flow, .. }
        | Line::Ack { t, flow, .. }
        | Line::Lost { t, flow, .. }
        | Line::Judged { t, flow, .. }
        | Line::Path { t, flow, .. } => Some((*t, Some(flow))),
        Line::Queue { t, .. } => Some((*t, None)),
    }
}

fn choose(lines: &[Line], wanted: Option<&str>) -> Result<String, DiagramError> {
    let mut senders: Vec<(&str, bool)> = Vec::new();
    for line in lines {
        if let Line::Data { flow, segment, .. } = line
            && !senders.iter().any(|s| s.0 == flow)
        {
            senders.push((flow, segment.is_none()));
        }
    }
    match wanted {
        None => {
            let first = senders.iter().find(|s| s.1).or(senders.first());
            let none = || {
                DiagramError::Empty("no flow of SCTP or TCP sent anything here: a time sequence needs one".to_owned())
            };
            first.map(|f| f.0.to_owned()).ok_or_else(none)
        }
        Some(w) if senders.iter().any(|s| s.0 == w) => Ok(w.to_owned()),
        Some(w) => {
            let names: Vec<&str> = senders.iter().map(|s| s.0).collect();
            let there = if names.is_empty() { "none did".to_owned() } else { format!("{} did", names.join(", ")) };
            Err(DiagramError::Flow { flow: w.to_owned(), there })
        }
    }
}

/// Names of a flow's paths, with their addresses.
fn path_names(lines: &[Line], flow: &str) -> Vec<String> {
    let flows = lines.iter().find_map(|l| if let Line::Run { flows, .. } = l { Some(flows) } else { None });
    let paths = flows.into_iter().flatten().find(|f| f.name == flow).map(|f| f.paths.as_slice()).unwrap_or_default();
    (0..paths.len()).map(|i| format!("path {}", i + 1)).collect()
}

fn facts(lines: &[&Line], numbers: Numbers) -> Vec<Fact> {
    let count = |f: &dyn Fn(&Line) -> bool| lines.iter().filter(|l| f(l)).count().to_string();
    let new = lines.iter().filter(|l| matches!(l, Line::Data { .. })).map(|l| numbers.carried(l).len()).sum::<usize>();
    vec![
        Fact::text(format!("{} sent", numbers.pieces()), new.to_string()),
        Fact::text("sent again", count(&|l| matches!(l, Line::Retransmission { .. }))),
        Fact::text("after a timeout", count(&|l| matches!(l, Line::Retransmission { why: Why::Timeout, .. }))),
        Fact::text("packets lost", count(&|l| matches!(l, Line::Lost { .. }))),
    ]
}

fn name(paths: &[String], i: usize) -> String {
    paths.get(i).cloned().unwrap_or_else(|| format!("path {}", i + 1))
}

const fn word(why: Why) -> &'static str {
    match why {
        Why::Reported => "reported missing",
        Why::Timeout => "timeout",
        Why::Probe => "probe",
        Why::Bundled => "bundled",
        Why::Copy => "copy",
        Why::Moved => "moved",
        Why::Other => "other",
    }
}

/// Packets of new data by path and by who chose it.
fn choices(lines: &[&Line], paths: &[String]) -> Table {
    let mut counts: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for line in lines {
        if let Line::Data { path, decided_by: Some(by), .. } = line {
            *counts.entry((*path, by)).or_default() += 1;
        }
    }
    let table = Table::new("").text("path").text("decided by").number("packets", "", 0);
    counts.into_iter().fold(table, |table, ((path, by), n)| table.row((name(paths, path), by, n)))
}

/// Counts of retransmissions by reason, way and what decided.
fn decisions(lines: &[&Line], paths: &[String], numbers: Numbers) -> Table {
    let mut counts: BTreeMap<(&str, usize, usize, &str), usize> = BTreeMap::new();
    for line in lines {
        if let Line::Retransmission { why, was_on, path, decided_by, .. } = line {
            let by = decided_by.as_deref().unwrap_or("\u{2013}");
            *counts.entry((word(*why), *was_on, *path, by)).or_default() += 1;
        }
    }
    let table = Table::new("").text("why").text("was on").text("sent again on").text("decided by");
    let table = table.number(numbers.pieces(), "", 0);
    counts
        .into_iter()
        .fold(table, |table, ((why, from, to, by), n)| table.row((why, name(paths, from), name(paths, to), by, n)))
}

fn list(lines: &[&Line], numbers: Numbers) -> Table {
    let mut table = Table::new("")
        .number("time", "s", 6)
        .number(numbers.one(), "", 0)
        .text("why")
        .text("was on")
        .text("sent again on")
        .text("decided by")
        .text("windows and thresholds, bytes");
    let all = lines.iter().filter_map(|l| match l {
        Line::Retransmission { t, why, was_on, path, decided_by, windows, .. } => {
            let window = |w: &(u64, Option<u64>)| match w.1 {
                Some(threshold) => format!("{} / {threshold}", w.0),
                None => format!("{} / \u{2013}", w.0),
            };
            let windows: Vec<String> = windows.iter().map(window).collect();
            let by: Cell = decided_by.as_deref().map_or(Cell::Empty, Cell::from);
            let row: Vec<Cell> = vec![
                (*t).into(),
                numbers.carried(l).first().copied().map_or(Cell::Empty, Cell::from),
                word(*why).into(),
                format!("path {}", was_on + 1).into(),
                format!("path {}", path + 1).into(),
                by,
                windows.join(",  ").into(),
            ];
            Some(row)
        }
        _ => None,
    });
    all.take(LISTED).for_each(|row| table.push(row));
    table
}

#[cfg(test)]
mod tests;
