//! What a paper claims, as data, and the verdict of our runs on it.
//!
//! A claim turns into steps: one number of ours each, with its 95 % interval, and what the claim says of it. All steps of
//! a claim are decided together, so that more of them do not make a wrong word likelier (Holm). The rules:
//!
//! * a printed **value** is reproduced when it lies inside our interval, or within the tolerance that the claim's
//!   specification states. One that comes from so many runs (`printed-runs`) is compatible with those when it lies where
//!   as many further ones are expected; otherwise it is contradicted;
//! * where it hangs on what the paper does not state, and lies among ours at some values of it and not at others, the
//!   claim is **conditional**;
//! * an **ordering**, a **trend**, a sign, a bound or an equality is reproduced when the interval of every step lies on
//!   the claimed side, contradicted when that of some step lies wholly on the other side, and otherwise undecided, which
//!   counts as not testable with these runs;
//! * what our runs cannot show is **not testable**, with the reason;
//! * a form that is not full gives no verdict.

mod check;
mod conditional;
mod csv;
mod decide;
mod judge;
mod parts;
mod steps;
mod words;

pub use check::{ClaimError, Shape};
pub use conditional::Conditional;
pub use csv::to_csv;
pub use decide::{Outcome, Step, Test};
pub use judge::{Judgement, Verdict, judge};

use crate::quantity::{Compare, Point, Take, number_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The rules by which verdicts are given, for people.
pub const RULES: &str = "\
A printed value is reproduced when it lies inside our 95 % interval of the mean (or within a tolerance where the claim \
states one). One that comes from a single run is held against single runs of ours as well: it is compatible with one run \
when it lies where a further run would, with a probability of 95 %, and contradicted otherwise. Where it hangs on what the \
paper does not state and agrees with some values of that alone, the claim is conditional. An ordering or a trend is judged \
step by step, by differences paired by seed: reproduced when every step lies on the claimed side for sure, contradicted \
when some step lies on the other side for sure. When a step may lie on both sides the runs do not decide, and the claim \
counts as not testable here. Sure means a chance of 5 % at most for a wrong word on any step of the claim: Student's t, \
adjusted by Holm's rule where there are several. A quick form, and one with other seeds than the scenario's own, gives no \
verdict.";

/// A list that may be written as a single word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// A single one.
    One(T),
    /// Several values.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// All of them.
    pub fn all(&self) -> &[T] {
        match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        }
    }
}

/// What a claim says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `printed`: the quantity has this value, or these values over `over`.
    Value,
    /// `key` and `order`: the metric is highest for the first of `order`, then the next; `margin` is how far a step may
    /// fall behind and still count (non-inferiority; with 0, each is at least the next).
    Ordering,
    /// The quantity rises with `over`.
    Increasing,
    /// The quantity falls with `over`.
    Decreasing,
    /// `turns`: up or down from each value of `over` to the next.
    Shape,
    /// What each value of `over` adds to the one before grows ever smaller.
    ShrinkingGain,
    /// `signs`: of the quantity at each value of `over`.
    Signs,
    /// `above` or `below`: the quantity lies beyond it; `at-least` or `at-most`: or is equal to it.
    Bound,
    /// `tolerance`: the quantity is zero within it.
    Equal,
    /// `formula` and `tolerance`: the metric is what the formula gives, within so many per cent of that.
    Formula,
    /// `than` and `factor`: the metric is higher than so many times another metric of the same runs.
    Inequality,
    /// A bound on the coefficient of variation of the metric over `over`.
    Variation,
    /// `reason`: why nothing here can show it.
    NotTestable,
}

/// One turn of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// The next value is higher.
    Up,
    /// The next value is lower.
    Down,
}

/// A sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Above zero.
    Positive,
    /// Not above zero.
    NotPositive,
}

/// A number of a formula, as it is or with a unit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Constant {
    /// As it is.
    Number(f64),
    /// With its unit: `"110ms"`, `"64KB"`.
    Text(String),
}

