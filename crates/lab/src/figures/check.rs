//! Mistakes in figures, found before anything runs.

use super::{AxisScale, Figure, FigureError, LineSpec, Samples, Style, placed};
use crate::joined;
use crate::metrics::{FlowMetric, Repair, in_phase, parted};
use crate::quantity::{Compare, check_unit};
use crate::scenario::unit_of;
use anabranch_sim::netem::units;

/// Kinds of figures as one reads them: `line`, `bars` or `stacked`.
fn kinds(all: &[Style]) -> String {
    let word =
        |s: &Style| serde_json::to_value(s).ok().and_then(|v| Some(format!("`{}`", v.as_str()?))).unwrap_or_default();
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            let rest: Vec<String> = rest.iter().map(word).collect();
            format!("{} or {}", rest.join(", "), word(last))
        }
        _ => all.iter().map(word).collect(),
    }
}

/// Is the metric the mean of delays, whose distribution the runs can keep?
fn is_delay(metric: &str) -> bool {
    let named = parted(in_phase(metric).0).and_then(|(_, m)| FlowMetric::named(m).ok());
    matches!(named, Some((FlowMetric::Mean(_) | FlowMetric::Repair(Repair::Mean(_)), _)))
}

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

    /// Each kind has fields that it needs and others that it does not read.
    fn fields(&self) -> Result<(), String> {
        use Style as S;
        let sweep = [S::Line, S::Bars, S::Stacked, S::Heatmap].as_slice();
        let slots = [S::Line, S::Bars, S::Stacked, S::Box, S::Heatmap].as_slice();
        let spread = [S::Ecdf, S::Box].as_slice();
        let map = [S::Heatmap].as_slice();
        let of = |given: &dyn Fn(&LineSpec) -> bool| self.lines.iter().any(given);
        // Name, given, the kinds that read it.
        let table = [
            ("x", !self.x.is_empty(), slots),
            ("values", !self.values.is_empty(), slots),
            (
                "average",
                !self.average.is_empty(),
                &[S::Line, S::Bars, S::Stacked, S::Heatmap, S::Ecdf, S::Box, S::Scatter],
            ),
            ("compare", self.compare.is_some() || of(&|l| l.compare.is_some()), sweep),
            ("percentile", self.percentile.is_some(), sweep),
            ("median-of-maxima", self.median_of_maxima, sweep),
            ("printed", !self.printed.is_empty() || of(&|l| !l.printed.is_empty()), &[S::Line, S::Bars, S::Stacked]),
            ("seed", self.seed.is_some(), &[S::Series]),
            ("y", !self.y.is_empty(), map),
            ("z-name", self.z_name.is_some(), map),
            ("z-axis", self.z_axis.is_some(), map),
            ("z-min", self.z_min.is_some(), map),
            ("z-max", self.z_max.is_some(), map),
            ("x-metric", self.x_metric.is_some(), &[S::Scatter]),
            ("x-unit", self.x_unit.is_some(), &[S::Scatter]),
            ("samples", self.samples.is_some(), spread),
            ("from", self.from.is_some(), spread),
            ("pool", !self.pool.is_empty(), &[S::Ecdf, S::Box, S::Scatter]),
            ("tail", self.tail, &[S::Ecdf]),
        ];
        for (name, given, read_by) in table {
            if given && !read_by.contains(&self.kind) {
                return Err(match self.kind {
                    S::Series => format!("`{name}` has no meaning over time (kind `series`)"),
                    _ => format!("`{name}` is for figures of kind {}", kinds(read_by)),
                });
            }
        }
        if slots.contains(&self.kind) && self.x.is_empty() {
            return Err("`x` must name the sweep key along the horizontal axis".into());
        }
        match self.kind {
            S::Heatmap if self.series.is_some() || !self.lines.is_empty() => {
                Err("`series` and `[[figure.line]]` have no meaning in a map; it has `x`, `y` and `panels`".into())
            }
            S::Heatmap if self.y.is_empty() => Err("`y` must name the sweep key along the vertical axis".into()),
            S::Heatmap if self.y == self.x => Err(format!("`x` and `y` are both `{}`", self.x)),
            S::Scatter if self.x_metric.is_none() => {
                Err("`x-metric` must name the metric along the horizontal axis".into())
            }
            _ => self.samples(),
        }
    }

    /// What a distribution is made of.
    fn samples(&self) -> Result<(), String> {
        if !self.average.is_empty() && self.of() != Samples::Runs {
            return Err("`average` is of runs: name keys whose delays or bins are thrown together in `pool`".into());
        }
        match &self.from {
            Some(_) if self.of() != Samples::Bins => Err("`from` needs `samples = \"bins\"`".into()),
            Some(from) => units::time(from).map(drop).map_err(|e| format!("`from`: {e}")),
            None => Ok(()),
        }
    }

    /// What is said of the axes, as far as that does not depend on the scenario.
    fn axes(&self) -> Result<(), String> {
        let bars = matches!(self.kind, Style::Bars | Style::Stacked);
        let numbers = matches!(self.kind, Style::Series | Style::Ecdf | Style::Scatter);
        match (self.x_axis, self.y_axis) {
            (Some(AxisScale::Category), _) if numbers => {
                return Err("`x-axis`: there are numbers along it; it is `numeric` or `log`".into());
            }
            (Some(AxisScale::Numeric | AxisScale::Log), _) if !numbers && self.kind != Style::Line => {
                let what = "side by side; draw a `line` to place values by their numbers";
                return Err(format!("`x-axis`: values of a sweep lie {what}"));
            }
            (_, Some(_)) if self.kind == Style::Ecdf => {
                return Err("`y-axis`: a distribution goes from 0 to 1; `tail = true` makes it logarithmic".into());
            }
            (_, Some(_)) if self.kind == Style::Heatmap => {
                return Err("`y-axis`: values of a sweep lie side by side; `z-axis` is that of the colours".into());
            }
            (_, Some(AxisScale::Category)) => return Err("`y-axis` is `numeric` or `log`".into()),
            (_, Some(AxisScale::Log)) if bars => {
                return Err(
                    "`y-axis`: bars begin at zero, which a logarithmic axis does not have; draw a `line`".into()
                );
            }
            _ => {}
        }
        let by_number = self.placed() || numbers;
        if (self.x_min.is_some() || self.x_max.is_some()) && !by_number {
            return Err("`x-min` and `x-max` need an `x-axis` that is `numeric` or `log`".into());
        }
        if bars && self.y_min.is_some() {
            return Err("`y-min`: bars begin at zero; `y-max` may cut them off".into());
        }
        if self.kind == Style::Heatmap && (self.y_min.is_some() || self.y_max.is_some()) {
            return Err(
                "`y-min` and `y-max` have no meaning in a map; `z-min` and `z-max` are those of the colours".into()
            );
        }
        if self.z_axis == Some(AxisScale::Category) {
            return Err("`z-axis` is `numeric` or `log`".into());
        }
        ends(["z-min", "z-max"], self.z_min, self.z_max, self.z_axis == Some(AxisScale::Log))?;
        ends(["x-min", "x-max"], self.x_min, self.x_max, self.log_x())?;
        ends(["y-min", "y-max"], self.y_min, self.y_max, self.log_y() || self.tail)?;
        match self.y_max {
            Some(hi) if bars && hi <= 0.0 => Err("`y-max`: bars begin at zero, so it is above zero".into()),
            _ => Ok(()),
        }
    }

    fn fits(&self, spec: &LineSpec, compare: Option<&Compare>, shape: &crate::claims::Shape<'_>) -> Result<(), String> {
        let metric = spec.metric.as_ref().or(self.metric.as_ref()).ok_or("`metric` must say what is drawn")?;
        let known = |metric: &String| {
            let (there, list) = match self.over_time() {
                true => (shape.series.contains(&metric.as_str()), "series"),
                false => (shape.metrics.contains(&metric.as_str()), "metrics"),
            };
            let lacks = || format!("scenario `{}` does not measure `{metric}`: add it to `{list}`", shape.name);
            if there { Ok(()) } else { Err(lacks()) }
        };
        known(metric)?;
        if let Some(x) = &self.x_metric {
            known(x).map_err(|e| format!("`x-metric`: {e}"))?;
            check_unit(self.x_unit.as_deref(), x, shape.unit(x), None).map_err(|e| format!("`x-metric`: {e}"))?;
        }
        if self.of() == Samples::Delays && !is_delay(metric) {
            let such = "the mean of a delay, such as `main.delay`, `main.message-delay` or `main.repair1-delay`";
            return Err(format!("`samples`: `{metric}` is not {such}"));
        }
        let unit = if self.over_time() { unit_of(metric) } else { shape.unit(metric) };
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
            .chain(&self.pool)
            .chain(Some(&self.y).filter(|y| !y.is_empty()))
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
            Some(open) => {
                let more = match self.kind {
                    Style::Ecdf | Style::Box | Style::Scatter => ", or in `pool`",
                    _ => "",
                };
                Err(format!("it says nothing about `{}`: name it in `at` or `average`{more}", open.0))
            }
            None => Ok(()),
        }
    }
}
