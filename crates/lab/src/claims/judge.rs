//! Verdicts on claims.

use super::steps::steps;
use super::{Claim, Kind, OneOrMany, Outcome, Step, Test, Turn};
use crate::joined;
use crate::numbers::{csv_field, interval_text, number_text};
use crate::quantity::{Compare, Gap, Reader};
use crate::results::{Form, Results, Table};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// What our runs say to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Ours agree with it.
    Reproduced,
    /// Ours disagree.
    Contradicted,
    /// Ours cannot tell.
    NotTestable,
}

impl Verdict {
    /// For tables.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Contradicted => "contradicted",
            Verdict::NotTestable => "not testable",
        }
    }
}

/// A claim with what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Judgement {
    /// The claim's id.
    pub id: String,
    /// The claim in words.
    pub says: String,
    /// The verdict; `None` in a form that gives none.
    pub verdict: Option<Verdict>,
    /// Why the verdict is what it is.
    pub reason: String,
    /// What was printed, with its unit, or the claim's form in words.
    pub printed: String,
    /// `printed` for programs: plain numbers in `unit`.
    pub stated: String,
    /// Unit of our numbers.
    pub unit: String,
    /// Our numbers.
    pub steps: Vec<Step>,
    /// What a reader has to know.
    pub note: String,
}

/// Judges every claim, in their order.
pub fn judge(claims: &[Claim], results: &Results) -> Vec<Judgement> {
    claims.iter().map(|c| judge_one(c, results)).collect()
}

fn judge_one(claim: &Claim, results: &Results) -> Judgement {
    let (steps, unit, gap) = match all_steps(claim, results) {
        Ok((steps, unit)) => (steps, unit, None),
        Err(gap) => (Vec::new(), claim.unit.clone().unwrap_or_default(), Some(gap)),
    };
    let (verdict, reason) = match (&claim.reason, &gap) {
        (Some(reason), _) if claim.kind == Kind::NotTestable => (Verdict::NotTestable, reason.clone()),
        (_, Some(gap)) => (Verdict::NotTestable, gap.to_string()),
        _ => combine(claim, &steps, &unit),
    };
    let (verdict, reason) = match results.form {
        Form::Full => (Some(verdict), reason),
        Form::Quick => (None, "a quick form gives no verdict".to_owned()),
        Form::Custom => (None, "only the scenario's own seeds and keys give a verdict".to_owned()),
    };
    // A form with fewer points shows what is printed of those alone.
    let whole = results.form == Form::Full && steps.is_empty();
    let at_steps = |whom| if whole { None } else { printed_at(claim, &steps, &unit, whom) };
    let shown = |whom| at_steps(whom).unwrap_or_else(|| printed(claim, &unit, whom));
    Judgement {
        id: claim.id.clone(),
        says: claim.says.clone(),
        verdict,
        reason,
        printed: shown(For::People),
        stated: shown(For::Machines),
        unit,
        steps,
        note: claim.note.clone().unwrap_or_default(),
    }
}

/// The steps of a claim in all its scenarios, over complete pairs.
fn all_steps(claim: &Claim, results: &Results) -> Result<(Vec<Step>, String), Gap> {
    if claim.kind == Kind::NotTestable {
        return Ok((Vec::new(), String::new()));
    }
    let joined;
    let tables = match claim.compare.as_ref().and_then(Compare::scenarios) {
        Some(pair) => {
            joined = joined::find(pair, results)?;
            vec![&joined]
        }
        None => tables(claim, results)?,
    };
    let several = tables.len() > 1;
    let (mut all, mut unit) = (Vec::new(), String::new());
    for table in tables {
        let reader = Reader::new(table);
        // The first reading finds the seeds that every point has; the second uses those alone.
        let partial = results.form != Form::Full;
        steps(claim, &reader, partial)?;
        let (mut found, u) = steps(claim, &reader.narrowed(), partial)?;
        if several {
            found.iter_mut().for_each(|s| s.what = format!("{}, {}", table.scenario, s.what));
        }
        all.extend(found);
        unit = u;
    }
    Ok((all, unit))
}

fn tables<'r>(claim: &Claim, results: &'r Results) -> Result<Vec<&'r Table>, Gap> {
    let Some(names) = &claim.scenario else { return Ok(results.tables.iter().collect()) };
    let table = |name: &String| {
        let found = results.tables.iter().find(|t| t.scenario == *name);
        found.ok_or_else(|| Gap::Runs { scenario: name.clone(), point: "any point".to_owned() })
    };
    names.all().iter().map(table).collect()
}

fn combine(claim: &Claim, steps: &[Step], unit: &str) -> (Verdict, String) {
    let of = |outcome| steps.iter().filter(move |s| s.outcome == outcome);
    let list = |outcome| -> String {
        let some: Vec<String> = of(outcome).take(4).map(|s| described(s, unit)).collect();
        let more = of(outcome).count().saturating_sub(some.len());
        let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
        // A single step is shown beside the verdict already.
        if steps.len() == 1 { String::new() } else { format!(": {}{tail}", some.join("; ")) }
    };
    let count = |outcome| of(outcome).count();
    let n = steps.len();
    let (verdict, mut reason) = if n == 0 {
        (Verdict::NotTestable, "no runs to judge by".to_owned())
    } else if count(Outcome::Opposed) > 0 {
        (Verdict::Contradicted, share(count(Outcome::Opposed), n, claim, false) + &list(Outcome::Opposed))
    } else if count(Outcome::Undecided) > 0 {
        let what = share(count(Outcome::Undecided), n, claim, true);
        (Verdict::NotTestable, what + &list(Outcome::Undecided))
    } else {
        (Verdict::Reproduced, supported(claim, n))
    };
    if let Some(sign) = signs(claim, steps) {
        let _ = write!(reason, "; {sign}");
    }
    let seeds = steps.iter().map(|s| s.ours.seeds).min().unwrap_or(0);
    let _ = write!(reason, " ({seeds} seeds)");
    (verdict, reason)
}

