//! Mistakes in claims, found before anything runs.

use super::{Claim, Kind};
use crate::quantity::{Compare, Expression, check_unit, convert, number_of};
use crate::{joined, metrics, scenario};

/// What is wrong with a claim; one line that names it and says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("claim {id}: {what}")]
pub struct ClaimError {
    /// Which claim.
    pub id: String,
    /// What is wrong.
    pub what: String,
}

impl Claim {
    /// Checks the claim against itself and against what there is: scenarios with the keys they sweep, each with its
    /// values, and the metrics they measure.
    ///
    /// # Errors
    /// [`ClaimError`] names the field.
    pub fn check(&self, scenarios: &[Shape<'_>]) -> Result<(), ClaimError> {
        let all = || {
            let parts = self.parts()?;
            for part in &parts {
                part.fields().and_then(|()| part.names(scenarios))?;
            }
            Claim::one_unit(&parts, scenarios)?;
            for part in parts.iter().filter(|p| !p.any.is_empty()) {
                let all = part.alternatives()?;
                let places = |c: &Claim| (c.at.clone(), c.each.clone(), c.over.clone(), c.values.clone());
                for one in &all {
                    one.fields().and_then(|()| one.names(scenarios)).map_err(|e| format!("`any`: {e}"))?;
                    let bounds = [one.above, one.below, one.at_least, one.at_most];
                    let single = one.kind == Kind::Bound && bounds.iter().flatten().count() == 1;
                    if !single || !one.any.is_empty() || places(one) != places(&all[0]) {
                        return Err("`any`: each is one bound, at the same places".into());
                    }
                }
                Claim::one_unit(&all, scenarios)?;
            }
            let pair = self.compare.as_ref().and_then(Compare::scenarios);
            pair.map_or_else(|| self.conditions(scenarios), |_| Ok(()))
        };
        all().map_err(|what: String| ClaimError { id: self.id.clone(), what })
    }

    /// The numbers of all parts share a column.
    fn one_unit(parts: &[Claim], scenarios: &[Shape<'_>]) -> Result<(), String> {
        let unit = |c: &Claim| {
            if matches!(c.kind, Kind::Ordering | Kind::Formula) {
                return "%".to_owned();
            }
            let relative = c.compare.as_ref().is_some_and(|c| c.how.relative()) || c.kind == Kind::Variation;
            let own = c.metric.as_deref().filter(|_| !relative);
            let own = own.and_then(|m| scenarios.iter().find_map(|s| s.unit(m)));
            c.unit.clone().unwrap_or_else(|| own.unwrap_or_default().to_owned())
        };
        let units: Vec<String> = parts.iter().map(unit).collect();
        match units.windows(2).find(|w| w[0] != w[1]) {
            Some(w) => Err(format!("`and`: its parts have one unit, not `{}` and `{}`", w[0], w[1])),
            None => Ok(()),
        }
    }

    /// Each kind has fields that it needs and others that it does not read.
    fn fields(&self) -> Result<(), String> {
        use Kind as K;
        let kind = self.kind;
        let word = serde_json::to_value(kind).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
        let trend = matches!(kind, K::Increasing | K::Decreasing | K::Shape | K::ShrinkingGain | K::Signs);
        let tested = kind != K::NotTestable;
        let quantity = tested && !matches!(kind, K::Ordering | K::Formula);
        let compared = quantity && kind != K::Inequality;
        let bounded = matches!(kind, K::Bound | K::Variation);
        let means = self.percentile.is_none() && !self.median_of_maxima;
        // Name, given, needed, allowed.
        let table = [
            ("metric", self.metric.is_some(), tested, tested),
            ("scenario", self.scenario.is_some(), false, tested),
            ("at", !self.at.is_empty(), false, tested),
            ("average", !self.average.is_empty(), false, tested),
            ("each", !self.each.is_empty(), false, tested),
            ("over", self.over.is_some(), trend || kind == K::Variation, tested),
            ("values", !self.values.is_empty(), false, self.over.is_some()),
            ("compare", self.compare.is_some(), kind == K::Equal, quantity),
            ("key", self.key.is_some(), kind == K::Ordering, kind == K::Ordering),
            ("order", !self.order.is_empty(), kind == K::Ordering, kind == K::Ordering),
            ("margin", self.margin.is_some(), false, matches!(kind, K::Ordering | K::Inequality)),
            ("turns", !self.turns.is_empty(), kind == K::Shape, kind == K::Shape),
            ("signs", !self.signs.is_empty(), kind == K::Signs, kind == K::Signs),
            ("printed", self.printed.is_some(), kind == K::Value, compared && !trend && kind != K::Variation),
            ("printed-runs", self.printed_runs.is_some(), false, kind == K::Value && means),
            ("conditional", self.conditional.is_some(), false, kind == K::Value),
            (
                "tolerance",
                self.tolerance.is_some(),
                matches!(kind, K::Equal | K::Formula),
                matches!(kind, K::Value | K::Equal | K::Formula),
            ),
            ("percentile", self.percentile.is_some(), false, tested && !self.median_of_maxima),
            ("median-of-maxima", self.median_of_maxima, false, tested),
            ("formula", self.formula.is_some(), kind == K::Formula, kind == K::Formula),
            ("any", !self.any.is_empty(), false, kind == K::Bound),
            ("constants", !self.constants.is_empty(), false, kind == K::Formula),
            ("than", self.than.is_some(), kind == K::Inequality, kind == K::Inequality),
            ("factor", self.factor.is_some(), false, kind == K::Inequality),
            ("above", self.above.is_some(), false, bounded),
            ("below", self.below.is_some(), false, bounded),
            ("at-least", self.at_least.is_some(), false, bounded),
            ("at-most", self.at_most.is_some(), false, bounded),
            ("unit", self.unit.is_some(), false, quantity || kind == K::Formula),
            ("reason", self.reason.is_some(), kind == K::NotTestable, kind == K::NotTestable),
        ];
        for (name, given, needed, allowed) in table {
            if needed && !given {
                return Err(format!("a claim of kind `{word}` needs `{name}`"));
            }
            if given && !allowed {
                return Err(format!("`{name}` says nothing in a claim of kind `{word}`: remove it"));
            }
        }
        let bounds = [self.above, self.below, self.at_least, self.at_most];
        if bounded && bounds.iter().all(Option::is_none) {
            return Err(format!("a claim of kind `{word}` needs `above`, `below`, `at-least` or `at-most`"));
        }
        if self.percentile.is_some_and(|p| !(p > 0.0 && p < 100.0)) {
            return Err("`percentile` lies between 0 and 100".into());
        }
        if self.factor.is_some_and(|f| !(f > 0.0 && f.is_finite())) {
            return Err("`factor` is a number above 0".into());
        }
        if let Some((name, _)) = self.constants.iter().find(|c| c.1.value().is_none()) {
            return Err(format!("`constants`: `{name}` needs a number, alone or as 110ms, 64KB, 10mbit or 1%"));
        }
        if kind == K::Ordering && self.order.len() < 2 {
            return Err("`order` needs two values or more".into());
        }
        let numbers = [self.tolerance, self.margin].into_iter().chain(bounds);
        let printed = self.printed.iter().flat_map(|p| p.all()).copied();
        if numbers.flatten().chain(printed).any(|v| !v.is_finite()) {
            return Err("its numbers must be finite".into());
        }
        if self.printed_runs == Some(0) {
            return Err("`printed-runs` is 1 or more".into());
        }
        if [self.tolerance, self.margin].into_iter().flatten().any(|v| v < 0.0) {
            return Err("`tolerance` and `margin` cannot be negative".into());
        }
        Ok(())
    }

    /// Every name must be one of the scenario's.
    fn names(&self, scenarios: &[Shape<'_>]) -> Result<(), String> {
        if self.kind == Kind::NotTestable {
            return Ok(());
        }
        if let Some(pair) = self.compare.as_ref().and_then(Compare::scenarios) {
            if self.scenario.is_some() {
                return Err("`scenario` says nothing beside a comparison of scenarios: remove it".into());
            }
            let over = self.over.iter().filter(|_| self.values.is_empty());
            let free: Vec<&str> = self.average.iter().chain(over).map(String::as_str).collect();
            return joined::check(pair, scenarios, &free, |s| self.fits(s));
        }
        let named = self.named();
        if let Some(lost) = named.iter().find(|n| !scenarios.iter().any(|s| s.name == n.as_str())) {
            return Err(format!("there is no scenario `{lost}`"));
        }
        let meant = scenarios.iter().filter(|s| named.is_empty() || named.iter().any(|n| n == s.name));
        meant.into_iter().try_for_each(|shape| self.fits(shape))
    }

    /// The claim must be one of each scenario that shows what it hangs on.
    fn conditions(&self, scenarios: &[Shape<'_>]) -> Result<(), String> {
        let Some(c) = &self.conditional else { return Ok(()) };
        let inside = |what: String| format!("`conditional`: {what}");
        let find = |name: &str| {
            let found = scenarios.iter().find(|s| s.name == name);
            found.ok_or_else(|| inside(format!("there is no scenario `{name}`")))
        };
        let Some(key) = &c.key else {
            let names = c.scenario.as_ref().map_or(&[][..], |s| s.all());
            if names.is_empty() || !c.values.is_empty() {
                return Err(inside("needs the sweep `key`, or a scenario for each setting".into()));
            }
            return names.iter().try_for_each(|n| self.under(Some(n), None).fits(find(n)?).map_err(inside));
        };
        let shape = match (c.only(self), scenarios) {
            (Some(name), _) => find(name)?,
            (None, [only]) => only,
            (None, _) => return Err(inside("`scenario` must name the one that sweeps the key".into())),
        };
        let swept = shape.keys.iter().find(|k| k.0 == key).map(|k| k.1).unwrap_or_default();
        let values = if c.values.is_empty() { swept } else { &c.values };
        if values.len() < 2 {
            return Err(inside(format!("`{key}` needs two values or more in scenario `{}`", shape.name)));
        }
        values.iter().try_for_each(|v| self.under(None, Some((key, v))).fits(shape).map_err(inside))
    }

    fn fits(&self, shape: &Shape<'_>) -> Result<(), String> {
        let name = shape.name;
        let metric = self.metric.as_deref().unwrap_or_default();
        if !shape.metrics.contains(&metric) {
            return Err(format!("scenario `{name}` does not measure `{metric}`: add it to `metrics`"));
        }
        self.units(shape, metric)?;
        self.of_b(shape, metric)?;
        let mut spoken: Vec<(&str, &str)> = Vec::new();
        spoken.extend(self.at.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        spoken.extend(self.each.iter().flat_map(|(k, all)| all.iter().map(|v| (k.as_str(), v.as_str()))));
        if let Some(c) = &self.compare {
            spoken.extend([(c.key.as_str(), c.a.as_str()), (c.key.as_str(), c.b.as_str())]);
        }
        if let Some(over) = &self.over {
            spoken.extend(self.values.iter().map(|v| (over.as_str(), v.as_str())));
        }
        if let Some(key) = &self.key {
            spoken.extend(self.order.iter().flat_map(|g| g.all()).map(|v| (key.as_str(), v.as_str())));
        }
        let keys: Vec<&str> = shape.keys.iter().map(|k| k.0).collect();
        let bare = self.average.iter().chain(&self.over).map(String::as_str);
        if let Some(key) = spoken.iter().map(|s| s.0).chain(bare.clone()).find(|k| !keys.contains(k)) {
            return Err(format!("scenario `{name}` does not sweep `{key}`; it sweeps {}", list(&keys)));
        }
        for (key, value) in &spoken {
            let values = shape.keys.iter().find(|k| k.0 == *key).map_or(&[][..], |k| k.1);
            if !values.iter().any(|v| v == value) {
                return Err(format!("scenario `{name}` has no `{key}` of {value}; it has {}", list(values)));
            }
        }
        if let Some(open) = keys.iter().find(|k| !spoken.iter().any(|s| s.0 == **k) && !bare.clone().any(|b| b == **k))
        {
            return Err(format!("it says nothing about `{open}`: name it in `at`, `each`, `over` or `average`"));
        }
        self.lengths(shape)?;
        self.numbers(shape)
    }

    /// The quantity can be shown in the unit asked for, and set against the other metric.
    fn units(&self, shape: &Shape<'_>, metric: &str) -> Result<(), String> {
        let own = shape.unit(metric);
        if self.kind == Kind::Variation {
            let share = self.compare.is_none().then_some("");
            return check_unit(self.unit.as_deref(), "a variation", share, self.compare.as_ref());
        }
        check_unit(self.unit.as_deref(), metric, own, self.compare.as_ref())?;
        let Some(than) = &self.than else { return Ok(()) };
        if !shape.metrics.contains(&than.as_str()) {
            return Err(format!("scenario `{}` does not measure `{than}`: add it to `metrics`", shape.name));
        }
        let (a, b) = (own.unwrap_or_default(), shape.unit(than).unwrap_or_default());
        match convert(b, a) {
            Some(_) => Ok(()),
            None => Err(format!("`than`: `{metric}` and `{than}` do not measure the same, one in `{a}`, one in `{b}`")),
        }
    }

    /// The other side of a comparison may be another metric, of the same kind.
    fn of_b(&self, shape: &Shape<'_>, metric: &str) -> Result<(), String> {
        let Some(other) = self.compare.as_ref().and_then(|c| c.metric_of_b.as_deref()) else { return Ok(()) };
        if !shape.metrics.contains(&other) {
            return Err(format!("scenario `{}` does not measure `{other}`: add it to `metrics`", shape.name));
        }
        let (a, b) = (shape.unit(metric).unwrap_or_default(), shape.unit(other).unwrap_or_default());
        match convert(b, a) {
            Some(_) => Ok(()),
            None => Err(format!(
                "`metric-of-b`: `{metric}` and `{other}` do not measure the same, one in `{a}`, one in `{b}`"
            )),
        }
    }

    /// The formula can be read, and every key in it stands for a number wherever it is asked.
    fn numbers(&self, shape: &Shape<'_>) -> Result<(), String> {
        let Some(text) = &self.formula else { return Ok(()) };
        let wrong = |what: String| format!("`formula`: {what}");
        let keys = shape.keys.iter().map(|k| k.0).filter(|k| !self.average.iter().any(|a| a == k));
        if let Some(name) = self.constants.keys().find(|c| shape.keys.iter().any(|k| k.0 == c.as_str())) {
            return Err(format!("`constants`: scenario `{}` sweeps `{name}` itself", shape.name));
        }
        let known: Vec<&str> = self.constants.keys().map(String::as_str).chain(keys).collect();
        let read = Expression::parse(text, &known).map_err(|e| wrong(format!("it {e}")))?;
        for name in read.names() {
            let swept = shape.keys.iter().find(|k| k.0 == name).map_or(&[][..], |k| k.1);
            let asked = |v: &&String| match (self.at.get(name), self.each.get(name), &self.over) {
                (Some(at), ..) => at == *v,
                (_, Some(each), _) => each.contains(v),
                (.., Some(over)) if over == name && !self.values.is_empty() => self.values.contains(v),
                _ => true,
            };
            if let Some(word) = swept.iter().filter(asked).find(|v| number_of(v).is_none()) {
                return Err(wrong(format!("`{name}` of {word} is no number")));
            }
        }
        Ok(())
    }

    /// Lists along `over` are as long as it has values.
    fn lengths(&self, shape: &Shape<'_>) -> Result<(), String> {
        let along = self.over.as_ref().map_or(1, |over| {
            let all = shape.keys.iter().find(|k| k.0 == over).map_or(0, |k| k.1.len());
            if self.values.is_empty() { all } else { self.values.len() }
        });
        let printed = self.printed.as_ref().map_or(along, |p| p.all().len());
        let listed = self.printed.as_ref().is_some_and(|p| p.all().len() > 1);
        let lists = listed || self.signs.len() > 1 || !self.turns.is_empty();
        if lists && self.values.is_empty() {
            return Err("`values` must say which value of `over` each entry of the list belongs to".into());
        }
        let wanted = [
            ("printed", printed, along),
            ("signs", if self.signs.is_empty() { along } else { self.signs.len() }, along),
            ("turns", if self.turns.is_empty() { along } else { self.turns.len() + 1 }, along),
        ];
        match wanted.iter().find(|w| w.1 != w.2) {
            Some(("turns", ..)) => {
                Err(format!("`turns` needs one entry for each of {} steps", along.saturating_sub(1)))
            }
            Some((name, ..)) => Err(format!("`{name}` needs {along} entries, one for each value")),
            None => Ok(()),
        }
    }
}

/// What a scenario sweeps and measures.
#[derive(Clone, Debug)]
pub struct Shape<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its sweep keys with their values.
    pub keys: Vec<(&'a str, &'a [String])>,
    /// Its metrics.
    pub metrics: Vec<&'a str>,
    /// What it notes over time.
    pub series: Vec<&'a str>,
    /// The units of metrics that it defines itself.
    pub defined: Vec<(&'a str, &'a str)>,
}

impl<'a> Shape<'a> {
    /// The unit of a metric or of what is noted over time.
    pub fn unit(&self, name: &str) -> Option<&'a str> {
        if let Some((_, unit)) = self.defined.iter().find(|d| d.0 == name) {
            return Some(unit);
        }
        if self.metrics.contains(&name) { metrics::unit_of(name) } else { scenario::unit_of(name) }
    }
}

fn list(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests;
