//! Plots as SVG, drawn by our own hand: no script, no font, no picture from elsewhere.
//!
//! Layout from top to bottom: title, note, legend, a strip for labels of events, the plot area, axes. Everything is in
//! pixels of a view box 720 wide (by default) that scales with the page.

mod annotate;
mod axis;
mod bars;
mod boxes;
mod canvas;
mod frame;
mod heat;
mod hover;
mod line;
mod marks;
mod thin;

pub use bars::BarPlot;
pub use boxes::{BoxPlot, BoxStats};
pub use heat::HeatMap;
pub use line::LinePlot;

use crate::style::{PAPER, PLOT, VARIABLES};
use crate::text::{escape, px};

/// Default width of a plot in pixels.
pub(crate) const WIDTH: f64 = 720.0;
/// Room around a plot in a file of its own.
const MARGIN: f64 = 12.0;
/// Numbers beyond this magnitude count as missing: differences of larger ones overflow.
const LARGEST: f64 = 1e100;

/// A number that can be drawn.
fn usable(v: f64) -> bool {
    v.is_finite() && v.abs() <= LARGEST
}

/// Points over time from instants, with seconds since `start` on the x axis.
pub fn over_time<I>(start: anabranch_base::Instant, samples: I) -> Vec<(f64, f64)>
where
    I: IntoIterator<Item = (anabranch_base::Instant, f64)>,
{
    samples.into_iter().map(|(at, v)| (at.since(start).as_secs_f64(), v)).collect()
}

/// Something that can be drawn.
pub trait Plot {
    /// The finished drawing.
    fn draw(&self) -> Drawing;
    /// As an element inside a page that carries the style sheet.
    fn inline_svg(&self) -> String {
        self.draw().inline()
    }
    /// As a file of its own, style sheet inside.
    fn to_svg(&self) -> String {
        self.draw().standalone()
    }
}

/// A plot after layout.
#[derive(Clone, Debug)]
pub struct Drawing {
    title: String,
    width: f64,
    height: f64,
    body: String,
}

impl Drawing {
    /// Width and height in pixels, without the margin of a file of its own.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }
    /// Several drawings below each other as one, for a file that holds them all.
    #[must_use]
    pub fn column(title: impl Into<String>, drawings: &[Drawing]) -> Drawing {
        let (mut body, mut top, mut width) = (String::new(), 0.0, 0.0f64);
        for d in drawings {
            body.push_str(&format!("<g transform=\"translate(0 {})\">\n{}</g>\n", px(top), d.body));
            top += d.height + 2.0 * MARGIN;
            width = width.max(d.width);
        }
        Drawing { title: title.into(), width, height: (top - 2.0 * MARGIN).max(0.0), body }
    }
    /// An element inside a page that carries the style sheet.
    pub fn inline(&self) -> String {
        let (w, h, title) = (px(self.width), px(self.height), escape(&self.title));
        // The label serves screen readers; a title element would show as a tool tip over the whole plot.
        format!("<svg class=\"plot\" viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{title}\">\n{}</svg>", self.body)
    }
    /// A file of its own, with a margin on each side.
    pub fn standalone(&self) -> String {
        self.file(&format!("<style>\n{VARIABLES}{PLOT}</style>\n"))
    }
    /// As [`standalone`](Self::standalone) without a style sheet, for programs that know no CSS variables: all colours
    /// are plain attributes, those of the light theme.
    pub fn plain(&self) -> String {
        self.file("")
    }
    fn file(&self, style: &str) -> String {
        let (w, h, title) = (px(self.width + 2.0 * MARGIN), px(self.height + 2.0 * MARGIN), escape(&self.title));
        let from = px(-MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"{w}\" height=\"{h}\" \
viewBox=\"{from} {from} {w} {h}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{title}\">\n\
{style}<rect class=\"back\" x=\"{from}\" y=\"{from}\" width=\"{w}\" height=\"{h}\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::{Duration, Instant};

    #[test]
    fn a_column_holds_all_its_drawings() {
        let one = |t: &str| LinePlot::new(t).series("a", [(0.0, 1.0)]).width(300.0).draw();
        let (a, b) = (one("first"), one("second"));
        let column = Drawing::column("both", &[a.clone(), b.clone()]);
        assert_eq!(column.size(), (300.0, a.size().1 + b.size().1 + 24.0));
        assert!(column.standalone().contains("first") && column.inline().contains("second"));
    }

    #[test]
    fn instants_become_seconds() {
        let start = Instant::from_millis(500);
        let samples = [(start, 1.0), (start + Duration::from_millis(250), 2.0)];
        assert_eq!(over_time(start, samples), [(0.0, 1.0), (0.25, 2.0)]);
    }
}
