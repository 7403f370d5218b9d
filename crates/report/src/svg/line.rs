//! Lines, steps and points over a common horizontal axis, with bands, error bars and events.

use super::annotate::Annotations;
use super::axis::{Axis, Scale, extent};
use super::canvas::{Anchor, Canvas, Ink};
use super::frame::{Area, EDGE, Glyph, Key, SIZE, below, head, horizontal_axis, left_margin, vertical_axis};
use super::{Drawing, Plot, WIDTH, hover, marks, usable};
use crate::text::text_width;

/// How the points of a series are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Join {
    #[default]
    Line,
    /// A value holds until the next one.
    Steps,
    /// Points are not joined.
    Points,
}

/// One series as it was given.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) color: usize,
    pub(super) join: Join,
    /// Pattern of its line; 0 is a whole one.
    pub(super) dash: usize,
    pub(super) dots: bool,
    /// Its points are outlines.
    pub(super) hollow: bool,
    pub(super) points: Vec<(f64, f64)>,
    /// Low and high end at each point.
    pub(super) band: Vec<(f64, f64)>,
    /// Low and high end at each point.
    pub(super) errors: Vec<(f64, f64)>,
}

/// A plot of one or more series over x: lines, steps, points, bands, error bars, shaded spans, event markers, limits.
///
/// Methods that describe a series (`steps`, `band`, `color`, …) speak of the series added last and do nothing before
/// the first. A value that is NaN or infinite is a gap in its line.
#[derive(Clone, Debug)]
pub struct LinePlot {
    title: String,
    note: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    notes: Annotations,
    width: f64,
    height: f64,
}

