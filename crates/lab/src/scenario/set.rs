//! Sets a key by its dotted path, as sweeps, the quick form and `--set` do.
//!
//! `flow.NAME` finds the flow of that name and `topology.cable.NAME` the cable; a star at the end of a name takes all
//! that begin so.

use super::plan::covers;
use super::topology::is_called;
use crate::document::{Entry, Node, Table, Value};

/// What a path leads to.
enum To<'p> {
    /// All flows.
    Flows,
    /// A flow by its name, and the keys below it.
    Flow(&'p str, Vec<&'p str>),
    /// A cable by its name, and the keys below it.
    Cable(&'p str, Vec<&'p str>),
    /// Any other key, part by part.
    Plain(Vec<&'p str>),
}

/// Keys of a link whose values may be tables.
const TABLES: [&str; 4] = ["up", "down", "loss", "deliveries"];

/// Where the path leads; `whole` says that the value may be all keys of a cable.
fn to(path: &str, whole: bool) -> To<'_> {
    let parts: Vec<&str> = path.split('.').collect();
    match &parts[..] {
        ["flow"] => To::Flows,
        ["flow", name, keys @ ..] => To::Flow(name, keys.to_vec()),
        ["topology", "cable", first, rest @ ..] => {
            // Names of cables have dots too: the key is the last part, with a direction before it.
            let key = match rest {
                [.., "up" | "down", _] => 2,
                [.., last] if !whole || TABLES.contains(last) => 1,
                _ => 0,
            };
            let keys = rest[rest.len() - key..].to_vec();
            let length = keys.iter().map(|k| k.len() + 1).sum::<usize>();
            let begin = "topology.cable.".len();
            let name = path.get(begin..path.len() - length).unwrap_or(first);
            To::Cable(name, keys)
        }
        _ => To::Plain(parts),
    }
}

/// The parts of a path; the name of a cable is one of them.
pub(super) fn parts(path: &str) -> Vec<&str> {
    match to(path, false) {
        To::Flows => vec!["flow"],
        To::Flow(name, keys) => ["flow", name].into_iter().chain(keys).collect(),
        To::Cable(name, keys) => ["topology", "cable", name].into_iter().chain(keys).collect(),
        To::Plain(parts) => parts,
    }
}

/// Sets the key at a dotted path.
pub(super) fn set(scenario: &mut Table, path: &str, entry: &Entry) -> Result<(), String> {
    if path.split('.').any(str::is_empty) {
        return Err(if path.ends_with('.') {
            format!("`{path}` ends without a key")
        } else {
            format!("`{path}` is no key")
        });
    }
    match to(path, entry.node.as_table().is_some()) {
        To::Flows => flows(scenario, path, entry),
        To::Flow(name, keys) => flow(scenario, path, name, &keys, entry),
        To::Cable(name, keys) => cable(scenario, path, name, &keys, entry),
        To::Plain(keys) => put(scenario, path, &keys, entry),
    }
}

fn put(table: &mut Table, path: &str, keys: &[&str], entry: &Entry) -> Result<(), String> {
    let Some((last, around)) = keys.split_last() else { return Ok(()) };
    let has_none = |part: &str| format!("`{path}`: `{part}` has no keys of its own");
    table.beneath(around, &entry.key).map_err(has_none)?.insert(last, entry.clone());
    Ok(())
}

/// The keys of a table beside those that are there.
fn put_all(table: &mut Table, keys: &Table) {
    keys.clone().into_entries().for_each(|(key, entry)| table.insert(&key, entry));
}

/// These flows and no others.
fn flows(scenario: &mut Table, path: &str, entry: &Entry) -> Result<(), String> {
    let tables = entry.node.as_list().filter(|list| list.iter().all(|node| node.as_table().is_some()));
    if tables.is_none_or(<[Node]>::is_empty) {
        let example = "{ name = \"main\", transport = \"sctp\" }";
        return Err(format!("`{path}` needs a list of flows, such as [{example}], or one flow's name: flow.NAME.KEY"));
    }
    scenario.insert("flow", entry.clone());
    Ok(())
}

/// A key of a flow, or the flow itself: its keys go beside those it has, or in place of them with `replace`.
fn flow(scenario: &mut Table, path: &str, name: &str, keys: &[&str], entry: &Entry) -> Result<(), String> {
    let whole = match (keys, entry.node.as_table()) {
        ([], Some(table)) => Some(Whole::of(path, name, table)?),
        ([], None) => return Err(format!("`{path}` names no flow: write flow.NAME.{name}")),
        _ => None,
    };
    let mut any = false;
    let flows = scenario.get_mut("flow").map(|node| &mut node.value);
    let flows = if let Some(Value::List(flows)) = flows { &mut flows[..] } else { &mut [] };
    for table in flows.iter_mut().filter_map(Node::as_table_mut) {
        if !covers(name, table.text("name").unwrap_or_default()) {
            continue;
        }
        any = true;
        match &whole {
            Some(whole) => whole.put(table),
            None => put(table, path, keys, entry)?,
        }
    }
    match whole {
        _ if any => Ok(()),
        Some(whole) if whole.is_flow(name) => whole.add(scenario, name, entry),
        Some(_) => Err(format!("`{path}`: there is no flow `{name}`; to add it, give its `transport`")),
        None => Err(format!("`{path}`: there is no flow `{name}`")),
    }
}

