//! Distributions: of what runs measured, of every delay, of bins over time.

use super::data::{heading, split, table};
use super::draw::{HALF, title, x_name, y_name};
use super::over_time::{metric, of_point};
use super::{Figure, FigureError, LineSpec, Samples, Sources, Spread, Style};
use crate::numbers::csv_field;
use crate::quantity::{Gap, Point, Quantity, Reader, Take, convert, values_of};
use crate::results::Table;
use crate::scenario::unit_of;
use anabranch_report::{BoxPlot, Drawing, LinePlot, Plot};
use anabranch_sim::netem::units;
use std::fmt::Write as _;

/// Distributions of one name: one in an [`Ecdf`](Style::Ecdf), one for each value of `x` among boxes.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleSet {
    /// Its name; empty when it is the only one.
    pub name: String,
    /// The distributions.
    pub groups: Vec<Spread>,
}

/// One plot.
#[derive(Clone, PartialEq, Debug)]
pub struct SamplePanel {
    /// What is fixed in it.
    pub name: String,
    /// Its lines or rows of boxes, one for each value of `series`.
    pub sets: Vec<SampleSet>,
}

/// All distributions of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleData {
    /// Values along the horizontal axis of boxes.
    pub x: Vec<String>,
    /// Unit of all values.
    pub unit: String,
    /// Its plots.
    pub panels: Vec<SamplePanel>,
    /// They are boxes.
    boxes: bool,
}

/// Takes the distributions of a figure from what there is.
pub(super) fn resolve(figure: &Figure, from: Sources<'_>) -> Result<SampleData, FigureError> {
    let fail = |what: String| FigureError { name: figure.name.clone(), what };
    let specs = figure.specs();
    let tables = specs.iter().map(|s| table(figure, s, from.results)).collect::<Result<Vec<&Table>, String>>();
    let tables = tables.map_err(fail)?;
    let first = *tables.first().ok_or_else(|| fail("nothing to draw".into()))?;
    let boxes = figure.kind == Style::Box;
    let there = values_of(first, &figure.x);
    let x = if figure.values.is_empty() { there.clone() } else { figure.values.clone() };
    let x: Vec<String> = x.into_iter().filter(|v| there.contains(v)).collect();
    let groups = if boxes { x.len() } else { 1 };
    let mut unit: Option<String> = None;
    let mut panels = Vec::new();
    for (name, fixed) in split(first, figure.panels.as_deref()) {
        let mut sets: Vec<SampleSet> = Vec::new();
        for (spec, table) in specs.iter().zip(&tables) {
            for (series, more) in split(table, figure.series.as_deref()) {
                let mut at = figure.at.clone();
                at.extend(spec.at.clone().into_iter().chain(fixed.clone()).chain(more));
                let name = if spec.name.is_empty() { series } else { spec.name.clone() };
                let one = Gather { figure, spec, table, from, name: &name };
                let (factor, of) = one.unit().map_err(fail)?;
                if unit.as_ref().is_some_and(|u| *u != of) {
                    let other = unit.unwrap_or_default();
                    return Err(fail(format!(
                        "its lines are in `{other}` and in `{of}`: give a `unit`, or draw two figures"
                    )));
                }
                unit = Some(of);
                for group in 0..groups {
                    let mut at = at.clone();
                    at.extend(x.get(group).filter(|_| boxes).map(|v| (figure.x.clone(), v.clone())));
                    for (name, spread) in one.all(&at).map_err(fail)? {
                        let place = sets.iter().position(|s| s.name == name).unwrap_or(sets.len());
                        if place == sets.len() {
                            sets.push(SampleSet { name, groups: vec![Spread::default(); groups] });
                        }
                        if let Some(slot) = sets.get_mut(place).and_then(|s| s.groups.get_mut(group)) {
                            *slot = spread.scaled(factor);
                        }
                    }
                }
            }
        }
        panels.push(SamplePanel { name: if name.is_empty() { name } else { heading(figure, &name) }, sets });
    }
    let x = if boxes { x } else { Vec::new() };
    Ok(SampleData { x, unit: unit.unwrap_or_default(), panels, boxes })
}