impl LinePlot {
    /// An empty plot.
    pub fn new(title: impl Into<String>) -> Self {
        LinePlot {
            title: title.into(),
            note: String::new(),
            x: Axis::default(),
            y: Axis::default(),
            series: Vec::new(),
            notes: Annotations::default(),
            width: WIDTH,
            height: 230.0,
        }
    }
    /// A sentence below the title: what a band means, how values were averaged.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }
    /// Names the horizontal axis.
    #[must_use]
    pub fn x(mut self, name: impl Into<String>, unit: impl Into<String>) -> Self {
        (self.x.name, self.x.unit) = (name.into(), unit.into());
        self
    }
    /// Names the vertical axis.
    #[must_use]
    pub fn y(mut self, name: impl Into<String>, unit: impl Into<String>) -> Self {
        (self.y.name, self.y.unit) = (name.into(), unit.into());
        self
    }
    /// Fixes the ends of the horizontal axis; what lies outside is cut off. Ignored unless `lo < hi`.
    #[must_use]
    pub fn x_range(mut self, lo: f64, hi: f64) -> Self {
        self.x.range = Some((lo, hi));
        self
    }
    /// Fixes the ends of the vertical axis; what lies outside is cut off. Ignored unless `lo < hi`.
    #[must_use]
    pub fn y_range(mut self, lo: f64, hi: f64) -> Self {
        self.y.range = Some((lo, hi));
        self
    }
    /// Fixes one end of the horizontal axis or both; the other is found from the data. What lies outside is cut off.
    #[must_use]
    pub fn x_ends(mut self, lo: Option<f64>, hi: Option<f64>) -> Self {
        self.x.ends = (lo, hi);
        self
    }
    /// Fixes one end of the vertical axis or both; the other is found from the data. What lies outside is cut off.
    #[must_use]
    pub fn y_ends(mut self, lo: Option<f64>, hi: Option<f64>) -> Self {
        self.y.ends = (lo, hi);
        self
    }
    /// Values that have to lie on the horizontal axis beside those that are drawn: what plots side by side share.
    #[must_use]
    pub fn x_cover(mut self, lo: f64, hi: f64) -> Self {
        self.x.cover = Some((lo, hi));
        self
    }
    /// As [`x_cover`](Self::x_cover), of the vertical axis.
    #[must_use]
    pub fn y_cover(mut self, lo: f64, hi: f64) -> Self {
        self.y.cover = Some((lo, hi));
        self
    }
    /// Lets the vertical axis start near the smallest value instead of at zero.
    #[must_use]
    pub fn fit_y(mut self) -> Self {
        self.y.fit = true;
        self
    }
    /// Makes the horizontal axis logarithmic; values that are not positive are left out.
    #[must_use]
    pub fn log_x(mut self) -> Self {
        self.x.log = true;
        self
    }
    /// Powers of two are the round values of a logarithmic horizontal axis: sizes in KB.
    #[must_use]
    pub fn binary_x(mut self) -> Self {
        self.x.binary = true;
        self
    }
    /// Makes the vertical axis logarithmic; values that are not positive are gaps.
    #[must_use]
    pub fn log_y(mut self) -> Self {
        self.y.log = true;
        self
    }
    /// Names at 0, 1, 2, … on the horizontal axis instead of numbers: the settings of a sweep.
    #[must_use]
    pub fn categories<C: Into<String>>(mut self, names: impl IntoIterator<Item = C>) -> Self {
        self.x.names = names.into_iter().map(Into::into).collect();
        self
    }
    /// Width in pixels; 720 by default, at least 240.
    #[must_use]
    pub fn width(mut self, pixels: f64) -> Self {
        self.width = pixels.clamp(240.0, 4_000.0);
        self
    }
    /// Height of the data area in pixels; 230 by default, at least 60.
    #[must_use]
    pub fn height(mut self, pixels: f64) -> Self {
        self.height = pixels.clamp(60.0, 4_000.0);
        self
    }
    /// Adds a line through points `(x, y)`.
    #[must_use]
    pub fn series(mut self, name: impl Into<String>, points: impl AsRef<[(f64, f64)]>) -> Self {
        let color = self.series.len();
        let dash = usize::from(color >= crate::style::PALETTE.len());
        let points = points.as_ref().to_vec();
        self.series.push(Series { name: name.into(), color, dash, points, ..Series::default() });
        self
    }
    /// Adds points that are not joined.
    #[must_use]
    pub fn points(self, name: impl Into<String>, points: impl AsRef<[(f64, f64)]>) -> Self {
        self.series(name, points).last(|s| s.join = Join::Points)
    }
    /// The series holds each value until the next one.
    #[must_use]
    pub fn steps(self) -> Self {
        self.last(|s| s.join = Join::Steps)
    }
    /// The line is dashed.
    #[must_use]
    pub fn dashed(self) -> Self {
        self.last(|s| s.dash = 1)
    }
    /// The line has pattern number `n` of four, of which 0 is a whole line: for lines that carry no marks and must
    /// differ without colours.
    #[must_use]
    pub fn dash(self, n: usize) -> Self {
        self.last(|s| s.dash = n)
    }
    /// Each point of the line carries a mark.
    #[must_use]
    pub fn dots(self) -> Self {
        self.last(|s| s.dots = true)
    }
    /// The marks of the series are outlines: what others measured, beside ours.
    #[must_use]
    pub fn hollow(self) -> Self {
        self.last(|s| s.hollow = true)
    }
    /// The series has color number `n` of the palette (eight, counted from zero), so that a path keeps its color over
    /// several plots.
    #[must_use]
    pub fn color(self, n: usize) -> Self {
        self.last(|s| s.color = n)
    }
    /// A band around the line: low and high end for each point in order.
    #[must_use]
    pub fn band(self, ends: impl AsRef<[(f64, f64)]>) -> Self {
        self.last(|s| s.band = ends.as_ref().to_vec())
    }
    /// Error bars: low and high end for each point in order.
    #[must_use]
    pub fn errors(self, ends: impl AsRef<[(f64, f64)]>) -> Self {
        self.last(|s| s.errors = ends.as_ref().to_vec())
    }
    /// Shades from one x to another ("path cut"); an infinite end is open.
    #[must_use]
    pub fn span(mut self, from: f64, to: f64, label: impl Into<String>) -> Self {
        self.notes.spans.push((from, to, label.into()));
        self
    }
    /// Marks an event at one x by a vertical line.
    #[must_use]
    pub fn marker(mut self, x: f64, label: impl Into<String>) -> Self {
        self.notes.markers.push((x, label.into()));
        self
    }
    /// Marks a value of y by a horizontal line ("latency 300 ms").
    #[must_use]
    pub fn limit(mut self, y: f64, label: impl Into<String>) -> Self {
        self.notes.limits.push((y, label.into()));
        self
    }

