//! Bars: single, grouped or stacked, standing or lying.

use super::annotate::Annotations;
use super::axis::{Axis, Scale, extent};
use super::canvas::{Anchor, Canvas, Ink, marker};
use super::frame::{Area, Glyph, Key, SIZE, below, head, horizontal_axis, left_margin, slot_name, vertical_axis};
use super::marks::whisker;
use super::{Drawing, Plot, WIDTH, usable};
use crate::text::{ellipsis, fixed, px, text_width};
use std::fmt::Write as _;

/// Widest bar in pixels.
const THICKEST: f64 = 56.0;
/// The colour of what others measured: ink, which no bar has.
const OTHERS: usize = 7;
/// Thickness of a lying bar.
const LYING: f64 = 18.0;
/// Shape of the first mark of what others measured.
const FIRST_OTHER: usize = 2;
/// How far the marks of several others stand apart, in pixels.
const OTHER_APART: f64 = 6.0;

#[derive(Clone, Debug, Default)]
struct Bars {
    name: String,
    color: usize,
    /// Another color for each category.
    colors: Vec<usize>,
    values: Vec<f64>,
    errors: Vec<(f64, f64)>,
    /// What others measured, beside ours; each as the one of the plot's names at its place.
    others: Vec<Vec<f64>>,
}

/// A bar for each category, or several beside or on top of each other. The value axis always holds zero.
///
/// Methods that describe a set of bars (`errors`, `color`, …) speak of the one added last. A value that is NaN or
/// infinite has no bar, and its label is a dash.
#[derive(Clone, Debug)]
pub struct BarPlot {
    title: String,
    note: String,
    axis: Axis,
    categories: Vec<String>,
    sets: Vec<Bars>,
    notes: Annotations,
    emphasized: Option<usize>,
    /// Names of what others measured.
    others_names: Vec<String>,
    /// Name of the categories.
    x: String,
    decimals: usize,
    stacked: bool,
    lying: bool,
    width: f64,
    height: f64,
}

