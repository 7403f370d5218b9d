//! Sweeps: which keys take which values, and every point of their product.

use super::NETWORK;
use super::set::{added_flows, set};
use super::units::Names;
use crate::document::{By, Entry, Node, Part, Problem, Table, Value, read};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// `[[sweep]]`.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// Name of the key in results.
    pub name: String,
    /// Keys of the scenario that take values: `flow.main.receive-buffer`.
    pub sets: Vec<String>,
    /// The values, as they appear in results.
    pub values: Vec<Node>,
    /// What is set in their place, one for each.
    meaning: Vec<Node>,
    /// Each step has a table of keys with a value for each, and there is no list of them.
    by_step: bool,
    table: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepKeys {
    name: String,
    sets: Option<Names>,
    #[serde(rename = "values")]
    _values: Vec<IgnoredAny>,
    #[serde(rename = "as", default)]
    _as: Vec<IgnoredAny>,
}

/// `[quick]`.
#[derive(Clone, Debug)]
pub(super) struct Quick {
    pub seeds: Option<u64>,
    /// Some of a sweep's values, by its name.
    pub sweep: Table,
    /// Other keys that differ: `duration = "5s"`.
    pub set: Table,
    table: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuickKeys {
    seeds: Option<u64>,
    #[serde(default, rename = "sweep")]
    _sweep: BTreeMap<String, Vec<IgnoredAny>>,
    #[serde(default, rename = "set")]
    _set: BTreeMap<String, IgnoredAny>,
}

impl Quick {
    /// Reads the table.
    pub fn read(table: &Table) -> Result<Quick, Problem> {
        let QuickKeys { seeds, .. } = read(Part::new("[quick]", table))?;
        let of = |key: &str| table.table(key).cloned().unwrap_or_else(|| Table::new(&table.at));
        Ok(Quick { seeds, sweep: of("sweep"), set: of("set"), table: table.clone() })
    }

    pub fn part(&self) -> Part<'_> {
        Part::new("[quick]", &self.table)
    }

    pub fn sweep_part(&self) -> Part<'_> {
        Part::new("[quick.sweep]", &self.sweep)
    }

    pub fn set_part(&self) -> Part<'_> {
        Part::new("[quick.set]", &self.set)
    }
}

/// A value as it appears in results.
pub(super) fn label(v: &Node) -> String {
    match &v.value {
        Value::Text(text) => text.clone(),
        // Not what is in the file.
        Value::Table(t) if t.contains("file") => t.text("file").unwrap_or_default().to_owned(),
        _ => v.plain().to_string(),
    }
}

impl Sweep {
    /// Reads a table of the list.
    pub fn read(node: &Node) -> Result<Sweep, Problem> {
        let table = node.as_table().ok_or_else(|| Problem::of_key("", "sweep", &node.at, "needs [[sweep]]"))?;
        let place = format!("sweep `{}`", table.text("name").unwrap_or_default());
        let SweepKeys { name, sets, .. } = read(Part::new(&place, table))?;
        let list = |key: &str| table.list(key).to_vec();
        let (values, meaning) = (list("values"), list("as"));
        let by_step = sets.is_none();
        let sets = match sets {
            Some(sets) => sets.all().to_vec(),
            None => keys_of_steps(Part::new(&place, table), &meaning)?,
        };
        let sweep = Sweep { name, sets, values, meaning, by_step, table: table.clone() };
        sweep.check()?;
        Ok(sweep)
    }

    /// What is wrong with a key that it sets.
    pub fn wrong_key(&self, key: &str, what: impl Into<String>) -> Problem {
        let steps = self.meaning.iter().filter_map(Node::as_table);
        match steps.filter(|_| self.by_step).find(|t| t.contains(key)) {
            Some(step) => Part::new(&format!("sweep `{}`", self.name), step).named(key, what),
            None => self.wrong("sets", what),
        }
    }

    /// The names of all flows that it may add.
    pub fn added_flows(&self) -> Vec<String> {
        let added = |i| self.step(i).into_iter().flat_map(|(key, entry)| added_flows(&key, &entry.node));
        (0..self.values.len()).flat_map(added).collect()
    }

    /// What is wrong with the value of one of its keys.
    pub fn wrong(&self, key: &str, what: impl Into<String>) -> Problem {
        Part::new(&format!("sweep `{}`", self.name), &self.table).at(key, what)
    }