    fn last(mut self, change: impl FnOnce(&mut Series)) -> Self {
        if let Some(series) = self.series.last_mut() {
            change(series);
        }
        self
    }

    fn x_scale(&self) -> Scale {
        let values = self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0));
        let mut data = extent(&self.x, values);
        let scattered = self.series.iter().all(|s| s.join == Join::Points || s.dots);
        if scattered && !self.x.log {
            // Room for points that would lie on the edge.
            data = data.map(|(a, b)| (a - (b - a) * 0.03, b + (b - a) * 0.03));
        } else if scattered {
            data = data.map(|(a, b)| (a / (b / a).powf(0.03), b * (b / a).powf(0.03)));
        }
        Scale::new(&self.x, data, false, (self.width / 80.0) as usize)
    }

    fn y_scale(&self) -> Scale {
        let ends = |s: &(f64, f64)| [s.0, s.1];
        let values = self
            .series
            .iter()
            .flat_map(|s| s.points.iter().map(|p| p.1).chain(s.band.iter().chain(&s.errors).flat_map(ends)));
        let limits = self.notes.limits.iter().map(|l| l.0);
        let mut data = extent(&self.y, values.chain(limits));
        if !self.y.fit && !self.y.log {
            data = data.map(|(a, b)| (a.min(0.0), b.max(0.0)));
        }
        Scale::new(&self.y, data, true, (self.height / 45.0) as usize)
    }

    fn keys(&self) -> Vec<Key> {
        let glyph = |s: &Series| match s.join {
            Join::Points => Glyph::Point { hollow: s.hollow },
            _ => Glyph::Line { dash: s.dash, dots: s.dots },
        };
        self.series.iter().map(|s| Key { name: s.name.clone(), color: s.color, glyph: glyph(s) }).collect()
    }

    /// True when some value lies outside the area and has to be cut off.
    fn must_clip(&self, x: &Scale, y: &Scale) -> bool {
        let outside = |s: &Scale, v: f64| usable(v) && !s.shows(v);
        self.series.iter().any(|s| {
            s.points.iter().any(|p| outside(x, p.0) || outside(y, p.1))
                || s.band.iter().chain(&s.errors).any(|e| outside(y, e.0) || outside(y, e.1))
        })
    }
}

impl Plot for LinePlot {
    fn draw(&self) -> Drawing {
        let mut c = Canvas::default();
        let head_end = head(&mut c, self.width, &self.title, &self.note, &self.keys());
        let (x, y) = (self.x_scale(), self.y_scale());
        let (left, right) = (left_margin(&y), self.width - 14.0);
        let x = x.onto(left, right);
        let axis_name = self.y.label();
        let taken = if axis_name.is_empty() { 0.0 } else { EDGE + text_width(&axis_name, SIZE) };
        let labels = self.notes.place(&x, left, right, taken);
        let top = head_end + labels.height();
        let area = Area { left, top, right, bottom: top + self.height };
        let y = y.onto(area.bottom, area.top);

        self.notes.draw_spans(&mut c, area, &x);
        vertical_axis(&mut c, area, &self.y, &y);
        horizontal_axis(&mut c, area, &self.x, &x, self.x.log);
        let clip_end = if self.must_clip(&x, &y) { c.clip(area) } else { "" };
        let drawn = marks::draw(&mut c, &self.series, &x, &y);
        hover::draw(&mut c, area, &self.series, (&self.x, &x), (&self.y, &y), &self.notes);
        marks::draw_points(&mut c, &self.series, (&self.x, &x), (&self.y, &y));
        c.raw(clip_end);
        if !drawn {
            let middle = (area.top + area.bottom) / 2.0;
            c.text(Ink::Soft, (area.left + area.right) / 2.0, middle, Anchor::Middle, "no data");
        }
        self.notes.draw_lines(&mut c, area, &x, &y);
        labels.draw(&mut c, area);
        Drawing { title: self.title.clone(), width: self.width, height: area.bottom + below(&self.x), body: c.out }
    }
}
