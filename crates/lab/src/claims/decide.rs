//! What our numbers say to what is claimed of them: each by itself, and all of a claim at once.

use crate::reference::Elsewhere;
use crate::statistics::{Estimate, Known, Measured, holm};
use serde::{Deserialize, Serialize};

/// The chance of a wrong word on any step of a claim stays below this (Holm 1979); of a single step it is what its 95 %
/// interval leaves.
const LEVEL: f64 = 0.05;

/// What a claim says of one number.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// It lies above this.
    Above(f64),
    /// It lies below this.
    Below(f64),
    /// It is this or more.
    AtLeast(f64),
    /// It is this or less.
    AtMost(f64),
    /// It lies at most this far from zero.
    Within(f64),
    /// It is this, give or take a stated tolerance.
    Is(f64, Option<f64>),
}

/// How a step came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As claimed.
    Supported,
    /// Not what our runs are on average, but what one of them may well be.
    OneRun,
    /// The other way round.
    Opposed,
    /// The interval lies on both sides.
    Undecided,
}

/// One number with its test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// What is looked at: `rbuf 16KB to 32KB`.
    pub what: String,
    /// Our number.
    pub ours: Estimate,
    /// What the claim says of it.
    pub test: Test,
    /// Whether it is so.
    pub outcome: Outcome,
    /// Two-sided p-value by Student's t, adjusted for all steps of the claim: of our mean being the printed value, or of
    /// the side on which it lies. None with a single seed.
    pub p: Option<f64>,
    /// Where as many further runs as are behind the printed value are expected.
    pub further: Option<(f64, f64)>,
    /// The adjusted p-value of the printed value being such runs.
    pub further_p: Option<f64>,
    /// What others measured of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Elsewhere>,
}

/// A number of ours before all of its claim are decided.
pub(super) struct Found {
    pub what: String,
    pub ours: Estimate,
    /// How surely it is known; None with a single seed.
    pub known: Option<Known>,
    /// Where further runs are expected, where a printed value has so few behind it.
    pub further: Option<Known>,
    pub elsewhere: Vec<Elsewhere>,
    /// The quantity is an absolute value of what is known.
    pub folded: bool,
    /// Of a difference of two distances: their sum, which lies above zero where the sign of neither turns it round.
    pub turned: Option<Known>,
    /// Others of which one is enough.
    pub instead: Vec<Found>,
    pub test: Test,
}

impl Found {
    /// A number in the unit that `factor` leads to.
    pub fn new(what: String, e: &Measured, factor: f64, test: Test) -> Self {
        let known = e.known().map(|s| s.scaled(factor));
        Found {
            what,
            ours: e.estimate().scaled(factor),
            known,
            further: None,
            elsewhere: Vec::new(),
            folded: false,
            turned: None,
            instead: Vec::new(),
            test,
        }
    }

    /// Any of them: what is shown is the one that speaks most for it.
    pub fn any(mut all: Vec<Found>) -> Option<Self> {
        let for_it = |f: &Found| f.sides().map_or(1.0, |s| s.0);
        let best = (0..all.len()).min_by(|a, b| for_it(&all[*a]).total_cmp(&for_it(&all[*b])))?;
        let first = all.remove(best);
        Some(Found { instead: all, ..first })
    }

    /// Its absolute value, if `fold`.
    pub fn folded(mut self, fold: bool) -> Self {
        self.folded = fold;
        if fold {
            self.ours = self.ours.absolute();
        }
        self
    }

    /// With what others measured.
    pub fn beside(mut self, elsewhere: Vec<Elsewhere>) -> Self {
        self.elsewhere = elsewhere;
        self
    }

    /// The one-sided p-values of what is claimed and of its opposite. Of several of which one is enough, one has to be so
    /// surely that chance among them all is no reason (Bonferroni), and against it must speak each.
    fn sides(&self) -> Option<(f64, f64)> {
        let mut both = self.own_sides()?;
        for other in &self.instead {
            let (a, b) = other.own_sides()?;
            both = (both.0.min(a), both.1.max(b));
        }
        let several = 1 + self.instead.len();
        Some(((both.0 * several as f64).min(1.0), both.1))
    }

    fn own_sides(&self) -> Option<(f64, f64)> {
        let known = self.known.as_ref()?;
        if let Some(value) = known.exact() {
            let so = self.test.of_exact(if self.folded { value.abs() } else { value });
            return Some(if so { (0.0, 1.0) } else { (1.0, 0.0) });
        }
        if let Some(sum) = &self.turned {
            let (a, b) = self.test.sides(known);
            let sure = sum.above(0.0);
            return Some((a.max(sure), b.max(sure)));
        }
        Some(match self.test {
            Test::Above(x) | Test::AtLeast(x) if self.folded => {
                let (within, beyond) = Test::Within(x).sides(known);
                (beyond, within)
            }
            Test::Below(x) | Test::AtMost(x) if self.folded => Test::Within(x).sides(known),
            test => test.sides(known),
        })
    }
}

