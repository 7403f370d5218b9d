//! Mistakes in figures, found before anything runs.

use super::{AxisScale, Figure, FigureError, LineSpec, Style, placed};
use crate::joined;
use crate::quantity::{Compare, check_unit};
use crate::scenario::unit_of;

/// Both ends of an axis that the figure fixes.
fn ends(names: [&str; 2], lo: Option<f64>, hi: Option<f64>, log: bool) -> Result<(), String> {
    for (name, end) in names.iter().zip([lo, hi]) {
        match end {
            Some(v) if !v.is_finite() => return Err(format!("`{name}` is a number")),
            Some(v) if log && v <= 0.0 => {
                return Err(format!("`{name}`: {v} has no place on a logarithmic axis; it is above zero"));
            }
            _ => {}
        }
    }
    match (lo, hi) {
        (Some(lo), Some(hi)) if lo >= hi => Err(format!("`{}` is less than `{}`", names[0], names[1])),
        _ => Ok(()),
    }
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
        if self.percentile.is_some() && self.median_of_maxima {
            return Err("give either `percentile` or `median-of-maxima`, not both".into());
        }
        self.fields()?;
        self.axes()?;
        for spec in self.specs() {
            let compare = spec.compare.as_ref().or(self.compare.as_ref());
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
            ("median-of-maxima", self.median_of_maxima),
            ("printed", !self.printed.is_empty() || self.lines.iter().any(|l| !l.printed.is_empty())),
        ];
        match given.iter().find(|g| g.1) {
            Some((field, _)) => Err(format!("`{field}` has no meaning over time (kind `series`)")),
            None => Ok(()),
        }
    }

    /// What is said of the axes, as far as that does not depend on the scenario.
    fn axes(&self) -> Result<(), String> {
        let bars = matches!(self.kind, Style::Bars | Style::Stacked);
        match (self.x_axis, self.y_axis) {
            (Some(AxisScale::Category), _) if self.kind == Style::Series => {
                return Err("`x-axis`: time has no categories; it is `numeric` or `log`".into());
            }
            (Some(AxisScale::Numeric | AxisScale::Log), _) if bars => {
                return Err("`x-axis`: bars stand side by side; draw a `line` to place values by their numbers".into());
            }
            (_, Some(AxisScale::Category)) => return Err("`y-axis` is `numeric` or `log`".into()),
            (_, Some(AxisScale::Log)) if bars => {
                return Err(
                    "`y-axis`: bars begin at zero, which a logarithmic axis does not have; draw a `line`".into()
                );
            }
            _ => {}
        }
        let by_number = self.placed() || self.kind == Style::Series;
        if (self.x_min.is_some() || self.x_max.is_some()) && !by_number {
            return Err("`x-min` and `x-max` need an `x-axis` that is `numeric` or `log`".into());
        }
        if bars && self.y_min.is_some() {
            return Err("`y-min`: bars begin at zero; `y-max` may cut them off".into());
        }
        ends(["x-min", "x-max"], self.x_min, self.x_max, self.log_x())?;
        ends(["y-min", "y-max"], self.y_min, self.y_max, self.log_y())?;
        match self.y_max {
            Some(hi) if bars && hi <= 0.0 => Err("`y-max`: bars begin at zero, so it is above zero".into()),
            _ => Ok(()),
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
        if self.placed() {
            let all = if self.values.is_empty() { values(&self.x).unwrap_or_default() } else { &self.values };
            let placed = placed::of(all).map_err(|what| format!("`x-axis`: `{}` of {what}", self.x))?;
            if let Some((v, _)) = all.iter().zip(&placed.at).find(|(_, at)| self.log_x() && **at <= 0.0) {
                return Err(format!("`x-axis`: `{}` of {v} has no place on a logarithmic axis", self.x));
            }
        }
        let spoken = |key: &str| pairs.iter().any(|p| p.0 == key) || bare.iter().any(|b| *b == key);
        match shape.keys.iter().find(|k| !spoken(k.0)) {
            Some(open) => Err(format!("it says nothing about `{}`: name it in `at` or `average`", open.0)),
            None => Ok(()),
        }
    }
}
