//! Shaded spans of time, event markers, limits, and where their labels go.

use super::axis::Scale;
use super::canvas::{Anchor, Canvas, Ink};
use super::frame::{Area, NAME_GAP, SIZE};
use crate::text::{ellipsis, text_width};

/// Height of a row of labels.
const ROW: f64 = 15.0;
/// Rows of labels above the area; a label without room shows only in the tool tip.
const MOST_ROWS: usize = 3;

/// What the owner of a plot wants pointed out.
#[derive(Clone, Debug, Default)]
pub(super) struct Annotations {
    /// From, to, label.
    pub(super) spans: Vec<(f64, f64, String)>,
    /// Position, label.
    pub(super) markers: Vec<(f64, String)>,
    /// Value, label.
    pub(super) limits: Vec<(f64, String)>,
}

/// Labels with their places: middle, row (0 is next to the area), text.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    placed: Vec<(f64, usize, String)>,
    rows: usize,
}

impl Labels {
    /// Height that the labels and the axis name take above the area.
    pub(super) fn height(&self) -> f64 {
        self.rows as f64 * ROW + NAME_GAP + if self.rows == 0 { 0.0 } else { 2.0 }
    }
    pub(super) fn draw(&self, c: &mut Canvas, area: Area) {
        for (x, row, text) in &self.placed {
            c.text(Ink::Soft, *x, area.top - NAME_GAP - *row as f64 * ROW, Anchor::Middle, text);
        }
    }
}

impl Annotations {
    /// Finds places for the labels between two pixels. `taken` is where the name of the vertical axis ends.
    pub(super) fn place(&self, x: &Scale, left: f64, right: f64, taken: f64) -> Labels {
        let mut wanted: Vec<(f64, &str)> = Vec::new();
        for (from, to, label) in &self.spans {
            if let Some((a, b)) = visible(x, *from, *to) {
                wanted.push(((a + b) / 2.0, label));
            }
        }
        wanted.extend(self.markers.iter().filter(|m| x.shows(m.0)).filter_map(|(v, l)| Some((x.at(*v)?, l.as_str()))));
        wanted.retain(|w| !w.1.is_empty());
        wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ends = [taken, f64::NEG_INFINITY, f64::NEG_INFINITY];
        let mut labels = Labels { placed: Vec::new(), rows: usize::from(taken > 0.0) };
        for (middle, text) in wanted {
            let text = ellipsis(text, SIZE, right - left);
            let half = text_width(&text, SIZE) / 2.0;
            let middle = middle.min(right - half).max(left + half);
            if let Some(row) = (0..MOST_ROWS).find(|&r| ends.get(r).is_some_and(|&end| end + 8.0 <= middle - half)) {
                if let Some(end) = ends.get_mut(row) {
                    *end = middle + half;
                }
                labels.rows = labels.rows.max(row + 1);
                labels.placed.push((middle, row, text));
            }
        }
        labels
    }

    /// What lies behind the data.
    pub(super) fn draw_spans(&self, c: &mut Canvas, area: Area, x: &Scale) {
        for (from, to, label) in &self.spans {
            if let Some((a, b)) = visible(x, *from, *to) {
                // A span shorter than a pixel is still to be seen.
                c.span(a, area.top, (b - a).max(1.0), area.height(), label);
            }
        }
    }

    /// What lies over the data.
    pub(super) fn draw_lines(&self, c: &mut Canvas, area: Area, x: &Scale, y: &Scale) {
        let at = self.markers.iter().filter(|m| x.shows(m.0)).filter_map(|m| x.at(m.0));
        let lines: Vec<_> = at.map(|p| (p, area.top - 7.0, p, area.bottom)).collect();
        c.rules("edge", &lines);
        for (value, label) in self.limits.iter().filter(|l| y.shows(l.0)) {
            let Some(p) = y.at(*value) else { continue };
            c.rules("edge", &[(area.left, p, area.right, p)]);
            let label = ellipsis(label, SIZE, area.width());
            // Above the line, or below it when there is no room above.
            let baseline = if p - area.top < 16.0 { p + 14.0 } else { p - 5.0 };
            c.text(Ink::Over, area.right - 4.0, baseline, Anchor::End, &label);
        }
    }

    /// The labels of spans that hold `v`.
    pub(super) fn spans_at(&self, v: f64) -> impl Iterator<Item = &str> {
        self.spans.iter().filter(move |s| s.0.min(s.1) <= v && v <= s.0.max(s.1)).map(|s| s.2.as_str())
    }
}

/// The pixels of a span as far as it lies on the axis.
fn visible(x: &Scale, from: f64, to: f64) -> Option<(f64, f64)> {
    if from.is_nan() || to.is_nan() {
        return None;
    }
    // An open end (infinite) reaches to the end of the axis.
    let (lo, hi) = (from.min(to).max(x.lo), from.max(to).min(x.hi));
    if lo > hi {
        return None;
    }
    let (a, b) = (x.at(lo)?, x.at(hi)?);
    Some((a.min(b), a.max(b)))
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::*;

    fn scale() -> Scale {
        Scale::new(&Axis::default(), Some((0.0, 10.0)), false, 5).onto(100.0, 600.0)
    }

    #[test]
    fn labels_do_not_overlap_and_stay_inside() {
        let markers = [1.0, 1.1, 9.9, 10.0, 10.0, 10.0, 42.0];
        let all = Annotations {
            markers: markers.iter().map(|&v| (v, format!("event at {v}"))).collect(),
            ..Annotations::default()
        };
        let labels = all.place(&scale(), 100.0, 600.0, 90.0);
        assert_eq!(labels.rows, 3);
        // Five of the six on the axis find room: three rows at the right end, two of them at the left.
        assert_eq!(labels.placed.len(), 5);
        for (i, a) in labels.placed.iter().enumerate() {
            let half = text_width(&a.2, SIZE) / 2.0;
            assert!(a.0 - half >= 100.0 && a.0 + half <= 600.0 + 1e-9);
            for b in labels.placed.iter().skip(i + 1).filter(|b| b.1 == a.1) {
                assert!((a.0 - b.0).abs() >= half, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn the_axis_name_keeps_its_row() {
        let one = Annotations { markers: vec![(0.5, "start".into())], ..Annotations::default() };
        assert_eq!(one.place(&scale(), 100.0, 600.0, 140.0).placed.first().map(|p| p.1), Some(1));
        assert_eq!(one.place(&scale(), 100.0, 600.0, 0.0).placed.first().map(|p| p.1), Some(0));
    }

    #[test]
    fn spans_are_cut_at_the_axis() {
        assert_eq!(visible(&scale(), 5.0, f64::INFINITY), Some((350.0, 600.0)));
        assert_eq!(visible(&scale(), 3.0, 2.0), Some((200.0, 250.0)));
        assert_eq!(visible(&scale(), 11.0, 12.0), None);
        assert_eq!(visible(&scale(), f64::NAN, 12.0), None);
    }
}
