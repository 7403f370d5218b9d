//! Scenarios: what an experiment runs, as data.
//!
//! A scenario names a topology, flows over it, sweeps that change keys of both, and what is measured. Every mistake is
//! found before anything runs, as one line with file and key.

mod error;
mod files;
mod flow;
mod form;
mod lacks;
mod lines;
mod links;
mod names;
mod others;
mod plan;
mod room;
mod series;
mod sweep;
mod topology;
mod traffic;
mod units;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_mistakes;

pub use error::ScenarioError;
pub use flow::{Flow, LARGEST_DATAGRAM, Limits, Playout, Sctp, Transport};
pub use form::{Choice, Point};
pub use names::of_file as check_name;
pub use plan::{Measure, Of, Plan, covers};
pub use series::{Noted, SeriesOf, unit_of};

use crate::claims::Claim;
use crate::figures::Figure;
use error::{Part, Problem, section};
use serde::Deserialize;
use std::collections::BTreeMap;
use sweep::{Quick, Sweep};
use toml::{Table, Value};

/// A scenario as its file says it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: `e2-case1`.
    pub name: String,
    /// What it asks, for people.
    pub title: String,
    /// Where it comes from: a paper, a section.
    pub source: String,
    /// Its own number of seeds.
    pub seeds: u64,
    /// What its claims are.
    pub claims: Vec<Claim>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// What it measures.
    pub measures: Vec<Measure>,
    /// What it notes over time.
    pub series: Vec<SeriesOf>,
    file: String,
    text: String,
    base: Table,
    sweeps: Vec<Sweep>,
    quick: Option<Quick>,
}

/// Keys of the file that are not the network's.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Head {
    name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    source: String,
    #[serde(default = "ten")]
    seeds: u64,
    metrics: Vec<String>,
    #[serde(default)]
    series: Vec<String>,
}

const fn ten() -> u64 {
    10
}

/// Keys that a point of a sweep is made of.
const NETWORK: [&str; 6] = ["topology", "flow", "duration", "measure-from", "bin", "events"];
const HEAD: [&str; 6] = ["name", "title", "source", "seeds", "metrics", "series"];
const REST: [&str; 5] = ["sweep", "quick", "figure", "claim", "extends"];

/// Reads the text of a file that a scenario names.
pub type Reader<'r> = &'r dyn Fn(&str) -> Result<String, String>;

