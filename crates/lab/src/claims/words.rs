//! What a paper prints, and why a verdict is what it is, in words.

use super::{Claim, Kind, OneOrMany, Outcome, Sign, Step, Test, Turn};
use crate::numbers::{interval_text, number_text};

pub(super) fn supported(claim: &Claim, n: usize) -> String {
    match (claim.kind, n) {
        (Kind::Value, 1) => "the printed value lies inside our interval".to_owned(),
        (Kind::Value, 2) => "both printed values lie inside our intervals".to_owned(),
        (Kind::Value, n) => format!("all {n} printed values lie inside our intervals"),
        (_, 1) => "our interval lies on the claimed side".to_owned(),
        (_, n) => format!("our intervals lie on the claimed side at all {n} steps"),
    }
}

/// Printed values that lie beyond our intervals, but where further runs may come to.
pub(super) fn further(claim: &Claim, steps: &[Step], unit: &str) -> String {
    let runs = match claim.printed_runs {
        Some(n) if n > 1 => format!("the mean of {n} further runs"),
        _ => "one further run".to_owned(),
    };
    match steps {
        [Step { further: Some((low, high)), .. }] => {
            let [low, high] = [low, high].map(|v| number_text(*v));
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            format!(
                "the printed value lies outside our interval of the mean, but within {low} to {high}{unit}, where {runs} would lie"
            )
        }
        all => {
            let n = all.iter().filter(|s| s.outcome == Outcome::OneRun).count();
            format!(
                "{n} of {} printed values lie outside our intervals of the mean, but where {runs} would lie",
                all.len()
            )
        }
    }
}

pub(super) fn share(count: usize, n: usize, claim: &Claim, undecided: bool) -> String {
    let head = if n == 1 { String::new() } else { format!("{count} of {n}: ") };
    let tail = match (claim.kind, undecided) {
        (Kind::Value, false) => "the printed value lies outside our interval",
        (Kind::Value, true) => "one seed alone gives no interval",
        (_, false) => "our interval lies on the other side",
        (_, true) => "undecided, our interval lies on both sides",
    };
    format!("{head}{tail}")
}

pub(super) fn described(step: &Step, unit: &str) -> String {
    let join = |text: String| if unit.is_empty() { text } else { format!("{text} {unit}") };
    let ours = join(interval_text(&step.ours));
    let printed = match step.test {
        Test::Is(x, _) => format!(", printed {}", join(number_text(x))),
        _ => String::new(),
    };
    format!("{} ours {ours}{printed}", step.what)
}

/// For comparisons that miss their printed value: does at least the sign agree?
pub(super) fn signs(claim: &Claim, steps: &[Step]) -> Option<String> {
    claim.compare.as_ref().filter(|c| !c.how.folded())?;
    let missed = |s: &&Step| s.outcome == Outcome::Opposed && matches!(s.test, Test::Is(x, _) if x != 0.0);
    let mut words = steps.iter().filter(missed).map(|s| {
        let Test::Is(x, _) = s.test else { return "" };
        match s.ours.interval {
            Some((low, high)) if (low > 0.0 && x > 0.0) || (high < 0.0 && x < 0.0) => "the sign agrees",
            Some((low, high)) if low > 0.0 || high < 0.0 => "the sign is the other one",
            _ => "the sign of ours is not sure",
        }
    });
    let first = words.next()?;
    words.all(|w| w == first).then(|| first.to_owned())
}

/// For whom the numbers of a paper are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// With their unit, a true minus and as many digits as one reads.
    People,
    /// As they are.
    Machines,
}

impl For {
    fn number(self, v: f64, unit: &str) -> String {
        match self {
            For::Machines => v.to_string(),
            For::People if unit.is_empty() => number_text(v),
            For::People => format!("{} {unit}", number_text(v)),
        }
    }

    fn pick(self, people: &'static str, machines: &'static str) -> &'static str {
        if self == For::People { people } else { machines }
    }
}

/// What the paper prints, of all parts of a claim.
pub(super) fn printed_of_all(claim: &Claim, unit: &str, whom: For) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in claim.parts().unwrap_or_default().iter().map(|p| printed_of_any(p, unit, whom)) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join("; ")
}

