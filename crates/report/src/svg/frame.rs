//! What all plots have around the data: title, note, legend, grid, axes.

use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Canvas, Ink, marker};
use crate::text::{ellipsis, px, text_width, wrap};

/// Size of all text but the title, in pixels.
pub(super) const SIZE: f64 = 12.0;
/// Where titles, notes and axis names start.
pub(super) const EDGE: f64 = 2.0;

/// From the area up to the baseline of the name of the vertical axis and of the first row of labels.
pub(super) const NAME_GAP: f64 = 12.0;

/// How a series shows in the legend.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Glyph {
    Line {
        /// One of the patterns.
        dash: usize,
        dots: bool,
    },
    Point {
        hollow: bool,
    },
    Area,
    /// A box that is filled by so much.
    Box {
        fill: f64,
    },
    /// A mark of others at a bar.
    Other(usize),
}

/// One entry of the legend.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) color: usize,
    pub(super) glyph: Glyph,
}

/// The rectangle of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn width(self) -> f64 {
        self.right - self.left
    }
    pub(super) fn height(self) -> f64 {
        self.bottom - self.top
    }
}

/// Draws title, note and legend; returns where they end.
pub(super) fn head(c: &mut Canvas, width: f64, title: &str, note: &str, keys: &[Key]) -> f64 {
    let mut y = 0.0;
    if !title.is_empty() {
        c.text(Ink::Name, EDGE, y + 17.0, Anchor::Start, &ellipsis(title, 15.0, width - 2.0 * EDGE));
        y += 24.0;
    }
    for line in wrap(note, SIZE, width - 2.0 * EDGE) {
        c.text(Ink::Soft, EDGE, y + 12.0, Anchor::Start, &line);
        y += 16.0;
    }
    let keys: Vec<&Key> = keys.iter().filter(|k| !k.name.is_empty()).collect();
    if keys.is_empty() {
        return y;
    }
    y += 4.0;
    let mut x = EDGE;
    for key in keys {
        let name = ellipsis(&key.name, SIZE, width * 0.6);
        let needs = 24.0 + text_width(&name, SIZE);
        if x > EDGE && x + needs > width {
            x = EDGE;
            y += 19.0;
        }
        glyph(c, key, x, y + 9.0);
        c.text(Ink::Key, x + 24.0, y + 13.0, Anchor::Start, &name);
        x += needs + 16.0;
    }
    y + 22.0
}

fn glyph(c: &mut Canvas, key: &Key, x: f64, y: f64) {
    match key.glyph {
        Glyph::Line { dash, dots } => {
            c.series("l", key.color, dash, &format!("M{} {}h18", px(x), px(y)), None);
            if dots {
                c.series("p", key.color, 0, &marker(key.color, x + 9.0, y, 3.6), None);
            }
        }
        Glyph::Point { hollow } => {
            c.series(if hollow { "o" } else { "p" }, key.color, 0, &marker(key.color, x + 11.0, y, 4.0), None);
        }
        Glyph::Other(shape) => c.series("o", key.color, 0, &marker(shape, x + 11.0, y, 4.0), None),
        Glyph::Box { fill } => c.filled(key.color, fill, &format!("M{} {}h14v10h-14z", px(x + 4.0), px(y - 5.0)), None),
        Glyph::Area => c.series("f", key.color, 0, &format!("M{} {}h12v10h-12z", px(x + 5.0), px(y - 5.0)), None),
    }
}

/// Left margin for the labels of a vertical axis.
pub(super) fn left_margin(y: &Scale) -> f64 {
    (y.widest(SIZE) + 12.0).max(30.0)
}

/// Draws the grid, the ticks of the vertical axis and its name above the area.
pub(super) fn vertical_axis(c: &mut Canvas, area: Area, axis: &Axis, scale: &Scale) {
    let named = scale.ticks_at_pixels().filter(|(_, t)| !t.label.is_empty());
    let lines: Vec<_> = named.map(|(p, _)| (area.left, p, area.right, p)).collect();
    c.rules("grid", &lines);
    for (p, tick) in scale.ticks_at_pixels().filter(|(_, t)| !t.label.is_empty()) {
        c.text(Ink::Soft, area.left - 7.0, p + 4.0, Anchor::End, &tick.label);
    }
    c.text_if(EDGE, area.top - NAME_GAP, Anchor::Start, &axis.label());
}

/// Draws the line, the ticks and the name of the horizontal axis.
pub(super) fn horizontal_axis(c: &mut Canvas, area: Area, axis: &Axis, scale: &Scale, grid: bool) {
    if grid {
        let named = scale.ticks_at_pixels().filter(|(_, t)| !t.label.is_empty());
        let lines: Vec<_> = named.map(|(p, _)| (p, area.top, p, area.bottom)).collect();
        c.rules("grid", &lines);
    }
    let mut lines = vec![(area.left, area.bottom, area.right, area.bottom)];
    let mut free_from = f64::NEG_INFINITY;
    for (p, tick) in scale.ticks_at_pixels() {
        lines.push((p, area.bottom, p, area.bottom + if tick.label.is_empty() { 3.0 } else { 5.0 }));
        let half = text_width(&tick.label, SIZE) / 2.0;
        if tick.label.is_empty() || p - half < free_from {
            continue;
        }
        free_from = p + half + 6.0;
        c.text(Ink::Soft, p, area.bottom + 19.0, Anchor::Middle, &tick.label);
    }
    c.rules("axis", &lines);
    c.text_if((area.left + area.right) / 2.0, area.bottom + 38.0, Anchor::Middle, &axis.label());
}

/// Writes the name of a category below its slot, in two lines at most; returns how many there are.
pub(super) fn slot_name(c: &mut Canvas, area: Area, from: f64, slot: f64, name: &str) -> usize {
    let wrapped = wrap(name, SIZE, slot - 6.0);
    for (n, line) in wrapped.iter().take(2).enumerate() {
        let line = ellipsis(line, SIZE, slot - 4.0);
        c.text(Ink::Key, from + slot / 2.0, area.bottom + 18.0 + 15.0 * n as f64, Anchor::Middle, &line);
    }
    wrapped.len().min(2)
}

/// Height of the labels below the area.
pub(super) fn below(axis: &Axis) -> f64 {
    if axis.label().is_empty() { 26.0 } else { 46.0 }
}

impl Canvas {
    /// Begins a part of which nothing is seen outside of the area; what is returned ends it.
    pub(super) fn clip(&mut self, area: Area) -> &'static str {
        let (l, t, w, h) = (px(area.left), px(area.top), px(area.width()), px(area.height()));
        self.raw(&format!(
            "<svg x=\"{l}\" y=\"{t}\" width=\"{w}\" height=\"{h}\" viewBox=\"{l} {t} {w} {h}\" overflow=\"hidden\">\n"
        ));
        "</svg>\n"
    }
    /// Soft text, unless it is empty.
    pub(super) fn text_if(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        if !text.is_empty() {
            self.text(Ink::Soft, x, y, anchor, text);
        }
    }
}
