//! Mistakes: one line each, with file, line and key.

use super::{Origin, Table};
use anabranch_sim::netem::nearest;

/// Why a scenario cannot be run: one line that names file and key and says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{what}", self.place())]
pub struct ScenarioError {
    /// The file, or the name of what is built in.
    pub file: String,
    /// Its line, counted from 1, where it could be found.
    pub line: Option<usize>,
    /// The mistake, in words for the author of the scenario.
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

/// A table and what messages call it: "flow `main`", "[topology.path1]", nothing for the whole file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'t> {
    pub name: &'t str,
    pub table: &'t Table,
}

impl<'t> Part<'t> {
    pub fn new(name: &'t str, table: &'t Table) -> Self {
        Part { name, table }
    }

    /// Something is wrong with the table as a whole.
    pub fn wrong(self, what: impl Into<String>) -> Problem {
        Problem { place: self.name.to_owned(), ..Problem::new(&self.table.at, what) }
    }

    /// Something is wrong with the value of `key`, which `what` does not name.
    pub fn at(self, key: &str, what: impl Into<String>) -> Problem {
        let at = self.table.find(key).map_or(&self.table.at, |e| &e.node.at);
        Problem { place: self.name.to_owned(), key: Some(key.to_owned()), ..Problem::new(at, what) }
    }

    /// [`at`](Self::at), where `what` begins with the key.
    pub fn about(self, key: &str, what: impl Into<String>) -> Problem {
        Problem { named: true, ..self.at(key, what) }
    }

    /// A key that has no meaning here, with the nearest one that has.
    pub fn unknown(self, key: &str, known: &[&str]) -> Problem {
        self.named(key, unknown("key", key, known))
    }

    /// Something is wrong with the key itself, which `what` names.
    pub fn named(self, key: &str, what: impl Into<String>) -> Problem {
        let at = self.table.find(key).map_or(&self.table.at, |e| &e.key);
        let problem = Problem { place: self.name.to_owned(), key: Some(key.to_owned()), ..Problem::new(at, what) };
        Problem { named: true, ..problem }
    }
}

/// What to say of a name that is none of those known.
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown {kind} `{name}`; did you mean `{near}`?"),
        None => format!("unknown {kind} `{name}`; known are {}", known.join(", ")),
    }
}

/// A mistake and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// What the table is called.
    place: String,
    key: Option<String>,
    what: String,
    /// `what` names the key itself.
    named: bool,
    at: Origin,
}

impl Problem {
    /// A mistake at a place that has no name but its line.
    pub fn new(at: &Origin, what: impl Into<String>) -> Self {
        Problem { place: String::new(), key: None, what: what.into(), named: false, at: at.clone() }
    }

    /// A mistake in the value of `key`, wherever it is.
    pub fn of_key(place: &str, key: &str, at: &Origin, what: impl Into<String>) -> Self {
        Problem { place: place.to_owned(), key: Some(key.to_owned()), ..Problem::new(at, what) }
    }

    /// A key that has no meaning in its place.
    pub(super) fn of_unknown_key(key: &str, at: &Origin, what: impl Into<String>) -> Self {
        Problem { named: true, ..Problem::of_key("", key, at, what) }
    }

    /// This problem inside the table behind `key`.
    pub fn beneath(self, key: &str) -> Self {
        let inner = self.key.map_or(key.to_owned(), |inner| format!("{key}.{inner}"));
        Problem { key: Some(inner), ..self }
    }

    /// This problem with more behind what is said.
    pub fn with(self, more: &str) -> Self {
        Problem { what: format!("{}{more}", self.what), ..self }
    }

    /// This problem inside this part of the file.
    pub fn inside(self, part: &str) -> Self {
        let place = if self.place.is_empty() { part.to_owned() } else { format!("{part}: {}", self.place) };
        Problem { place, ..self }
    }

    /// The file and line of the value that is wrong, or who set it.
    pub fn origin(&self) -> &Origin {
        &self.at
    }
}

impl From<Problem> for ScenarioError {
    fn from(p: Problem) -> Self {
        let place = if p.place.is_empty() { String::new() } else { format!("{}: ", p.place) };
        let key = p.key.filter(|_| !p.named).map_or(String::new(), |key| format!("`{key}`: "));
        let extended = p.at.source.extended_at.as_ref().map_or(String::new(), |at| format!(" ({at} extends it)"));
        let what = format!("{place}{key}{}{extended}", p.what.replace('\n', " "));
        ScenarioError { file: p.at.source.name.clone(), line: p.at.line, what }
    }
}
