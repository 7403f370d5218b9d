//! Sweeps: which keys take which values, and every point of their product.

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
    /// Keys of the scenario that take the value: `flow.main.receive-buffer`.
    pub sets: Names,
    /// The values, as they appear in results.
    pub values: Vec<Node>,
    /// What is set in their place, one for each.
    meaning: Vec<Node>,
    table: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepKeys {
    name: String,
    sets: Names,
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
        let sweep = Sweep { name, sets, values: list("values"), meaning: list("as"), table: table.clone() };
        sweep.check()?;
        Ok(sweep)
    }

    /// What is wrong with the value of one of its keys.
    pub fn wrong(&self, key: &str, what: impl Into<String>) -> Problem {
        Part::new(&format!("sweep `{}`", self.name), &self.table).at(key, what)
    }

    fn check(&self) -> Result<(), Problem> {
        if self.values.is_empty() || self.sets.all().is_empty() {
            let key = if self.values.is_empty() { "values" } else { "sets" };
            return Err(self.wrong(key, "needs one or more"));
        }
        if !self.meaning.is_empty() && self.meaning.len() != self.values.len() {
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
            return Err(format!("`{lost}` is none of the values of `{}`; there are {}", self.name, labels.join(", ")));
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
        let values = if self.meaning.is_empty() { &self.values } else { &self.meaning };
        let (Some(value), Some(sets)) = (values.get(i), self.table.get("sets")) else { return Ok(()) };
        let entry = Entry { key: sets.at.clone(), node: value.clone().put_by(By::Sweep) };
        self.sets.all().iter().try_for_each(|key| set(scenario, key, &entry).map_err(|e| self.wrong("sets", e)))
    }
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

/// Sets the key at a dotted path; `flow.NAME` finds the flow of that name, and `flow.NAME*` all whose names begin so.
pub(super) fn set(scenario: &mut Table, path: &str, entry: &Entry) -> Result<(), String> {
    let mut parts: Vec<&str> = path.split('.').collect();
    let Some(last) = parts.pop().filter(|l| !l.is_empty()) else { return Err(format!("`{path}` ends without a key")) };
    let has_none = |part: &str| format!("`{path}`: `{part}` has no keys of its own");
    if parts.first() != Some(&"flow") {
        scenario.beneath(&parts, &entry.key).map_err(has_none)?.insert(last, entry.clone());
        return Ok(());
    }
    // A flow itself takes keys, which go beside those it has.
    let keys = entry.node.as_table().filter(|_| parts.len() == 1);
    let own = keys.map(|_| last);
    let name = parts.get(1).copied().or(own);
    let name = name.ok_or_else(|| format!("`{path}` names no flow: write flow.NAME.{last}"))?;
    let flows = scenario.get_mut("flow").map(|node| &mut node.value);
    let flows = if let Some(Value::List(flows)) = flows { &mut flows[..] } else { &mut [] };
    let mut any = false;
    for table in flows.iter_mut().filter_map(Node::as_table_mut) {
        let own = table.text("name").unwrap_or_default();
        if !name.strip_suffix('*').map_or(own == name, |start| own.starts_with(start)) {
            continue;
        }
        any = true;
        match keys {
            Some(keys) => keys.clone().into_entries().for_each(|(key, entry)| table.insert(&key, entry)),
            None => table.beneath(&parts[2..], &entry.key).map_err(has_none)?.insert(last, entry.clone()),
        }
    }
    if any { Ok(()) } else { Err(format!("`{path}`: there is no flow `{name}`")) }
}
