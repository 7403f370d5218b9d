//! Sweeps: which keys take which values, and every point of their product.

use super::error::Problem;
use super::units::Names;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// `[[sweep]]`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sweep {
    /// Name of the key in results.
    pub name: String,
    /// Keys of the scenario that take the value: `flow.main.receive-buffer`.
    pub sets: Names,
    /// The values, as they appear in results.
    pub values: Vec<Value>,
    /// What is set in their place, one for each.
    #[serde(rename = "as", default)]
    pub meaning: Vec<Value>,
}

/// `[quick]`.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    pub seeds: Option<u64>,
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<Value>>,
    /// Other keys that differ: `duration = "5s"`.
    #[serde(default)]
    pub set: Table,
}

/// A value as it appears in results.
pub(super) fn label(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        // Not what is in the file.
        Value::Table(t) if t.contains_key("file") => t["file"].as_str().unwrap_or_default().to_owned(),
        other => other.to_string(),
    }
}

impl Sweep {
    pub fn place(&self) -> String {
        format!("sweep `{}`", self.name)
    }

    pub fn check(&self) -> Result<(), Problem> {
        let place = self.place();
        if self.values.is_empty() || self.sets.all().is_empty() {
            return Err(Problem::new(&place, "needs a value and a key that it sets"));
        }
        if !self.meaning.is_empty() && self.meaning.len() != self.values.len() {
            return Err(Problem::at(&place, "as", "needs one entry for each of `values`"));
        }
        let mut labels: Vec<String> = self.labels();
        labels.sort();
        match labels.windows(2).find(|w| w[0] == w[1]) {
            Some(twice) => Err(Problem::at(&place, "values", format!("`{}` stands there twice", twice[0]))),
            None => Ok(()),
        }
    }

    pub fn labels(&self) -> Vec<String> {
        self.values.iter().map(label).collect()
    }

    /// Keeps these values only.
    pub fn keep(&mut self, some: &[Value]) -> Result<(), String> {
        let labels = self.labels();
        let known = |v: &&Value| labels.contains(&label(v));
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

    /// Puts value number `i` into the scenario.
    pub fn apply(&self, scenario: &mut Table, i: usize) -> Result<(), Problem> {
        let values = if self.meaning.is_empty() { &self.values } else { &self.meaning };
        let Some(value) = values.get(i) else { return Ok(()) };
        self.sets
            .all()
            .iter()
            .try_for_each(|key| set(scenario, key, value).map_err(|e| Problem::at(&self.place(), "sets", e)))
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
pub(super) fn set(scenario: &mut Table, path: &str, value: &Value) -> Result<(), String> {
    let mut parts: Vec<&str> = path.split('.').collect();
    let Some(last) = parts.pop().filter(|l| !l.is_empty()) else { return Err("an empty key".to_owned()) };
    if parts.first() == Some(&"flow") {
        // A flow itself takes keys, which go beside those it has.
        let keys = value.as_table().filter(|_| parts.len() == 1);
        let own = keys.map(|_| last);
        let name = parts.get(1).copied().or(own);
        let name = name.ok_or_else(|| format!("`{path}` names no flow: write flow.NAME.{last}"))?;
        let flows = scenario.get_mut("flow").and_then(Value::as_array_mut);
        let matches = |t: &Table| {
            let own = t.get("name").and_then(Value::as_str).unwrap_or_default();
            name.strip_suffix('*').map_or(own == name, |start| own.starts_with(start))
        };
        let mut any = false;
        for table in flows.into_iter().flatten().filter_map(Value::as_table_mut).filter(|t| matches(t)) {
            any = true;
            if let Some(keys) = keys {
                table.extend(keys.clone());
                continue;
            }
            put(table, &parts[2..], last, value).map_err(|e| format!("`{path}`: {e}"))?;
        }
        return if any { Ok(()) } else { Err(format!("`{path}`: there is no flow `{name}`")) };
    }
    put(scenario, &parts, last, value).map_err(|e| format!("`{path}`: {e}"))
}

fn put(mut at: &mut Table, parts: &[&str], last: &str, value: &Value) -> Result<(), String> {
    for part in parts {
        let inner = at.entry(*part).or_insert_with(|| Value::Table(Table::new()));
        // A bare word such as traffic = "bulk" gives way to keys.
        at = inner.as_table_mut().ok_or_else(|| format!("`{part}` has no keys of its own"))?;
    }
    at.insert(last.to_owned(), value.clone());
    Ok(())
}

/// Puts `over` into `base`: tables key by key, anything else in place of what was there.
pub(super) fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(more)) => merge(inner, more),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