/// Every combination of the values of these keys.
pub(super) fn combinations(table: &Table, keys: &[String]) -> Vec<Point> {
    keys.iter().fold(vec![Point::new()], |all, key| {
        let with = |p: &Point| {
            let p = p.clone();
            values_of(table, key).into_iter().map(move |v| {
                let mut p = p.clone();
                p.insert(key.clone(), v);
                p
            })
        };
        all.iter().flat_map(with).collect()
    })
}

/// Values with how often they are there, by the name of their line.
type Named = Vec<(String, Vec<(f64, u64)>)>;

/// Where the values of one line come from.
struct Gather<'a> {
    figure: &'a Figure,
    spec: &'a LineSpec,
    table: &'a Table,
    from: Sources<'a>,
    name: &'a str,
}

impl Gather<'_> {
    fn metric(&self) -> &str {
        metric(self.figure, self.spec)
    }

    /// By what its values are multiplied, and the unit that they have then.
    fn unit(&self) -> Result<(f64, String), String> {
        let own = match self.figure.of() {
            Samples::Runs => Reader::new(self.table).unit(Quantity::of(self.metric())).map_err(|g| g.to_string())?,
            Samples::Delays => "s",
            Samples::Bins => unit_of(self.metric()).ok_or("`metric` names no series")?,
        };
        let unit = self.figure.unit.clone().unwrap_or_else(|| own.to_owned());
        let factor = convert(own, &unit).ok_or_else(|| format!("what is in `{own}` cannot be drawn in `{unit}`"))?;
        Ok((factor, unit))
    }

    /// The distribution at a point, of all keys that are thrown together; several where a flow has several paths.
    fn all(&self, at: &Point) -> Result<Vec<(String, Spread)>, String> {
        let mut named = Named::new();
        for more in combinations(self.table, &self.figure.pool) {
            let mut at = at.clone();
            at.extend(more);
            for (name, values) in self.at_point(&at)? {
                match named.iter_mut().find(|n| n.0 == name) {
                    Some((_, there)) => there.extend(values),
                    None => named.push((name, values)),
                }
            }
        }
        Ok(named.into_iter().map(|(name, values)| (name, Spread::of(values))).collect())
    }

    fn at_point(&self, at: &Point) -> Result<Named, String> {
        let single = |values| vec![(self.name.to_owned(), values)];
        match self.figure.of() {
            Samples::Runs => {
                let q =
                    Quantity { metric: self.metric(), average: &self.figure.average, compare: None, take: Take::Mean };
                match Reader::new(self.table).by_seed(q, at) {
                    Ok(by_seed) => Ok(single(by_seed.into_values().map(|v| (v, 1)).collect())),
                    Err(Gap::Runs { .. }) => Ok(single(Vec::new())),
                    Err(gap) => Err(gap.to_string()),
                }
            }
            Samples::Delays => {
                let all = self.from.distributions.iter().find(|d| d.scenario == self.table.scenario);
                let missing = || format!("the runs of scenario `{}` kept no distributions", self.table.scenario);
                let all = all.ok_or_else(missing)?;
                let here = all.runs.iter().filter(|r| {
                    let pairs = all.keys.iter().zip(&r.point);
                    r.metric == self.metric()
                        && at.iter().all(|(k, v)| pairs.clone().any(|(key, own)| key == k && own == v))
                });
                Ok(single(here.flat_map(|r| r.counts.iter().copied()).collect()))
            }
            Samples::Bins => {
                let timeline = self.from.timelines.iter().find(|t| t.scenario == self.table.scenario);
                let missing = || format!("scenario `{}` noted nothing over time", self.table.scenario);
                let timeline = timeline.ok_or_else(missing)?;
                let from = self.figure.from.as_deref().and_then(|t| units::time(t).ok()).map_or(0, |t| t.as_nanos());
                let lines = of_point(self.figure, self.spec, timeline, at, self.name).into_iter();
                let late = |times: &std::collections::BTreeMap<u64, std::collections::BTreeMap<u64, f64>>| {
                    times.range(from..).flat_map(|(_, seeds)| seeds.values().map(|v| (*v, 1))).collect()
                };
                Ok(lines.map(|(name, values)| (name, late(&values))).collect())
            }
        }
    }
}

