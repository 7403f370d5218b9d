//! Figures as plots and as CSV.

use super::{AxisScale, Figure, FigureData, Line, Panel, Spot, Style, placed};
use crate::numbers::{csv_field, magnitude};
use crate::quantity::Take;
use crate::reference::Elsewhere;
use anabranch_report::{BarPlot, Drawing, LinePlot, Plot};
use std::fmt::Write as _;

/// Width of a plot that has a neighbour, in pixels.
pub(super) const HALF: f64 = 400.0;
/// Lines of one plot lie this far apart, in shares of the distance between two settings, so that intervals do not
/// hide each other.
const APART: f64 = 0.06;

/// The plots of a figure, one for each panel.
pub fn draw(figure: &Figure, data: &FigureData) -> Vec<Drawing> {
    let highest = shared_range(figure, data);
    let panel = |p: &Panel| match figure.kind {
        Style::Line => lines(figure, data, p, highest),
        Style::Series => over_time(figure, data, p, highest),
        _ => bars(figure, data, p),
    };
    data.panels.iter().map(panel).collect()
}

/// Panels share their vertical axis, so that they can be compared.
fn shared_range(figure: &Figure, data: &FigureData) -> Option<(f64, f64)> {
    if data.panels.len() < 2 {
        return None;
    }
    let spots = data.panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.spots);
    let ends = spots.filter_map(|s| s.ours.map(|e| e.interval.unwrap_or((e.mean, e.mean))));
    let (low, high) = ends.fold((0.0f64, 0.0f64), |a, e| (a.0.min(e.0), a.1.max(e.1)));
    let low = if figure.kind == Style::Series { 0.0 } else { low };
    // Up and down to half of a power of ten.
    let step = 10f64.powi(magnitude(low.abs().max(high))) / 2.0;
    (high > low).then_some(((low / step).floor() * step, (high / step).ceil() * step))
}

pub(super) fn title(figure: &Figure, panel: &str) -> String {
    if panel.is_empty() { figure.title.clone() } else { panel.to_owned() }
}

pub(super) fn x_name(figure: &Figure) -> String {
    figure.x_name.clone().unwrap_or_else(|| figure.x.clone())
}

pub(super) fn y_name(figure: &Figure) -> String {
    figure.y_name.clone().or(figure.metric.clone()).unwrap_or_default()
}

fn lines(figure: &Figure, data: &FigureData, panel: &Panel, range: Option<(f64, f64)>) -> Drawing {
    let mut plot = LinePlot::new(title(figure, &panel.name)).y(y_name(figure), data.unit.clone());
    // Whoever reads results that were made elsewhere may find words where numbers were promised.
    let placed = placed::of(&data.x).ok().filter(|_| figure.placed());
    plot = match &placed {
        Some(p) if p.binary() => plot.x(x_name(figure), p.unit).x_ends(figure.x_min, figure.x_max).binary_x(),
        Some(p) => plot.x(x_name(figure), p.unit).x_ends(figure.x_min, figure.x_max),
        None => plot.x(x_name(figure), "").categories(data.x.clone()),
    };
    if panel.name.is_empty() {
        plot = plot.note(note(figure, panel)).height(260.0);
    } else {
        plot = plot.width(HALF).height(200.0);
    }
    plot = axes(plot, figure, data, range);
    let middle = (panel.lines.len() as f64 - 1.0) / 2.0;
    for (i, line) in panel.lines.iter().enumerate() {
        let aside = (i as f64 - middle) * APART.min(0.5 / panel.lines.len() as f64);
        let place = |n: usize| match &placed {
            Some(p) => p.at.get(n).copied().unwrap_or(f64::NAN),
            None => n as f64 + aside,
        };
        // A line goes from left to right, in whatever order the scenario has its values.
        let mut order: Vec<usize> = (0..line.spots.len()).collect();
        order.sort_by(|a, b| place(*a).total_cmp(&place(*b)));
        let spots = || order.iter().filter_map(|n| Some((place(*n), line.spots.get(*n)?)));
        let points: Vec<(f64, f64)> = spots().map(|(x, s)| (x, s.ours.map_or(f64::NAN, |e| e.mean))).collect();
        let ends: Vec<(f64, f64)> =
            spots().map(|(_, s)| s.ours.and_then(|e| e.interval).unwrap_or((f64::NAN, f64::NAN))).collect();
        plot = plot.series(line.name.clone(), points).color(i).dots().errors(ends);
        if line.spots.iter().any(|s| s.printed.is_some()) {
            let printed: Vec<(f64, f64)> = spots().filter_map(|(x, s)| Some((x, s.printed?))).collect();
            plot = plot.points(printed_name(line), printed).color(i).hollow();
        }
        // A mark of its own, whose shape goes with its colour.
        for (n, name) in data.others().into_iter().enumerate() {
            let of = |s: &Spot| s.elsewhere.iter().find(|e| e.name == name).cloned();
            let there: Vec<(f64, Elsewhere)> = spots().filter_map(|(x, s)| Some((x, of(s)?))).collect();
            if there.is_empty() {
                continue;
            }
            let points: Vec<(f64, f64)> = there.iter().map(|(x, e)| (*x, e.value)).collect();
            let ends: Vec<(f64, f64)> = there.iter().map(|(_, e)| e.interval.unwrap_or((f64::NAN, f64::NAN))).collect();
            let title = if line.name.is_empty() { name.to_owned() } else { format!("{}, {name}", line.name) };
            plot = plot.points(title, points).color(panel.lines.len() + n).hollow().errors(ends);
        }
    }
    plot.draw()
}

