//! `[metric]`: metrics that are made of others, `efficiency = "main.goodput / path1.utilisation"`.

use super::plan::{Known, Measure, Of};
use crate::document::{Part, Problem, Value, read as read_keys};
use crate::metrics::in_phase;
use crate::quantity::{Expression, convert, dimension};
use serde::Deserialize;
use std::borrow::Cow;

/// A formula over metrics of flows and cables.
#[derive(Clone, PartialEq, Debug)]
pub struct Derived {
    text: String,
    expression: Expression,
    /// The metrics in it, as they are written there.
    parts: Vec<(String, Measure)>,
    /// From the unit that it comes to to the one in which it is shown.
    factor: f64,
}

impl Derived {
    /// The metrics that it is made of.
    pub fn parts(&self) -> impl Iterator<Item = &Measure> {
        self.parts.iter().map(|p| &p.1)
    }

    /// What it says: two of one name may say different things.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Its value; none where one of its parts has none, or a quotient is one by zero.
    pub fn value(&self, of: &dyn Fn(&Measure) -> Option<f64>) -> Option<f64> {
        let values = self.parts.iter().map(|(name, m)| Some((name, of(m)?))).collect::<Option<Vec<_>>>()?;
        let value = self.expression.value(&|name| values.iter().find(|v| v.0 == name).map(|v| v.1));
        Some(value * self.factor).filter(|v| v.is_finite())
    }
}

/// A metric as the file defines it.
#[derive(Clone, Debug)]
struct Definition {
    name: String,
    is: String,
    unit: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    is: String,
    unit: Option<String>,
}

/// What the file defines.
#[derive(Clone, Debug)]
pub(super) struct Definitions<'t> {
    part: Part<'t>,
    all: Vec<Definition>,
}

/// What its messages call it.
const PLACE: &str = "[metric]";

