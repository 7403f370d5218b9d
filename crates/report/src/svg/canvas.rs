//! Writes SVG elements. Each has a class for the style sheet and plain attributes for viewers without one.

use crate::style::{AXIS, GRID, INK, PALETTE, PAPER, SOFT};
use crate::text::{escape, px};
use std::fmt::Write as _;

/// Which end of a text is at its coordinate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The roles a text can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ink {
    /// Ticks, axis names, notes.
    Soft,
    /// The title.
    Name,
    /// Names in the legend.
    Key,
    /// A number at a bar.
    Value,
    /// A label that may lie over lines: it gets a halo.
    Over,
}

/// How lines without marks are dashed, so that they differ on grey paper as well; the first is whole.
pub(super) const DASHES: [&str; 4] = ["", "6 4", "2 3", "10 3 2 3"];

/// A growing SVG body.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) out: String,
}

/// The class and the plain colour of series colour `i`.
pub(super) fn series_color(i: usize) -> (usize, &'static str) {
    let i = i % PALETTE.len();
    (i, PALETTE.get(i).copied().unwrap_or(INK))
}

impl Canvas {
    pub(super) fn raw(&mut self, s: &str) {
        self.out.push_str(s);
    }
    pub(super) fn text(&mut self, ink: Ink, x: f64, y: f64, anchor: Anchor, text: &str) {
        let style = match ink {
            Ink::Soft => format!("fill=\"{SOFT}\""),
            Ink::Name => format!("class=\"name\" fill=\"{INK}\" font-size=\"15\" font-weight=\"600\""),
            Ink::Key => format!("class=\"key\" fill=\"{INK}\""),
            Ink::Value => format!("class=\"value\" fill=\"{INK}\""),
            Ink::Over => format!("class=\"over\" fill=\"{SOFT}\""),
        };
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = writeln!(self.out, "<text {style} x=\"{}\" y=\"{}\"{anchor}>{}</text>", px(x), px(y), escape(text));
    }
    /// Thin lines in one path, each `(x1, y1, x2, y2)`, horizontal or vertical.
    pub(super) fn rules(&mut self, class: &str, lines: &[(f64, f64, f64, f64)]) {
        if lines.is_empty() {
            return;
        }
        let color = match class {
            "grid" => GRID,
            "axis" => AXIS,
            _ => SOFT,
        };
        let d: String = lines.iter().map(|l| format!("M{} {}L{} {}", px(l.0), px(l.1), px(l.2), px(l.3))).collect();
        let dash = if class == "edge" { " stroke-dasharray=\"4 3\"" } else { "" };
        let _ = writeln!(self.out, "<path class=\"{class}\" stroke=\"{color}\"{dash} d=\"{d}\"/>");
    }
    /// A shaded area with a tool tip.
    pub(super) fn span(&mut self, x: f64, y: f64, w: f64, h: f64, title: &str) {
        let _ = writeln!(
            self.out,
            "<rect class=\"span\" fill=\"{SOFT}\" fill-opacity=\".13\" x=\"{}\" y=\"{}\" width=\"{}\" \
height=\"{}\"><title>{}</title></rect>",
            px(x),
            px(y),
            px(w),
            px(h),
            escape(title)
        );
    }
    /// A path in a series' colour. `kind` is one of the style sheet's letters: l line, b band, e error bars, f bar,
    /// p point, o outline of a point. `dash` is one of [`DASHES`].
    pub(super) fn series(&mut self, kind: &str, color: usize, dash: usize, d: &str, title: Option<&str>) {
        if d.is_empty() {
            return;
        }
        let (i, rgb) = series_color(color);
        let style = match kind {
            "b" => format!("fill=\"{rgb}\" fill-opacity=\".2\""),
            "f" | "p" => format!("fill=\"{rgb}\""),
            "o" => format!("fill=\"{PAPER}\" stroke=\"{rgb}\" stroke-width=\"1.5\""),
            "e" => format!("fill=\"none\" stroke=\"{rgb}\" stroke-width=\"1.25\""),
            _ => format!("fill=\"none\" stroke=\"{rgb}\" stroke-width=\"1.75\""),
        };
        let dash = match DASHES.get(dash % DASHES.len()) {
            None | Some(&"") => String::new(),
            Some(pattern) => format!(" stroke-dasharray=\"{pattern}\""),
        };
        let _ = write!(self.out, "<path class=\"{kind} c{i}\" {style}{dash} d=\"{d}\"");
        let _ = match title {
            Some(t) => writeln!(self.out, "><title>{}</title></path>", escape(t)),
            None => writeln!(self.out, "/>"),
        };
    }
}

impl Canvas {
    /// An area with an outline in a series' colour, filled by a part of it: how much tells several apart without colours.
    pub(super) fn filled(&mut self, color: usize, fill: f64, d: &str, title: Option<&str>) {
        let (i, rgb) = series_color(color);
        let tip = title.map_or(String::new(), |t| format!("<title>{}</title>", escape(t)));
        // The style sheet fills bars whole; what is said at the element itself wins.
        let _ = writeln!(
            self.out,
            "<path class=\"f c{i}\" fill=\"{rgb}\" fill-opacity=\"{fill}\" style=\"fill-opacity:{fill}\" d=\"{d}\">{tip}</path>"
        );
        self.series("e", color, 0, d, None);
    }
}

/// The outline of a point; the shape goes with the colour, for those who see no colours and for grey paper.
pub(super) fn marker(shape: usize, x: f64, y: f64, r: f64) -> String {
    let p = |dx: f64, dy: f64| format!("{} {}", px(x + dx), px(y + dy));
    match shape % 4 {
        0 => {
            let (r_text, d_text) = (px(r), px(2.0 * r));
            format!("M{}a{r_text} {r_text} 0 1 0 {d_text} 0a{r_text} {r_text} 0 1 0 -{d_text} 0z", p(-r, 0.0))
        }
        1 => {
            let s = r * 0.9;
            format!("M{}L{}L{}L{}z", p(-s, -s), p(s, -s), p(s, s), p(-s, s))
        }
        2 => {
            let s = r * 1.25;
            format!("M{}L{}L{}L{}z", p(0.0, -s), p(s, 0.0), p(0.0, s), p(-s, 0.0))
        }
        _ => {
            let s = r * 1.15;
            format!("M{}L{}L{}z", p(0.0, -s), p(s, s * 0.8), p(-s, s * 0.8))
        }
    }
}