/// Scales and ends of the axes. Panels share those that the figure does not fix.
fn axes(mut plot: LinePlot, figure: &Figure, data: &FigureData, range: Option<(f64, f64)>) -> LinePlot {
    plot = if figure.log_x() { plot.log_x() } else { plot };
    plot = if figure.log_y() { plot.log_y() } else { plot };
    if !figure.log_y() && figure.y_min.is_none() && figure.y_max.is_none() {
        return match range {
            Some((low, high)) => plot.y_range(low, high),
            None => plot,
        };
    }
    let spots = data.panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.spots);
    let ends = spots.filter_map(|s| s.ours.map(|e| e.interval.unwrap_or((e.mean, e.mean))));
    let there = ends.flat_map(|e| [e.0, e.1]).filter(|v| v.is_finite() && (!figure.log_y() || *v > 0.0));
    let all = there.fold(None, |a: Option<(f64, f64)>, v| Some(a.map_or((v, v), |a| (a.0.min(v), a.1.max(v)))));
    plot = match all.filter(|_| data.panels.len() > 1) {
        Some((low, high)) => plot.y_cover(low, high),
        None => plot,
    };
    plot.y_ends(figure.y_min, figure.y_max)
}

/// Lines over time, each with its interval as a band.
fn over_time(figure: &Figure, data: &FigureData, panel: &Panel, range: Option<(f64, f64)>) -> Drawing {
    let name = figure.x_name.clone().unwrap_or_else(|| "time".to_owned());
    let mut plot = LinePlot::new(title(figure, &panel.name)).x(name, "s").y(y_name(figure), data.unit.clone());
    plot = if panel.name.is_empty() {
        plot.note(note(figure, panel)).height(260.0)
    } else {
        plot.width(HALF).height(200.0)
    };
    plot = axes(plot, figure, data, range).x_ends(figure.x_min, figure.x_max);
    for (i, line) in panel.lines.iter().enumerate() {
        let points = line.spots.iter().map(|s| (s.x.parse().unwrap_or(f64::NAN), s.ours.map_or(f64::NAN, |e| e.mean)));
        plot = plot.series(line.name.clone(), points.collect::<Vec<(f64, f64)>>()).color(i);
        // Nothing that is noted is ever negative; an interval by the rule may be.
        let above = |(low, high): (f64, f64)| (low.max(0.0), high);
        let ends = line.spots.iter().map(|s| s.ours.and_then(|e| e.interval).map_or((f64::NAN, f64::NAN), above));
        if line.spots.iter().any(|s| s.ours.is_some_and(|e| e.interval.is_some())) {
            plot = plot.band(ends.collect::<Vec<(f64, f64)>>());
        }
    }
    plot.draw()
}

fn printed_name(line: &Line) -> String {
    if line.name.is_empty() { "printed in the paper".to_owned() } else { format!("{}, printed", line.name) }
}