impl<'t> Definitions<'t> {
    /// Reads the table, and each formula once.
    pub fn read(whole: Part<'t>, known: &mut Known<'_>) -> Result<Self, Problem> {
        let Some(node) = whole.table.get("metric") else { return Ok(Definitions { part: whole, all: Vec::new() }) };
        let table = node.as_table().ok_or_else(|| whole.at("metric", "needs [metric]"))?;
        let part = Part::new(PLACE, table);
        let mut all = Definitions { part, all: Vec::new() };
        for (name, node) in table.iter() {
            let fits = name.starts_with(char::is_alphabetic)
                && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
            if !fits || super::names::COLUMNS.contains(&name) {
                return Err(
                    part.named(name, format!("`{name}`: a name needs a letter, then letters, digits, `-`, `_`"))
                );
            }
            let (is, unit) = match &node.value {
                Value::Text(text) => (text.clone(), None),
                Value::Table(inner) => {
                    let keys: Keys = read_keys(Part::new(&format!("{PLACE} `{name}`"), inner))?;
                    (keys.is, keys.unit)
                }
                _ => return Err(part.at(name, "needs a formula, such as \"main.goodput / path1.utilisation\"")),
            };
            all.all.push(Definition { name: name.to_owned(), is, unit });
        }
        let mut asked = known.clone();
        all.all.iter().try_for_each(|d| all.measure(d, &d.name, None, &mut asked).map(drop))?;
        Ok(all)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|d| d.name.as_str())
    }

    /// The metric that is written `name`, perhaps with a phase, which all in it are of that have none of their own. None
    /// for one that is not defined.
    pub fn find(&self, name: &str, known: &mut Known<'_>) -> Option<Result<Measure, Problem>> {
        let (own, phase) = in_phase(name);
        let d = self.all.iter().find(|d| d.name == own)?;
        Some(self.measure(d, name, phase, known))
    }

    fn measure(
        &self,
        d: &Definition,
        name: &str,
        phase: Option<&str>,
        known: &mut Known<'_>,
    ) -> Result<Measure, Problem> {
        let wrong = |what: String| self.part.at(&d.name, what);
        let parts = self.parts(&d.is, phase, known).map_err(wrong)?;
        let names: Vec<&str> = parts.iter().map(|p| p.0.as_str()).collect();
        let expression = Expression::parse(&d.is, &names).map_err(|e| wrong(e.to_string()))?;
        if parts.is_empty() {
            return Err(wrong("has no metric in it, such as main.goodput".to_owned()));
        }
        let unit_of =
            |name: &str| parts.iter().find(|p| p.0 == name).map_or_else(String::new, |p| p.1.unit.to_string());
        let own = dimension::unit_of(&expression, &unit_of).map_err(wrong)?;
        let (unit, factor) = match (own, &d.unit) {
            (Some(own), None) => (Cow::Borrowed(own), 1.0),
            // What is a number may be of anything.
            (Some(own), Some(unit)) => match convert(own, unit) {
                Some(factor) => (Cow::Owned(unit.clone()), factor),
                None if own.is_empty() => (Cow::Owned(unit.clone()), 1.0),
                None => return Err(wrong(format!("is in {own}, which `{unit}` cannot show"))),
            },
            (None, Some(unit)) => (Cow::Owned(unit.clone()), 1.0),
            (None, None) => {
                let what = "comes to a unit without a name: give it one, as in";
                return Err(wrong(format!("{what} {} = {{ is = \"{}\", unit = \"…\" }}", d.name, d.is)));
            }
        };
        let text = format!("{} in {unit}", d.is);
        let of = Of::Derived(Box::new(Derived { text, expression, parts, factor }));
        Ok(Measure { name: name.to_owned(), unit, of, window: 0 })
    }

    /// The metrics in a formula, each once.
    fn parts(&self, text: &str, phase: Option<&str>, known: &mut Known<'_>) -> Result<Vec<(String, Measure)>, String> {
        let mut all: Vec<(String, Measure)> = Vec::new();
        let (mut at, mut before) = (0, ' ');
        while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = text.get(at..).unwrap_or_default();
            let begins = c.is_alphabetic() || rest.starts_with("*.") && !before.is_alphanumeric();
            if !begins || is_word(before) || before == '.' {
                (at, before) = (at + c.len_utf8(), c);
                continue;
            }
            let taken = match self.longest(rest, phase, known)? {
                Some((name, m)) => {
                    if !all.iter().any(|p| p.0 == name) {
                        all.push((name.to_owned(), m));
                    }
                    name.len()
                }
                None => rest.find(|c| !is_word(c)).unwrap_or(rest.len()).max(c.len_utf8()),
            };
            before = text.get(at..at + taken).and_then(|t| t.chars().next_back()).unwrap_or(' ');
            at += taken;
        }
        Ok(all)
    }

    /// The longest metric with which this begins; none for a word that is none, such as a function.
    fn longest<'r>(
        &self,
        rest: &'r str,
        phase: Option<&str>,
        known: &mut Known<'_>,
    ) -> Result<Option<(&'r str, Measure)>, String> {
        let run = rest.find(|c| !is_word(c) && !matches!(c, '-' | '.' | '*' | '@')).unwrap_or(rest.len());
        let run = rest.get(..run).unwrap_or_default();
        let ends = |at: &usize| !run.get(*at..).unwrap_or_default().starts_with(|c| is_word(c) || c == '@');
        let ends = run.char_indices().map(|(i, _)| i).chain([run.len()]).filter(|i| *i > 0).filter(ends);
        let mut ends: Vec<usize> = ends.collect();
        ends.reverse();
        for end in ends {
            let Some(name) = run.get(..end) else { continue };
            if self.names().any(|n| n == in_phase(name).0) {
                return Err(format!("is made of metrics of flows and cables, and `{name}` is defined itself"));
            }
            if let Ok(m) = known.measure(name, phase) {
                return Ok(Some((name, m)));
            }
        }
        // What looks like one is a mistake in it.
        let alone = run.find(['*', '-']).filter(|at| *at > 0).and_then(|at| run.get(..at)).unwrap_or(run);
        let alone = alone.trim_end_matches('.');
        if alone.contains('.') { known.measure(alone, phase).map(|m| Some((rest, m))) } else { Ok(None) }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
