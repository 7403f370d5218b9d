//! Mistakes in scenario files: one line each, with file, line and key.

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
}

impl Problem {
    pub fn new(place: &str, what: impl Into<String>) -> Self {
        Problem { place: place.to_owned(), key: None, what: what.into() }
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
        Problem { key: Some(key.to_owned()), ..Problem::new(place, what) }
    }

    /// The error, with the line of `text` if the key is found there.
    pub fn inside(self, file: &str, text: &str) -> ScenarioError {
        let line = locate(text, &self.place, self.key.as_deref());
        let place = if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
        let key = match &self.key {
            Some(key) if !self.what.contains(&format!("`{key}`")) => format!("`{key}`: "),
            _ => String::new(),
        };
        ScenarioError { file: file.to_owned(), line, what: format!("{place}{key}{}", self.what.replace('\n', " ")) }
    }
}

/// The line on which `key` stands behind the name that `place` quotes; of the name itself without a key.
fn locate(text: &str, place: &str, key: Option<&str>) -> Option<usize> {
    let quoted = place.split('`').nth(1);
    let lines = || text.lines().enumerate();
    let names =
        |line: &str, name: &str| line.contains(&format!("\"{name}\"")) || line.trim().ends_with(&format!("{name}]"));
    let start = match quoted {
        Some(name) => lines().find(|(_, l)| names(l, name)).map(|(i, _)| i),
        // Its keys may have the names of the network's.
        None if place.starts_with("[quick") => {
            lines().find(|(_, l)| l.trim_start().starts_with("[quick")).map(|(i, _)| i)
        }
        None => None,
    };
    let Some(key) = key else { return start.map(|i| i + 1) };
    let last = key.rsplit('.').next().unwrap_or(key);
    if last.is_empty() {
        return start.map(|i| i + 1);
    }
    let has = |l: &str| {
        let mut rest = l;
        while let Some(at) = rest.find(last) {
            let before = rest[..at].chars().next_back();
            let after = rest[at + last.len()..].trim_start_matches(['"', '\'']).trim_start();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_') && after.starts_with('=') {
                return true;
            }
            rest = &rest[at + last.len()..];
        }
        false
    };
    // The key may stand in front of the name within its table.
    let after = start.and_then(|s| lines().skip(s).find(|(_, l)| has(l)));
    after.or_else(|| lines().find(|(_, l)| has(l))).map(|(i, _)| i + 1).or(start.map(|i| i + 1))
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
            return Problem::new(place, format!("the key `{}` is missing", rest.trim_end_matches('`')));
        }
        Problem { key: key.map(str::to_owned), ..Problem::new(place, message) }
    })
}
