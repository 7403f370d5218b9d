//! Verdicts on claims.

use super::decide::{Found, decide};
use super::steps::steps;
use super::words::{For, described, further, printed_at, printed_of_all, share, signs, supported};
use super::{Claim, Kind, Outcome, Step, conditional};
use crate::joined;
use crate::quantity::{Compare, Gap, Reader};
use crate::reference::Reference;
use crate::results::{Form, Results, Table};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// What our runs say to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Ours agree with it.
    Reproduced,
    /// Not what ours are on average, but what a run or the few behind the printed value may well come to.
    Compatible,
    /// Ours agree with some values of what the paper does not state, and disagree with others.
    Conditional,
    /// Ours disagree.
    Contradicted,
    /// Ours cannot tell.
    NotTestable,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Verdict; 5] =
        [Verdict::Reproduced, Verdict::Compatible, Verdict::Conditional, Verdict::Contradicted, Verdict::NotTestable];

    /// How many claims came out in each way: `9 reproduced, 8 compatible with one run, …`.
    pub fn counts(judgements: &[Judgement]) -> String {
        let count = |v: Verdict| judgements.iter().filter(|j| j.verdict == Some(v)).count();
        // What only some experiments have is left out elsewhere.
        let said = |v: &Verdict| count(*v) > 0 || !matches!(v, Verdict::Compatible | Verdict::Conditional);
        let all = Verdict::ALL.into_iter().filter(said);
        all.map(|v| format!("{} {}", count(v), v.word())).collect::<Vec<_>>().join(", ")
    }

    /// For tables.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Compatible => "compatible with one run",
            Verdict::Conditional => "conditional",
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
    /// How many runs are behind what was printed, where that is known to be few.
    pub printed_runs: Option<u32>,
    /// Our numbers.
    pub steps: Vec<Step>,
    /// What a reader has to know.
    pub note: String,
}

impl Judgement {
    /// The verdict in words: that of one run says how many it is about.
    pub fn word(&self) -> String {
        match (self.verdict, self.printed_runs) {
            (Some(Verdict::Compatible), Some(n)) if n > 1 => format!("compatible with {n} runs"),
            (Some(verdict), _) => verdict.word().to_owned(),
            (None, _) => "none".to_owned(),
        }
    }
}

/// Judges every claim, in their order; what others measured is shown beside.
pub fn judge(claims: &[Claim], results: &Results, references: &[Reference]) -> Vec<Judgement> {
    claims.iter().map(|c| judge_one(c, results, references)).collect()
}

fn judge_one(claim: &Claim, results: &Results, references: &[Reference]) -> Judgement {
    let (verdict, reason, steps, unit) = by_steps(claim, results, references);
    let (verdict, reason) = match &claim.conditional {
        Some(c) if results.form == Form::Full => conditional::weigh(claim, c, results, (verdict, reason)),
        _ => (verdict, reason),
    };
    let (verdict, reason) = match results.form {
        Form::Full => (Some(verdict), reason),
        Form::Quick => (None, "a quick form gives no verdict".to_owned()),
        Form::Custom => (None, "only the scenario's own seeds and keys give a verdict".to_owned()),
    };
    // A form with fewer points shows what is printed of those alone.
    let whole = results.form == Form::Full && steps.is_empty();
    let at_steps = |whom| if whole { None } else { printed_at(claim, &steps, &unit, whom) };
    let shown = |whom| at_steps(whom).unwrap_or_else(|| printed_of_all(claim, &unit, whom));
    Judgement {
        id: claim.id.clone(),
        says: claim.says.clone(),
        verdict,
        reason,
        printed: shown(For::People),
        stated: shown(For::Machines),
        unit,
        printed_runs: claim.printed_runs,
        steps,
        note: claim.note.clone().unwrap_or_default(),
    }
}

/// The verdict by the steps of a claim alone, its reason, the steps and their unit.
fn by_steps(claim: &Claim, results: &Results, references: &[Reference]) -> (Verdict, String, Vec<Step>, String) {
    let (steps, unit, gap) = match all_steps(claim, results, references) {
        Ok((steps, unit)) => (steps, unit, None),
        Err(gap) => (Vec::new(), claim.unit.clone().unwrap_or_default(), Some(gap)),
    };
    let (verdict, reason) = match (&claim.reason, &gap) {
        (Some(reason), _) if claim.kind == Kind::NotTestable => (Verdict::NotTestable, reason.clone()),
        (_, Some(gap)) => (Verdict::NotTestable, gap.to_string()),
        _ => combine(claim, &steps, &unit),
    };
    (verdict, reason, steps, unit)
}

/// [`by_steps`] without its reason.
pub(super) fn plain(claim: &Claim, results: &Results) -> (Verdict, Vec<Step>, String) {
    let (verdict, _, steps, unit) = by_steps(claim, results, &[]);
    (verdict, steps, unit)
}

/// The steps of all parts of a claim, decided together.
fn all_steps(claim: &Claim, results: &Results, references: &[Reference]) -> Result<(Vec<Step>, String), Gap> {
    let (mut all, mut unit) = (Vec::new(), String::new());
    // A mistake in a part is found before anything runs.
    let parts = claim.parts().unwrap_or_default();
    for part in parts.iter().filter(|p| p.kind != Kind::NotTestable) {
        let prefix = part.prefix(&parts);
        let (mut found, u) = any_found(part, results, references)?;
        found.iter_mut().for_each(|s| s.what.insert_str(0, &prefix));
        all.extend(found);
        unit = u;
    }
    Ok((decide(all), unit))
}

/// The steps of one part, each that of the claim or of one of its `any` at the same place.
fn any_found(claim: &Claim, results: &Results, references: &[Reference]) -> Result<(Vec<Found>, String), Gap> {
    if claim.any.is_empty() {
        return found(claim, results, references);
    }
    let mut places: Vec<(String, Vec<Found>)> = Vec::new();
    let (mut unit, alternatives) = (String::new(), claim.alternatives().unwrap_or_default());
    for one in &alternatives {
        let (all, u) = found(one, results, references)?;
        unit = u;
        for mut step in all {
            let place = step.what.clone();
            step.what.insert_str(0, &one.which());
            match places.iter_mut().find(|p| p.0 == place) {
                Some((_, there)) => there.push(step),
                None => places.push((place, vec![step])),
            }
        }
    }
    // A form with fewer points may lack one of them somewhere: there nothing is said.
    let whole = places.into_iter().filter(|(_, there)| there.len() == alternatives.len());
    Ok((whole.filter_map(|(_, there)| Found::any(there)).collect(), unit))
}

/// The steps of one part in all its scenarios, over complete pairs.
fn found(claim: &Claim, results: &Results, references: &[Reference]) -> Result<(Vec<Found>, String), Gap> {
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
        steps(claim, &reader, partial, &[])?;
        let (mut found, u) = steps(claim, &reader.narrowed(), partial, references)?;
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
    } else if count(Outcome::Opposed) == 0 && count(Outcome::Undecided) == 0 && count(Outcome::OneRun) > 0 {
        (Verdict::Compatible, further(claim, steps, unit) + &list(Outcome::OneRun))
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
    let family = steps.iter().filter(|s| s.p.is_some()).count();
    let holm = if family > 1 { format!(", {family} comparisons by Holm at 5 % together") } else { String::new() };
    let _ = write!(reason, " ({seeds} seeds{holm})");
    (verdict, reason)
}

#[cfg(test)]
mod tests;
