//! Boxes with whiskers: how values spread.

use super::axis::{Axis, Scale, extent};
use super::canvas::{Anchor, Canvas, Ink, marker};
use super::frame::{Area, Glyph, Key, head, left_margin, slot_name, vertical_axis};
use super::marks::half_whisker;
use super::{Drawing, Plot, WIDTH, usable};
use crate::text::{px, short};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Widest box in pixels.
const THICKEST: f64 = 44.0;
/// Outliers beyond this many get no tool tip each.
const MOST_TITLES: usize = 200;
/// How much of their colour fills the boxes of one set, the next and so on.
const FILLS: [f64; 4] = [0.75, 0.15, 0.45, 0.0];

/// A box: quartiles, how far the whiskers reach, and what lies beyond them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BoxStats {
    /// Lower end of the whiskers.
    pub low: f64,
    /// Lower quartile.
    pub q1: f64,
    /// The value that half of all lie below.
    pub median: f64,
    /// Upper quartile.
    pub q3: f64,
    /// Upper end of the whiskers.
    pub high: f64,
    /// Values beyond the whiskers.
    pub outliers: Vec<f64>,
}

impl BoxStats {
    fn five(&self) -> [f64; 5] {
        [self.low, self.q1, self.median, self.q3, self.high]
    }
}

#[derive(Clone, Debug, Default)]
struct Set {
    name: String,
    color: usize,
    boxes: Vec<Option<BoxStats>>,
}

/// A box for each category, or several side by side. The axis need not hold zero.
#[derive(Clone, Debug)]
pub struct BoxPlot {
    title: String,
    note: String,
    axis: Axis,
    /// Name of the categories.
    x: String,
    categories: Vec<String>,
    sets: Vec<Set>,
    width: f64,
    height: f64,
}

impl BoxPlot {
    /// An empty plot over these categories.
    pub fn new<C: Into<String>>(title: impl Into<String>, categories: impl IntoIterator<Item = C>) -> Self {
        BoxPlot {
            title: title.into(),
            note: String::new(),
            axis: Axis::default(),
            x: String::new(),
            categories: categories.into_iter().map(Into::into).collect(),
            sets: Vec::new(),
            width: WIDTH,
            height: 260.0,
        }
    }
    /// A sentence below the title.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }
    /// Says what the categories are.
    #[must_use]
    pub fn x(mut self, name: impl Into<String>) -> Self {
        self.x = name.into();
        self
    }
    /// Names the vertical axis.
    #[must_use]
    pub fn y(mut self, name: impl Into<String>, unit: impl Into<String>) -> Self {
        (self.axis.name, self.axis.unit) = (name.into(), unit.into());
        self
    }
    /// Makes the vertical axis logarithmic; a box that reaches down to zero ends at its lower edge.
    #[must_use]
    pub fn log_y(mut self) -> Self {
        self.axis.log = true;
        self
    }
    /// Fixes one end of the vertical axis or both; what lies outside is cut off.
    #[must_use]
    pub fn y_ends(mut self, lo: Option<f64>, hi: Option<f64>) -> Self {
        self.axis.ends = (lo, hi);
        self
    }
    /// Values that have to lie on the vertical axis beside those that are drawn: what plots side by side share.
    #[must_use]
    pub fn y_cover(mut self, lo: f64, hi: f64) -> Self {
        self.axis.cover = Some((lo, hi));
        self
    }
    /// Adds a box for each category in order, or none where there are no values.
    #[must_use]
    pub fn boxes(mut self, name: impl Into<String>, boxes: impl Into<Vec<Option<BoxStats>>>) -> Self {
        let color = self.sets.len();
        self.sets.push(Set { name: name.into(), color, boxes: boxes.into() });
        self
    }
    /// Width in pixels; 720 by default, at least 240.
    #[must_use]
    pub fn width(mut self, pixels: f64) -> Self {
        self.width = pixels.clamp(240.0, 4_000.0);
        self
    }
    /// Height of the data area in pixels; 260 by default, at least 60.
    #[must_use]
    pub fn height(mut self, pixels: f64) -> Self {
        self.height = pixels.clamp(60.0, 4_000.0);
        self
    }

    fn drawn(&self) -> impl Iterator<Item = &BoxStats> {
        let there = self.sets.iter().flat_map(|s| s.boxes.iter().take(self.categories.len()).flatten());
        there.filter(|b| b.five().into_iter().all(usable))
    }

    fn scale(&self) -> Scale {
        let values = self.drawn().flat_map(|b| b.five().into_iter().chain(b.outliers.iter().copied()));
        Scale::new(&self.axis, extent(&self.axis, values), true, (self.height / 45.0) as usize)
    }

