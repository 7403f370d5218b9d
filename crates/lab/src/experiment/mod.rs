//! Experiments: scenarios that belong together, with what is asked of them. The shipped ones are part of the program.

mod lists;
mod pictures;
mod shipped;

pub use shipped::{SHIPPED, Shipped};

use crate::claims::{Claim, Shape};
use crate::document::{self, Origin, Part, Problem};
use crate::figures::Figure;
use crate::report::{About, Overview};
use crate::scenario::{Choice, Scenario, ScenarioError, check_name};
use lists::{claims_of, lists, normal, references_in, references_of};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The file of a folder that makes it an experiment.
const IN_FOLDER: &str = "experiment.toml";

/// An experiment, checked and ready to run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name: `rtx-csi`.
    pub name: String,
    /// Title, question, source and notes.
    pub about: About,
    /// Its scenarios.
    pub scenarios: Vec<Scenario>,
}

/// `experiment.toml`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    notes: Vec<String>,
    scenarios: Vec<String>,
    #[serde(default)]
    claims: Vec<String>,
    #[serde(default)]
    figures: Vec<String>,
    #[serde(default, rename = "overview")]
    overviews: Vec<Overview>,
}

/// Reads a file beside the experiment's own, by its path from there.
type Open<'o> = &'o dyn Fn(&str) -> Result<String, String>;

impl Experiment {
    /// A shipped experiment by its name, or one of its scenarios: `rtx-csi`, `rtx-csi/e1`. None when there is none.
    ///
    /// # Errors
    /// A mistake in its files.
    pub fn shipped(name: &str) -> Option<Result<Experiment, ScenarioError>> {
        let (of, part) = name.split_once('/').map_or((name, None), |(of, part)| (of, Some(part)));
        let shipped = SHIPPED.iter().find(|s| s.name == of)?;
        let open = |path: &str| shipped.file(path);
        if part.is_some_and(|p| !shipped.scenarios().any(|s| s.0 == p)) {
            return None;
        }
        let made = of_folder(&format!("{of}/"), &open);
        Some(made.map(|mut e| {
            if let Some(part) = part {
                e.scenarios.retain(|s| s.name == part);
                e.name = name.replace('/', "-");
                e.about.title = e.scenarios.first().map_or(e.about.title.clone(), |s| s.title.clone());
                e.keep_what_fits();
                e.ask_for_distributions();
            }
            e
        }))
    }

    /// An experiment or a single scenario from a file.
    ///
    /// # Errors
    /// The file cannot be read, or a mistake in it.
    pub fn load(path: &Path) -> Result<Experiment, ScenarioError> {
        if path.is_dir() {
            let file = path.join(IN_FOLDER);
            return if file.exists() { Experiment::load(&file) } else { Err(no_experiment_in(path)) };
        }
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let read = |name: &str| {
            let path: PathBuf = folder.join(name);
            std::fs::read_to_string(&path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))
        };
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| ScenarioError {
            file: shown.clone(),
            line: None,
            what: format!("cannot be read: {e}"),
        })?;
        if name == IN_FOLDER {
            let before = shown.strip_suffix(name).unwrap_or_default();
            return of_folder(before, &read);
        }
        let scenario = Scenario::parse(&shown, &text, &read)?;
        let about = About {
            title: if scenario.title.is_empty() { scenario.name.clone() } else { scenario.title.clone() },
            source: scenario.source.clone(),
            claims: scenario.claims.clone(),
            figures: scenario.figures.iter().cloned().chain(pictures::of(&scenario)).collect(),
            ..About::default()
        };
        let mut e = Experiment { name: scenario.name.clone(), about, scenarios: vec![scenario] };
        let keys: Vec<_> = e.scenarios.iter().map(Scenario::keys).collect();
        let shapes = shapes(&e.scenarios, &keys);
        for s in &e.scenarios {
            check_claims(&e.about.claims, &s.claims_at, &shapes)?;
            // Those that are drawn for want of others are right by themselves.
            check_figures(&s.figures, &s.figures_at, &shapes)?;
            e.about.references.extend(references_of(s, &shapes)?);
        }
        e.ask_for_distributions();
        Ok(e)
    }

    /// The experiment as the choice has it: fewer points, other seeds.
    ///
    /// # Errors
    /// A choice that cannot be.
    pub fn chosen(&self, choice: Choice) -> Result<Experiment, ScenarioError> {
        let scenarios = self.scenarios.iter().map(|s| s.chosen(choice)).collect::<Result<_, _>>()?;
        // Claims and figures stay: the report shows of each what these points can.
        Ok(Experiment { scenarios, ..self.clone() })
    }

    /// How many runs it is.
    pub fn runs(&self) -> usize {
        self.scenarios.iter().map(Scenario::runs).sum()
    }

    /// Runs keep the distributions that figures draw, and no others.
    fn ask_for_distributions(&mut self) {
        let asked: Vec<_> = self.about.figures.iter().flat_map(Figure::distributions).collect();
        let alone = self.scenarios.len() == 1;
        for s in &mut self.scenarios {
            let of_it = |of: &Option<String>| of.as_ref().map_or(alone, |of| *of == s.name);
            let own: Vec<&String> = asked.iter().filter(|(of, _)| of_it(of)).map(|(_, metric)| metric).collect();
            // In the order of the metrics, whichever figure comes first.
            s.distributions = s.measures.iter().map(|m| m.name.clone()).filter(|m| own.contains(&m)).collect();
        }
    }

    /// Drops claims and figures that speak of scenarios which are not run.
    fn keep_what_fits(&mut self) {
        let keys: Vec<_> = self.scenarios.iter().map(Scenario::keys).collect();
        let shapes = shapes(&self.scenarios, &keys);
        // A claim stays where what it hangs on is shown elsewhere; judging it says so.
        let alone = |c: &Claim| Claim { conditional: None, ..c.clone() };
        self.about.claims.retain(|c| alone(c).check(&shapes).is_ok());
        self.about.figures.retain(|f| f.check(&shapes).is_ok());
        self.about.overviews.retain(|o| o.check(&shapes).is_ok());
        for r in &mut self.about.references {
            r.rows.retain(|row| shapes.iter().any(|s| s.name == row.scenario));
        }
        self.about.references.retain(|r| !r.rows.is_empty());
    }
}