impl Test {
    /// The one-sided p-values of what is claimed and of its opposite, for a number that has some spread.
    fn sides(self, known: &Known) -> (f64, f64) {
        match self {
            Test::Above(x) | Test::AtLeast(x) => (known.above(x), known.below(x)),
            Test::Below(x) | Test::AtMost(x) => (known.below(x), known.above(x)),
            // Two one-sided tests (Schuirmann 1987).
            Test::Within(x) => (known.above(-x).max(known.below(x)), known.above(x).min(known.below(-x))),
            Test::Is(x, _) => (1.0, known.above(x).min(known.below(x))),
        }
    }

    /// Of a number without any spread.
    fn of_exact(self, value: f64) -> bool {
        match self {
            Test::Above(x) => value > x,
            Test::Below(x) => value < x,
            Test::AtLeast(x) => value >= x,
            Test::AtMost(x) => value <= x,
            Test::Within(x) => value.abs() <= x,
            Test::Is(x, _) => value == x,
        }
    }
}

/// On which side a step lies, if its two-sided p-value tells.
fn side(for_it: f64, against: f64, p: f64) -> Outcome {
    match (p < LEVEL, for_it < against) {
        (false, _) => Outcome::Undecided,
        (true, true) => Outcome::Supported,
        (true, false) => Outcome::Opposed,
    }
}

/// The two-sided p-value of a number being `x`.
fn equal(known: &Known, folded: bool, x: f64) -> f64 {
    let p = |x: f64| match known.exact() {
        Some(value) => f64::from(u8::from(value == x)),
        None => (2.0 * known.above(x).min(known.below(x))).min(1.0),
    };
    if folded { p(x).max(p(-x)) } else { p(x) }
}

/// Decides all steps of a claim at once.
pub(super) fn decide(found: Vec<Found>) -> Vec<Step> {
    let sides: Vec<Option<(f64, f64)>> = found.iter().map(Found::sides).collect();
    let own = |(f, sides): (&Found, &Option<(f64, f64)>)| {
        let known = f.known.as_ref()?;
        match (f.test, sides) {
            (Test::Is(x, _), _) => Some(equal(known, f.folded, x)),
            (_, sides) => sides.map(|(a, b)| (2.0 * a.min(b)).min(1.0)),
        }
    };
    let p = adjusted(found.iter().zip(&sides).map(own));
    let printed = |f: &Found| match f.test {
        Test::Is(x, _) => f.further.as_ref().map(|further| equal(further, f.folded, x)),
        _ => None,
    };
    let further_p = adjusted(found.iter().map(printed));
    let all = found.into_iter().zip(sides).zip(p.into_iter().zip(further_p));
    all.map(|((f, sides), (p, further_p))| step(f, sides, p, further_p)).collect()
}

fn step(f: Found, sides: Option<(f64, f64)>, p: Option<f64>, further_p: Option<f64>) -> Step {
    let outcome = match f.test {
        Test::Is(x, tolerance) => {
            let near = tolerance.is_some_and(|t| (f.ours.mean - x).abs() <= t);
            match (near || p.is_some_and(|p| p >= LEVEL), p, further_p) {
                (true, ..) => Outcome::Supported,
                // A single seed decides nothing but what a stated tolerance covers.
                (false, None, _) => Outcome::Undecided,
                (false, _, Some(p)) if p >= LEVEL => Outcome::OneRun,
                _ => Outcome::Opposed,
            }
        }
        _ => sides.zip(p).map_or(Outcome::Undecided, |((for_it, against), p)| side(for_it, against, p)),
    };
    let fold = |(low, high): (f64, f64)| match f.folded {
        true => {
            Estimate { mean: 0.0, interval: Some((low, high)), seeds: 0 }.absolute().interval.unwrap_or((low, high))
        }
        false => (low, high),
    };
    let further = f.further.map(|s| fold(s.usual()));
    Step { what: f.what, ours: f.ours, test: f.test, outcome, p, further, further_p, elsewhere: f.elsewhere }
}

/// Holm's adjustment of those that there are.
fn adjusted(all: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let all: Vec<Option<f64>> = all.collect();
    let there: Vec<f64> = all.iter().copied().flatten().collect();
    let mut adjusted = holm(&there).into_iter();
    all.into_iter().map(|p| p.and_then(|_| adjusted.next())).collect()
}

#[cfg(test)]
mod tests;
