//! One metric over another, a mark for each run.

use super::data::{heading, split, table};
use super::draw::{HALF, title, y_name};
use super::over_time::metric;
use super::samples::combinations;
use super::{Figure, FigureError};
use crate::numbers::csv_field;
use crate::quantity::{Gap, Quantity, Reader, Take, words};
use crate::results::Results;
use anabranch_report::{Drawing, LinePlot, Plot};
use std::fmt::Write as _;

/// Both metrics of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// The values of the keys that are thrown together: `loss 1%`.
    pub point: String,
    /// The seed.
    pub seed: u64,
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical one.
    pub y: f64,
}

/// Marks of one kind.
#[derive(Clone, PartialEq, Debug)]
pub struct PairSet {
    /// Its name; empty when it is the only one.
    pub name: String,
    /// The runs.
    pub pairs: Vec<Pair>,
}

/// One plot.
#[derive(Clone, PartialEq, Debug)]
pub struct PairPanel {
    /// What is fixed in it.
    pub name: String,
    /// Its groups of marks, one for each value of `series`.
    pub sets: Vec<PairSet>,
}

/// All marks of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct PairData {
    /// Units of both metrics.
    pub units: (String, String),
    /// Its plots.
    pub panels: Vec<PairPanel>,
}

/// Takes both metrics of all runs from results.
pub(super) fn resolve(figure: &Figure, results: &Results) -> Result<PairData, FigureError> {
    let fail = |what: String| FigureError { name: figure.name.clone(), what };
    let specs = figure.specs();
    let first = specs.first().ok_or_else(|| fail("nothing to draw".into()))?;
    let first = table(figure, first, results).map_err(fail)?;
    let mut units = None;
    let mut panels = Vec::new();
    for (name, fixed) in split(first, figure.panels.as_deref()) {
        let mut sets = Vec::new();
        for spec in &specs {
            let table = table(figure, spec, results).map_err(fail)?;
            let reader = Reader::new(table);
            let of = |metric| Quantity { metric, average: &figure.average, compare: None, take: Take::Mean };
            let (x, y) = (of(figure.x_metric.as_deref().unwrap_or_default()), of(metric(figure, spec)));
            let factors = reader
                .factor(x, figure.x_unit.as_deref())
                .and_then(|fx| Ok((fx, reader.factor(y, figure.unit.as_deref())?)))
                .map_err(|g| fail(g.to_string()))?;
            let shown = |q, asked: &Option<String>| asked.clone().map_or_else(|| reader.unit(q).map(str::to_owned), Ok);
            let own = shown(x, &figure.x_unit).and_then(|ux| Ok((ux, shown(y, &figure.unit)?)));
            units.get_or_insert(own.map_err(|g| fail(g.to_string()))?);
            for (series, more) in split(table, figure.series.as_deref()) {
                let mut pairs = Vec::new();
                for pooled in combinations(table, &figure.pool) {
                    let mut at = figure.at.clone();
                    at.extend(spec.at.clone().into_iter().chain(fixed.clone()).chain(more.clone()));
                    at.extend(pooled.clone());
                    let both = reader.by_seed(x, &at).and_then(|vx| Ok((vx, reader.by_seed(y, &at)?)));
                    let (vx, vy) = match both {
                        Ok(both) => both,
                        Err(Gap::Runs { .. }) => continue,
                        Err(gap) => return Err(fail(gap.to_string())),
                    };
                    let point = if pooled.is_empty() { String::new() } else { words(&pooled) };
                    pairs.extend(vx.iter().filter_map(|(seed, x)| {
                        let y = vy.get(seed)?;
                        Some(Pair { point: point.clone(), seed: *seed, x: x * factors.0, y: y * factors.1 })
                    }));
                }
                sets.push(PairSet { name: if spec.name.is_empty() { series } else { spec.name.clone() }, pairs });
            }
        }
        panels.push(PairPanel { name: if name.is_empty() { name } else { heading(figure, &name) }, sets });
    }
    Ok(PairData { units: units.unwrap_or_default(), panels })
}

impl PairData {
    fn all(&self) -> impl Iterator<Item = &Pair> + Clone {
        self.panels.iter().flat_map(|p| &p.sets).flat_map(|s| &s.pairs)
    }
}

/// The plots of a figure, one for each panel.
pub(super) fn draw(figure: &Figure, data: &PairData) -> Vec<Drawing> {
    let ends = |log: bool, of: &dyn Fn(&Pair) -> f64| {
        let values = data.all().map(of).filter(|v| v.is_finite() && (!log || *v > 0.0));
        values.fold(None, |all: Option<(f64, f64)>, v| Some(all.map_or((v, v), |a| (a.0.min(v), a.1.max(v)))))
    };
    let (x, y) = (ends(figure.log_x(), &|p| p.x), ends(figure.log_y(), &|p| p.y));
    let one = |panel: &PairPanel| {
        let name = figure.x_name.clone().or(figure.x_metric.clone()).unwrap_or_default();
        let mut plot = LinePlot::new(title(figure, &panel.name))
            .x(name, data.units.0.clone())
            .y(y_name(figure), data.units.1.clone())
            .x_ends(figure.x_min, figure.x_max)
            .y_ends(figure.y_min, figure.y_max)
            .fit_y();
        plot = if panel.name.is_empty() {
            plot.note(note(figure, data)).height(320.0)
        } else {
            plot.width(HALF).height(240.0)
        };
        plot = if figure.log_x() { plot.log_x() } else { plot };
        plot = if figure.log_y() { plot.log_y() } else { plot };
        if let Some((x, y)) = x.zip(y).filter(|_| data.panels.len() > 1) {
            plot = plot.x_cover(x.0, x.1).y_cover(y.0, y.1);
        }
        for (i, set) in panel.sets.iter().enumerate() {
            let points: Vec<(f64, f64)> = set.pairs.iter().map(|p| (p.x, p.y)).collect();
            plot = plot.points(set.name.clone(), points).color(i);
        }
        plot.draw()
    };
    data.panels.iter().map(one).collect()
}

/// The text below the figure: what a mark stands for, and which are left out.
pub(super) fn note(figure: &Figure, data: &PairData) -> String {
    let n = data.all().count();
    let mut text = match (n, figure.average.is_empty()) {
        (0, _) => "No runs.".to_owned(),
        (n, true) => format!("A mark for each of {n} runs."),
        (n, false) => format!("A mark for each of {n} means of a seed over {}.", figure.average.join(" and ")),
    };
    let small = data.all().filter(|p| figure.log_x() && p.x <= 0.0 || figure.log_y() && p.y <= 0.0).count();
    if small > 0 {
        let _ = write!(text, " Not above zero, and so not on a logarithmic axis: {small} of the marks.");
    }
    if let Some(more) = &figure.note {
        let _ = write!(text, " {more}");
    }
    text
}

/// The marks of a figure: `panel,series,point,seed,x,y,x_unit,unit`.
pub(super) fn to_csv(data: &PairData) -> String {
    let mut out = String::from("panel,series,point,seed,x,y,x_unit,unit\n");
    let units = format!("{},{}", csv_field(&data.units.0), csv_field(&data.units.1));
    for panel in &data.panels {
        for set in &panel.sets {
            let names = format!("{},{}", csv_field(&panel.name), csv_field(&set.name));
            for p in &set.pairs {
                let _ = writeln!(out, "{names},{},{},{},{},{units}", csv_field(&p.point), p.seed, p.x, p.y);
            }
        }
    }
    out
}
