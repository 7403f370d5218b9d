//! Two settings against each other: a coloured cell for each pair of their values.

use super::axis::{Axis, Scale, extent};
use super::canvas::{Anchor, Canvas, Ink};
use super::frame::{Area, EDGE, SIZE, head, slot_name};
use super::{Drawing, Plot, WIDTH, usable};
use crate::text::{MISSING, ellipsis, escape, fixed, px, text_width};
use std::fmt::Write as _;

/// From the lowest to the highest value: pale to dark, so that grey paper shows the same order.
const SHADES: [[f64; 3]; 5] =
    [[240.0, 244.0, 248.0], [168.0, 206.0, 226.0], [78.0, 150.0, 196.0], [18.0, 88.0, 148.0], [10.0, 32.0, 66.0]];
/// Height of a row of cells when there is room.
const ROW: f64 = 38.0;
/// Height of all rows at most, unless they would be too low to be read.
const TALLEST: f64 = 440.0;
/// Width of the scale of colours, of its labels and of the room before it.
const BAR: f64 = 14.0;
const BAR_GAP: f64 = 18.0;

/// A map of values over two settings, with a scale of colours beside it and the numbers in the cells where they fit.
#[derive(Clone, Debug)]
pub struct HeatMap {
    title: String,
    note: String,
    x: (String, Vec<String>),
    y: (String, Vec<String>),
    /// One row of values for each value of the vertical setting.
    values: Vec<Vec<f64>>,
    tips: Vec<Vec<String>>,
    z: Axis,
    decimals: usize,
    width: f64,
}

impl HeatMap {
    /// A map of `values`: a row for each name of `y`, of a value for each name of `x`. The first row is at the bottom. A
    /// value that is NaN or infinite is an empty cell with a dash.
    pub fn new(title: impl Into<String>, x: Vec<String>, y: Vec<String>, values: Vec<Vec<f64>>) -> Self {
        HeatMap {
            title: title.into(),
            note: String::new(),
            x: (String::new(), x),
            y: (String::new(), y),
            values,
            tips: Vec::new(),
            z: Axis::default(),
            decimals: 1,
            width: WIDTH,
        }
    }
    /// A sentence below the title.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }
    /// Names both settings.
    #[must_use]
    pub fn axes(mut self, x: impl Into<String>, y: impl Into<String>) -> Self {
        (self.x.0, self.y.0) = (x.into(), y.into());
        self
    }
    /// Names what the colours show, and sets the decimals of the numbers in the cells.
    #[must_use]
    pub fn z(mut self, name: impl Into<String>, unit: impl Into<String>, decimals: usize) -> Self {
        (self.z.name, self.z.unit) = (name.into(), unit.into());
        self.decimals = decimals.min(12);
        self
    }
    /// What is added to the tool tip of each cell, in rows as the values are: an interval.
    #[must_use]
    pub fn tips(mut self, tips: Vec<Vec<String>>) -> Self {
        self.tips = tips;
        self
    }
    /// Fixes one end of the scale of colours or both; what lies beyond has the colour of the end.
    #[must_use]
    pub fn z_ends(mut self, lo: Option<f64>, hi: Option<f64>) -> Self {
        self.z.ends = (lo, hi);
        self
    }
    /// Values that have to lie on the scale of colours: what maps side by side share.
    #[must_use]
    pub fn z_cover(mut self, lo: f64, hi: f64) -> Self {
        self.z.cover = Some((lo, hi));
        self
    }
    /// Makes the scale of colours logarithmic; values that are not positive are empty cells.
    #[must_use]
    pub fn log_z(mut self) -> Self {
        self.z.log = true;
        self
    }
    /// Width in pixels; 720 by default, at least 240.
    #[must_use]
    pub fn width(mut self, pixels: f64) -> Self {
        self.width = pixels.clamp(240.0, 4_000.0);
        self
    }

    fn value(&self, row: usize, column: usize) -> f64 {
        self.values.get(row).and_then(|r| r.get(column)).copied().unwrap_or(f64::NAN)
    }

    /// One cell with its number, where that fits.
    fn cell(&self, c: &mut Canvas, at: Area, row: usize, column: usize, scale: &Scale) {
        let value = self.value(row, column);
        let shade = Some(value).filter(|v| usable(*v)).and_then(|v| Some(scale.at(v)?.clamp(0.0, 1.0)));
        let text = if shade.is_some() { fixed(value, self.decimals) } else { MISSING.to_owned() };
        let name = |of: &(String, Vec<String>), i: usize| {
            let value = of.1.get(i).cloned().unwrap_or_default();
            if of.0.is_empty() { value } else { format!("{} {value}", of.0) }
        };
        let shown = if shade.is_some() { self.z.join(&text) } else { "no runs".to_owned() };
        let more = self.tips.get(row).and_then(|r| r.get(column)).filter(|t| !t.is_empty());
        let more = more.map_or(String::new(), |t| format!(" {t}"));
        let tip = format!("{}\n{}\n{shown}{more}", name(&self.x, column), name(&self.y, row));
        let fill = shade.map_or("none".to_owned(), colour);
        let _ = writeln!(
            c.out,
            "<rect fill=\"{fill}\" pointer-events=\"all\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">\
<title>{}</title></rect>",
            px(at.left + 0.5),
            px(at.top + 0.5),
            px(at.width() - 1.0),
            px(at.height() - 1.0),
            escape(&tip)
        );
        if text_width(&text, SIZE) > at.width() - 4.0 || at.height() < 15.0 {
            return;
        }
        let (x, y) = ((at.left + at.right) / 2.0, (at.top + at.bottom) / 2.0 + 4.0);
        match shade {
            // At the element itself, since the style sheet knows the colours of the paper alone.
            Some(t) => {
                let ink = if t > 0.45 { "#ffffff" } else { "#1f2630" };
                let _ = writeln!(
                    c.out,
                    "<text fill=\"{ink}\" style=\"fill:{ink};pointer-events:none\" x=\"{}\" y=\"{}\" \
text-anchor=\"middle\">{}</text>",
                    px(x),
                    px(y),
                    escape(&text)
                );
            }
            None => c.text(Ink::Soft, x, y, Anchor::Middle, &text),
        }
    }