/// Several keys of a flow, or all of them.
struct Whole {
    keys: Table,
    replace: bool,
}

/// Beside the keys of a flow: they are all that it has.
const REPLACE: &str = "replace";

impl Whole {
    fn of(path: &str, name: &str, table: &Table) -> Result<Self, String> {
        let mut keys = table.clone();
        let replace = match keys.remove(REPLACE).map(|node| node.value) {
            None => false,
            Some(Value::Boolean(b)) => b,
            Some(_) => return Err(format!("`{path}`: `{REPLACE}` is true or false")),
        };
        if keys.remove("name").is_some_and(|own| own.as_text() != Some(name)) {
            return Err(format!("`{path}`: the name of a flow stays: metrics go by it"));
        }
        if replace && !keys.contains("transport") {
            return Err(format!("`{path}`: `{REPLACE}` needs all of the flow: give its `transport`"));
        }
        Ok(Whole { keys, replace })
    }

    fn put(&self, flow: &mut Table) {
        if self.replace {
            flow.split(|key| key != "name");
        }
        put_all(flow, &self.keys);
    }

    /// May it be a flow of its own, of this name?
    fn is_flow(&self, name: &str) -> bool {
        self.keys.contains("transport") && !name.ends_with('*')
    }

    fn add(self, scenario: &mut Table, name: &str, entry: &Entry) -> Result<(), String> {
        let mut flow = Table::new(&entry.node.at);
        flow.put("name", Node::text(name, &entry.key));
        put_all(&mut flow, &self.keys);
        let node = Node { value: Value::Table(flow), at: entry.node.at.clone() };
        match scenario.get_mut("flow").map(|node| &mut node.value) {
            Some(Value::List(flows)) => flows.push(node),
            Some(_) => return Err("`flow`: needs [[flow]]".to_owned()),
            None => scenario.put("flow", Node { value: Value::List(vec![node]), at: entry.node.at.clone() }),
        }
        Ok(())
    }
}

/// The flows that a value at this path may add.
pub(super) fn added_flows(path: &str, value: &Node) -> Vec<String> {
    match (to(path, true), &value.value) {
        (To::Flows, Value::List(flows)) => {
            flows.iter().filter_map(Node::as_table).filter_map(|t| t.text("name")).map(str::to_owned).collect()
        }
        (To::Flow(name, keys), Value::Table(table)) if keys.is_empty() && table.contains("transport") => {
            if name.ends_with('*') { Vec::new() } else { vec![name.to_owned()] }
        }
        _ => Vec::new(),
    }
}

/// A key of a cable, or several.
fn cable(scenario: &mut Table, path: &str, name: &str, keys: &[&str], entry: &Entry) -> Result<(), String> {
    let one = |table: &mut Table| match (keys, entry.node.as_table()) {
        ([], Some(all)) => {
            put_all(table, all);
            Ok(())
        }
        ([], None) => Err(format!("`{path}` names no key of a cable: write topology.cable.NAME.{name}")),
        _ => put(table, path, keys, entry),
    };
    let free = scenario.table("topology").is_some_and(|t| t.text("kind") == Some("free"));
    let topology =
        scenario.beneath(&["topology"], &entry.key).map_err(|_| "`topology`: needs [topology]".to_owned())?;
    if free {
        let cables = topology.get_mut("cable").map(|node| &mut node.value);
        let cables = if let Some(Value::List(cables)) = cables { &mut cables[..] } else { &mut [] };
        let mut any = false;
        for table in cables.iter_mut().filter_map(Node::as_table_mut).filter(|t| is_called(t, name)) {
            any = true;
            one(table)?;
        }
        return if any { Ok(()) } else { Err(format!("`{path}`: there is no cable `{name}`")) };
    }
    // Which cables there are follows from the kind. What was said of single ones is overruled.
    let all =
        topology.beneath(&["cable"], &entry.key).map_err(|_| "`topology.cable`: needs a table by names".to_owned())?;
    let others: Vec<String> = all.keys().filter(|own| *own != name && covers(name, own)).map(str::to_owned).collect();
    for own in others.iter().map(String::as_str).chain([name]) {
        let table =
            all.beneath(&[own], &entry.key).map_err(|_| format!("`topology.cable`: `{own}` needs keys of a link"))?;
        one(table)?;
    }
    Ok(())
}