/// Of one part: what it or another one of its `any` must come to.
fn printed_of_any(claim: &Claim, unit: &str, whom: For) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in claim.alternatives().unwrap_or_default().iter().map(|c| printed(c, unit, whom)) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join(" or ")
}

/// What the paper prints, in few words.
fn printed(claim: &Claim, unit: &str, whom: For) -> String {
    let order = |sign: &str| {
        let group = |g: &OneOrMany<String>| g.all().join(", ");
        claim.order.iter().map(group).collect::<Vec<_>>().join(sign)
    };
    let turn = |t: &Turn| if *t == Turn::Up { "up" } else { "down" };
    let bound = |word: &str, x: Option<f64>| x.map(|x| format!("{word} {}", whom.number(x, unit)));
    match claim.kind {
        Kind::Value => {
            let all = claim.printed.iter().flat_map(|p| p.all());
            all.map(|v| whom.number(*v, unit)).collect::<Vec<_>>().join("; ")
        }
        Kind::NotTestable => String::new(),
        Kind::Ordering => match (claim.margin, whom) {
            (Some(0.0), _) => order(whom.pick(" \u{2265} ", " >= ")),
            (Some(m), For::People) => format!("{} (by no less than \u{2212}{} %)", order(" > "), number_text(m)),
            (Some(m), For::Machines) => format!("{} -{m}", order(" > ")),
            (None, _) => order(" > "),
        },
        Kind::Increasing => "increasing".to_owned(),
        Kind::Decreasing => "decreasing".to_owned(),
        Kind::Shape => claim.turns.iter().map(turn).collect::<Vec<_>>().join(", "),
        Kind::ShrinkingGain => "gain shrinks".to_owned(),
        Kind::Signs => {
            let word = |s: &Sign| if *s == Sign::Positive { "> 0" } else { "not > 0" };
            claim.signs.iter().map(word).collect::<Vec<_>>().join("; ")
        }
        Kind::Formula => {
            let within = whom.pick("give or take", "+/-");
            format!(
                "{} {within} {}",
                claim.formula.as_deref().unwrap_or_default(),
                whom.number(claim.tolerance.unwrap_or(0.0), unit)
            )
        }
        Kind::Inequality => {
            let [a, b] = [&claim.metric, &claim.than].map(|m| m.as_deref().unwrap_or_default());
            let times = claim
                .factor
                .map(|f| format!("{} {} ", whom.number(f, ""), whom.pick("\u{d7}", "*")))
                .unwrap_or_default();
            let margin = claim
                .margin
                .filter(|m| *m > 0.0)
                .map(|m| format!(" {} {}", whom.pick("\u{2212}", "-"), whom.number(m, unit)));
            let sign = if claim.margin.is_some() { whom.pick("\u{2265}", ">=") } else { ">" };
            format!("{a} {sign} {times}{b}{}", margin.unwrap_or_default())
        }
        Kind::Bound | Kind::Variation => {
            let all = [
                bound("above", claim.above),
                bound("below", claim.below),
                bound("at least", claim.at_least),
                bound("at most", claim.at_most),
            ];
            all.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
        Kind::Equal => bound(whom.pick("0, give or take", "0 +/-"), claim.tolerance).unwrap_or_default(),
    }
}

/// What the paper prints at the points of these steps: one entry for each, in the order of ours.
pub(super) fn printed_at(claim: &Claim, steps: &[Step], unit: &str, whom: For) -> Option<String> {
    let one = |s: &Step| match (claim.kind, s.test) {
        (Kind::Value, Test::Is(x, _)) => Some(whom.number(x, unit)),
        (Kind::Signs, Test::Above(_)) => Some("> 0".to_owned()),
        (Kind::Signs, _) => Some("not > 0".to_owned()),
        _ => None,
    };
    let listed = claim.and.is_empty() && matches!(claim.kind, Kind::Value | Kind::Signs);
    listed.then(|| steps.iter().filter_map(one).collect::<Vec<_>>().join("; "))
}
