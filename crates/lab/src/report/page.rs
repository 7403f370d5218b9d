//! The page.

use super::differences::{self, Difference};
use super::{About, Drawn, table};
use crate::claims::{self, Judgement, OneOrMany, Verdict};
use crate::results::{Form, Results};
use anabranch_report::{Fact, Page, Section, Verdict as Mark};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Longer tables of differences are left to the CSV file.
const MOST_ROWS: usize = 600;

pub(super) fn from_drawn(
    about: &About,
    results: &Results,
    judgements: &[Judgement],
    drawn: &[Drawn<'_>],
    differences: &[Difference<'_>],
) -> Page {
    let mut page = Page::new(about.title.clone())
        .lead(about.question.clone())
        .verdict(form(results, judgements))
        .facts(&facts(results, judgements))
        .section(what_this_is(about, results));
    if !about.overviews.is_empty() {
        page = page.section(overviews(about, results));
    }
    if !judgements.is_empty() {
        page = page.section(verdicts(judgements));
    }
    if !drawn.is_empty() {
        page = page.section(figures(drawn));
    }
    if !differences.is_empty() {
        page = page.section(compared(differences));
    }
    page.section(measurements(results)).section(settings(about, results)).footer(footer(about, results))
}

fn count(judgements: &[Judgement], verdict: Verdict) -> usize {
    judgements.iter().filter(|j| j.verdict == Some(verdict)).count()
}

/// Which form the page shows, and in the full one how the claims fared.
fn form(results: &Results, judgements: &[Judgement]) -> Mark {
    let seeds = seeds(results).len();
    match results.form {
        Form::Quick => Mark::warn(format!(
            "Quick form: {seeds} seeds and few points, to see that everything works. It gives no verdicts."
        )),
        Form::Custom => Mark::warn(format!(
            "Other seeds or keys than the experiment's own ({seeds} seeds). Only the full form gives verdicts."
        )),
        Form::Full if judgements.is_empty() => Mark::info(format!("Full form: all points, {seeds} seeds")),
        Form::Full => {
            let (n, counts) = (judgements.len(), Verdict::counts(judgements));
            Mark::info(format!("Full form, {seeds} paired seeds: of {n} claims {counts}"))
        }
    }
}

fn facts(results: &Results, judgements: &[Judgement]) -> Vec<Fact> {
    let number = |label: &str, n: usize| Fact::text(label, n.to_string());
    let runs: usize = results.tables.iter().map(|t| t.rows.len()).sum();
    let mut facts = Vec::new();
    if results.form == Form::Full && !judgements.is_empty() {
        facts.push(number("claims reproduced", count(judgements, Verdict::Reproduced)).star());
        for v in Verdict::ALL.into_iter().skip(1) {
            let n = count(judgements, v);
            facts.extend(
                (n > 0 || !matches!(v, Verdict::Compatible | Verdict::Conditional)).then(|| number(v.word(), n)),
            );
        }
    }
    facts.push(number("runs", runs));
    facts.push(number("seeds", seeds(results).len()));
    facts
}

fn seeds(results: &Results) -> BTreeSet<u64> {
    results.tables.iter().flat_map(|t| &t.rows).map(|r| r.seed).collect()
}

fn what_this_is(about: &About, results: &Results) -> Section {
    let mut text = String::new();
    if !about.source.is_empty() {
        let _ = write!(text, "Source: {}.\n\n", about.source.trim_end_matches('.'));
    }
    text.push_str(
        "Every run is a simulation in virtual time with the very engine that sends on real networks. Runs of one seed at \
         different points of a sweep meet the same random numbers, so differences are taken seed by seed. Intervals are \
         95 % t-intervals over seeds; those of percentiles are bootstrap intervals.",
    );
    for note in &about.notes {
        let _ = write!(text, "\n\n{note}");
    }
    for r in &about.references {
        let note = r.note.as_deref().map(|n| format!(": {n}")).unwrap_or_default();
        let _ = write!(text, "\n\nMeasured elsewhere by {} ({}){}.", r.name, r.file, note.trim_end_matches('.'));
    }
    let scenarios: Vec<String> = results
        .tables
        .iter()
        .map(|t| {
            let keys: Vec<String> = t
                .keys
                .iter()
                .map(|k| {
                    let values = crate::quantity::values_of(t, k);
                    format!("{k}: {}", values.join(", "))
                })
                .collect();
            format!(
                "{} \u{2013} {}",
                t.scenario,
                if keys.is_empty() { "one point".to_owned() } else { keys.join("; ") }
            )
        })
        .collect();
    let section = Section::new("What this is").paragraph(text);
    scenarios.iter().fold(section, |s, line| s.paragraph(format!("Scenario {line}.")))
}

fn overviews(about: &About, results: &Results) -> Section {
    let section = Section::new("Over all scenarios").paragraph("Means over the seeds; intervals stand below.");
    about.overviews.iter().fold(section, |s, o| s.table(&o.table(results)))
}

fn verdicts(judgements: &[Judgement]) -> Section {
    let steps = table::steps(judgements);
    let section = Section::new("Claims and verdicts").paragraph(claims::RULES).table(&table::claims(judgements));
    if steps.is_empty() { section } else { section.details_table("Claims of several steps, step by step", &steps) }
}

fn figures(drawn: &[Drawn<'_>]) -> Section {
    let mut section = Section::new("Figures");
    for d in drawn {
        // A single plot carries title and note itself; panels have only their own.
        if d.content.panels().first().is_some_and(|p| !p.is_empty()) {
            section = section.paragraph(format!("{}. {}", d.figure.title, d.content.note(d.figure)));
        }
        section = section.drawings(&d.drawings);
        if let Some(ids) = d.figure.claims.as_ref().map(OneOrMany::all).filter(|i| !i.is_empty()) {
            section = section.paragraph(format!("Speaks to {}.", ids.join(", ")));
        }
    }
    section.paragraph("Each figure is also in the folder figures, as PNG, SVG and CSV.")
}

fn measurements(results: &Results) -> Section {
    let section = Section::new("Measurements").paragraph(
        "The mean over seeds at each point of each sweep, with its 95 % interval. results.csv has every single run.",
    );
    results.tables.iter().fold(section, |section, t| {
        let table = table::measurements(t);
        if table.len() > 20 {
            section.details_table(format!("{} ({} points)", t.scenario, table.len()), &table)
        } else {
            section.paragraph(format!("Scenario {}:", t.scenario)).table(&table)
        }
    })
}

fn compared(all: &[Difference<'_>]) -> Section {
    let mut section = Section::new("Differences, seed by seed").paragraph(
        "Each setting against the first one of its key under the same random numbers, with the 95 % interval of the \
         paired difference. \u{201c}More\u{201d} and \u{201c}less\u{201d} stand where the interval leaves no doubt. \
         differences.csv has them in their own units as well.",
    );
    let mut groups: Vec<Vec<&Difference<'_>>> = Vec::new();
    for d in all {
        match groups.last_mut().filter(|g| g.iter().all(|o| (o.scenario, o.key) == (d.scenario, d.key))) {
            Some(g) => g.push(d),
            None => groups.push(vec![d]),
        }
    }
    for g in &groups {
        let Some(first) = g.first() else { continue };
        let heading = format!("{}: {} against {}", first.scenario, first.key, first.base);
        let rows = differences::table(g);
        section = match rows.len() {
            0 => section,
            1..=20 => section.paragraph(format!("{heading}.")).table(&rows),
            21..=MOST_ROWS => section.details_table(format!("{heading} ({} rows)", rows.len()), &rows),
            n => section.paragraph(format!("{heading}: {n} rows, in differences.csv only.")),
        };
    }
    section
}

fn settings(about: &About, results: &Results) -> Section {
    let mut section = Section::new("Settings");
    if !about.command.is_empty() {
        section = section.paragraph(format!("To run it again: {}", about.command));
    }
    let all: Vec<String> = seeds(results).iter().map(u64::to_string).collect();
    section = section.paragraph(format!("Seeds: {}.", ranges(&all)));
    if about.settings.is_empty() {
        return section;
    }
    section.details("Keys of the scenario at the first point, as written", about.settings.clone()).paragraph(
        "manifest.json has every parameter, with profiles and defaults worked out, and what differs at each point.",
    )
}

/// `1, 2, 3, …, 30`, when they are that many.
fn ranges(seeds: &[String]) -> String {
    match seeds {
        [a, b, .., last] if seeds.len() > 12 => format!("{a}, {b}, \u{2026}, {last} ({} seeds)", seeds.len()),
        few => few.join(", "),
    }
}

fn footer(about: &About, results: &Results) -> String {
    let form = match results.form {
        Form::Full => "full form",
        Form::Quick => "quick form",
        Form::Custom => "other seeds or keys than its own",
    };
    let version = if about.version.is_empty() { String::new() } else { format!("anabranch {} \u{b7} ", about.version) };
    format!("{version}experiment {} \u{b7} {form}", results.experiment)
}
