//! Scenarios: what an experiment runs, as data.
//!
//! A scenario names a topology, flows over it, sweeps that change keys of both, and what is measured. Every mistake is
//! found before anything runs, as one line with file and key.

mod choice;
mod derived;
mod drawn;
mod files;
mod flow;
mod link_layer;
mod links;
mod mptcp;
mod names;
mod phases;
mod plan;
mod queue_limits;
mod sctp;
mod series;
mod set;
mod shared_association;
mod sweep;
mod tcp_udp;
mod topology;
mod traffic;
mod unavailable_metrics;
mod units;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_draws;
#[cfg(test)]
mod tests_of_flows;
#[cfg(test)]
mod tests_of_limits;
#[cfg(test)]
mod tests_of_links;
#[cfg(test)]
mod tests_of_mistakes;
#[cfg(test)]
mod tests_of_shared_associations;
#[cfg(test)]
mod tests_of_sweeps;

pub use crate::document::ScenarioError;
pub use choice::{Choice, Point, Seeds};
pub use derived::Derived;
pub use drawn::Drawn;
pub use flow::{Flow, LARGEST_DATAGRAM, Mptcp, Playout, Transport};
pub(crate) use names::beside;
pub use names::of_file as check_name;
pub use plan::{Measure, Of, Plan, covers};
pub use sctp::{Limits, Sctp};
pub use series::{Noted, SeriesOf, unit_of};

use crate::claims::Claim;
use crate::document::{self, By, Entry, Node, Origin, Part, Problem, Table, Value};
use crate::figures::Figure;
use crate::reference::Reference;
use drawn::Take;
use phases::Asked;
use serde::Deserialize;
use std::collections::BTreeMap;
use sweep::{Quick, Sweep};

/// A scenario as its file says it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: `e2-case1`.
    pub name: String,
    /// What it asks, for people.
    pub title: String,
    /// Where it comes from: a paper, a section.
    pub source: String,
    /// How many seeds it has.
    pub seeds: u64,
    /// The first of them.
    pub first_seed: u64,
    /// What its claims are.
    pub claims: Vec<Claim>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// What it measures.
    pub measures: Vec<Measure>,
    /// What it notes over time.
    pub series: Vec<SeriesOf>,
    /// The means whose delays figures draw one by one: `main.delay`.
    pub distributions: Vec<String>,
    /// Where each of its claims and figures has its name.
    pub(crate) claims_at: Vec<Origin>,
    pub(crate) figures_at: Vec<Origin>,
    /// What others measured, and where each is named.
    pub(crate) references: Vec<Reference>,
    pub(crate) references_at: Vec<Origin>,
    file: String,
    /// What is asked: name, metrics, series.
    head: Table,
    /// The network.
    base: Table,
    sweeps: Vec<Sweep>,
    quick: Option<Quick>,
    asked: Asked,
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

/// Of so many seeds at most the values that are drawn are looked at before anything runs.
const CHECKED_SEEDS: usize = 1_000;

/// Keys that a point of a sweep is made of.
const NETWORK: [&str; 8] = ["topology", "flow", "duration", "measure-from", "measure-to", "phases", "bin", "events"];
const HEAD: [&str; 6] = ["name", "title", "source", "seeds", "metrics", "series"];
const REST: [&str; 7] = ["metric", "sweep", "quick", "figure", "claim", "reference", "extends"];

/// Reads the text of a file that a scenario names.
pub type Reader<'r> = &'r dyn Fn(&str) -> Result<String, String>;