impl Scenario {
    /// Reads a scenario. `file` is its name in messages; `others` reads what it extends and
    /// the traces it names.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(file: &str, text: &str, others: Reader<'_>) -> Result<Scenario, ScenarioError> {
        let mut table = whole(file, text, others)?;
        files::load(&mut table, others).map_err(|p| p.inside(file, text))?;
        let s = read(file, text, table).map_err(|p| p.inside(file, text))?;
        let empty = s.check()?.into_iter().zip(&s.measures).find_map(|(why, m)| Some((why?, m)));
        if let Some((why, m)) = empty {
            let what = format!("`{}` would always be empty: {why}", m.name);
            return Err(Problem::at("", "metrics", what).inside(file, text));
        }
        s.check_quick()?;
        Ok(s)
    }

    /// Its file, as named in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What its file says.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The sweep keys with their values.
    pub fn keys(&self) -> Vec<(String, Vec<String>)> {
        self.sweeps.iter().map(|s| (s.name.clone(), s.labels())).collect()
    }

    /// The keys of the network that each sweep sets.
    pub fn sets(&self) -> BTreeMap<String, Vec<String>> {
        self.sweeps.iter().map(|s| (s.name.clone(), s.sets.all().to_vec())).collect()
    }

    /// The same scenario with a key set, as by a sweep: `flow.main.receive-buffer`, `duration`.
    ///
    /// # Errors
    /// A key or value that cannot be.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        let parsed = format!("x = {value}").parse::<Table>().ok().and_then(|mut t| t.remove("x"));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        let wrong = |what: String| ScenarioError { file: "--set".to_owned(), line: None, what };
        let first = key.split('.').next().unwrap_or_default();
        if !NETWORK.contains(&first) {
            return Err(wrong(format!("`{key}` is no key of the network; it begins with {}", NETWORK.join(", "))));
        }
        if let Some(s) = self.sweeps.iter().find(|s| s.sets.all().iter().any(|k| k == key)) {
            return Err(wrong(format!("`{key}` is swept by `{}`", s.name)));
        }
        sweep::set(&mut self.base, key, &value).map_err(wrong)?;
        // What the file measures may have no value now.
        self.check().map(drop).map_err(|e| wrong(format!("`{key}`: {}", e.what)))
    }

    /// Every point must make a network that runs. Tells of each metric why it is empty, where it is at every point.
    fn check(&self) -> Result<Vec<Option<String>>, ScenarioError> {
        let mut empty: Vec<Option<String>> = vec![None; self.measures.len()];
        let mut open = vec![true; self.measures.len()];
        for at in sweep::product(&self.sweeps) {
            let plan = self.plan(&at)?;
            for ((m, why), open) in self.measures.iter().zip(&mut empty).zip(&mut open).filter(|(_, open)| **open) {
                match lacks::why(&plan, m) {
                    Some(reason) => drop(why.get_or_insert(reason)),
                    None => (*why, *open) = (None, false),
                }
            }
        }
        Ok(empty)
    }

    /// Every point of the quick form must as well.
    fn check_quick(&self) -> Result<(), ScenarioError> {
        let Some(quick) = &self.quick else { return Ok(()) };
        let wrong = |key: &str, what: String| Problem::at("[quick.set]", key, what).inside(&self.file, &self.text);
        let of = |set: &Table| {
            let s = Scenario { quick: Some(Quick { set: set.clone(), ..quick.clone() }), ..self.clone() };
            s.chosen(Choice { quick: true, seeds: None })?.check().map(drop)
        };
        for key in quick.set.keys() {
            if !NETWORK.contains(&key.split('.').next().unwrap_or_default()) {
                return Err(wrong(
                    key,
                    format!("`{key}` is no key of the network; it begins with {}", NETWORK.join(", ")),
                ));
            }
            if let Some(s) = self.sweeps.iter().find(|s| s.sets.all().iter().any(|k| k == key)) {
                return Err(wrong(key, format!("`{key}` is swept by `{}`: choose values in `sweep`", s.name)));
            }
        }
        of(&quick.set).map_err(|e| {
            // Which of them it is, unless it takes several.
            let alone = |(key, value): &(&String, &Value)| {
                let one = Table::from_iter([((*key).clone(), (*value).clone())]);
                of(&one).is_err()
            };
            match quick.set.iter().find(alone) {
                Some((key, _)) => wrong(key, e.what),
                None => Problem::new("[quick.set]", e.what).inside(&self.file, &self.text),
            }
        })
    }

    /// The network at a point of the sweep.
    fn table(&self, at: &[usize]) -> Result<Table, Problem> {
        let mut t = self.base.clone();
        self.sweeps.iter().zip(at).try_for_each(|(s, i)| s.apply(&mut t, *i))?;
        Ok(t)
    }

    fn plan(&self, at: &[usize]) -> Result<Plan, ScenarioError> {
        let point = || {
            let one =
                |(s, i): (&Sweep, &usize)| format!("{} = {}", s.name, s.labels().get(*i).cloned().unwrap_or_default());
            self.sweeps.iter().zip(at).map(one).collect::<Vec<_>>().join(", ")
        };
        let made = self.table(at).and_then(|t| plan::read(&t, &self.measures, &self.series));
        made.map_err(|p| {
            let of = |(s, i): (&Sweep, &usize)| {
                let part = s.sets.all().iter().find_map(|key| p.set_by(key))?;
                let line = lines::of_sweep(&self.text, &s.name, (part == Part::Value).then_some(*i));
                Some((part, line))
            };
            let swept = self.sweeps.iter().zip(at).rev().find_map(of);
            let mut e = p.inside(&self.file, &self.text);
            e.line = swept.and_then(|s| s.1).or(e.line);
            // A mistake at the first point is most likely one at all.
            if at.iter().any(|i| *i > 0) || swept.is_some_and(|s| s.0 == Part::Value) {
                e.what = format!("{} (at {})", e.what, point());
            }
            e
        })
    }
}

/// The text of a scenario with what it extends put in, so that it stands alone.
///
/// # Errors
/// It, or what it extends, cannot be read.
pub fn merged(file: &str, text: &str, others: Reader<'_>) -> Result<String, ScenarioError> {
    if !text.lines().any(|l| l.starts_with("extends")) {
        return Ok(text.to_owned());
    }
    let failed = |e: toml::ser::Error| ScenarioError { file: file.to_owned(), line: None, what: e.to_string() };
    toml::to_string_pretty(&whole(file, text, others)?).map_err(failed)
}

