//! The marks of a series: lines, steps, bands, error bars, points.

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, marker};
use super::line::{Join, Series};
use super::thin::{thin, thin_band};
use crate::text::{px, short};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Points beyond this many get no tool tip each.
const MOST_TITLES: usize = 1_500;

/// Draws bands, lines and error bars; false when no series has anything to show.
pub(super) fn draw(c: &mut Canvas, series: &[Series], x: &Scale, y: &Scale) -> bool {
    for s in series.iter().filter(|s| !s.band.is_empty()) {
        c.series("b", s.color, 0, &band(s, x, y), None);
    }
    let mut any = false;
    for s in series {
        let runs = runs(s, x, y);
        any |= !runs.is_empty();
        if s.join != Join::Points {
            let d: String = runs.iter().map(|run| line(&thin(run), s.join == Join::Steps)).collect();
            c.series("l", s.color, s.dash, &d, None);
        }
        c.series("e", s.color, 0, &errors(s, x, y), None);
    }
    any
}

/// The points of a series in pixels, split where one is missing.
fn runs(s: &Series, x: &Scale, y: &Scale) -> Vec<Vec<(f64, f64)>> {
    let mut runs = vec![Vec::new()];
    for &(vx, vy) in &s.points {
        match (x.at(vx), y.at(vy), runs.last_mut()) {
            (Some(px), Some(py), Some(run)) => run.push((px, py)),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|r| !r.is_empty());
    runs
}

fn line(run: &[(f64, f64)], steps: bool) -> String {
    let mut d = String::new();
    let Some((first, rest)) = run.split_first() else { return d };
    let _ = write!(d, "M{} {}", px(first.0), px(first.1));
    if rest.is_empty() {
        // A point between two gaps: a line of no length with round ends is a dot.
        d.push_str("h0");
    }
    for (i, p) in rest.iter().enumerate() {
        let _ = match (steps, i) {
            (true, _) => write!(d, "H{}V{}", px(p.0), px(p.1)),
            (false, 0) => write!(d, "L{} {}", px(p.0), px(p.1)),
            (false, _) => write!(d, " {} {}", px(p.0), px(p.1)),
        };
    }
    d
}

fn band(s: &Series, x: &Scale, y: &Scale) -> String {
    let mut d = String::new();
    let ends: Vec<Option<(f64, f64, f64)>> = s
        .points
        .iter()
        .zip(&s.band)
        .map(|(p, b)| {
            Some((x.at(p.0)?, y.at_or_below(b.0.min(b.1))?, y.at(b.0.max(b.1))?))
                .filter(|_| !b.0.is_nan() && !b.1.is_nan())
        })
        .collect();
    for run in ends.split(Option::is_none) {
        let run: Vec<_> = thin_band(&run.iter().copied().flatten().collect::<Vec<_>>());
        let Some((first, rest)) = run.split_first() else { continue };
        let steps = s.join == Join::Steps;
        let _ = write!(d, "M{} {}", px(first.0), px(first.2));
        let mut level = first.1;
        for p in rest {
            let _ = if steps { write!(d, "H{}V{}", px(p.0), px(p.2)) } else { write!(d, "L{} {}", px(p.0), px(p.2)) };
        }
        for (i, p) in run.iter().enumerate().rev() {
            // Backwards, a step takes the level of the point on its left.
            let _ = if steps {
                level = run.get(i.saturating_sub(1)).map_or(level, |q| q.1);
                if i + 1 == run.len() { write!(d, "V{}", px(level)) } else { write!(d, "H{}V{}", px(p.0), px(level)) }
            } else {
                write!(d, "L{} {}", px(p.0), px(p.1))
            };
        }
        d.push('z');
    }
    d
}

fn errors(s: &Series, x: &Scale, y: &Scale) -> String {
    let mut d = String::new();
    for (p, e) in s.points.iter().zip(&s.errors) {
        if let (Some(px_x), Some(low), Some(high)) = (x.at(p.0), y.at_or_below(e.0), y.at(e.1)) {
            // One that reaches below the axis has no end to be capped there.
            let open = y.at(e.0).is_none();
            d.push_str(&if open { half_whisker(px_x, low, high) } else { whisker(px_x, low, high) });
        }
    }
    d
}

/// A vertical bar with a cap at its second end alone.
pub(super) fn half_whisker(x: f64, from: f64, to: f64) -> String {
    let (left, mid, from, to) = (px(x - 3.5), px(x), px(from), px(to));
    format!("M{mid} {from}V{to}M{left} {to}h7")
}

/// A vertical bar with caps.
pub(super) fn whisker(x: f64, low: f64, high: f64) -> String {
    let (left, mid, low, high) = (px(x - 3.5), px(x), px(low), px(high));
    format!("M{mid} {low}V{high}M{left} {low}h7M{left} {high}h7")
}

/// Draws the points of series that show them, each with a tool tip while there are not too many.
pub(super) fn draw_points(c: &mut Canvas, series: &[Series], x: (&Axis, &Scale), y: (&Axis, &Scale)) {
    for s in series.iter().filter(|s| s.join == Join::Points || s.dots) {
        let radius = match s.points.len() {
            0..=200 => 3.6,
            201..=1_000 => 2.6,
            _ => 1.8,
        };
        let each = s.points.len() <= MOST_TITLES;
        let kind = if s.hollow { "o" } else { "p" };
        let mut seen = BTreeSet::new();
        let mut all = String::new();
        for (i, p) in s.points.iter().enumerate() {
            let (Some(at_x), Some(at_y)) = (x.1.at(p.0), y.1.at(p.1)) else { continue };
            let outline = marker(s.color, at_x, at_y, radius);
            // Points on the very same pixel are one point to the eye.
            if !each {
                if seen.insert((at_x.round() as i64, at_y.round() as i64)) {
                    all.push_str(&outline);
                }
                continue;
            }
            c.series(kind, s.color, 0, &outline, Some(&title(s, i, *p, x.0, y.0)));
        }
        c.series(kind, s.color, 0, &all, None);
    }
}

fn title(s: &Series, i: usize, p: (f64, f64), x: &Axis, y: &Axis) -> String {
    let mut text = if s.name.is_empty() { String::new() } else { format!("{}\n", s.name) };
    let name = |axis: &Axis| if axis.name.is_empty() { String::new() } else { format!("{} ", axis.name) };
    let _ = write!(text, "{}{}\n{}{}", name(x), x.with_unit(p.0), name(y), y.with_unit(p.1));
    if let Some((low, high)) = s.errors.get(i).or(s.band.get(i)) {
        let _ = write!(text, " [{}, {}]", short(*low), short(*high));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales() -> (Scale, Scale) {
        let scale = |hi| Scale::new(&Axis::default(), Some((0.0, hi)), false, 5);
        (scale(10.0).onto(0.0, 100.0), scale(4.0).onto(40.0, 0.0))
    }

    fn series(points: &[(f64, f64)]) -> Series {
        Series { points: points.to_vec(), ..Series::default() }
    }

    #[test]
    fn gaps_split_a_line() {
        let (x, y) = scales();
        let s = series(&[
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, f64::NAN),
            (3.0, 1.0),
            (f64::INFINITY, 1.0),
            (4.0, 1.0),
            (5.0, 4.0),
        ]);
        let d: String = runs(&s, &x, &y).iter().map(|r| line(r, false)).collect();
        assert_eq!(d, "M0 30L10 20M30 30h0M40 30L50 0");
    }

    #[test]
    fn steps_hold_their_value() {
        let (x, y) = scales();
        let run = runs(&series(&[(0.0, 1.0), (2.0, 3.0), (5.0, 0.0)]), &x, &y);
        assert_eq!(line(&run[0], true), "M0 30H20V10H50V40");
    }

    #[test]
    fn bands_are_closed_and_split() {
        let (x, y) = scales();
        let mut s = series(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]);
        s.band = vec![(0.0, 2.0), (1.0, 3.0), (f64::NAN, 1.0), (3.0, 1.0)];
        assert_eq!(band(&s, &x, &y), "M0 20L10 10L10 30L0 40zM30 10L30 30z");
        s.join = Join::Steps;
        s.band = vec![(0.0, 2.0), (1.0, 3.0)];
        // Down at the right end to the level that held before it, back to the left end, up again.
        assert_eq!(band(&s, &x, &y), "M0 20H10V10V40H0V40z");
    }

    #[test]
    fn error_bars_have_caps() {
        let (x, y) = scales();
        let mut s = series(&[(1.0, 1.0), (2.0, 1.0)]);
        s.errors = vec![(0.0, 2.0), (f64::NAN, 2.0)];
        assert_eq!(errors(&s, &x, &y), "M10 40V20M6.5 40h7M6.5 20h7");
        let axis = Axis { log: true, ..Axis::default() };
        let log = Scale::new(&axis, Some((1.0, 100.0)), false, 5).onto(40.0, 0.0);
        s.errors = vec![(-3.0, 10.0), (1.0, 10.0)];
        assert_eq!(errors(&s, &x, &log), "M10 40V20M6.5 20h7M20 40V20M16.5 40h7M16.5 20h7");
    }

    #[test]
    fn many_points_are_drawn_once_per_pixel() {
        let (x, y) = scales();
        let mut s = series(&vec![(1.0, 1.0); 5_000]);
        s.join = Join::Points;
        let mut c = Canvas::default();
        let axis = Axis::default();
        draw_points(&mut c, &[s], (&axis, &x), (&axis, &y));
        assert_eq!(c.out.matches('M').count(), 1, "{}", c.out);
    }
}
