//! Two keys of a sweep against each other, a coloured cell for each pair of values.

use super::draw::{HALF, note, title, x_name};
use super::{AxisScale, Figure, FigureData, Panel};
use crate::numbers::{interval_text, magnitude};
use anabranch_report::{Drawing, HeatMap, Plot};

/// The plots of a figure, one for each panel. The lines of `data` are its rows.
pub(super) fn draw(figure: &Figure, data: &FigureData) -> Vec<Drawing> {
    let log = figure.z_axis == Some(AxisScale::Log);
    let spots = data.panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.spots);
    let means = spots.filter_map(|s| s.ours.map(|e| e.mean)).filter(|v| v.is_finite() && (!log || *v > 0.0));
    let ends = means.fold(None, |all: Option<(f64, f64)>, v| Some(all.map_or((v, v), |a| (a.0.min(v), a.1.max(v)))));
    let largest = ends.map_or(0.0, |(a, b)| a.abs().max(b.abs()));
    // Three digits of the largest.
    let places = (2 - magnitude(largest)).clamp(0, 6) as usize;
    let one = |panel: &Panel| {
        let rows = |of: &dyn Fn(&super::Spot) -> f64| -> Vec<Vec<f64>> {
            panel.lines.iter().map(|l| l.spots.iter().map(of).collect()).collect()
        };
        let names = panel.lines.iter().map(|l| l.name.clone()).collect();
        let values = rows(&|s| s.ours.map_or(f64::NAN, |e| e.mean));
        let tip =
            |s: &super::Spot| s.ours.filter(|e| e.interval.is_some()).map(|e| interval_text(&e)).unwrap_or_default();
        let tips = panel.lines.iter().map(|l| l.spots.iter().map(tip).collect()).collect();
        let mut plot = HeatMap::new(title(figure, &panel.name), data.x.clone(), names, values)
            .axes(x_name(figure), figure.y_name.clone().unwrap_or_else(|| figure.y.clone()))
            .z(figure.z_name.clone().or(figure.metric.clone()).unwrap_or_default(), data.unit.clone(), places)
            .tips(tips)
            .z_ends(figure.z_min, figure.z_max);
        plot = if panel.name.is_empty() { plot.note(note(figure, panel)) } else { plot.width(HALF) };
        plot = if log { plot.log_z() } else { plot };
        if let Some((low, high)) = ends.filter(|_| data.panels.len() > 1) {
            plot = plot.z_cover(low, high);
        }
        plot.draw()
    };
    data.panels.iter().map(one).collect()
}