impl Scenario {
    /// Reads a scenario. `file` is its name in messages; `others` reads what it extends and
    /// the traces it names.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(file: &str, text: &str, others: Reader<'_>) -> Result<Scenario, ScenarioError> {
        let mut table = whole(file, text, others)?.0;
        files::load(&mut table, others)?;
        let s = read(file, table)?;
        let empty = s.check()?.into_iter().zip(&s.measures).find_map(|(why, m)| Some((why?, m)));
        if let Some((why, m)) = empty {
            return Err(s.head().at("metrics", format!("`{}` would always be empty: {why}", m.name)).into());
        }
        s.check_quick()?;
        Ok(s)
    }

    fn head(&self) -> Part<'_> {
        Part::new("", &self.head)
    }

    /// Its file, as named in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The sweep keys with their values.
    pub fn keys(&self) -> Vec<(String, Vec<String>)> {
        self.sweeps.iter().map(|s| (s.name.clone(), s.labels())).collect()
    }

    /// Those of its metrics that it defines itself, with their units.
    pub fn defined(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.measures.iter().filter(|m| matches!(m.of, Of::Derived(_)));
        own.map(|m| (m.name.as_str(), m.unit.as_ref()))
    }

    /// The keys of the network that each sweep sets.
    pub fn sets(&self) -> BTreeMap<String, Vec<String>> {
        self.sweeps.iter().map(|s| (s.name.clone(), s.sets.clone())).collect()
    }

    /// This scenario with a key set, as by a sweep: `flow.main.receive-buffer`, `duration`.
    ///
    /// # Errors
    /// A key or value that cannot be.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        let outside = Origin::of_file("--set");
        let parsed = document::parse(&outside, &format!("x = {value}")).ok().and_then(|mut t| t.remove("x"));
        let node = parsed.unwrap_or_else(|| Node::text(value, &outside));
        let wrong = |what: String| Problem::new(&outside, what);
        let first = key.split('.').next().unwrap_or_default();
        if !NETWORK.contains(&first) {
            let what = format!("`{key}` is no key of the network; it begins with {}", NETWORK.join(", "));
            return Err(wrong(what).into());
        }
        if let Some(s) = self.sweeps.iter().find(|s| s.sets.iter().any(|k| k == key)) {
            return Err(wrong(format!("`{key}` is swept by `{}`", s.name)).into());
        }
        set::set(&mut self.base, key, &Entry { key: outside.clone(), node }).map_err(wrong)?;
        // What the file measures may have no value now.
        let checked = self.check().map(drop);
        checked.map_err(|p| wrong(format!("`{key}`: {}", ScenarioError::from(p).what)).into())
    }

    /// Every point must make a network that runs. Says of each metric why it is empty, where it is at every point.
    fn check(&self) -> Result<Vec<Option<String>>, Problem> {
        let mut empty: Vec<Option<String>> = vec![None; self.measures.len()];
        let mut open = vec![true; self.measures.len()];
        for at in sweep::product(&self.sweeps) {
            let plan = self.plan(&at)?;
            for ((m, why), open) in self.measures.iter().zip(&mut empty).zip(&mut open).filter(|(_, open)| **open) {
                match unavailable_metrics::why(&plan, m) {
                    Some(reason) => drop(why.get_or_insert(reason)),
                    None => (*why, *open) = (None, false),
                }
            }
        }
        Ok(empty)
    }

    /// Every point of the quick form must as well.
    fn check_quick(&self) -> Result<(), Problem> {
        let Some(quick) = &self.quick else { return Ok(()) };
        let part = quick.set_part();
        for key in quick.set.keys() {
            if !NETWORK.contains(&key.split('.').next().unwrap_or_default()) {
                let what = format!("`{key}` is no key of the network; it begins with {}", NETWORK.join(", "));
                return Err(part.named(key, what));
            }
            if let Some(s) = self.sweeps.iter().find(|s| s.sets.iter().any(|k| k == key)) {
                let what = format!("`{key}` is swept by `{}`: choose values in `sweep`", s.name);
                return Err(part.named(key, what));
            }
        }
        let checked = self.quickened(quick)?.check().map(drop);
        checked.map_err(|p| match p.origin().by {
            By::Quick => p.inside(part.name),
            // What it sets makes something else a mistake, which was none in the full form.
            By::File | By::Sweep => p.with(" (in the quick form)"),
        })
    }

    /// The network at a point of the sweep.
    fn table(&self, at: &[usize]) -> Result<Table, Problem> {
        let mut t = self.base.clone();
        self.sweeps.iter().zip(at).try_for_each(|(s, i)| s.apply(&mut t, *i))?;
        Ok(t)
    }

    /// The network at a point of the sweep, with the values in the middle of ranges. All of a range must make one.
    fn plan(&self, at: &[usize]) -> Result<Plan, Problem> {
        let read = |t: &Table, values| plan::read(t, values, self.head(), (&self.measures, &self.asked), &self.series);
        let made = self.table(at).and_then(|t| {
            if drawn::any(&t) {
                read(&t, Take::Lowest).map_err(|p| p.with(" (at the lowest value of each range)"))?;
                read(&t, Take::Highest).map_err(|p| p.with(" (at the highest value of each range)"))?;
                for seed in (self.first_seed..=self.all_seeds().last()).take(CHECKED_SEEDS) {
                    read(&t, Take::OfSeed(seed)).map_err(|p| p.with(&format!(" (with seed {seed})")))?;
                }
            }
            read(&t, Take::Middle)
        });
        let made = made.map(|p| Plan { distributions: plan::distributions(&self.measures, &self.distributions), ..p });
        made.map_err(|p| {
            // A mistake at the first point is most likely one at all.
            if p.origin().by != By::Sweep && at.iter().all(|i| *i == 0) {
                return p;
            }
            let one =
                |(s, i): (&Sweep, &usize)| format!("{} = {}", s.name, s.labels().get(*i).cloned().unwrap_or_default());
            let point: Vec<String> = self.sweeps.iter().zip(at).map(one).collect();
            p.with(&format!(" (at {})", point.join(", ")))
        })
    }
}