    fn check(&self) -> Result<(), Problem> {
        if self.values.is_empty() || self.sets.is_empty() && !self.by_step {
            let key = if self.values.is_empty() { "values" } else { "sets" };
            return Err(self.wrong(key, "needs one or more"));
        }
        if (self.by_step || !self.meaning.is_empty()) && self.meaning.len() != self.values.len() {
            return Err(self.wrong("as", "needs one entry for each of `values`"));
        }
        let mut labels: Vec<String> = self.labels();
        labels.sort();
        match labels.windows(2).find(|w| w[0] == w[1]) {
            Some(twice) => Err(self.wrong("values", format!("`{}` is there twice", twice[0]))),
            None => Ok(()),
        }
    }

    pub fn labels(&self) -> Vec<String> {
        self.values.iter().map(label).collect()
    }

    /// Keeps these values only.
    pub fn keep(&mut self, some: &[Node]) -> Result<(), String> {
        let labels = self.labels();
        let known = |v: &&Node| labels.contains(&label(v));
        if let Some(lost) = some.iter().find(|v| !known(v)) {
            return Err(format!("`{}` is none of its values", label(lost)));
        }
        if some.is_empty() {
            return Err("needs one of its values or more".to_owned());
        }
        let kept: Vec<usize> = (0..labels.len()).filter(|i| some.iter().any(|v| label(v) == labels[*i])).collect();
        self.values = kept.iter().map(|i| self.values[*i].clone()).collect();
        if !self.meaning.is_empty() {
            self.meaning = kept.iter().map(|i| self.meaning[*i].clone()).collect();
        }
        Ok(())
    }

    /// Keeps the values with these labels in results.
    pub fn keep_labels(&mut self, some: &[&str]) -> Result<(), String> {
        let labels = self.labels();
        if let Some(lost) = some.iter().find(|l| !labels.iter().any(|own| own == *l)) {
            let quoted = |l: &String| if l.contains(',') { format!("`{l}`") } else { l.clone() };
            let labels = labels.iter().map(quoted).collect::<Vec<_>>().join(", ");
            return Err(format!("`{lost}` is none of the values of `{}`; there are {labels}", self.name));
        }
        let kept: Vec<Node> = labels
            .iter()
            .zip(&self.values)
            .filter(|(l, _)| some.contains(&l.as_str()))
            .map(|(_, v)| v.clone())
            .collect();
        self.keep(&kept)
    }

    /// Puts value number `i` into the scenario.
    pub fn apply(&self, scenario: &mut Table, i: usize) -> Result<(), Problem> {
        self.step(i).iter().try_for_each(|(key, entry)| set(scenario, key, entry).map_err(|e| self.wrong_key(key, e)))
    }

    /// The keys that value number `i` sets, and what they take.
    fn step(&self, i: usize) -> Vec<(String, Entry)> {
        let values = if self.meaning.is_empty() { &self.values } else { &self.meaning };
        let Some(value) = values.get(i).map(|v| v.clone().put_by(By::Sweep)) else { return Vec::new() };
        match (value.value, self.table.get("sets")) {
            (Value::Table(step), None) => step.into_entries().collect(),
            (one, Some(sets)) => {
                let entry = Entry { key: sets.at.clone(), node: Node { value: one, at: value.at } };
                self.sets.iter().map(|key| (key.clone(), entry.clone())).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The keys of all steps that say their own, each once.
fn keys_of_steps(part: Part<'_>, steps: &[Node]) -> Result<Vec<String>, Problem> {
    let needed = "needs `sets`, or in `as` a table for each value, such as { \"topology.path1.rate\" = \"1mbit\" }";
    let mut keys: Vec<String> = Vec::new();
    if steps.is_empty() {
        return Err(part.wrong(needed));
    }
    for node in steps {
        let step = node.as_table().ok_or_else(|| Problem::of_key(part.name, "as", &node.at, needed))?;
        for (key, value) in step.iter() {
            let wrong = |what: String| Err(Part::new(part.name, step).named(key, what));
            if !NETWORK.contains(&key.split('.').next().unwrap_or_default()) {
                return wrong(format!("`{key}` is no key of the network; it begins with {}", NETWORK.join(", ")));
            }
            if matches!(key, "topology" | "flow") && value.as_table().is_some() {
                let rest = value.as_table().and_then(|t| t.keys().next()).unwrap_or("path1");
                return wrong(format!("`{key}`: write the whole key in quotes, such as \"{key}.{rest}.KEY\""));
            }
            if !keys.iter().any(|k| k == key) {
                keys.push(key.to_owned());
            }
        }
    }
    Ok(keys)
}

/// Every combination, the last sweep fastest: indices into each sweep's values.
pub(super) fn product(sweeps: &[Sweep]) -> Vec<Vec<usize>> {
    sweeps.iter().fold(vec![Vec::new()], |all, s| {
        let with = |head: &Vec<usize>| {
            let head = head.clone();
            (0..s.values.len()).map(move |i| [head.clone(), vec![i]].concat())
        };
        all.iter().flat_map(with).collect()
    })
}
