//! Claims that hang on what the paper does not state.

use super::judge::plain;
use super::{Claim, OneOrMany, Outcome, Step, Test, Verdict};
use crate::numbers::interval_text;
use crate::quantity::values_of;
use crate::results::Results;
use serde::{Deserialize, Serialize};

/// `conditional = { on = "segment size of the background", scenario = "segments", key = "segment" }`: what the paper does
/// not state, and where its values are swept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Conditional {
    /// What it is, in words.
    pub on: String,
    /// The scenario that sweeps it, or without `key` one for each setting; the claim's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<OneOrMany<String>>,
    /// The sweep key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its values; all that the scenario sweeps when not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Claim {
    /// The claim in another scenario, or at a value of a key.
    pub(super) fn under(&self, scenario: Option<&str>, at: Option<(&str, &str)>) -> Claim {
        let mut claim = Claim { conditional: None, ..self.clone() };
        if let Some(name) = scenario {
            claim.scenario = Some(OneOrMany::One(name.to_owned()));
        }
        claim.at.extend(at.map(|(key, value)| (key.to_owned(), value.to_owned())));
        claim
    }
}

impl Conditional {
    /// The one scenario that sweeps its key.
    pub(super) fn only<'a>(&'a self, claim: &'a Claim) -> Option<&'a str> {
        match self.scenario.as_ref().or(claim.scenario.as_ref())?.all() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Each setting with its name and the claim there.
    fn settings(&self, claim: &Claim, results: &Results) -> Vec<(String, Claim)> {
        let Some(key) = &self.key else {
            let names = self.scenario.as_ref().map_or(&[][..], |s| s.all());
            return names.iter().map(|n| (n.clone(), claim.under(Some(n), None))).collect();
        };
        let scenario = self.only(claim);
        let table = results.tables.iter().find(|t| scenario.is_none_or(|s| t.scenario == s));
        let swept = table.map(|t| values_of(t, key)).unwrap_or_default();
        let values = if self.values.is_empty() { swept } else { self.values.clone() };
        let named = scenario.filter(|_| self.scenario.is_some());
        values.into_iter().map(|v| (v.clone(), claim.under(named, Some((key, &v))))).collect()
    }
}

/// The verdict when values of what is not stated are swept: `main` is that of the value which all else was run with.
pub(super) fn weigh(claim: &Claim, c: &Conditional, results: &Results, main: (Verdict, String)) -> (Verdict, String) {
    let on = &c.on;
    let what = c.key.as_deref().unwrap_or("scenario");
    let (mut inside, mut outside, mut numbers, mut above) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, there) in c.settings(claim, results) {
        let (verdict, steps, unit) = plain(&there, results);
        match verdict {
            Verdict::Reproduced | Verdict::Compatible => inside.push(name.clone()),
            Verdict::Contradicted => outside.push(name.clone()),
            Verdict::Conditional | Verdict::NotTestable => continue,
        }
        numbers.push(format!("{name}: {}", ours(&steps, &unit)));
        if let [Step { test: Test::Is(x, _), ours, .. }] = steps.as_slice() {
            above.push((name, ours.mean > *x));
        }
    }
    let between = c.key.as_ref().and_then(|_| above.windows(2).find(|w| w[0].1 != w[1].1));
    let (verdict, reason) = main;
    let sweep = format!("{what} {}", numbers.join("; "));
    match (verdict, inside.is_empty(), outside.is_empty()) {
        (Verdict::Contradicted, true, true) => {
            let why = format!("it hangs on {on}, which the paper does not state, and no runs show other values of it");
            (Verdict::NotTestable, why)
        }
        (Verdict::NotTestable, ..) | (_, true, true) => (verdict, reason),
        (Verdict::Contradicted, true, false) if between.is_some() => {
            let [from, to] = [0, 1].map(|i| between.and_then(|w| w.get(i)).map_or("", |s| s.0.as_str()));
            let why = format!(
                "it hangs on {on}, which the paper does not state: the printed value is among ours at no value that was \
                 run, but lies between those at {what} {from} and {to} ({sweep}); in the main runs {reason}"
            );
            (Verdict::Conditional, why)
        }
        (Verdict::Contradicted, true, false) => {
            (verdict, format!("{reason}; nor does any value of {on}, which the paper does not state, help ({sweep})"))
        }
        (Verdict::Reproduced | Verdict::Compatible, false, true) => {
            (verdict, format!("{reason}; so it is with every value of {on}, which the paper does not state ({sweep})"))
        }
        _ => {
            let list = |names: &[String]| match names {
                [] => "none of them".to_owned(),
                names => format!("{what} {}", names.join(", ")),
            };
            let (inside, outside) = (list(&inside), list(&outside));
            let why = format!(
                "it hangs on {on}, which the paper does not state: the printed value is among ours at {inside} and not \
                 at {outside} ({sweep}); in the main runs {reason}"
            );
            (Verdict::Conditional, why)
        }
    }
}

/// What came out at one setting.
fn ours(steps: &[Step], unit: &str) -> String {
    match steps {
        [one] if unit.is_empty() => interval_text(&one.ours),
        [one] => format!("{} {unit}", interval_text(&one.ours)),
        all => {
            let inside = all.iter().filter(|s| s.outcome != Outcome::Opposed).count();
            format!("{inside} of {} inside", all.len())
        }
    }
}
