//! Tool tips over lines: invisible columns that show all values at their place. No script.

use super::annotate::Annotations;
use super::axis::{Axis, Scale};
use super::canvas::Canvas;
use super::frame::Area;
use super::line::{Join, Series};
use crate::text::{escape, px, short};
use std::fmt::Write as _;

/// Columns over one plot at most: finer ones cannot be aimed at, and each costs some hundred bytes.
const MOST_COLUMNS: usize = 120;

/// Draws the columns for all series that are lines or steps.
pub(super) fn draw(
    c: &mut Canvas,
    area: Area,
    series: &[Series],
    x: (&Axis, &Scale),
    y: (&Axis, &Scale),
    notes: &Annotations,
) {
    let lines: Vec<&Series> = series.iter().filter(|s| s.join != Join::Points && !s.dots).collect();
    let samples: Vec<Vec<Sample>> = lines.iter().map(|s| samples(s, x.1, y.1)).collect();
    let columns = columns(&samples, area);
    if columns.is_empty() {
        return;
    }
    c.raw("<g fill=\"none\" pointer-events=\"all\">\n");
    for column in columns {
        let mut title = String::new();
        let mut value = None;
        let mut any = false;
        for (s, all) in lines.iter().zip(&samples) {
            let Some(found) = in_column(all, &column, s.join == Join::Steps) else { continue };
            any = true;
            value = value.or(found.nearest);
            let text = if short(found.low) == short(found.high) {
                y.0.with_unit(found.low)
            } else {
                y.0.join(&format!("{} to {}", short(found.low), short(found.high)))
            };
            let name = if s.name.is_empty() { y.0.name.as_str() } else { s.name.as_str() };
            let _ = write!(title, "\n{name}{}{text}", if name.is_empty() { "" } else { ": " });
        }
        if !any {
            continue;
        }
        let value = value.unwrap_or_else(|| x.1.value(column.middle));
        for label in notes.spans_at(value).filter(|l| !l.is_empty()) {
            let _ = write!(title, "\n{label}");
        }
        let name = if x.0.name.is_empty() { String::new() } else { format!("{} ", x.0.name) };
        let (l, t, w, h) = (px(column.from), px(area.top), px(column.to - column.from), px(area.height()));
        let _ = writeln!(
            c.out,
            "<g class=\"h\"><rect x=\"{l}\" y=\"{t}\" width=\"{w}\" height=\"{h}\"><title>{}{}</title></rect>\
<path d=\"M{} {t}v{h}\"/></g>",
            escape(&format!("{name}{}", x.0.with_unit(value))),
            escape(&title),
            px(column.middle),
        );
    }
    c.raw("</g>\n");
}

/// A point that is on the plot: pixel, x, y.
type Sample = (f64, f64, f64);

struct Column {
    from: f64,
    to: f64,
    middle: f64,
}

struct Found {
    low: f64,
    high: f64,
    /// The x of the sample nearest to the middle of the column; `None` when the value is only held.
    nearest: Option<f64>,
}

/// The points of a series on the plot, from left to right.
fn samples(s: &Series, x: &Scale, y: &Scale) -> Vec<Sample> {
    let shown = s.points.iter().filter(|p| x.shows(p.0) && y.at(p.1).is_some());
    let mut all: Vec<Sample> = shown.filter_map(|p| Some((x.at(p.0)?, p.0, p.1))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// One column for each place with a sample, or equal ones when there are too many places.
fn columns(samples: &[Vec<Sample>], area: Area) -> Vec<Column> {
    let mut places: Vec<f64> = samples.iter().flatten().map(|s| s.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup_by(|a, b| *a - *b < 1.0);
    if places.len() > MOST_COLUMNS {
        let width = area.width() / MOST_COLUMNS as f64;
        let from = |i: usize| area.left + width * i as f64;
        return (0..MOST_COLUMNS)
            .map(|i| Column { from: from(i), to: from(i + 1), middle: from(i) + width / 2.0 })
            .collect();
    }
    let half = |i: usize| Some((places.get(i)? + places.get(i + 1)?) / 2.0);
    let column = |(i, &middle): (usize, &f64)| Column {
        from: i.checked_sub(1).and_then(half).unwrap_or(area.left),
        to: half(i).unwrap_or(area.right),
        middle,
    };
    places.iter().enumerate().map(column).collect()
}

/// What a series shows in a column. A step series that has no sample there shows the value it holds.
fn in_column(all: &[Sample], column: &Column, steps: bool) -> Option<Found> {
    let start = all.partition_point(|s| s.0 < column.from);
    let inside = all.get(start..)?.iter().take_while(|s| s.0 < column.to || s.0 <= column.middle);
    let mut found: Option<(Found, f64)> = None;
    for s in inside {
        let distance = (s.0 - column.middle).abs();
        found = Some(match found {
            None => (Found { low: s.2, high: s.2, nearest: Some(s.1) }, distance),
            Some((f, best)) => {
                let nearest = if distance < best { Some(s.1) } else { f.nearest };
                (Found { low: f.low.min(s.2), high: f.high.max(s.2), nearest }, best.min(distance))
            }
        });
    }
    let held = || {
        let before = all.get(start.checked_sub(1)?)?;
        // Beyond its last sample a series says nothing.
        (steps && start < all.len()).then_some(Found { low: before.2, high: before.2, nearest: None })
    };
    found.map(|f| f.0).or_else(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { left: 0.0, top: 0.0, right: 240.0, bottom: 10.0 };

    #[test]
    fn columns_meet_between_samples() {
        let columns =
            columns(&[vec![(10.0, 1.0, 1.0), (30.0, 3.0, 1.0)], vec![(10.2, 1.0, 1.0), (100.0, 10.0, 1.0)]], AREA);
        let edges: Vec<_> = columns.iter().map(|c| (c.from, c.to)).collect();
        assert_eq!(edges, [(0.0, 20.0), (20.0, 65.0), (65.0, 240.0)]);
    }

    #[test]
    fn many_samples_share_columns_and_show_their_range() {
        let all: Vec<Sample> = (0..2_400).map(|i| (f64::from(i) / 10.0, f64::from(i), f64::from(i % 20))).collect();
        let columns = columns(std::slice::from_ref(&all), AREA);
        assert_eq!(columns.len(), MOST_COLUMNS);
        let found = in_column(&all, &columns[3], false).unwrap();
        assert_eq!((found.low, found.high, found.nearest), (0.0, 19.0, Some(70.0)));
    }

    #[test]
    fn steps_show_the_value_they_hold() {
        let all = [(10.0, 1.0, 7.0), (100.0, 10.0, 8.0)];
        let column = |from: f64| Column { from, to: from + 10.0, middle: from + 5.0 };
        assert_eq!(in_column(&all, &column(50.0), true).map(|f| f.low), Some(7.0));
        assert!(in_column(&all, &column(50.0), false).is_none());
        assert!(in_column(&all, &column(150.0), true).is_none(), "beyond its end");
        assert!(in_column(&all, &column(5.0), true).is_some_and(|f| f.nearest == Some(1.0)));
    }
}