    /// Draws the box of a category around the pixel `middle`.
    fn draw_box(&self, c: &mut Canvas, set: &Set, i: usize, (middle, thick): (f64, f64), y: &Scale) {
        let Some(Some(b)) = set.boxes.get(i) else { return };
        let fill = FILLS.get(set.color % FILLS.len()).copied().unwrap_or(0.5);
        let at = |v: f64| y.at_or_below(v);
        let [Some(low), Some(q1), Some(median), Some(q3), Some(high)] = b.five().map(at) else { return };
        let ink = crate::style::INK;
        let whiskers = format!("{}{}", half_whisker(middle, q1, low), half_whisker(middle, q3, high));
        let _ = writeln!(
            c.out,
            "<path class=\"whisker\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"1.25\" d=\"{whiskers}\"/>"
        );
        let (left, right) = (px(middle - thick / 2.0), px(middle + thick / 2.0));
        let outline = format!("M{left} {}H{right}V{}H{left}z", px(q3), px(q1));
        c.filled(set.color, fill, &outline, Some(&self.tip(set, self.categories.get(i).map_or("", String::as_str), b)));
        let _ = writeln!(
            c.out,
            "<path class=\"whisker\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"2.5\" style=\"stroke-width:2.5\" \
d=\"M{left} {m}H{right}\"/>",
            m = px(median)
        );
        let (each, mut seen, mut all) = (b.outliers.len() <= MOST_TITLES, BTreeSet::new(), String::new());
        for v in &b.outliers {
            let Some(p) = y.at(*v) else { continue };
            // Those on the very same pixel are one to the eye.
            if seen.insert((p * 2.0).round() as i64) {
                let outline = marker(set.color, middle, p, 2.6);
                if each {
                    c.series("o", set.color, 0, &outline, Some(&self.axis.with_unit(*v)));
                } else {
                    all.push_str(&outline);
                }
            }
        }
        c.series("o", set.color, 0, &all, None);
    }

    fn tip(&self, set: &Set, category: &str, b: &BoxStats) -> String {
        let mut text = category.to_owned();
        if !set.name.is_empty() {
            let _ = write!(text, "\n{}", set.name);
        }
        let _ = write!(text, "\nmedian {}", self.axis.with_unit(b.median));
        let _ = write!(text, "\nquartiles {} to {}", short(b.q1), short(b.q3));
        let _ = write!(text, "\nwhiskers {} to {}", short(b.low), short(b.high));
        if !b.outliers.is_empty() {
            let _ = write!(text, "\noutliers {}", b.outliers.len());
        }
        text
    }
}

impl Plot for BoxPlot {
    fn draw(&self) -> Drawing {
        let mut c = Canvas::default();
        let fill = |i: usize| FILLS.get(i % FILLS.len()).copied().unwrap_or(0.5);
        let key = |s: &Set| Key { name: s.name.clone(), color: s.color, glyph: Glyph::Box { fill: fill(s.color) } };
        let keys: Vec<Key> = self.sets.iter().map(key).collect();
        let head_end = head(&mut c, self.width, &self.title, &self.note, &keys);
        let scale = self.scale();
        let top = head_end + if self.axis.label().is_empty() { 8.0 } else { 26.0 };
        let area = Area { left: left_margin(&scale), top, right: self.width - 14.0, bottom: top + self.height };
        let y = scale.onto(area.bottom, area.top);
        vertical_axis(&mut c, area, &self.axis, &y);
        let slot = area.width() / self.categories.len().max(1) as f64;
        let thick = (slot * 0.72 / self.sets.len().max(1) as f64).min(THICKEST);
        let offset = (slot - thick * self.sets.len() as f64) / 2.0;
        let from = |i: usize| area.left + slot * i as f64;
        let lines = self.categories.iter().enumerate().map(|(i, n)| slot_name(&mut c, area, from(i), slot, n)).max();
        let clip = c.clip(area);
        for i in 0..self.categories.len() {
            for (n, set) in self.sets.iter().enumerate() {
                let middle = from(i) + offset + thick * (n as f64 + 0.5);
                self.draw_box(&mut c, set, i, (middle, thick * 0.82), &y);
            }
        }
        c.raw(clip);
        if self.drawn().next().is_none() {
            let middle = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0);
            c.text(Ink::Soft, middle.0, middle.1, Anchor::Middle, "no data");
        }
        c.rules("axis", &[(area.left, area.bottom, area.right, area.bottom)]);
        let end = area.bottom + 10.0 + 15.0 * lines.unwrap_or(1) as f64;
        c.text_if((area.left + area.right) / 2.0, end + 14.0, Anchor::Middle, &self.x);
        let height = if self.x.is_empty() { end } else { end + 20.0 };
        Drawing { title: self.title.clone(), width: self.width, height, body: c.out }
    }
}