/// The text of a scenario with what it extends put in, so that it is complete by itself.
///
/// # Errors
/// It, or what it extends, cannot be read.
pub fn merged(file: &str, text: &str, others: Reader<'_>) -> Result<String, ScenarioError> {
    let (table, extends) = whole(file, text, others)?;
    if !extends {
        return Ok(text.to_owned());
    }
    let failed = |e: toml::ser::Error| ScenarioError { file: file.to_owned(), line: None, what: e.to_string() };
    toml::to_string_pretty(&table.plain()).map_err(failed)
}

/// The table of a file, with what it extends below it, and whether it extends anything. Its flows come after those.
fn whole(file: &str, text: &str, others: Reader<'_>) -> Result<(Table, bool), Problem> {
    let mut table = document::parse(&Origin::of_file(file), text)?;
    let Some(extends) = table.remove("extends") else { return Ok((table, false)) };
    let wrong = |what: String| Problem::of_key("", "extends", &extends.at, what);
    let other = extends.as_text().ok_or_else(|| wrong("needs the name of a file".into()))?;
    let below = others(other).map_err(wrong)?;
    let mut base = document::parse(&Origin::of_extended(&names::beside(file, other), &extends.at), &below)?;
    if base.contains("extends") {
        return Err(wrong(format!("`{other}` extends another one itself")));
    }
    let flows = base.get_mut("flow").map(|node| &mut node.value);
    if let (Some(Value::List(flows)), Some(Value::List(more))) = (flows, table.get_mut("flow").map(|n| &mut n.value)) {
        flows.append(more);
        table.remove("flow");
    }
    base.merge(table);
    Ok((base, true))
}

/// What is drawn anywhere.
fn draws(base: &Table, sweeps: &[Sweep]) -> Vec<Drawn> {
    let steps = sweeps.iter().flat_map(|s| (0..s.values.len()).map(move |i| (s, i)));
    let set = steps.filter_map(|(s, i)| {
        let mut table = base.clone();
        s.apply(&mut table, i).ok().map(|()| table)
    });
    // A mistake in one is found when the points are checked.
    let all = std::iter::once(base.clone()).chain(set).filter_map(|t| drawn::take(&t, Take::Middle).ok());
    all.flat_map(|(_, drawn)| drawn).collect()
}

fn read(file: &str, table: Table) -> Result<Scenario, Problem> {
    let whole = Part::new("", &table);
    let known: Vec<&str> = HEAD.into_iter().chain(NETWORK).chain(REST).collect();
    if let Some(key) = table.keys().find(|k| !known.contains(k)) {
        return Err(whole.unknown(key, &known));
    }
    if table.get("sweep").is_some_and(|node| node.as_list().is_none()) {
        return Err(whole.at("sweep", "needs [[sweep]]"));
    }
    let quick = match table.get("quick") {
        Some(node) => Some(Quick::read(node.as_table().ok_or_else(|| whole.at("quick", "needs [quick]"))?)?),
        None => None,
    };
    let mut rest = table.clone();
    let (head, base) = (rest.split(|key| HEAD.contains(&key)), rest.split(|key| NETWORK.contains(&key)));
    let keys: Head = document::read(Part::new("", &head))?;
    let sweeps = table.list("sweep").iter().map(Sweep::read).collect::<Result<Vec<Sweep>, Problem>>()?;
    quick.iter().try_for_each(|q| q.seeds.map_or(Ok(()), |n| names::seeds(q.part(), n)))?;
    let (claims, claims_at) = document::read_list::<Claim>(&table, "claim", "id")?;
    let (figures, figures_at) = document::read_list::<Figure>(&table, "figure", "name")?;
    let (references, references_at) = document::read_list::<Reference>(&table, "reference", "name")?;
    let groups = plan::groups(&base, &sweeps)?;
    let draws = draws(&base, &sweeps);
    let (measures, asked) = plan::measures(whole, &base, (&groups, &draws), &keys.metrics)?;
    let series = series::read(whole, &groups, &plan::cables(&base)?, &keys.series)?;
    let Head { name, title, source, seeds, .. } = keys;
    names::of_file(&name).map_err(|e| whole.at("name", e))?;
    names::seeds(whole, seeds)?;
    names::of_sweeps(whole, &sweeps, &measures, !series.is_empty())?;
    if let Some(q) = &quick {
        for (key, values) in q.sweep.iter() {
            let names: Vec<&str> = sweeps.iter().map(|s| s.name.as_str()).collect();
            let of = sweeps.iter().find(|s| s.name == key).ok_or_else(|| q.sweep_part().unknown(key, &names))?;
            let kept = values.as_list().unwrap_or_default();
            of.clone().keep(kept).map_err(|what| q.sweep_part().at(key, what))?;
        }
    }
    let file = file.to_owned();
    Ok(Scenario {
        name,
        title,
        source,
        seeds,
        first_seed: 1,
        claims,
        figures,
        measures,
        series,
        distributions: Vec::new(),
        claims_at,
        figures_at,
        references,
        references_at,
        file,
        head,
        base,
        sweeps,
        quick,
        asked,
    })
}