    /// The scale of colours, from `top` to `bottom` on the right of `left`.
    fn bar(&self, c: &mut Canvas, left: f64, top: f64, bottom: f64, scale: &Scale) {
        const STEPS: usize = 48;
        let step = (bottom - top) / STEPS as f64;
        for i in 0..STEPS {
            let fill = colour((i as f64 + 0.5) / STEPS as f64);
            let y = bottom - step * (i + 1) as f64;
            // A little more than a step, so that no line shows between them.
            let height = if i == 0 { step } else { step + 0.6 };
            let (x, y, w, h) = (px(left), px(y), px(BAR), px(height));
            let _ = writeln!(c.out, "<rect fill=\"{fill}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>");
        }
        let right = left + BAR;
        let mut free_below = f64::INFINITY;
        let mut lines = Vec::new();
        for (share, tick) in
            scale.ticks_at_pixels().filter(|(s, t)| (-1e-9..=1.0 + 1e-9).contains(s) && !t.label.is_empty())
        {
            let y = bottom - share * (bottom - top);
            if y > free_below {
                continue;
            }
            free_below = y - SIZE - 2.0;
            lines.push((right, y, right + 4.0, y));
            c.text(Ink::Soft, right + 7.0, y + 4.0, Anchor::Start, &tick.label);
        }
        c.rules("axis", &lines);
    }
}

impl Plot for HeatMap {
    fn draw(&self) -> Drawing {
        let mut c = Canvas::default();
        let head_end = head(&mut c, self.width, &self.title, &self.note, &[]);
        let (columns, rows) = (self.x.1.len(), self.y.1.len());
        let all = (0..rows).flat_map(|r| (0..columns).map(move |n| self.value(r, n)));
        let target = (TALLEST.min(ROW * rows as f64) / 40.0).max(2.0);
        let scale = Scale::new(&self.z, extent(&self.z, all), true, target as usize).onto(0.0, 1.0);
        let names = self.y.1.iter().map(|n| text_width(n, SIZE)).fold(0.0, f64::max);
        let left = (names + 14.0).clamp(30.0, self.width * 0.3);
        let right = self.width - (BAR_GAP + BAR + 9.0 + scale.widest(SIZE));
        let row = ROW.min(TALLEST / rows.max(1) as f64).max(18.0);
        let top = head_end + if self.y.0.is_empty() && self.z.label().is_empty() { 8.0 } else { 26.0 };
        let area = Area { left, top, right, bottom: top + row * rows.max(1) as f64 };
        c.text_if(EDGE, top - 12.0, Anchor::Start, &self.y.0);
        c.text_if(self.width - EDGE, top - 12.0, Anchor::End, &self.z.label());
        let slot = area.width() / columns.max(1) as f64;
        for (r, name) in self.y.1.iter().enumerate() {
            let bottom = area.bottom - row * r as f64;
            let name = ellipsis(name, SIZE, left - 10.0);
            c.text(Ink::Key, left - 8.0, bottom - row / 2.0 + 4.0, Anchor::End, &name);
            for n in 0..columns {
                let from = left + slot * n as f64;
                self.cell(&mut c, Area { left: from, top: bottom - row, right: from + slot, bottom }, r, n, &scale);
            }
        }
        let name = |(n, name): (usize, &String)| slot_name(&mut c, area, left + slot * n as f64, slot, name);
        let lines = self.x.1.iter().enumerate().map(name).max().unwrap_or(1);
        if rows == 0 || columns == 0 {
            let middle = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0);
            c.text(Ink::Soft, middle.0, middle.1, Anchor::Middle, "no data");
        }
        self.bar(&mut c, area.right + BAR_GAP, area.top, area.bottom, &scale);
        let end = area.bottom + 10.0 + 15.0 * lines as f64;
        c.text_if((area.left + area.right) / 2.0, end + 14.0, Anchor::Middle, &self.x.0);
        let height = if self.x.0.is_empty() { end } else { end + 20.0 };
        Drawing { title: self.title.clone(), width: self.width, height, body: c.out }
    }
}

/// The colour of a share of the scale.
fn colour(share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * (SHADES.len() - 1) as f64;
    let below = (place.floor() as usize).min(SHADES.len() - 2);
    let (a, b) = (SHADES[below], SHADES[below + 1]);
    let part = |i: usize| (a[i] + (b[i] - a[i]) * (place - below as f64)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", part(0), part(1), part(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a colour `#rrggbb`, as the eye and a grey printer weigh it (ITU-R BT.709).
    fn light(colour: &str) -> f64 {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap());
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn shades_get_darker_all_the_way() {
        let all: Vec<f64> = (0..=100).map(|i| light(&colour(f64::from(i) / 100.0))).collect();
        assert!(all.windows(2).all(|w| w[0] > w[1]), "{all:?}");
        assert!(all[0] - all[100] > 200.0);
        assert_eq!((colour(-3.0), colour(7.0)), (colour(0.0), colour(1.0)));
    }
}