fn bars(figure: &Figure, data: &FigureData, panel: &Panel) -> Drawing {
    let spots = || panel.lines.iter().flat_map(|l| &l.spots);
    let largest = spots().filter_map(|s| Some(s.ours.as_ref()?.mean.abs())).fold(0.0, f64::max);
    // Three digits of the largest; a stack shows its sum.
    let digits = if figure.kind == Style::Stacked { 1 } else { 2 };
    let places = (digits - magnitude(largest)).clamp(0, 6) as usize;
    let mut plot = BarPlot::new(title(figure, &panel.name), data.x.clone()).x(x_name(figure)).y(
        y_name(figure),
        data.unit.clone(),
        places,
    );
    plot = if panel.name.is_empty() { plot.note(note(figure, panel)) } else { plot.width(HALF) };
    for (i, line) in panel.lines.iter().enumerate() {
        let means: Vec<f64> = line.spots.iter().map(|s| s.ours.map_or(f64::NAN, |e| e.mean)).collect();
        let ends: Vec<(f64, f64)> =
            line.spots.iter().map(|s| s.ours.and_then(|e| e.interval).unwrap_or((f64::NAN, f64::NAN))).collect();
        plot = plot.bars(line.name.clone(), means).color(i).errors(ends);
        if line.spots.iter().any(|s| s.printed.is_some()) {
            plot = plot.others(
                "printed in the paper",
                line.spots.iter().map(|s| s.printed.unwrap_or(f64::NAN)).collect::<Vec<_>>(),
            );
        }
        for name in data.others() {
            let of = |s: &Spot| s.elsewhere.iter().find(|e| e.name == name).map_or(f64::NAN, |e| e.value);
            plot = plot.others(name, line.spots.iter().map(of).collect::<Vec<_>>());
        }
    }
    if figure.kind == Style::Stacked {
        plot = plot.stacked();
    }
    if let Some(hi) = figure.y_max {
        plot = plot.y_max(hi);
    }
    plot.draw()
}

/// What marks and intervals mean.
pub fn note(figure: &Figure, panel: &Panel) -> String {
    let spots = || panel.lines.iter().flat_map(|l| &l.spots);
    let all = || spots().filter_map(|s| s.ours.map(|e| e.seeds));
    // Over time some seed may have no value in some bin.
    let seeds = if figure.kind == Style::Series { all().max() } else { all().min() }.unwrap_or(0);
    let what = match figure.take() {
        Take::Mean => "Mean".to_owned(),
        Take::Percentile(p) => format!("{p}th percentile"),
        Take::MedianOfMaxima => "Median of the highest values".to_owned(),
    };
    let mut text = match (figure.kind, seeds) {
        (Style::Stacked | Style::Heatmap, _) => format!("{what} of {seeds} seeds."),
        (Style::Series, 0) => "No runs.".to_owned(),
        (Style::Series, 1) if figure.seed.is_some() => format!("Seed {}.", figure.seed.unwrap_or_default()),
        (_, 1) => "One seed: no interval.".to_owned(),
        _ => format!("{what} and 95 % interval of {seeds} seeds."),
    };
    if spots().any(|s| s.printed.is_some()) {
        text.push_str(" Outlined marks are what the paper prints.");
    }
    let mut others: Vec<&str> = spots().flat_map(|s| &s.elsewhere).map(|e| e.name.as_str()).collect();
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        let _ = write!(text, " Marks of their own are what was measured elsewhere: {}.", others.join(", "));
    }
    let log = figure.log_y() || figure.z_axis == Some(AxisScale::Log);
    let small = spots().filter(|s| log && s.ours.is_some_and(|e| e.mean <= 0.0)).count();
    if small > 0 {
        let _ = write!(text, " Not above zero, and so not on the logarithmic axis: {small} of the values.");
    }
    if let Some(more) = &figure.note {
        let _ = write!(text, " {more}");
    }
    text
}

/// The numbers of a figure: `panel,series,x,value,ci_low,ci_high,seeds,printed,unit`, and three columns for each who
/// measured some of it elsewhere: `NAME,NAME low,NAME high`.
pub fn to_csv(data: &FigureData) -> String {
    let others = data.others();
    let more: String = others
        .iter()
        .flat_map(|n| ["", " low", " high"].map(|end| format!(",{}", csv_field(&format!("{n}{end}")))))
        .collect();
    let mut out = format!("panel,series,x,value,ci_low,ci_high,seeds,printed,unit{more}\n");
    for panel in &data.panels {
        for line in &panel.lines {
            for s in &line.spots {
                let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
                let interval = s.ours.and_then(|e| e.interval);
                let fields = [
                    panel.name.clone(),
                    line.name.clone(),
                    s.x.clone(),
                    number(s.ours.map(|e| e.mean)),
                    number(interval.map(|i| i.0)),
                    number(interval.map(|i| i.1)),
                    s.ours.map_or(String::new(), |e| e.seeds.to_string()),
                    number(s.printed),
                    data.unit.clone(),
                ];
                let there = others.iter().flat_map(|name| {
                    let e = s.elsewhere.iter().find(|e| e.name == *name);
                    let interval = e.and_then(|e| e.interval);
                    [e.map(|e| e.value), interval.map(|i| i.0), interval.map(|i| i.1)].map(number)
                });
                let fields: Vec<String> = fields.iter().map(|f| csv_field(f)).chain(there).collect();
                let _ = writeln!(out, "{}", fields.join(","));
            }
        }
    }
    out
}
