//! Experiments: scenarios that belong together, with what is asked of them. The shipped ones are part of the program.

mod pictures;
mod shipped;

pub use shipped::{SHIPPED, Shipped};

use crate::claims::{Claim, ClaimFile, Shape};
use crate::figures::{Figure, FigureFile};
use crate::report::About;
use crate::scenario::{Choice, Scenario, ScenarioError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

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
        let open = |path: &str| {
            let found = shipped.files.iter().find(|f| f.0 == path);
            found.map(|f| f.1.to_owned()).ok_or_else(|| format!("there is no file `{path}`"))
        };
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
            }
            e
        }))
    }

    /// An experiment or a single scenario from a file.
    ///
    /// # Errors
    /// The file cannot be read, or a mistake in it.
    pub fn load(path: &Path) -> Result<Experiment, ScenarioError> {
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
        if name == "experiment.toml" {
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
        let e = Experiment { name: scenario.name.clone(), about, scenarios: vec![scenario] };
        e.check(&shown).map(|()| e)
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

    /// Drops claims and figures that speak of scenarios which are not run.
    fn keep_what_fits(&mut self) {
        let keys: Vec<_> = self.scenarios.iter().map(Scenario::keys).collect();
        let shapes = shapes(&self.scenarios, &keys);
        self.about.claims.retain(|c| c.check(&shapes).is_ok());
        self.about.figures.retain(|f| f.check(&shapes).is_ok());
    }

    fn check(&self, file: &str) -> Result<(), ScenarioError> {
        let keys: Vec<_> = self.scenarios.iter().map(Scenario::keys).collect();
        let shapes = shapes(&self.scenarios, &keys);
        let wrong = |what: String| ScenarioError { file: file.to_owned(), line: None, what };
        self.about.claims.iter().try_for_each(|c| c.check(&shapes)).map_err(|e| wrong(e.to_string()))?;
        self.about.figures.iter().try_for_each(|f| f.check(&shapes)).map_err(|e| wrong(e.to_string()))
    }
}

type Keys = Vec<(String, Vec<String>)>;

fn shapes<'a>(scenarios: &'a [Scenario], keys: &'a [Keys]) -> Vec<Shape<'a>> {
    let shape = |(s, keys): (&'a Scenario, &'a Keys)| Shape {
        name: &s.name,
        keys: keys.iter().map(|(k, v)| (k.as_str(), v.as_slice())).collect(),
        metrics: s.measures.iter().map(|m| m.name.as_str()).collect(),
        series: s.series.iter().map(|s| s.name.as_str()).collect(),
    };
    scenarios.iter().zip(keys).map(shape).collect()
}

/// Reads the experiment of a folder; `before` stands before its files' names in messages.
fn of_folder(before: &str, open: Open<'_>) -> Result<Experiment, ScenarioError> {
    let head = format!("{before}experiment.toml");
    let wrong = |file: &str, what: String| ScenarioError { file: format!("{before}{file}"), line: None, what };
    let text = open("experiment.toml").map_err(|e| wrong("experiment.toml", e))?;
    let f: File = toml_file(&head, &text)?;
    let mut scenarios = Vec::new();
    for path in &f.scenarios {
        let text = open(path).map_err(|e| wrong("experiment.toml", e))?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = |name: &str| open(&normal(folder, name));
        scenarios.push(Scenario::parse(&format!("{before}{path}"), &text, &beside)?);
    }
    let mut claims: Vec<Claim> = scenarios.iter().flat_map(|s| s.claims.clone()).collect();
    for path in &f.claims {
        let text = open(path).map_err(|e| wrong("experiment.toml", e))?;
        claims.extend(toml_file::<ClaimFile>(&format!("{before}{path}"), &text)?.claims);
    }
    let own = |s: &Scenario| -> Vec<Figure> {
        let of_it =
            |f: &Figure| Figure { scenario: Some(f.scenario.clone().unwrap_or_else(|| s.name.clone())), ..f.clone() };
        s.figures.iter().map(of_it).collect()
    };
    let mut figures: Vec<Figure> = scenarios.iter().flat_map(own).collect();
    if f.figures.is_empty() {
        figures.extend(scenarios.iter().flat_map(pictures::of));
        tell_apart(&mut figures);
    }
    for path in &f.figures {
        let text = open(path).map_err(|e| wrong("experiment.toml", e))?;
        figures.extend(toml_file::<FigureFile>(&format!("{before}{path}"), &text)?.figures);
    }
    let File { name, title, question, source, notes, .. } = f;
    let about = About { title, question, source, notes, claims, figures, ..About::default() };
    let e = Experiment { name, about, scenarios };
    e.check(&head).map(|()| e)
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

/// `folder/name` without `..`.
fn normal(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn toml_file<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ScenarioError> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().and_then(|s| text.get(..s.start)).map(|before| before.matches('\n').count() + 1);
        ScenarioError { file: file.to_owned(), line, what: e.message().replace('\n', "; ") }
    })
}