/// Finds mistakes in the claims of one file; `at` has the place of each.
/// A folder that is none of an experiment, with the files that could be run.
fn no_experiment_in(folder: &Path) -> ScenarioError {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.filter_map(|f| f.file_name().into_string().ok()).filter(|name| name.ends_with(".toml"));
    let mut names: Vec<String> = names.collect();
    names.sort();
    let some = match names.as_slice() {
        [] => "it has no scenarios either".to_owned(),
        [one] => format!("its scenario is {one}"),
        all => format!(
            "its scenarios are {}{}",
            all[..all.len().min(5)].join(", "),
            if all.len() > 5 { ", …" } else { "" }
        ),
    };
    let what = format!("is a folder without an `{IN_FOLDER}`, which lists scenarios: name a file; {some}");
    ScenarioError { file: folder.display().to_string(), line: None, what }
}

fn check_claims(claims: &[Claim], at: &[Origin], shapes: &[Shape<'_>]) -> Result<(), Problem> {
    for (i, (c, at)) in claims.iter().zip(at).enumerate() {
        if claims[..i].iter().any(|other| other.id == c.id) {
            return Err(Problem::new(at, format!("there are two claims `{}`", c.id)));
        }
        c.check(shapes).map_err(|e| Problem::new(at, e.to_string()))?;
    }
    Ok(())
}

/// And in its figures.
fn check_figures(figures: &[Figure], at: &[Origin], shapes: &[Shape<'_>]) -> Result<(), Problem> {
    for (i, (f, at)) in figures.iter().zip(at).enumerate() {
        check_name(&f.name).map_err(|e| Problem::new(at, format!("figure: {e}")))?;
        if figures[..i].iter().any(|other| other.name == f.name) {
            return Err(Problem::new(at, format!("there are two figures `{}`", f.name)));
        }
        f.check(shapes).map_err(|e| Problem::new(at, e.to_string()))?;
    }
    Ok(())
}

type Keys = Vec<(String, Vec<String>)>;

fn shapes<'a>(scenarios: &'a [Scenario], keys: &'a [Keys]) -> Vec<Shape<'a>> {
    let shape = |(s, keys): (&'a Scenario, &'a Keys)| Shape {
        name: &s.name,
        keys: keys.iter().map(|(k, v)| (k.as_str(), v.as_slice())).collect(),
        metrics: s.measures.iter().map(|m| m.name.as_str()).collect(),
        series: s.series.iter().map(|s| s.name.as_str()).collect(),
        defined: s.defined().collect(),
    };
    scenarios.iter().zip(keys).map(shape).collect()
}

/// Reads the experiment of a folder; `before` precedes its files' names in messages.
fn of_folder(before: &str, open: Open<'_>) -> Result<Experiment, ScenarioError> {
    let head = format!("{before}experiment.toml");
    let wrong = |file: &str, what: String| ScenarioError { file: format!("{before}{file}"), line: None, what };
    let text = open("experiment.toml").map_err(|e| wrong("experiment.toml", e))?;
    let table = document::parse(&Origin::of_file(&head), &text)?;
    let whole = Part::new("", &table);
    let f: File = document::read(whole)?;
    check_name(&f.name).map_err(|e| whole.at("name", e))?;
    let mut scenarios: Vec<Scenario> = Vec::new();
    for path in &f.scenarios {
        let text = open(path).map_err(|e| whole.at("scenarios", e))?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = |name: &str| open(&normal(folder, name));
        let scenario = Scenario::parse(&format!("{before}{path}"), &text, &beside)?;
        if scenarios.iter().any(|s| s.name == scenario.name) {
            return Err(wrong(path, format!("`name`: there are two scenarios `{}`", scenario.name)));
        }
        scenarios.push(scenario);
    }
    let keys: Vec<_> = scenarios.iter().map(Scenario::keys).collect();
    let shapes = shapes(&scenarios, &keys);
    let of_it =
        |f: &Figure, s: &Scenario| Figure { scenario: f.scenario.clone().or(Some(s.name.clone())), ..f.clone() };
    let (mut claims, mut figures, mut references) = (Vec::new(), Vec::new(), Vec::new());
    for s in &scenarios {
        let own: Vec<Figure> = s.figures.iter().map(|f| of_it(f, s)).collect();
        // A scenario's own claims are about it alone.
        let own_claims: Vec<Claim> = s.claims.iter().map(|c| c.about(&s.name)).collect();
        check_claims(&own_claims, &s.claims_at, &shapes)?;
        check_figures(&own, &s.figures_at, &shapes)?;
        references.extend(references_of(s, &shapes)?);
        claims.extend(own_claims);
        figures.extend(own);
    }
    for path in &f.claims {
        let text = open(path).map_err(|e| whole.at("claims", e))?;
        let table = lists(&format!("{before}{path}"), &text, &["claim", "defaults", "reference"])?;
        let (more, at) = claims_of(&table)?;
        check_claims(&more, &at, &shapes)?;
        claims.extend(more);
        references.extend(references_in(&table, before, path, open, &shapes)?);
    }
    if f.figures.is_empty() {
        figures.extend(scenarios.iter().flat_map(pictures::of));
        tell_apart(&mut figures);
        pictures::number(&mut figures);
    }
    for path in &f.figures {
        let text = open(path).map_err(|e| whole.at("figures", e))?;
        let table = lists(&format!("{before}{path}"), &text, &["figure", "reference"])?;
        let (more, at) = document::read_list::<Figure>(&table, "figure", "name")?;
        check_figures(&more, &at, &shapes)?;
        figures.extend(more);
        references.extend(references_in(&table, before, path, open, &shapes)?);
    }
    twice(&claims, &figures).map_err(|what| whole.wrong(what))?;
    for (o, node) in f.overviews.iter().zip(table.list("overview")) {
        o.check(&shapes).map_err(|what| Problem::new(&node.at, what))?;
    }
    let File { name, title, question, source, notes, overviews, .. } = f;
    let about = About { title, question, source, notes, claims, figures, references, overviews, ..About::default() };
    let mut e = Experiment { name, about, scenarios };
    e.ask_for_distributions();
    Ok(e)
}

/// Claims and figures of one name, which may come from several files.
fn twice(claims: &[Claim], figures: &[Figure]) -> Result<(), String> {
    if let Some((_, c)) = claims.iter().enumerate().find(|(i, c)| claims[..*i].iter().any(|b| b.id == c.id)) {
        return Err(format!("its files have two claims `{}`", c.id));
    }
    match figures.iter().enumerate().find(|(i, f)| figures[..*i].iter().any(|b| b.name == f.name)) {
        Some((_, f)) => Err(format!("its files have two figures `{}`", f.name)),
        None => Ok(()),
    }
}

/// Figures of several scenarios may have one name; their files must not.
fn tell_apart(figures: &mut [Figure]) {
    let names: Vec<String> = figures.iter().map(|f| f.name.clone()).collect();
    for f in figures {
        if names.iter().filter(|n| **n == f.name).count() > 1 {
            f.name = format!("{}-{}", f.scenario.as_deref().unwrap_or_default(), f.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SCENARIO: &str = r#"
name = "one"
duration = "2s"
seeds = 2
metrics = ["speed.goodput"]
topology = { kind = "single-path", rate = "2mbit", delay = "10ms" }
[[flow]]
name = "speed"
transport = "sctp"
[[sweep]]
name = "rbuf"
sets = "flow.speed.receive-buffer"
values = ["16KB", "64KB"]
"#;
    const CLAIMS: &str = r#"
[[claim]]
id = "A"
says = "more"
kind = "increasing"
metric = "speed.goodput"
over = "rbuf"

[[claim]]
says = "even more"
id = "B"
kind = "increasing"
metric = "speed.goodput"
over = "rbuf"
"#;
    const FIGURES: &str = r#"
[[figure]]
name = "speed"
title = "Speed"
kind = "line"
x = "rbuf"
metric = "speed.goodput"
"#;

    /// What reading the folder with these files comes to.
    fn folder(scenario: &str, claims: &str, figures: &str) -> Result<(), String> {
        let open = |path: &str| match path {
            "experiment.toml" => Ok("name = \"e\"\ntitle = \"E\"\nscenarios = [\"one/scenario.toml\"]\n\
                                     claims = [\"claims.toml\"]\nfigures = [\"figures.toml\"]\n"
                .to_owned()),
            "one/scenario.toml" => Ok(scenario.to_owned()),
            "claims.toml" => Ok(claims.to_owned()),
            "figures.toml" => Ok(figures.to_owned()),
            other => Err(format!("there is no file `{other}`")),
        };
        of_folder("e/", &open).map(drop).map_err(|e| e.to_string())
    }

    #[test]
    fn a_value_of_another_type_is_reported_with_its_key() {
        let wrong = |more: &str| {
            let text = format!("name = \"e\"\ntitle = \"E\"\n{more}");
            of_folder("e/", &|_: &str| Ok(text.clone())).map(drop).expect_err("a mistake").to_string()
        };
        let list = "needs a list, not the text `claims.toml`";
        let claims = "scenarios = [\"one.toml\"]\nclaims = \"claims.toml\"\n";
        assert_eq!(wrong(claims), format!("e/experiment.toml:4: `claims`: {list}"));
        assert!(
            wrong("scenarios = 3\n").starts_with("e/experiment.toml:3: `scenarios`: needs a list, not the number 3")
        );
        // Where the value is not at fault there is no key to name but the one in the message.
        let claim = "e/experiment.toml:4: unknown key `claim`; did you mean `claims`?";
        assert_eq!(wrong("scenarios = []\nclaim = \"x\"\n"), claim);
        assert_eq!(wrong(""), "e/experiment.toml: the key `scenarios` is missing");
        let claim = folder(SCENARIO, &CLAIMS.replacen("over = \"rbuf\"", "at = { rbuf = 3 }", 1), FIGURES);
        let rbuf = "e/claims.toml:7: claim `A`: `at.rbuf`: needs a text, not the number 3";
        assert_eq!(claim.unwrap_err(), rbuf);
    }

    #[test]
    fn what_holds_for_all_claims_of_a_file_is_read_before_them() {
        let value = CLAIMS.replacen("kind = \"increasing\"\nmetric", "kind = \"value\"\nprinted = 3\nmetric", 1);
        let value = value.replacen("over = \"rbuf\"", "at = { rbuf = \"16KB\" }", 1);
        let of = |head: &str| {
            let file = Origin::of_file("claims.toml");
            claims_of(&document::parse(&file, &format!("{head}{value}"))?).map(|c| c.0)
        };
        let runs = |head: &str| of(head).expect("fine").iter().map(|c| c.printed_runs).collect::<Vec<_>>();
        // Only what is printed comes from so many runs.
        assert_eq!(runs("[defaults]\nprinted-runs = 1\n"), [Some(1), None]);
        assert_eq!(runs(""), [None, None]);
        let wrong = |head: &str| folder(SCENARIO, &format!("{head}{value}"), FIGURES).expect_err("a mistake");
        assert_eq!(
            wrong("[defaults]\nprinted-run = 1\n"),
            "e/claims.toml:2: [defaults]: unknown key `printed-run`; did you mean `printed-runs`?"
        );
        assert_eq!(
            wrong("[defaults]\nprinted-runs = 0\n"),
            "e/claims.toml:2: [defaults]: `printed-runs`: is 1 or more"
        );
        assert_eq!(wrong("defaults = 3\n"), "e/claims.toml:1: `defaults`: needs [defaults]");
        assert_eq!(wrong("[default]\n"), "e/claims.toml:1: unknown key `default`; did you mean `defaults`?");
    }

    #[test]
    fn a_mistake_is_reported_with_the_file_and_line_of_its_claim_or_figure() {
        assert_eq!(folder(SCENARIO, CLAIMS, FIGURES), Ok(()));
        let end = |text: &str| text.replace("over = \"rbuf\"\n", "").replacen("A\"", "A\"\nover = \"rbuf\"", 1);
        let claim = folder(SCENARIO, &end(CLAIMS), FIGURES).expect_err("a mistake");
        assert_eq!(claim, "e/claims.toml:11: claim B: a claim of kind `increasing` needs `over`");
        let figure = folder(SCENARIO, CLAIMS, &FIGURES.replace("\"rbuf\"", "\"rfub\"")).expect_err("a mistake");
        assert_eq!(figure, "e/figures.toml:3: figure `speed`: scenario `one` does not sweep `rfub`");
        // Units that do not fit are mistakes too, not a verdict after all the runs.
        let claim =
            folder(SCENARIO, &CLAIMS.replacen("over", "unit = \"ms\"\nover", 1), FIGURES).expect_err("a mistake");
        assert_eq!(claim, "e/claims.toml:3: claim A: `unit`: `speed.goodput` is in bit/s, which `ms` cannot show");
        let figure = folder(SCENARIO, CLAIMS, &format!("{FIGURES}unit = \"ms\"\n")).expect_err("a mistake");
        assert_eq!(
            figure,
            "e/figures.toml:3: figure `speed`: `unit`: `speed.goodput` is in bit/s, which `ms` cannot show"
        );
        let share = "compare = { key = \"rbuf\", a = \"64KB\", b = \"16KB\", as = \"advantage\" }\nunit = ";
        assert_eq!(folder(SCENARIO, CLAIMS, &format!("{FIGURES}{share}\"%\"\n")), Ok(()));
        let figure = folder(SCENARIO, CLAIMS, &format!("{FIGURES}{share}\"Mbit/s\"\n")).expect_err("a mistake");
        assert!(
            figure.ends_with("`unit`: a comparison of this kind is a share, which `Mbit/s` cannot show"),
            "{figure}"
        );
        // Of a scenario's own, whose flow has the name of the figure.
        let own = |figures: &str| folder(&format!("{SCENARIO}{figures}"), CLAIMS, "");
        assert_eq!(own(FIGURES), Ok(()));
        let figure = own(&FIGURES.replace("goodput", "share")).expect_err("a mistake");
        let what = "figure `speed`: scenario `one` does not measure `speed.share`: add it to `metrics`";
        assert_eq!(figure, format!("e/one/scenario.toml:16: {what}"));
        // And so in a scenario alone.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("one.toml");
        std::fs::write(&path, format!("{SCENARIO}{}", FIGURES.replace("goodput", "share"))).unwrap();
        let alone = Experiment::load(&path).expect_err("a mistake").to_string();
        assert_eq!(alone, format!("{}:16: {what}", path.display()));
    }

    #[test]
    fn a_folder_that_is_no_experiment_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let said = || Experiment::load(dir.path()).expect_err("no experiment").to_string();
        let missing = format!("{}: is a folder without an `experiment.toml`", dir.path().display());
        assert!(said().starts_with(&missing) && said().ends_with("it has no scenarios either"), "{}", said());
        std::fs::write(dir.path().join("one.toml"), SCENARIO).unwrap();
        assert!(said().starts_with(&missing) && said().ends_with("its scenario is one.toml"), "{}", said());
        (2..9).for_each(|n| std::fs::write(dir.path().join(format!("{n}.toml")), SCENARIO).unwrap());
        assert!(said().ends_with("its scenarios are 2.toml, 3.toml, 4.toml, 5.toml, 6.toml, …"), "{}", said());
        // With one the folder is read, and its own mistakes are what is said.
        std::fs::write(dir.path().join(IN_FOLDER), "name = 3").unwrap();
        assert!(said().contains("experiment.toml:1: `name`: needs a text"), "{}", said());
    }
}