fn supported(claim: &Claim, n: usize) -> String {
    match (claim.kind, n) {
        (Kind::Value, 1) => "the printed value lies inside our interval".to_owned(),
        (Kind::Value, 2) => "both printed values lie inside our intervals".to_owned(),
        (Kind::Value, n) => format!("all {n} printed values lie inside our intervals"),
        (_, 1) => "our interval lies on the claimed side".to_owned(),
        (_, n) => format!("our intervals lie on the claimed side at all {n} steps"),
    }
}

fn share(count: usize, n: usize, claim: &Claim, undecided: bool) -> String {
    let head = if n == 1 { String::new() } else { format!("{count} of {n}: ") };
    let tail = match (claim.kind, undecided) {
        (Kind::Value, false) => "the printed value lies outside our interval",
        (Kind::Value, true) => "one seed alone gives no interval",
        (_, false) => "our interval lies on the other side",
        (_, true) => "undecided, our interval lies on both sides",
    };
    format!("{head}{tail}")
}

fn described(step: &Step, unit: &str) -> String {
    let join = |text: String| if unit.is_empty() { text } else { format!("{text} {unit}") };
    let ours = join(interval_text(&step.ours));
    let printed = match step.test {
        Test::Is(x, _) => format!(", printed {}", join(number_text(x))),
        _ => String::new(),
    };
    format!("{} ours {ours}{printed}", step.what)
}

/// For comparisons that miss their printed value: does at least the sign agree?
fn signs(claim: &Claim, steps: &[Step]) -> Option<String> {
    claim.compare.as_ref().filter(|c| c.how != crate::quantity::How::Impact)?;
    let missed = |s: &&Step| s.outcome == Outcome::Opposed && matches!(s.test, Test::Is(x, _) if x != 0.0);
    let mut words = steps.iter().filter(missed).map(|s| {
        let Test::Is(x, _) = s.test else { return "" };
        let side = if x > 0.0 { Test::Above(0.0) } else { Test::Below(0.0) };
        match side.of(&s.ours) {
            Outcome::Supported => "the sign agrees",
            Outcome::Opposed => "the sign is the other one",
            Outcome::Undecided => "the sign of ours is not sure",
        }
    });
    let first = words.next()?;
    words.all(|w| w == first).then(|| first.to_owned())
}

/// For whom the numbers of a paper are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
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
            let word = |s: &super::Sign| if *s == super::Sign::Positive { "> 0" } else { "not > 0" };
            claim.signs.iter().map(word).collect::<Vec<_>>().join("; ")
        }
        Kind::Bound => {
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
fn printed_at(claim: &Claim, steps: &[Step], unit: &str, whom: For) -> Option<String> {
    let one = |s: &Step| match (claim.kind, s.test) {
        (Kind::Value, Test::Is(x, _)) => Some(whom.number(x, unit)),
        (Kind::Signs, Test::Above(_)) => Some("> 0".to_owned()),
        (Kind::Signs, _) => Some("not > 0".to_owned()),
        _ => None,
    };
    matches!(claim.kind, Kind::Value | Kind::Signs).then(|| steps.iter().filter_map(one).collect::<Vec<_>>().join("; "))
}

/// `claims.csv`: `id,verdict,printed,ours,ci_low,ci_high,note`; several numbers in one field are parted by `; `.
///
/// `printed` and `ours` have the same unit, which `note` begins with. Where nothing but a form is claimed, `printed` is
/// that form in words.
///
/// `verdict` is `reproduced`, `contradicted`, `not testable`, or `none` in a form that gives none. `note` is the reason,
/// then the claim's own note.
pub fn to_csv(judgements: &[Judgement]) -> String {
    let mut out = String::from("id,verdict,printed,ours,ci_low,ci_high,note\n");
    for j in judgements {
        let join = |f: &dyn Fn(&Step) -> String| j.steps.iter().map(f).collect::<Vec<_>>().join("; ");
        let end = |e: Option<f64>| e.map_or(String::new(), |v| v.to_string());
        let note = [j.reason.as_str(), j.note.as_str()];
        let unit = if j.unit.is_empty() { String::new() } else { format!("in {}: ", j.unit) };
        let note: Vec<&str> = note.into_iter().filter(|n| !n.is_empty()).collect();
        let fields = [
            j.id.clone(),
            j.verdict.map_or("none", Verdict::word).to_owned(),
            j.stated.clone(),
            join(&|s| s.ours.mean.to_string()),
            join(&|s| end(s.ours.interval.map(|i| i.0))),
            join(&|s| end(s.ours.interval.map(|i| i.1))),
            format!("{unit}{}", note.join(". ")),
        ];
        let fields: Vec<String> = fields.iter().map(|f| csv_field(f)).collect();
        let _ = writeln!(out, "{}", fields.join(","));
    }
    out
}

#[cfg(test)]
mod tests;
