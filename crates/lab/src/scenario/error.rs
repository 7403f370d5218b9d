//! Mistakes in scenario files: one line each, with file, line and key.

use super::lines;
use anabranch_sim::netem::nearest;
use serde::de::DeserializeOwned;
use toml::Value;

/// Why a scenario cannot be run: one line that names file and key and says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{what}", self.place())]
pub struct ScenarioError {
    /// The file, or the name of what is built in.
    pub file: String,
    /// Its line, counted from 1, where it could be found.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl ScenarioError {
    fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}: ", self.file),
            None => format!("{}: ", self.file),
        }
    }
}

/// A mistake before it is known in which file it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    /// Part of the file: "flow `main`".
    place: String,
    key: Option<String>,
    what: String,
    /// The key itself is the mistake, not its value.
    unknown: bool,
    /// The last part of this name is meant.
    again: bool,
}

impl Problem {
    pub fn new(place: &str, what: impl Into<String>) -> Self {
        Problem { place: place.to_owned(), key: None, what: what.into(), unknown: false, again: false }
    }

    pub fn at(place: &str, key: &str, what: impl Into<String>) -> Self {
        Problem { key: Some(key.to_owned()), ..Problem::new(place, what) }
    }

    /// A key that has no meaning here.
    pub fn unknown(place: &str, key: &str, known: &[&str]) -> Self {
        let what = match nearest(key, known.iter().copied()) {
            Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
            None => format!("unknown key `{key}`; known are {}", known.join(", ")),
        };
        Problem { key: Some(key.to_owned()), unknown: true, ..Problem::new(place, what) }
    }

    /// A second part of a name that is taken.
    pub fn again(self) -> Self {
        Problem { again: true, ..self }
    }

    /// The same inside the table that stands behind `key`.
    pub fn beneath(self, key: &str) -> Self {
        let inner = self.key.map_or(key.to_owned(), |inner| format!("{key}.{inner}"));
        Problem { key: Some(inner), ..self }
    }

    /// The same without the name of the table around its key.
    pub fn without(self, table: &str) -> Self {
        let key = self.key.as_deref().filter(|k| *k != table);
        let key = key.map(|k| k.strip_prefix(table).and_then(|k| k.strip_prefix('.')).unwrap_or(k).to_owned());
        Problem { key, ..self }
    }

    /// The part of `path`, the key that a sweep sets, that is the mistake: its name, its value or nothing of it.
    pub fn set_by(&self, path: &str) -> Option<Part> {
        let table = match self.place.strip_prefix('[').and_then(|p| p.strip_suffix(']')) {
            Some(table) => table.to_owned(),
            None if self.place.is_empty() => String::new(),
            None => format!("flow.{}", self.place.strip_prefix("flow `")?.strip_suffix('`')?),
        };
        let whole = [table.as_str(), self.key.as_deref().unwrap_or_default()].join(".");
        let whole: Vec<&str> = whole.split('.').filter(|p| !p.is_empty()).collect();
        let parts: Vec<&str> = path.split('.').collect();
        let same =
            |(own, set): (&&str, &&str)| set.strip_suffix('*').map_or(own == set, |start| own.starts_with(start));
        if parts.len() > whole.len() || !whole.iter().zip(&parts).all(same) {
            return None;
        }
        Some(if self.unknown && parts.len() == whole.len() { Part::Name } else { Part::Value })
    }

    /// The error, with the line of `text` if the key is found there.
    pub fn inside(self, file: &str, text: &str) -> ScenarioError {
        let line = lines::of(text, &self.place, self.key.as_deref(), self.again);
        let place = if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
        let key = match &self.key {
            Some(key) if !self.unknown && !self.what.contains(&format!("`{key}`")) => format!("`{key}`: "),
            _ => String::new(),
        };
        ScenarioError { file: file.to_owned(), line, what: format!("{place}{key}{}", self.what.replace('\n', " ")) }
    }
}

/// What of a key that is set elsewhere is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Name,
    Value,
}

/// Reads a part of a file.
pub(super) fn section<T: DeserializeOwned>(place: &str, value: Value) -> Result<T, Problem> {
    T::deserialize(value).map_err(|e| {
        let text = e.to_string();
        // The key path stands in the last line.
        let key = text.lines().find_map(|l| l.strip_prefix("in `")).and_then(|k| k.strip_suffix('`'));
        let message = e.message();
        if let Some(rest) = message.strip_prefix("unknown field `") {
            let mut names = rest.split('`').step_by(2).filter(|n| !n.is_empty());
            let name = names.next().unwrap_or_default();
            let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
            return Problem::unknown(place, name, &known);
        }
        if let Some(rest) = message.strip_prefix("missing field `") {
            let what = format!("the key `{}` is missing", rest.trim_end_matches('`'));
            return Problem { key: key.map(str::to_owned), ..Problem::new(place, what) };
        }
        Problem { key: key.map(str::to_owned), ..Problem::new(place, message) }
    })
}