/// The lowest and the highest value of all plots.
fn range(data: &SampleData, log: bool) -> Option<(f64, f64)> {
    let groups = data.panels.iter().flat_map(|p| &p.sets).flat_map(|s| &s.groups);
    let values = groups.flat_map(|g| g.values()).map(|v| v.0).filter(|v| !log || *v > 0.0);
    values.fold(None, |all: Option<(f64, f64)>, v| Some(all.map_or((v, v), |a| (a.0.min(v), a.1.max(v)))))
}

/// The plots of a figure, one for each panel.
pub(super) fn draw(figure: &Figure, data: &SampleData) -> Vec<Drawing> {
    let one = |p: &SamplePanel| if data.boxes { boxes(figure, data, p) } else { ecdf(figure, data, p) };
    data.panels.iter().map(one).collect()
}

fn boxes(figure: &Figure, data: &SampleData, panel: &SamplePanel) -> Drawing {
    let mut plot = BoxPlot::new(title(figure, &panel.name), data.x.clone())
        .x(x_name(figure))
        .y(y_name(figure), data.unit.clone())
        .y_ends(figure.y_min, figure.y_max);
    plot = if panel.name.is_empty() { plot.note(note(figure, data)) } else { plot.width(HALF).height(220.0) };
    plot = if figure.log_y() { plot.log_y() } else { plot };
    if let Some((low, high)) = range(data, figure.log_y()).filter(|_| data.panels.len() > 1) {
        plot = plot.y_cover(low, high);
    }
    for set in &panel.sets {
        plot = plot.boxes(set.name.clone(), set.groups.iter().map(Spread::in_a_box).collect::<Vec<_>>());
    }
    plot.draw()
}

/// What the values are, for people.
fn word(figure: &Figure) -> &'static str {
    match figure.of() {
        Samples::Runs => "runs",
        Samples::Delays => "delays",
        Samples::Bins => "bins",
    }
}

fn ecdf(figure: &Figure, data: &SampleData, panel: &SamplePanel) -> Drawing {
    let name = figure.x_name.clone().or(figure.metric.clone()).unwrap_or_default();
    let share = if figure.tail {
        format!("part of the {} above", word(figure))
    } else {
        format!("part of the {}", word(figure))
    };
    let mut plot = LinePlot::new(title(figure, &panel.name))
        .x(name, data.unit.clone())
        .y(figure.y_name.clone().unwrap_or(share), "")
        .x_ends(figure.x_min, figure.x_max);
    plot = if panel.name.is_empty() {
        plot.note(note(figure, data)).height(260.0)
    } else {
        plot.width(HALF).height(220.0)
    };
    plot = if figure.log_x() { plot.log_x() } else { plot };
    let top = figure.y_max.or(Some(1.0));
    plot =
        if figure.tail { plot.log_y().y_ends(figure.y_min, top) } else { plot.y_ends(figure.y_min.or(Some(0.0)), top) };
    // Every line goes from the lowest to the highest value of all plots.
    let Some((low, high)) = range(data, figure.log_x()) else { return plot.draw() };
    plot = plot.x_cover(low, high);
    let ends = (figure.x_min.map_or(low, |v| v.min(low)), figure.x_max.map_or(high, |v| v.max(high)));
    for (i, set) in panel.sets.iter().enumerate() {
        let steps = set.groups.first().map(|s| steps(s, figure.tail, ends)).unwrap_or_default();
        plot = plot.series(set.name.clone(), steps).steps().color(i).dash(i);
    }
    plot.draw()
}

