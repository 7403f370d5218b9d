//! TOML files, read once: every value keeps the file and line where it was written, through what a file extends, what a
//! sweep puts in and what is set from outside. A mistake in a value is one line that names that place.

mod parse;
mod problem;
mod read;

#[cfg(test)]
mod tests;

pub(crate) use parse::parse;
pub(crate) use problem::{Part, Problem};
pub(crate) use read::{ReadError, read, read_list};

pub use problem::ScenarioError;

use std::collections::BTreeMap;
use std::collections::btree_map::Iter;
use std::sync::Arc;
use toml::value::Datetime;

/// Where something was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    source: Arc<Source>,
    /// Counted from 1; none for the whole of the file.
    line: Option<usize>,
    pub by: By,
}

/// A file, or the name of another source.
#[derive(PartialEq, Eq, Debug)]
struct Source {
    name: String,
    /// The place where another file extends it.
    extended_at: Option<String>,
}

/// How it came to where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// The file has it there.
    File,
    /// A sweep put it there.
    Sweep,
    /// The quick form put it there.
    Quick,
}

impl Origin {
    /// The whole of a file.
    pub fn of_file(name: &str) -> Self {
        Origin::new(Source { name: name.to_owned(), extended_at: None })
    }

    /// The whole of a file that another one extends at `place`.
    pub fn of_extended(name: &str, place: &Origin) -> Self {
        Origin::new(Source { name: name.to_owned(), extended_at: Some(place.to_string()) })
    }

    fn new(source: Source) -> Self {
        Origin { source: Arc::new(source), line: None, by: By::File }
    }

    /// A line of it, counted from 1.
    pub fn line(&self, line: usize) -> Self {
        Origin { line: Some(line), ..self.clone() }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source.name)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub at: Origin,
}

/// A value of TOML.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(Datetime),
    List(Vec<Node>),
    Table(Table),
}

impl Node {
    pub fn text(text: &str, at: &Origin) -> Self {
        Node { value: Value::Text(text.to_owned()), at: at.clone() }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        if let Value::List(list) = &self.value { Some(list) } else { None }
    }

    pub fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        if let Value::Table(table) = &mut self.value { Some(table) } else { None }
    }

    /// The value alone.
    pub fn plain(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) => toml::Value::String(text.clone()),
            Value::Integer(n) => toml::Value::Integer(*n),
            Value::Float(n) => toml::Value::Float(*n),
            Value::Boolean(b) => toml::Value::Boolean(*b),
            Value::Date(date) => toml::Value::Datetime(*date),
            Value::List(list) => toml::Value::Array(list.iter().map(Node::plain).collect()),
            Value::Table(table) => toml::Value::Table(table.plain()),
        }
    }

    /// The value as put where it is by something other than its file.
    #[must_use]
    pub fn put_by(mut self, by: By) -> Self {
        self.mark(by);
        self
    }

    fn mark(&mut self, by: By) {
        self.at.by = by;
        match &mut self.value {
            Value::List(list) => list.iter_mut().for_each(|node| node.mark(by)),
            Value::Table(table) => {
                table.at.by = by;
                for entry in table.entries.values_mut() {
                    entry.key.by = by;
                    entry.node.mark(by);
                }
            }
            _ => {}
        }
    }
}

/// Keys and their values, in the order of the keys.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    entries: BTreeMap<String, Entry>,
    pub at: Origin,
}

/// A value behind its key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Where the key was written: elsewhere than the value, when a sweep names it.
    pub key: Origin,
    pub node: Node,
}

impl Table {
    pub fn new(at: &Origin) -> Self {
        Table { entries: BTreeMap::new(), at: at.clone() }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.get(key).map(|e| &e.node)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.get_mut(key).map(|e| &mut e.node)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::as_text)
    }

    pub fn table(&self, key: &str) -> Option<&Table> {
        self.get(key).and_then(Node::as_table)
    }

    /// The elements of a list, none where there is no list.
    pub fn list(&self, key: &str) -> &[Node] {
        self.get(key).and_then(Node::as_list).unwrap_or_default()
    }

    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.entries.iter().map(|(key, e)| (key.as_str(), &e.node))
    }

    pub fn into_entries(self) -> impl Iterator<Item = (String, Entry)> {
        self.entries.into_iter()
    }

    fn entries(&self) -> Iter<'_, String, Entry> {
        self.entries.iter()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.entries.values_mut().map(|e| &mut e.node)
    }

    pub fn insert(&mut self, key: &str, entry: Entry) {
        self.entries.insert(key.to_owned(), entry);
    }

    /// Puts a value behind a key, both written at the value's place.
    pub fn put(&mut self, key: &str, node: Node) {
        self.insert(key, Entry { key: node.at.clone(), node });
    }

    pub fn remove(&mut self, key: &str) -> Option<Node> {
        self.entries.remove(key).map(|e| e.node)
    }

    /// These keys with these texts, all written at one place.
    pub fn of_texts(texts: &[(&str, &str)], at: &Origin) -> Self {
        let mut table = Table::new(at);
        texts.iter().for_each(|(key, text)| table.put(key, Node::text(text, at)));
        table
    }

    /// Takes the entries whose keys are wanted out of the table.
    pub fn split(&mut self, wanted: impl Fn(&str) -> bool) -> Table {
        let (taken, left) = std::mem::take(&mut self.entries).into_iter().partition(|(key, _)| wanted(key));
        self.entries = left;
        Table { entries: taken, at: self.at.clone() }
    }

    /// The value at a path of keys, made of tables that begin at `at` where there are none; the part of the path that
    /// has no keys of its own otherwise.
    pub fn beneath<'p>(&mut self, path: &[&'p str], at: &Origin) -> Result<&mut Table, &'p str> {
        let Some((part, rest)) = path.split_first() else { return Ok(self) };
        let empty = || Entry { key: at.clone(), node: Node { value: Value::Table(Table::new(at)), at: at.clone() } };
        let entry = self.entries.entry((*part).to_owned()).or_insert_with(empty);
        entry.node.as_table_mut().ok_or(*part)?.beneath(rest, at)
    }

    /// Puts `over` into the table: tables key by key, anything else in place of what was there.
    pub fn merge(&mut self, over: Table) {
        self.at = over.at;
        for (key, entry) in over.entries {
            match (self.entries.get_mut(&key), entry) {
                (
                    Some(Entry { node: Node { value: Value::Table(inner), at }, key: own }),
                    Entry { node: Node { value: Value::Table(more), at: nearer }, key },
                ) => {
                    (*at, *own) = (nearer, key);
                    inner.merge(more);
                }
                (_, entry) => self.insert(&key, entry),
            }
        }
    }

    /// Where the value of `key` was written: whole, as in `"flow.main.paths" = 1`, or part by part. Where a part is
    /// missing it is the last that is there; none when there is no part at all.
    pub fn find(&self, key: &str) -> Option<&Entry> {
        if let Some(entry) = self.entries.get(key) {
            return Some(entry);
        }
        let (first, rest) = key.split_once('.')?;
        let entry = self.entries.get(first)?;
        Some(entry.node.as_table().and_then(|inner| inner.find(rest)).unwrap_or(entry))
    }

    /// The values alone.
    pub fn plain(&self) -> toml::Table {
        self.entries.iter().map(|(key, e)| (key.clone(), e.node.plain())).collect()
    }
}
