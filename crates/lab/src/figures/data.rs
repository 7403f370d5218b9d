//! The numbers of a figure.

use super::{Figure, FigureError, LineSpec, Style, over_time};
use crate::joined;
use crate::quantity::{Compare, Gap, Point, Quantity, Reader, Take, values_of};
use crate::reference::{Elsewhere, Reference};
use crate::results::{Results, Table, Timeline};
use crate::statistics::Estimate;
use std::borrow::Cow;

/// A number of a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Spot {
    /// The value of the horizontal key.
    pub x: String,
    /// Ours, in the figure's unit; `None` where there are no runs.
    pub ours: Option<Estimate>,
    /// What the paper prints.
    pub printed: Option<f64>,
    /// What others measured.
    pub elsewhere: Vec<Elsewhere>,
}

/// One line or one set of bars.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Its name; empty when it is the only one.
    pub name: String,
    /// Its numbers, in the order of [`FigureData::x`].
    pub spots: Vec<Spot>,
}

/// One plot.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// What is fixed in it: `rbuf 16KB`; empty when it is the only one.
    pub name: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

impl FigureData {
    /// Who measured some of it elsewhere, in the order in which they come first.
    pub fn others(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let spots = self.panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.spots);
        for name in spots.flat_map(|s| &s.elsewhere).map(|e| e.name.as_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// All numbers of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct FigureData {
    /// Values along the horizontal axis.
    pub x: Vec<String>,
    /// Unit of all numbers.
    pub unit: String,
    /// Its plots.
    pub panels: Vec<Panel>,
}

/// Takes the numbers of a figure from results, or from what their runs noted over time.
///
/// # Errors
/// [`FigureError`] when the results do not have what the figure draws. Points without runs are left empty.
pub fn resolve(
    figure: &Figure,
    results: &Results,
    timelines: &[Timeline],
    references: &[Reference],
) -> Result<FigureData, FigureError> {
    if figure.kind == Style::Series {
        return over_time::resolve(figure, results, timelines);
    }
    let fail = |what: String| FigureError { name: figure.name.clone(), what };
    let specs = figure.specs();
    let tables: Result<Vec<Cow<'_, Table>>, String> = specs.iter().map(|s| read(figure, s, results)).collect();
    let tables = tables.map_err(fail)?;
    let first = tables.first().ok_or_else(|| fail("nothing to draw".into()))?;
    let x = if figure.values.is_empty() { values_of(first, &figure.x) } else { figure.values.clone() };
    // A form with fewer points draws those it has.
    let there = values_of(first, &figure.x);
    let x: Vec<String> = x.into_iter().filter(|v| there.contains(v)).collect();
    let mut unit = None;
    let mut panels = Vec::new();
    for (name, fixed) in split(first, figure.panels.as_deref()) {
        let mut lines = Vec::new();
        for (spec, table) in specs.iter().zip(&tables) {
            let rows = if figure.kind == Style::Heatmap { Some(figure.y.as_str()) } else { figure.series.as_deref() };
            for (series, more) in split(table, rows) {
                let mut at = figure.at.clone();
                at.extend(spec.at.clone().into_iter().chain(fixed.clone()).chain(more));
                let one = OneLine { figure, spec, table, at, references };
                let (spots, u) = one.spots(&x).map_err(|g| fail(g.to_string()))?;
                unit.get_or_insert(u);
                lines.push(Line { name: if spec.name.is_empty() { series } else { spec.name.clone() }, spots });
            }
        }
        panels.push(Panel { name: if name.is_empty() { name } else { heading(figure, &name) }, lines });
    }
    Ok(FigureData { x, unit: unit.unwrap_or_default(), panels })
}

pub(crate) fn heading(figure: &Figure, value: &str) -> String {
    format!("{} {value}", figure.panels.as_deref().unwrap_or_default())
}

/// A scenario that the figure draws and that the results do not have, as one that `--points` left out.
pub(crate) fn lacking<'f>(figure: &'f Figure, results: &Results) -> Option<&'f str> {
    let there = |name: &str| results.tables.iter().any(|t| t.scenario == name);
    let compared = |c: &'f Option<Compare>| c.iter().filter_map(Compare::scenarios).flatten();
    let lines = figure.lines.iter().flat_map(|l| l.scenario.iter().map(String::as_str).chain(compared(&l.compare)));
    let own = figure.scenario.iter().map(String::as_str).chain(compared(&figure.compare));
    // Lines that all have a scenario of their own leave that of the figure unused.
    let all_own = !figure.lines.is_empty() && figure.lines.iter().all(|l| l.scenario.is_some());
    own.filter(|_| !all_own).chain(lines).find(|name| !there(name))
}