impl BarPlot {
    /// An empty plot over these categories.
    pub fn new<C: Into<String>>(title: impl Into<String>, categories: impl IntoIterator<Item = C>) -> Self {
        BarPlot {
            title: title.into(),
            note: String::new(),
            axis: Axis::default(),
            categories: categories.into_iter().map(Into::into).collect(),
            sets: Vec::new(),
            notes: Annotations::default(),
            emphasized: None,
            others_names: Vec::new(),
            x: String::new(),
            decimals: 1,
            stacked: false,
            lying: false,
            width: WIDTH,
            height: 220.0,
        }
    }
    /// A sentence below the title.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }
    /// Names the value axis and sets the decimals of the labels at the bars; with none, ticks are whole numbers.
    #[must_use]
    pub fn y(mut self, name: impl Into<String>, unit: impl Into<String>, decimals: usize) -> Self {
        (self.axis.name, self.axis.unit, self.axis.whole) = (name.into(), unit.into(), decimals == 0);
        self.decimals = decimals.min(12);
        self
    }
    /// Fixes the upper end of the value axis; longer bars are cut off.
    #[must_use]
    pub fn y_max(mut self, hi: f64) -> Self {
        self.axis.range = Some((0.0, hi));
        self
    }
    /// Adds a bar for each category in order.
    #[must_use]
    pub fn bars(mut self, name: impl Into<String>, values: impl AsRef<[f64]>) -> Self {
        let (color, values) = (self.sets.len(), values.as_ref().to_vec());
        self.sets.push(Bars { name: name.into(), color, values, ..Bars::default() });
        self
    }
    /// Error bars: low and high end for each category in order. Not shown on stacked bars.
    #[must_use]
    pub fn errors(self, ends: impl AsRef<[(f64, f64)]>) -> Self {
        self.last(|s| s.errors = ends.as_ref().to_vec())
    }
    /// Says what the categories are (standing bars).
    #[must_use]
    pub fn x(mut self, name: impl Into<String>) -> Self {
        self.x = name.into();
        self
    }
    /// A mark at each bar for what others measured (standing bars that are not stacked), with its name for the legend.
    /// Each name has a mark of its own.
    #[must_use]
    pub fn others(mut self, name: impl Into<String>, values: impl AsRef<[f64]>) -> Self {
        let name = name.into();
        let place = self.others_names.iter().position(|n| *n == name).unwrap_or(self.others_names.len());
        if place == self.others_names.len() {
            self.others_names.push(name);
        }
        self.last(|s| {
            s.others.resize(s.others.len().max(place + 1), Vec::new());
            if let Some(slot) = s.others.get_mut(place) {
                *slot = values.as_ref().to_vec();
            }
        })
    }
    /// The color number of the palette (eight, counted from zero).
    #[must_use]
    pub fn color(self, n: usize) -> Self {
        self.last(|s| s.color = n)
    }
    /// A color for each category, so that a path or run keeps its color over several plots.
    #[must_use]
    pub fn colors(self, each: impl AsRef<[usize]>) -> Self {
        self.last(|s| s.colors = each.as_ref().to_vec())
    }
    /// Lets all categories but this one step back.
    #[must_use]
    pub fn emphasize(mut self, category: usize) -> Self {
        self.emphasized = Some(category);
        self
    }
    /// Puts the sets on top of each other instead of side by side; negative values count as missing.
    #[must_use]
    pub fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }
    /// Lays the bars down, for many categories or long names.
    #[must_use]
    pub fn horizontal(mut self) -> Self {
        self.lying = true;
        self
    }
    /// Marks a value by a line (standing bars only).
    #[must_use]
    pub fn limit(mut self, value: f64, label: impl Into<String>) -> Self {
        self.notes.limits.push((value, label.into()));
        self
    }
    /// Width in pixels; 720 by default, at least 240.
    #[must_use]
    pub fn width(mut self, pixels: f64) -> Self {
        self.width = pixels.clamp(240.0, 4_000.0);
        self
    }
    /// Height of the data area in pixels, at least 60; lying bars take what they need.
    #[must_use]
    pub fn height(mut self, pixels: f64) -> Self {
        self.height = pixels.clamp(60.0, 4_000.0);
        self
    }

    fn last(mut self, change: impl FnOnce(&mut Bars)) -> Self {
        if let Some(set) = self.sets.last_mut() {
            change(set);
        }
        self
    }

    /// The bars of a category as `(set, from, to)`.
    fn bars_of(&self, category: usize) -> Vec<(&Bars, f64, f64)> {
        let mut base = 0.0;
        let bar = |set| -> Option<(&Bars, f64, f64)> {
            let set: &Bars = set;
            let value = set.values.get(category).copied().filter(|&v| usable(v));
            if !self.stacked {
                return Some((set, 0.0, value.unwrap_or(f64::NAN)));
            }
            let value = value.filter(|&v| v >= 0.0)?;
            base += value;
            Some((set, base - value, base))
        };
        self.sets.iter().filter_map(bar).collect()
    }

    fn scale(&self) -> Scale {
        let bars = (0..self.categories.len()).flat_map(|i| self.bars_of(i)).map(|b| b.2);
        let errors = self.sets.iter().filter(|_| !self.stacked).flat_map(|s| s.errors.iter().flat_map(|e| [e.0, e.1]));
        let limits = self
            .notes
            .limits
            .iter()
            .map(|l| l.0)
            .chain(self.sets.iter().flat_map(|s| s.others.iter().flatten().copied()));
        let data = extent(&self.axis, bars.chain(errors).chain(limits)).map(|(a, b)| (a.min(0.0), b.max(0.0)));
        let target = if self.lying { self.width / 110.0 } else { self.height / 45.0 };
        Scale::new(&self.axis, data, true, target as usize)
    }

    /// Thickness of a bar and offset of the first one in a slot.
    fn thickness(&self, slot: f64) -> (f64, f64) {
        let beside = if self.stacked { 1 } else { self.sets.len().max(1) } as f64;
        let thick = (slot * 0.72 / beside).min(if self.lying { LYING } else { THICKEST });
        (thick, (slot - thick * beside) / 2.0)
    }

    /// Draws the bars of one category into its slot, which starts at `slot_from`.
    fn draw_category(&self, c: &mut Canvas, category: usize, slot_from: f64, slot: f64, scale: &Scale) {
        let (thick, offset) = self.thickness(slot);
        let pale = self.emphasized.is_some_and(|e| e != category);
        if pale {
            c.raw("<g class=\"pale\" opacity=\".45\">\n");
        }
        let bars = self.bars_of(category);
        let beside = |i: usize| slot_from + offset + if self.stacked { 0.0 } else { thick * i as f64 };
        let gap = if self.sets.len() > 1 && !self.stacked { 1.0 } else { 0.0 };
        let mut ends = Vec::new();
        for (i, &(set, from, to)) in bars.iter().enumerate() {
            let color = set.colors.get(category).copied().unwrap_or(set.color);
            let at = |v: f64| scale.at(v.clamp(scale.lo, scale.hi));
            if let (Some(a), Some(b)) = (at(from), at(to)) {
                let outline = self.outline(beside(i) + gap / 2.0, thick - gap, a, b);
                c.series("f", color, 0, &outline, Some(&self.tip(category, set, to - from)));
            }
            let error = set.errors.get(category).copied().filter(|e| !self.stacked && usable(e.0) && usable(e.1));
            ends.push(self.draw_error(c, beside(i) + thick / 2.0, error, scale));
        }
        if pale {
            c.raw("</g>\n");
        }
        if self.stacked {
            let total = bars.last().map_or(f64::NAN, |b| b.2);
            return self.label(c, slot_from + slot / 2.0, slot, total, None, scale);
        }
        for (i, (bar, end)) in bars.iter().zip(ends).enumerate() {
            self.label(c, beside(i) + thick / 2.0, thick, bar.2, end, scale);
            self.draw_other(c, category, bar.0, beside(i) + thick - gap, scale);
        }
    }

    /// What others measured: at the edge of the bar, where it hides neither the error bar nor the label.
    fn draw_other(&self, c: &mut Canvas, category: usize, set: &Bars, edge: f64, scale: &Scale) {
        for (i, (name, values)) in self.others_names.iter().zip(&set.others).enumerate() {
            let value = values.get(category).copied().filter(|_| !self.lying);
            let Some((v, at)) = value.and_then(|v| Some((v, scale.at(v)?))) else { continue };
            let tip = format!("{name}\n{}", self.axis.join(&fixed(v, self.decimals)));
            let beside = edge - OTHER_APART * i as f64;
            c.series("o", OTHERS, 0, &marker(FIRST_OTHER + i, beside, at, 4.0), Some(&tip));
        }
    }

    fn outline(&self, across: f64, thick: f64, a: f64, b: f64) -> String {
        let (lo, length) = (a.min(b), (a - b).abs());
        let (x, y, w, h) = if self.lying { (lo, across, length, thick) } else { (across, lo, thick, length) };
        format!("M{x} {}h{}v{}H{x}z", px(y), px(w), px(h), x = px(x))
    }

    fn tip(&self, category: usize, set: &Bars, value: f64) -> String {
        let mut text = self.categories.get(category).cloned().unwrap_or_default();
        if !set.name.is_empty() {
            let _ = write!(text, "\n{}", set.name);
        }
        let _ = write!(text, "\n{}", self.axis.join(&fixed(value, self.decimals)));
        if let Some((low, high)) = set.errors.get(category).filter(|_| !self.stacked) {
            let _ = write!(text, " [{}, {}]", fixed(*low, self.decimals), fixed(*high, self.decimals));
        }
        text
    }

    /// Draws an error bar; returns the pixel of its outer end.
    fn draw_error(&self, c: &mut Canvas, middle: f64, error: Option<(f64, f64)>, scale: &Scale) -> Option<f64> {
        let (low, high) = error?;
        let at = |v: f64| scale.at(v.clamp(scale.lo, scale.hi));
        let (a, b) = (at(low)?, at(high)?);
        let d = if self.lying {
            let (top, mid) = (px(middle - 3.5), px(middle));
            format!("M{a} {mid}H{b}M{a} {top}v7M{b} {top}v7", a = px(a), b = px(b))
        } else {
            whisker(middle, a, b)
        };
        let ink = crate::style::INK;
        let _ =
            writeln!(c.out, "<path class=\"whisker\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"1.25\" d=\"{d}\"/>");
        Some(b)
    }

    /// Writes a value beyond the end of its bar, where there is room for it.
    fn label(&self, c: &mut Canvas, middle: f64, room: f64, value: f64, beyond: Option<f64>, scale: &Scale) {
        let text = fixed(value, self.decimals);
        let value = if usable(value) { value } else { 0.0 };
        let Some(end) = scale.at(value.clamp(scale.lo, scale.hi)) else { return };
        let down = value < 0.0;
        if self.lying {
            let end = beyond.map_or(end, |b| if down { b.min(end) } else { b.max(end) });
            let (x, anchor) = if down { (end - 5.0, Anchor::End) } else { (end + 5.0, Anchor::Start) };
            c.text(Ink::Value, x, middle + 4.0, anchor, &text);
        } else if text_width(&text, SIZE) <= room + 6.0 {
            let end = beyond.map_or(end, |b| if down { b.max(end) } else { b.min(end) });
            c.text(Ink::Value, middle, if down { end + 14.0 } else { end - 5.0 }, Anchor::Middle, &text);
        }
    }

    fn keys(&self) -> Vec<Key> {
        let key = |s: &Bars| Key { name: s.name.clone(), color: s.color, glyph: Glyph::Area };
        let mut keys: Vec<Key> = self.sets.iter().map(key).collect();
        for (i, name) in self.others_names.iter().enumerate().filter(|_| !self.stacked && !self.lying) {
            if self.sets.iter().any(|s| s.others.get(i).is_some_and(|o| o.iter().any(|v| usable(*v)))) {
                keys.push(Key { name: name.clone(), color: OTHERS, glyph: Glyph::Other(FIRST_OTHER + i) });
            }
        }
        keys
    }

    fn draw_standing(&self, c: &mut Canvas, head_end: f64) -> f64 {
        let scale = self.scale();
        let top = head_end + 16.0 + if self.axis.label().is_empty() { 6.0 } else { 18.0 };
        let area = Area { left: left_margin(&scale), top, right: self.width - 14.0, bottom: top + self.height };
        let scale = scale.onto(area.bottom, area.top);
        // The name stands above the room for labels at the bars.
        vertical_axis(c, area, &Axis::default(), &scale);
        c.text_if(super::frame::EDGE, area.top - 21.0, Anchor::Start, &self.axis.label());
        let slot = area.width() / self.categories.len().max(1) as f64;
        let mut lines = 1;
        for (i, name) in self.categories.iter().enumerate() {
            let from = area.left + slot * i as f64;
            self.draw_category(c, i, from, slot, &scale);
            lines = lines.max(slot_name(c, area, from, slot, name));
        }
        let zero = scale.at(0.0).unwrap_or(area.bottom);
        c.rules("axis", &[(area.left, zero, area.right, zero)]);
        self.notes.draw_lines(c, area, &Scale::new(&Axis::default(), None, false, 2), &scale);
        let end = area.bottom + 10.0 + 15.0 * lines as f64;
        c.text_if((area.left + area.right) / 2.0, end + 14.0, Anchor::Middle, &self.x);
        if self.x.is_empty() { end } else { end + 20.0 }
    }

    fn draw_lying(&self, c: &mut Canvas, head_end: f64) -> f64 {
        let scale = self.scale();
        let names = self.categories.iter().map(|n| text_width(n, SIZE)).fold(0.0, f64::max);
        let left = (names + 14.0).clamp(30.0, self.width * 0.4);
        let values = self.sets.iter().flat_map(|s| &s.values).map(|&v| text_width(&fixed(v, self.decimals), SIZE));
        let right = self.width - values.fold(14.0, f64::max) - 8.0;
        let beside = if self.stacked { 1 } else { self.sets.len().max(1) } as f64;
        let slot = LYING * beside + 9.0;
        let top = head_end + 6.0;
        let bottom = top + slot * self.categories.len().max(1) as f64;
        let area = Area { left, top, right, bottom };
        let scale = scale.onto(area.left, area.right);
        horizontal_axis(c, area, &self.axis, &scale, true);
        for (i, name) in self.categories.iter().enumerate() {
            let from = area.top + slot * i as f64;
            self.draw_category(c, i, from, slot, &scale);
            let name = ellipsis(name, SIZE, left - 10.0);
            c.text(Ink::Key, left - 8.0, from + slot / 2.0 + 4.0, Anchor::End, &name);
        }
        let zero = scale.at(0.0).unwrap_or(area.left);
        c.rules("axis", &[(zero, area.top, zero, area.bottom)]);
        area.bottom + below(&self.axis)
    }
}

impl Plot for BarPlot {
    fn draw(&self) -> Drawing {
        let mut c = Canvas::default();
        let head_end = head(&mut c, self.width, &self.title, &self.note, &self.keys());
        let height = if self.lying { self.draw_lying(&mut c, head_end) } else { self.draw_standing(&mut c, head_end) };
        Drawing { title: self.title.clone(), width: self.width, height, body: c.out }
    }
}
