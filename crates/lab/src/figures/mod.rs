//! Figures as data: what is drawn over what, and what others printed beside it.

mod data;
mod draw;
mod over_time;

pub(crate) use data::heading;
pub use data::{FigureData, Line, Panel, Spot, resolve};
pub(crate) use draw::note;
pub use draw::{draw, to_csv};

use crate::claims::OneOrMany;
use crate::joined;
use crate::quantity::{Compare, Point, check_unit};
use crate::scenario::unit_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A line with a mark and an interval for each value of `x`.
    Line,
    /// A bar with an interval for each.
    Bars,
    /// The lines as parts of one bar: shares of a whole.
    Stacked,
    /// What the scenario notes over time (its `series`): a line for each flow and path, the mean over the seeds with its
    /// interval as a band, or one seed.
    Series,
}

/// A figure, `[[figure]]` in a scenario or in a file of figures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    /// This percentile over the seeds instead of their mean (not with `compare`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
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
    /// Checks the figure against the scenarios.
    ///
    /// # Errors
    /// [`FigureError`] names the field.
    pub fn check(&self, scenarios: &[crate::claims::Shape<'_>]) -> Result<(), FigureError> {
        self.sound(scenarios).map_err(|what| FigureError { name: self.name.clone(), what })
    }

    fn sound(&self, scenarios: &[crate::claims::Shape<'_>]) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.name.is_empty() || self.name.starts_with('.') || !self.name.chars().all(plain) {
            return Err("`name` becomes a file name: letters, digits, `-` and `_` only".into());
        }
        if self.series.is_some() && !self.lines.is_empty() {
            return Err("give either `series` or `[[figure.line]]`, not both".into());
        }
        if self.percentile.is_some_and(|p| !(0.0..=100.0).contains(&p)) {
            return Err("`percentile` lies between 0 and 100".into());
        }
        self.fields()?;
        for spec in self.specs() {
            let compare = spec.compare.as_ref().or(self.compare.as_ref());
            if self.percentile.is_some() && compare.is_some() {
                return Err("`percentile` and `compare` do not go together".into());
            }
            if let Some(pair) = compare.and_then(Compare::scenarios) {
                let axis = Some(&self.x).filter(|_| self.values.is_empty());
                let free = self.average.iter().chain(axis).chain(&self.series).chain(&self.panels);
                let free: Vec<&str> = free.map(String::as_str).collect();
                joined::check(pair, scenarios, &free, |s| self.fits(&spec, compare, s))?;
                continue;
            }
            let name = spec.scenario.as_ref().or(self.scenario.as_ref());
            let shape = match (name, scenarios) {
                (None, [only]) => only,
                (None, _) => return Err("`scenario` must say which".into()),
                (Some(n), all) => {
                    all.iter().find(|s| s.name == n).ok_or_else(|| format!("there is no scenario `{n}`"))?
                }
            };
            self.fits(&spec, compare, shape)?;
        }
        Ok(())
    }

    /// A figure over time and one over a sweep have fields of their own.
    fn fields(&self) -> Result<(), String> {
        if self.kind != Style::Series {
            return match (self.x.is_empty(), self.seed) {
                (true, _) => Err("`x` must name the sweep key along the horizontal axis".into()),
                (_, Some(_)) => Err("`seed` is for figures of kind `series`".into()),
                _ => Ok(()),
            };
        }
        let given = [
            ("x", !self.x.is_empty()),
            ("values", !self.values.is_empty()),
            ("average", !self.average.is_empty()),
            ("compare", self.compare.is_some() || self.lines.iter().any(|l| l.compare.is_some())),
            ("percentile", self.percentile.is_some()),
            ("printed", !self.printed.is_empty() || self.lines.iter().any(|l| !l.printed.is_empty())),
        ];
        match given.iter().find(|g| g.1) {
            Some((field, _)) => Err(format!("`{field}` has no meaning over time (kind `series`)")),
            None => Ok(()),
        }
    }

    fn fits(&self, spec: &LineSpec, compare: Option<&Compare>, shape: &crate::claims::Shape<'_>) -> Result<(), String> {
        let metric = spec.metric.as_ref().or(self.metric.as_ref()).ok_or("`metric` must say what is drawn")?;
        let (there, list) = match self.kind {
            Style::Series => (shape.series.contains(&metric.as_str()), "series"),
            _ => (shape.metrics.contains(&metric.as_str()), "metrics"),
        };
        if !there {
            return Err(format!("scenario `{}` does not measure `{metric}`: add it to `{list}`", shape.name));
        }
        let unit = if self.kind == Style::Series { unit_of(metric) } else { shape.unit(metric) };
        check_unit(self.unit.as_deref(), metric, unit, compare)?;
        let values = |key: &str| shape.keys.iter().find(|k| k.0 == key).map(|k| k.1);
        let mut pairs: Vec<(&String, &String)> = self.at.iter().chain(&spec.at).collect();
        pairs.extend(compare.into_iter().flat_map(|c| [(&c.key, &c.a), (&c.key, &c.b)]));
        pairs.extend(self.values.iter().chain(self.printed.keys()).chain(spec.printed.keys()).map(|v| (&self.x, v)));
        let bare: Vec<&String> = self
            .average
            .iter()
            .chain(Some(&self.x).filter(|x| !x.is_empty()))
            .chain(&self.series)
            .chain(&self.panels)
            .collect();
        for key in pairs.iter().map(|p| p.0).chain(bare.iter().copied()) {
            values(key).ok_or_else(|| format!("scenario `{}` does not sweep `{key}`", shape.name))?;
        }
        if let Some((key, value)) = pairs.iter().find(|(k, v)| values(k).is_some_and(|all| !all.contains(v))) {
            return Err(format!("scenario `{}` has no `{key}` of {value}", shape.name));
        }
        let spoken = |key: &str| pairs.iter().any(|p| p.0 == key) || bare.iter().any(|b| *b == key);
        match shape.keys.iter().find(|k| !spoken(k.0)) {
            Some(open) => Err(format!("it says nothing about `{}`: name it in `at` or `average`", open.0)),
            None => Ok(()),
        }
    }

    /// The lines that are written out; one without a name when there are none.
    fn specs(&self) -> Vec<LineSpec> {
        if !self.lines.is_empty() {
            return self.lines.clone();
        }
        let printed = self.printed.clone();
        let (scenario, metric, compare) = (None, None, None);
        vec![LineSpec { name: String::new(), scenario, metric, at: Point::new(), compare, printed }]
    }
}

#[cfg(test)]
mod tests;
