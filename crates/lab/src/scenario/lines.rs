//! On which line of its file something stands.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The table that a message speaks of, behind those around it, each with where it begins.
type Around<'a, 't> = Vec<(Option<usize>, &'a DeTable<'t>)>;

/// The line of `key` inside the part of the file that `place` names; of the part itself without a key. With `last`
/// it is the last part of this name.
pub(super) fn of(text: &str, place: &str, key: Option<&str>, last: bool) -> Option<usize> {
    let root = DeTable::parse(text).ok()?.into_inner();
    let around = around(&root, place, last);
    let inside = |key: &str| around.iter().rev().find_map(|(_, table)| find(table, key));
    let itself = || around.last().and_then(|(at, _)| *at);
    let at = match key.filter(|k| !k.is_empty()) {
        None => itself().or_else(|| if place.is_empty() { None } else { below(&root) }),
        // A word such as traffic = "bulk" stands for keys; what is in no line of this file was lent.
        Some(key) => {
            let wider = key.match_indices('.').rev().find_map(|(i, _)| inside(&key[..i]));
            inside(key).or(wider).or_else(|| below(&root)).or_else(itself)
        }
    };
    at.map(|at| line(text, at))
}

/// The line of value number `i` of a sweep; without a number of its `sets`.
pub(super) fn of_sweep(text: &str, name: &str, i: Option<usize>) -> Option<usize> {
    let root = DeTable::parse(text).ok()?.into_inner();
    let around = around(&root, &format!("sweep `{name}`"), false);
    let Some((_, table)) = around.last() else { return below(&root).map(|at| line(text, at)) };
    let value = i.and_then(|i| {
        let values = entry(table, "as").or_else(|| entry(table, "values"))?;
        values.1.get_ref().as_array()?.get(i).map(|v| v.span().start)
    });
    value.or_else(|| find(table, "sets")).map(|at| line(text, at))
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

/// Where the file names another one below it.
fn below(root: &DeTable<'_>) -> Option<usize> {
    find(root, "extends")
}

fn around<'a, 't>(root: &'a DeTable<'t>, place: &str, last: bool) -> Around<'a, 't> {
    if place.is_empty() {
        return vec![(None, root)];
    }
    if let Some(list) = place.strip_prefix("[[").and_then(|p| p.strip_suffix("]]")) {
        return elements(root, list).filter(|t| !named(t.1, "name", super::flow::may_be_called)).take(1).collect();
    }
    if let Some(path) = place.strip_prefix('[').and_then(|p| p.strip_suffix(']')) {
        let mut at = root;
        let inner = path.split('.').map_while(|part| {
            let (key, value) = entry(at, part)?;
            at = value.get_ref().as_table()?;
            Some((Some(key.span().start), at))
        });
        return inner.collect();
    }
    let Some((list, name)) = place.split_once(' ') else { return Vec::new() };
    let within = entry(root, "topology").and_then(|(_, v)| v.get_ref().as_table()).filter(|_| list == "cable");
    let mut all = elements(within.unwrap_or(root), list);
    let called = |t: &DeTable<'_>| {
        let name = name.trim_matches('`');
        let key = if list == "claim" { "id" } else { "name" };
        // A cable without a name is called after its ends.
        let ends = || Some(format!("{}-{}", word(t, "from")?, word(t, "to")?));
        named(t, key, |own| own == name) || word(t, key).is_none() && ends().is_some_and(|own| own == name)
    };
    let found = match name.parse::<usize>() {
        Ok(n) => all.nth(n.saturating_sub(1)),
        Err(_) if last => all.filter(|t| called(t.1)).last(),
        Err(_) => all.find(|t| called(t.1)),
    };
    found.into_iter().collect()
}

/// The tables of a list, each with the line that names it.
fn elements<'a, 't>(table: &'a DeTable<'t>, list: &str) -> impl Iterator<Item = (Option<usize>, &'a DeTable<'t>)> {
    let list = entry(table, list).and_then(|(_, v)| v.get_ref().as_array());
    list.into_iter().flat_map(|l| l.iter()).filter_map(|v| {
        let table = v.get_ref().as_table()?;
        let name = find(table, "id").or_else(|| find(table, "name"));
        Some((name.or(Some(v.span().start)), table))
    })
}

fn word<'a>(table: &'a DeTable<'_>, key: &str) -> Option<&'a str> {
    entry(table, key)?.1.get_ref().as_str()
}

fn named(table: &DeTable<'_>, key: &str, is: impl Fn(&str) -> bool) -> bool {
    word(table, key).is_some_and(is)
}

type Entry<'a, 't> = (&'a Spanned<toml::de::DeString<'t>>, &'a Spanned<DeValue<'t>>);

fn entry<'a, 't>(table: &'a DeTable<'t>, key: &str) -> Option<Entry<'a, 't>> {
    table.iter().find(|(k, _)| k.get_ref() == key)
}

/// Where `key` stands in `table`: whole, as in `"flow.main.paths" = 1`, or part by part.
fn find(table: &DeTable<'_>, key: &str) -> Option<usize> {
    if let Some((key, _)) = entry(table, key) {
        return Some(key.span().start);
    }
    let (first, rest) = key.split_once('.')?;
    find(entry(table, first)?.1.get_ref().as_table()?, rest)
}
