//! Figures as data: what is drawn over what, and what others printed beside it.

mod check;
mod content;
mod data;
mod draw;
mod map;
mod over_time;
mod pairs;
mod placed;
mod samples;
mod spread;

pub use content::{Content, Sources};
pub use data::{FigureData, Line, Panel, Spot, resolve};
pub(crate) use data::{heading, lacking};
pub use draw::{draw, note, to_csv};
pub use pairs::{Pair, PairData};
pub use samples::SampleData;
pub use spread::Spread;

use crate::claims::OneOrMany;
use crate::quantity::{Compare, Point, Take};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A line with a mark and an interval for each value of `x`.
    #[default]
    Line,
    /// A bar with an interval for each.
    Bars,
    /// The lines as parts of one bar: shares of a whole.
    Stacked,
    /// What the scenario notes over time (its `series`): a line for each flow and path, the mean over the seeds with its
    /// interval as a band, or one seed.
    Series,
    /// How values are distributed: the part of them that is at most as high, or with `tail` that is higher.
    Ecdf,
    /// A box with whiskers for each value of `x`.
    Box,
    /// A mark for each run: one metric over another.
    Scatter,
    /// A coloured cell for each value of `x` and of `y`.
    Heatmap,
}

/// What a distribution is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Samples {
    /// The metric of each run.
    #[default]
    Runs,
    /// Every delay of which the metric is the mean, of all seeds together.
    Delays,
    /// Every bin of what a scenario notes over time, of all seeds together.
    Bins,
}

/// Where values lie on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AxisScale {
    /// Side by side, equally far apart, whatever they are.
    #[default]
    Category,
    /// As far apart as their numbers.
    Numeric,
    /// As far apart as the logarithms of their numbers.
    Log,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A figure, `[[figure]]` in a scenario or in a file of figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Figure {
    /// Name of its files: `impact-throughput`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How it is drawn.
    pub kind: Style,
    /// The scenario; the only one when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Sweep key along the horizontal axis; none in a figure over time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub x: String,
    /// Its values; all of them when not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Name of the horizontal axis; the key when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_name: Option<String>,
    /// Name of the vertical axis; the metric when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_name: Option<String>,
    /// Unit of the vertical axis; the metric's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// One line for each value of this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// One plot for each value of this key, side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panels: Option<String>,
    /// Lines of their own, `[[figure.line]]`; what one leaves out is as the figure has it.
    #[serde(default, rename = "line", skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineSpec>,
    /// The metric, or in a figure over time what is noted: `main.cwnd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Where in the sweep.
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub at: Point,
    /// Keys over whose values the mean is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub average: Vec<String>,
    /// A comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// This percentile over the seeds instead of their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
    /// The median over the seeds of the highest value at the points of `average`, instead of means.
    #[serde(default, skip_serializing_if = "is_false")]
    pub median_of_maxima: bool,
    /// Where values lie on the horizontal axis; categories over a sweep when not given, numbers otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_axis: Option<AxisScale>,
    /// Where values lie on the vertical axis; by their numbers when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_axis: Option<AxisScale>,
    /// Left end of the horizontal axis, in its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_min: Option<f64>,
    /// Right end of the horizontal axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_max: Option<f64>,
    /// Lower end of the vertical axis, in its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_min: Option<f64>,
    /// Upper end of the vertical axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_max: Option<f64>,
    /// In a map: the sweep key along the vertical axis.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub y: String,
    /// In a map: what the colours show; the metric when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z_name: Option<String>,
    /// In a map: how colours follow the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z_axis: Option<AxisScale>,
    /// In a map: the value of the palest colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z_min: Option<f64>,
    /// In a map: the value of the darkest colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z_max: Option<f64>,
    /// Among marks: the metric along the horizontal axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_metric: Option<String>,
    /// Its unit; the metric's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit: Option<String>,
    /// What a distribution is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// Bins before this time do not count: `"10s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Keys whose values are thrown together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<String>,
    /// The part that is higher, on a logarithmic axis.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tail: bool,
    /// Over time: this seed alone instead of the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the paper prints, by value of `x`: `{ "16KB" = 0.0025 }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub printed: BTreeMap<String, f64>,
    /// A sentence below the title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Ids of the claims that it speaks to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<OneOrMany<String>>,
}

/// A line of a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LineSpec {
    /// Its name in the legend.
    pub name: String,
    /// Another scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Another metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Further places in the sweep.
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub at: Point,
    /// Another comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// What the paper prints for this line.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub printed: BTreeMap<String, f64>,
}

/// A file of figures that several scenarios share.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureFile {
    /// The figures.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
}

/// What is wrong with a figure; one line that names it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("figure `{name}`: {what}")]
pub struct FigureError {
    /// Which figure.
    pub name: String,
    /// What is wrong.
    pub what: String,
}

impl Figure {
    /// The lines that are written out; one without a name when there are none.
    fn specs(&self) -> Vec<LineSpec> {
        if !self.lines.is_empty() {
            return self.lines.clone();
        }
        let printed = self.printed.clone();
        let (scenario, metric, compare) = (None, None, None);
        vec![LineSpec { name: String::new(), scenario, metric, at: Point::new(), compare, printed }]
    }

    /// What is taken of the seeds.
    fn take(&self) -> Take {
        match self.percentile {
            Some(p) => Take::Percentile(p),
            None if self.median_of_maxima => Take::MedianOfMaxima,
            None => Take::Mean,
        }
    }

    /// Are the values of `x` placed by their numbers?
    fn placed(&self) -> bool {
        self.kind == Style::Line && matches!(self.x_axis, Some(AxisScale::Numeric | AxisScale::Log))
    }

    /// What a distribution is made of.
    fn of(&self) -> Samples {
        self.samples.unwrap_or_default()
    }

    /// Is it drawn from what the scenario notes over time?
    pub(crate) fn over_time(&self) -> bool {
        self.kind == Style::Series || self.of() == Samples::Bins
    }

    /// The scenario and the metric of each distribution of delays that it draws; the scenario is `None` where there is
    /// only one.
    pub(crate) fn distributions(&self) -> Vec<(Option<String>, String)> {
        if self.of() != Samples::Delays {
            return Vec::new();
        }
        let one = |spec: LineSpec| {
            let scenario = spec.scenario.or(self.scenario.clone());
            Some((scenario, spec.metric.or(self.metric.clone())?))
        };
        self.specs().into_iter().filter_map(one).collect()
    }

    fn log_x(&self) -> bool {
        self.x_axis == Some(AxisScale::Log)
    }

    fn log_y(&self) -> bool {
        self.y_axis == Some(AxisScale::Log)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_axes;
#[cfg(test)]
mod tests_of_kinds;