impl Constant {
    /// In seconds, bytes, bits a second or as a fraction of one; none for a word.
    pub fn value(&self) -> Option<f64> {
        match self {
            Constant::Number(v) => Some(*v).filter(|v| v.is_finite()),
            Constant::Text(text) => number_of(text),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A claim of a paper, `[[claim]]` in a scenario or in a file of claims.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Claim {
    /// Its id: `RTXCSI-C10`.
    pub id: String,
    /// What it says, in words.
    pub says: String,
    /// What it says, as data.
    pub kind: Kind,
    /// The scenario or scenarios it speaks about; all that the file holds when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<OneOrMany<String>>,
    /// The metric: `main.goodput`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Where in the sweep: `{ rbuf = "16KB" }`.
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub at: Point,
    /// Keys over whose values the mean is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub average: Vec<String>,
    /// The claim holds at each of these: `{ policy = ["rtx_csi", "rtx_cwnd"] }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub each: BTreeMap<String, Vec<String>>,
    /// Key along which values, trends and orderings are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// The values of `over`; all that the scenario sweeps when not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Makes a comparison the quantity: `{ key = "policy", a = "rtx_csi", b = "rtx_cwnd", as = "advantage" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// The key whose values are ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its values, highest first; those in a list within have no order among themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<OneOrMany<String>>,
    /// For a shape.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// For signs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<Sign>,
    /// The printed value, or one for each value of `over`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<OneOrMany<f64>>,
    /// The unit of `printed`, `tolerance` and bounds; the quantity's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// How many runs are behind each printed value; without it they are held against our means alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed_runs: Option<u32>,
    /// What the paper does not state and the printed value hangs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditional: Option<Conditional>,
    /// How far a value may be off, in `unit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// How far a step of an ordering may fall behind, in per cent of what it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// This percentile over the seeds in place of their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
    /// The median over the seeds of the highest value at the points of `average`, in place of means.
    #[serde(default, skip_serializing_if = "is_false")]
    pub median_of_maxima: bool,
    /// For a formula: over the sweep's keys and `constants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// Names of its numbers: `{ mss = 1460, rtt = "110ms" }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, Constant>,
    /// For an inequality: the metric that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub than: Option<String>,
    /// How many times that one; 1 when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// For a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// For a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// For a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// For a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// What it says beside that, each as the claim's keys that differ; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub and: Vec<serde_json::Map<String, serde_json::Value>>,
    /// For a bound: others of which one is enough at each place, each as the claim's keys that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Why it is not testable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a reader has to know: a contradiction in the paper, a reading of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What holds for all claims of a file that do not say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Defaults {
    /// How many runs are behind each printed value.
    #[serde(default)]
    pub printed_runs: Option<u32>,
}

impl Claim {
    /// The claim about this scenario, unless it says about which it is.
    pub(crate) fn about(&self, scenario: &str) -> Claim {
        let mut claim = self.clone();
        let pair = self.compare.as_ref().and_then(Compare::scenarios);
        if self.kind != Kind::NotTestable && pair.is_none() && claim.scenario.is_none() {
            claim.scenario = Some(OneOrMany::One(scenario.to_owned()));
        }
        claim
    }

    /// What it speaks of is an absolute value.
    fn is_folded(&self) -> bool {
        self.compare.as_ref().is_some_and(|c| c.how.folded())
    }

    /// What is taken of the seeds.
    fn take(&self) -> Take {
        match self.percentile {
            Some(p) => Take::Percentile(p),
            None if self.median_of_maxima => Take::MedianOfMaxima,
            None => Take::Mean,
        }
    }
}

impl Defaults {
    /// Puts them into a claim.
    pub(crate) fn fill(self, claim: &mut Claim) {
        if claim.kind == Kind::Value && claim.printed_runs.is_none() && claim.take() == Take::Mean {
            claim.printed_runs = self.printed_runs;
        }
    }
}

/// A file of claims that several scenarios share.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimFile {
    /// What holds for all of them.
    #[serde(default)]
    pub defaults: Defaults,
    /// The claims.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
}
