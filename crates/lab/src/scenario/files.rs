//! Files that a scenario names: `{ file = "cell.trace" }` stands for the text of that file, wherever a trace is
//! wanted. The text becomes part of the scenario, so a run is known by what was in the file.

use super::Reader;
use super::error::Problem;
use toml::{Table, Value};

/// Reads every file that is named in `table`.
pub(super) fn load(table: &mut Table, others: Reader<'_>) -> Result<(), Problem> {
    load_table(&mut Vec::new(), table, others)
}

/// `path` leads from the file to the table.
fn load_table(path: &mut Vec<String>, table: &mut Table, others: Reader<'_>) -> Result<(), Problem> {
    for (key, value) in table {
        path.push(key.clone());
        load_value(path, value, others)?;
        path.pop();
    }
    Ok(())
}

fn load_value(path: &mut Vec<String>, value: &mut Value, others: Reader<'_>) -> Result<(), Problem> {
    match value {
        Value::Array(list) => {
            for one in list {
                let name = one.get("name").and_then(Value::as_str);
                // A part of the file with a name of its own: flow `main`.
                let mut named = name.zip(path.last()).map(|(name, list)| vec![format!("{list} `{name}`")]);
                load_value(named.as_mut().unwrap_or(path), one, others)?;
            }
            Ok(())
        }
        Value::Table(table) => {
            if let Some(name) = table.get("file").and_then(Value::as_str).filter(|_| !table.contains_key("text")) {
                let text = others(name).map_err(|e| wrong(path, e))?;
                table.insert("text".to_owned(), Value::String(text));
                return Ok(());
            }
            load_table(path, table, others)
        }
        _ => Ok(()),
    }
}

/// What is wrong with the key at the end of `path`.
fn wrong(path: &[String], what: String) -> Problem {
    match path {
        [named, key @ ..] if named.ends_with('`') => Problem::at(named, &key.join("."), what),
        [key] => Problem::at("", key, what),
        [around @ .., key] => Problem::at(&format!("[{}]", around.join(".")), key, what),
        [] => Problem::new("", what),
    }
}

/// A file and what is said beside it.
pub(super) struct Trace<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its text.
    pub text: &'t str,
    table: &'t Table,
}

impl<'t> Trace<'t> {
    /// The file that the value of `key` names; beside it only the keys `beside` may stand.
    pub fn of(place: &str, key: &str, value: &'t Value, beside: &[&str]) -> Result<Self, Problem> {
        let wanted = || Problem::at(place, key, "needs a file, such as { file = \"cell.trace\" }");
        let table = value.as_table().ok_or_else(wanted)?;
        let known: Vec<&str> = ["file"].iter().chain(beside).copied().collect();
        if let Some(other) = table.keys().find(|k| *k != "text" && !known.contains(&k.as_str())) {
            return Err(Problem::unknown(place, other, &known));
        }
        let get = |of: &str| table.get(of).and_then(Value::as_str).ok_or_else(wanted);
        Ok(Trace { name: get("file")?, text: get("text")?, table })
    }

    /// A switch beside it.
    pub fn flag(&self, place: &str, key: &str, unless_said: bool) -> Result<bool, Problem> {
        match self.table.get(key) {
            None => Ok(unless_said),
            Some(Value::Boolean(b)) => Ok(*b),
            Some(_) => Err(Problem::at(place, key, "is true or false")),
        }
    }

    /// A number of bytes beside it.
    pub fn bytes(&self, place: &str, key: &str) -> Result<Option<u32>, Problem> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Integer(n)) if (1..=1_000_000).contains(n) => Ok(u32::try_from(*n).ok()),
            Some(_) => Err(Problem::at(place, key, "needs whole bytes from 1 to 1000000")),
        }
    }

    /// What is wrong with the text, naming the file.
    pub fn wrong(&self, place: &str, key: &str, error: impl core::fmt::Display) -> Problem {
        Problem::at(place, key, format!("{}: {error}", self.name))
    }
}
