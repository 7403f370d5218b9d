//! Figures over time: what the runs of a scenario noted in each bin.

use super::data::{heading, split, table};
use super::{Figure, FigureData, FigureError, Line, LineSpec, Panel, Spot};
use crate::quantity::{Point, convert};
use crate::results::{Over, Results, Timeline};
use crate::scenario::{covers, unit_of};
use crate::statistics::{Estimate, Estimator};
use std::collections::{BTreeMap, BTreeSet};

/// Values by time (in nanoseconds, so that equal times are equal) and seed.
pub(super) type Values = BTreeMap<u64, BTreeMap<u64, f64>>;

/// Takes the numbers of a figure from what was noted.
pub(super) fn resolve(figure: &Figure, results: &Results, timelines: &[Timeline]) -> Result<FigureData, FigureError> {
    let fail = |what: String| FigureError { name: figure.name.clone(), what };
    let specs = figure.specs();
    let mut found = Vec::new();
    for spec in &specs {
        let table = table(figure, spec, results).map_err(fail)?;
        let timeline = timelines.iter().find(|t| t.scenario == table.scenario);
        let missing = || fail(format!("scenario `{}` noted nothing over time", table.scenario));
        found.push((spec, table, timeline.ok_or_else(missing)?));
    }
    let first = found.first().map(|f| f.1).ok_or_else(|| fail("nothing to draw".into()))?;
    let unit = unit(figure, &specs).map_err(fail)?;
    let mut panels: Vec<(String, Vec<(String, Values)>)> = Vec::new();
    for (name, fixed) in split(first, figure.panels.as_deref()) {
        let mut lines = Vec::new();
        for (spec, table, timeline) in &found {
            for (series, more) in split(table, figure.series.as_deref()) {
                let mut at = figure.at.clone();
                at.extend(spec.at.clone().into_iter().chain(fixed.clone()).chain(more));
                let name = if spec.name.is_empty() { series } else { spec.name.clone() };
                lines.extend(of_point(figure, spec, timeline, &at, &name));
            }
        }
        panels.push((if name.is_empty() { name } else { heading(figure, &name) }, lines));
    }
    let times: BTreeSet<u64> = panels.iter().flat_map(|p| &p.1).flat_map(|l| l.1.keys().copied()).collect();
    let factor = |metric: &str| convert(unit_of(metric).unwrap_or_default(), &unit).unwrap_or(1.0);
    let factor = factor(metric(figure, &specs[0]));
    let spot = |values: &Values, t: &u64| {
        let ours: Option<Estimate> = values.get(t).and_then(Estimator::mean).map(|e| e.estimate().scaled(factor));
        Spot { x: (*t as f64 / 1e9).to_string(), ours, printed: None, elsewhere: Vec::new() }
    };
    let line = |(name, values): &(String, Values)| Line {
        name: name.clone(),
        spots: times.iter().map(|t| spot(values, t)).collect(),
    };
    let panel = |(name, lines): &(String, Vec<(String, Values)>)| Panel {
        name: name.clone(),
        lines: lines.iter().map(line).collect(),
    };
    let x = times.iter().map(|t| (*t as f64 / 1e9).to_string()).collect();
    Ok(FigureData { x, unit, panels: panels.iter().map(panel).collect() })
}

pub(super) fn metric<'a>(figure: &'a Figure, spec: &'a LineSpec) -> &'a str {
    spec.metric.as_deref().or(figure.metric.as_deref()).unwrap_or_default()
}

/// The unit of all lines; they must have one.
fn unit(figure: &Figure, specs: &[LineSpec]) -> Result<String, String> {
    let of = |spec: &LineSpec| unit_of(metric(figure, spec)).ok_or("`metric` names no series");
    let own = specs.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let first = own.first().copied().unwrap_or_default();
    if let Some(other) = own.iter().find(|u| **u != first) {
        return Err(format!("its lines are in `{first}` and in `{other}`: draw them in two figures"));
    }
    match &figure.unit {
        Some(unit) if convert(first, unit).is_none() => {
            Err(format!("what is in `{first}` cannot be drawn in `{unit}`"))
        }
        Some(unit) => Ok(unit.clone()),
        None => Ok(first.to_owned()),
    }
}

/// The lines of one point of the sweep: one for each flow and path.
pub(super) fn of_point(
    figure: &Figure,
    spec: &LineSpec,
    timeline: &Timeline,
    at: &Point,
    name: &str,
) -> Vec<(String, Values)> {
    let (of, what) = metric(figure, spec).rsplit_once('.').unwrap_or_default();
    let here = |o: &&Over| {
        let pairs = timeline.keys.iter().zip(&o.point);
        let place = at.iter().all(|(k, v)| pairs.clone().any(|(key, value)| key == k && value == v));
        // A group's members are `GROUP.1` and so on.
        let named = o.name.rsplit_once('.').is_some_and(|(own, noted)| {
            let group = own.rsplit_once('.').filter(|g| g.1.bytes().all(|b| b.is_ascii_digit())).map(|g| g.0);
            noted == what && (covers(of, own) || group.is_some_and(|g| covers(of, g)))
        });
        place && named && figure.seed.is_none_or(|s| s == o.seed)
    };
    let mut lines: Vec<((&str, Option<usize>), Values)> = Vec::new();
    for o in timeline.lines.iter().filter(here) {
        let own = o.name.rsplit_once('.').map_or("", |n| n.0);
        let place = lines.iter().position(|l| l.0 == (own, o.path)).unwrap_or(lines.len());
        if place == lines.len() {
            lines.push(((own, o.path), Values::new()));
        }
        let Some((_, values)) = lines.get_mut(place) else { continue };
        for (time, value) in &o.samples {
            let of_all = values.entry((time * 1e9).round() as u64).or_default();
            value.map(|v| of_all.insert(o.seed, v));
        }
    }
    let several = lines.iter().any(|l| l.0.0 != lines[0].0.0);
    let title = |flow: &str, path: Option<usize>| {
        let parts = [
            (!name.is_empty()).then(|| name.to_owned()),
            several.then(|| flow.to_owned()),
            path.map(|p| format!("path {p}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let mut named: Vec<_> = lines.iter().map(|((flow, path), v)| (title(flow, *path), v.clone())).collect();
    if let [(only, _)] = named.as_mut_slice()
        && lines[0].0.1.is_some()
    {
        // A single path needs no number.
        *only = name.to_owned();
    }
    named
}