/// The corners of a line that climbs, or falls, at each value.
fn steps(spread: &Spread, tail: bool, (low, high): (f64, f64)) -> Vec<(f64, f64)> {
    let all = spread.count() as f64;
    let Some((_, last)) = spread.ends() else { return Vec::new() };
    let mut out = vec![(low, if tail { 1.0 } else { 0.0 })];
    out.extend(spread.cumulated().filter(|(v, ..)| *v >= low).map(|(v, _, sum)| {
        let share = sum as f64 / all;
        (v, if tail { (all - sum as f64) / all } else { share })
    }));
    if tail {
        // Nothing is higher than the highest: there the line ends, since zero has no place on its axis.
        out.pop();
        out.extend(out.last().copied().map(|(_, level)| (last, level)));
    } else {
        out.push((high, 1.0));
    }
    out
}

/// The text below the figure: what a line or box stands for, and of how many values.
pub(super) fn note(figure: &Figure, data: &SampleData) -> String {
    let groups = || data.panels.iter().flat_map(|p| &p.sets).flat_map(|s| &s.groups);
    let counts = || groups().map(Spread::count).filter(|n| *n > 0);
    let Some((few, many)) = counts().min().zip(counts().max()) else { return "No runs.".to_owned() };
    let number = if few == many { many.to_string() } else { format!("{few} to {many}") };
    let word = word(figure);
    let each = if counts().count() > 1 { " each" } else { "" };
    let what = match (data.boxes, figure.tail) {
        (true, _) => {
            "Median, quartiles and whiskers to the last value within 1.5 times the distance of the quartiles; marks lie beyond."
        }
        (false, true) => "The part of all values that is higher.",
        (false, false) => "The part of all values that is at most as high.",
    };
    let mut text = format!("{what} Of {number} {word}{each}.");
    let log = if data.boxes { figure.log_y() } else { figure.log_x() };
    let small: u64 = groups().flat_map(|g| g.values()).filter(|v| log && v.0 <= 0.0).map(|v| v.1).sum();
    if small > 0 {
        let _ = write!(text, " Not above zero, and so not on the logarithmic axis: {small} of the values.");
    }
    if let Some(more) = &figure.note {
        let _ = write!(text, " {more}");
    }
    text
}

/// The distributions of a figure: `panel,series,value,count,share,unit`, in which `share` is the part of the values that
/// is at most as high; of boxes `panel,series,x,count,low,q1,median,q3,high,outliers,unit`.
pub(super) fn to_csv(data: &SampleData) -> String {
    let head = if data.boxes { "x,count,low,q1,median,q3,high,outliers" } else { "value,count,share" };
    let mut out = format!("panel,series,{head},unit\n");
    let unit = csv_field(&data.unit);
    for panel in &data.panels {
        for set in &panel.sets {
            let names = format!("{},{}", csv_field(&panel.name), csv_field(&set.name));
            for (i, spread) in set.groups.iter().enumerate() {
                if !data.boxes {
                    for (v, n, sum) in spread.cumulated() {
                        let _ = writeln!(out, "{names},{v},{n},{},{unit}", sum as f64 / spread.count() as f64);
                    }
                    continue;
                }
                let x = data.x.get(i).map(|x| csv_field(x)).unwrap_or_default();
                let numbers = spread.in_a_box().map_or(",,,,,".to_owned(), |b| {
                    let beyond: Vec<String> = b.outliers.iter().map(f64::to_string).collect();
                    let five = [b.low, b.q1, b.median, b.q3, b.high].map(|v| v.to_string()).join(",");
                    format!("{five},{}", beyond.join("; "))
                });
                let _ = writeln!(out, "{names},{x},{},{numbers},{unit}", spread.count());
            }
        }
    }
    out
}