/// The table of a line, or both as one when it compares scenarios.
fn read<'r>(figure: &Figure, spec: &LineSpec, results: &'r Results) -> Result<Cow<'r, Table>, String> {
    match spec.compare.as_ref().or(figure.compare.as_ref()).and_then(Compare::scenarios) {
        Some(pair) => joined::find(pair, results).map(Cow::Owned).map_err(|g| g.to_string()),
        None => table(figure, spec, results).map(Cow::Borrowed),
    }
}

pub(super) fn table<'r>(figure: &Figure, spec: &LineSpec, results: &'r Results) -> Result<&'r Table, String> {
    match spec.scenario.as_ref().or(figure.scenario.as_ref()) {
        Some(n) => {
            results.tables.iter().find(|t| t.scenario == *n).ok_or_else(|| format!("scenario `{n}` has no results"))
        }
        None => results.tables.first().ok_or_else(|| "there are no results".into()),
    }
}

/// Each value of a key with the point that it fixes; a single empty one without a key.
pub(super) fn split(table: &Table, key: Option<&str>) -> Vec<(String, Point)> {
    let Some(key) = key else { return vec![(String::new(), Point::new())] };
    let point = |v: &String| Point::from([(key.to_owned(), v.clone())]);
    values_of(table, key).into_iter().map(|v| (v.clone(), point(&v))).collect()
}

struct OneLine<'a> {
    figure: &'a Figure,
    spec: &'a LineSpec,
    table: &'a Table,
    at: Point,
    references: &'a [Reference],
}

impl OneLine<'_> {
    /// The numbers along `x`, and their unit.
    fn spots(&self, x: &[String]) -> Result<(Vec<Spot>, String), Gap> {
        let f = self.figure;
        let metric = self.spec.metric.as_deref().or(f.metric.as_deref()).unwrap_or_default();
        let compare = self.spec.compare.as_ref().or(f.compare.as_ref());
        let q = Quantity { metric, average: &f.average, compare, take: f.take() };
        let reader = Reader::new(self.table);
        let factor = reader.factor(q, f.unit.as_deref())?;
        let unit = f.unit.clone().map_or_else(|| reader.unit(q).map(str::to_owned), Ok)?;
        let fold = compare.is_some_and(|c| c.how.folded());
        let mut spots = Vec::new();
        for value in x {
            let mut at = self.at.clone();
            at.insert(f.x.clone(), value.clone());
            let ours = match reader.quantity(q, &at) {
                Ok(e) => Some(e.estimate().scaled(factor)).map(|e| if fold { e.absolute() } else { e }),
                Err(Gap::Runs { .. } | Gap::Zero(_)) => None,
                Err(gap) => return Err(gap),
            };
            let printed = self.spec.printed.get(value).or(self.figure.printed.get(value)).copied();
            let there = self.references.iter().filter(|_| f.take() == Take::Mean);
            let there = there.filter_map(|r| r.quantity(q, &at, self.table)).map(|e| e.scaled(factor));
            spots.push(Spot { x: value.clone(), ours, printed, elsewhere: there.collect() });
        }
        Ok((spots, unit))
    }
}
