//! Files that a scenario names: `{ file = "cell.trace" }` is replaced by the text of that file, wherever a trace is
//! wanted. The text becomes part of the scenario, so a run is known by what was in the file.

use super::Reader;
use crate::document::{Node, Origin, Part, Problem, Table, Value};

/// Reads every file that is named in `table`.
pub(super) fn load(table: &mut Table, others: Reader<'_>) -> Result<(), Problem> {
    Loader { others, part: String::new(), keys: Vec::new() }.table(table)
}

struct Loader<'r> {
    others: Reader<'r>,
    /// The part of the file with a name of its own: flow `main`.
    part: String,
    /// The keys that lead from there to the value.
    keys: Vec<String>,
}

impl Loader<'_> {
    fn table(&mut self, table: &mut Table) -> Result<(), Problem> {
        let keys: Vec<String> = table.keys().map(str::to_owned).collect();
        for (key, node) in keys.into_iter().zip(table.values_mut()) {
            self.keys.push(key);
            self.value(node)?;
            self.keys.pop();
        }
        Ok(())
    }

    fn value(&mut self, node: &mut Node) -> Result<(), Problem> {
        let at = node.at.clone();
        match &mut node.value {
            Value::List(list) => list.iter_mut().try_for_each(|one| self.element(one)),
            Value::Table(table) => {
                let Some(name) = table.text("file").filter(|_| !table.contains("text")) else {
                    return self.table(table);
                };
                let text = (self.others)(name).map_err(|e| self.wrong(&at, e))?;
                table.put("text", Node::text(&text, &at));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn element(&mut self, one: &mut Node) -> Result<(), Problem> {
        let name = one.as_table().and_then(|t| t.text("name"));
        let Some((name, list)) = name.zip(self.keys.last()) else { return self.value(one) };
        let part = format!("{list} `{name}`");
        let mut inner = Loader { others: self.others, part, keys: Vec::new() };
        inner.value(one)
    }

    fn wrong(&self, at: &Origin, what: String) -> Problem {
        match &self.keys[..] {
            [] => Problem::new(at, what),
            keys if !self.part.is_empty() => Problem::of_key(&self.part, &keys.join("."), at, what),
            [key] => Problem::of_key("", key, at, what),
            [around @ .., key] => Problem::of_key(&format!("[{}]", around.join(".")), key, at, what),
        }
    }
}

/// A file and what is said beside it.
pub(super) struct Trace<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its text.
    pub text: &'t str,
    beside: Part<'t>,
}

impl<'t> Trace<'t> {
    /// The file that the value of `key` names; beside it only the keys `beside` are allowed.
    pub fn of(part: Part<'t>, key: &str, value: &'t Node, beside: &[&str]) -> Result<Self, Problem> {
        let wanted = || part.at(key, "needs a file, such as { file = \"cell.trace\" }");
        let inner = Part::new(part.name, value.as_table().ok_or_else(wanted)?);
        let known: Vec<&str> = ["file"].iter().chain(beside).copied().collect();
        if let Some(other) = inner.table.keys().find(|k| *k != "text" && !known.contains(k)) {
            return Err(inner.unknown(other, &known));
        }
        let get = |of: &str| inner.table.text(of).ok_or_else(wanted);
        Ok(Trace { name: get("file")?, text: get("text")?, beside: inner })
    }

    /// A switch beside it.
    pub fn flag(&self, key: &str, unless_said: bool) -> Result<bool, Problem> {
        match self.beside.table.get(key).map(|node| &node.value) {
            None => Ok(unless_said),
            Some(Value::Boolean(b)) => Ok(*b),
            Some(_) => Err(self.beside.at(key, "is true or false")),
        }
    }

    /// A number of bytes beside it.
    pub fn bytes(&self, key: &str) -> Result<Option<u32>, Problem> {
        match self.beside.table.get(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Integer(n)) if (1..=1_000_000).contains(n) => Ok(u32::try_from(*n).ok()),
            Some(_) => Err(self.beside.at(key, "needs whole bytes from 1 to 1000000")),
        }
    }

    /// What is wrong with the text, naming the file.
    pub fn wrong(&self, part: Part<'_>, key: &str, error: impl core::fmt::Display) -> Problem {
        part.at(key, format!("{}: {error}", self.name))
    }
}