/// The table of a file, with what it extends below it. Its flows come after those.
fn whole(file: &str, text: &str, others: Reader<'_>) -> Result<Table, ScenarioError> {
    let mut table: Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().and_then(|s| text.get(..s.start)).map(|before| before.matches('\n').count() + 1);
        ScenarioError { file: file.to_owned(), line, what: e.message().replace('\n', "; ") }
    })?;
    let Some(extends) = table.remove("extends") else { return Ok(table) };
    let wrong = |what: String| Problem::at("", "extends", what).inside(file, text);
    let other = extends.as_str().ok_or_else(|| wrong("needs the name of a file".into()))?;
    let below = others(other).map_err(wrong)?;
    let mut base: Table = below.parse().map_err(|e: toml::de::Error| wrong(format!("{other}: {}", e.message())))?;
    if base.contains_key("extends") {
        return Err(wrong(format!("`{other}` extends another one itself")));
    }
    if let Some(Value::Array(more)) = table.remove("flow") {
        let flows = base.entry("flow").or_insert_with(|| Value::Array(Vec::new()));
        flows.as_array_mut().into_iter().for_each(|f| f.extend(more.iter().cloned()));
    }
    sweep::merge(&mut base, table);
    Ok(base)
}

fn read(file: &str, text: &str, mut table: Table) -> Result<Scenario, Problem> {
    let known: Vec<&str> = HEAD.into_iter().chain(NETWORK).chain(REST).collect();
    if let Some(key) = table.keys().find(|k| !known.contains(&k.as_str())) {
        return Err(Problem::unknown("", key, &known));
    }
    let mut list = |key: &str| match table.remove(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(Problem::at("", key, format!("needs [[{key}]]"))),
    };
    let (sweeps, figures, claims) = (list("sweep")?, list("figure")?, list("claim")?);
    let quick: Option<Quick> = table.remove("quick").map(|q| section("[quick]", q)).transpose()?;
    let (mut head, mut base) = (Table::new(), Table::new());
    for (key, value) in table {
        let to = if HEAD.contains(&key.as_str()) { &mut head } else { &mut base };
        to.insert(key, value);
    }
    let head: Head = section("", Value::Table(head))?;
    let sweeps = sweeps.into_iter().map(|s| {
        let name = s.get("name").and_then(Value::as_str).unwrap_or_default();
        let sweep: Sweep = section(&format!("sweep `{name}`"), s.clone())?;
        sweep.check().map(|()| sweep)
    });
    let sweeps = sweeps.collect::<Result<Vec<Sweep>, Problem>>()?;
    quick.iter().filter_map(|q| q.seeds).try_for_each(|n| names::seeds("[quick]", n))?;
    let named = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let claims = claims.into_iter().map(|c| section(&format!("claim `{}`", named(&c, "id")), c));
    let claims = claims.collect::<Result<Vec<Claim>, Problem>>()?;
    let figures = figures.into_iter().map(|f| section(&format!("figure `{}`", named(&f, "name")), f));
    let figures = figures.collect::<Result<Vec<Figure>, Problem>>()?;
    let measures = plan::measures(&base, &head.metrics)?;
    let series = series::read(&plan::groups(&base)?, &plan::cables(&base)?, &head.series)?;
    let Head { name, title, source, seeds, .. } = head;
    names::of_file(&name).map_err(|e| Problem::at("", "name", e))?;
    names::seeds("", seeds)?;
    names::of_sweeps(&sweeps, &measures, !series.is_empty())?;
    for (key, values) in quick.iter().flat_map(|q| &q.sweep) {
        let names: Vec<&str> = sweeps.iter().map(|s| s.name.as_str()).collect();
        let of =
            sweeps.iter().find(|s| s.name == *key).ok_or_else(|| Problem::unknown("[quick.sweep]", key, &names))?;
        of.clone().keep(values).map_err(|what| Problem::at("[quick.sweep]", key, what))?;
    }
    let (file, text) = (file.to_owned(), text.to_owned());
    Ok(Scenario { name, title, source, seeds, claims, figures, measures, series, file, text, base, sweeps, quick })
}
