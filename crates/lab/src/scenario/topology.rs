//! `[topology]`: a kind and its links.

use super::links;
use crate::document::{Node, Part, Problem, Table, Value, read as read_keys};
use anabranch_sim::topology::{DualDumbbell, Topology, TopologyError};
use serde::Deserialize;
use serde::de::IgnoredAny;

type Both = (anabranch_sim::LinkConfig, anabranch_sim::LinkConfig);

/// What messages call it.
pub(super) const PLACE: &str = "[topology]";
const KINDS: [&str; 5] = ["single-path", "disjoint-paths", "dual-dumbbell", "shared-bottleneck", "free"];

/// Reads `[topology]`.
pub(super) fn read(table: &Table) -> Result<Topology, Problem> {
    let whole = Part::new(PLACE, table);
    let mut t = table.clone();
    let kind = match t.remove("kind").map(|node| node.value) {
        Some(Value::Text(kind)) => kind,
        Some(_) => return Err(whole.at("kind", format!("is one of {}", KINDS.join(", ")))),
        None => return Err(whole.wrong(format!("the key `kind` is missing: one of {}", KINDS.join(", ")))),
    };
    let topology = match kind.as_str() {
        "single-path" => Topology::single_path(links::read(Part::new(PLACE, &t))?),
        "disjoint-paths" => Topology::disjoint_paths(paths(&mut t, None)?),
        "dual-dumbbell" => dual_dumbbell(t)?,
        "shared-bottleneck" => shared_bottleneck(t)?,
        "free" => free(&t)?,
        _ => return Err(whole.at("kind", format!("is one of {}, not `{kind}`", KINDS.join(", ")))),
    };
    topology.check().map_err(|e| cannot_run(whole, &topology, &e))?;
    Ok(topology)
}

/// What is wrong with a topology as a whole, at the cable or among the hosts.
fn cannot_run(whole: Part<'_>, topology: &Topology, e: &TopologyError) -> Problem {
    let (cable, what) = match e {
        TopologyError::Loose(name) => (name, "must join two different nodes".to_owned()),
        TopologyError::Link { cable, direction, error } => (cable, format!("{direction}: {error}")),
        TopologyError::Twice(name) if topology.cables.iter().any(|c| c.name == *name) => (name, e.to_string()),
        TopologyError::Twice(_) | TopologyError::Unwired(_) | TopologyError::Alone(_) => {
            return whole.at("hosts", e.to_string());
        }
    };
    let named = format!("cable `{cable}`");
    // Of two with one name the second is meant.
    let own = whole.table.list("cable").iter().rev().filter_map(Node::as_table).find(|t| is_called(t, cable));
    Part::new(&named, own.unwrap_or(whole.table)).wrong(what)
}

/// Is this the table of the cable of this name? One without a name is called after its ends.
pub(super) fn is_called(cable: &Table, name: &str) -> bool {
    match (cable.text("name"), cable.text("from"), cable.text("to")) {
        (Some(own), ..) => own == name,
        (None, Some(from), Some(to)) => format!("{from}-{to}") == name,
        _ => false,
    }
}

/// Takes a table out of the table.
fn take(t: &mut Table, key: &str) -> Result<Option<Table>, Problem> {
    let wrong = Part::new(PLACE, t).at(key, "needs keys of a link, such as { rate = \"10mbit\" }");
    match t.remove(key).map(|node| node.value) {
        None => Ok(None),
        Some(Value::Table(inner)) => Ok(Some(inner)),
        Some(_) => Err(wrong),
    }
}

/// The links of `[topology.key]`.
fn links_of(key: &str, table: &Table) -> Result<Both, Problem> {
    links::read(Part::new(&format!("[topology.{key}]"), table))
}

fn whole(t: &mut Table, key: &str, fallback: usize) -> Result<usize, Problem> {
    let wrong = Part::new(PLACE, t).at(key, "needs a whole number from 1 to 10000");
    match t.remove(key).map(|node| node.value) {
        None => Ok(fallback),
        Some(Value::Integer(n)) if (1..=10_000).contains(&n) => Ok(n as usize),
        Some(_) => Err(wrong),
    }
}

fn nothing_left(t: &Table, known: &[&str]) -> Result<(), Problem> {
    t.keys().next().map_or(Ok(()), |key| Err(Part::new(PLACE, t).unknown(key, known)))
}

/// `path1`, `path2` and so on; keys beside them hold for all.
fn paths(t: &mut Table, want: Option<usize>) -> Result<Vec<Both>, Problem> {
    let mut own = Vec::new();
    while let Some(path) = take(t, &format!("path{}", own.len() + 1))? {
        own.push(path);
    }
    let empty = Table::new(&t.at);
    let shared = core::mem::replace(t, empty);
    let all = Part::new(PLACE, &shared);
    let numbered = |k: &&str| k.strip_prefix("path").is_some_and(|n| n.parse::<u32>().is_ok());
    if let Some(key) = shared.keys().find(numbered) {
        return Err(all.at(key, format!("there is no `path{}` before it", own.len() + 1)));
    }
    if own.is_empty() || want.is_some_and(|n| n != own.len()) {
        let n = want.map_or("one or more".to_owned(), |n| n.to_string());
        return Err(all.wrong(format!("this kind needs {n} paths: `path1`, `path2` and so on")));
    }
    // The keys of all are looked at by themselves, so that a mistake in them is named there.
    links::read(all)?;
    let merged = own.into_iter().enumerate().map(|(i, path)| {
        let mut both = shared.clone();
        both.merge(path);
        links_of(&format!("path{}", i + 1), &both)
    });
    merged.collect()
}

/// A cable of which nothing is said.
const ACCESS: [(&str, &str); 2] = [("rate", "100mbit"), ("delay", "5ms")];

fn dual_dumbbell(mut t: Table) -> Result<Topology, Problem> {
    let edge_hosts = whole(&mut t, "edge-hosts", 5)?;
    let fallback = Table::of_texts(&ACCESS, &t.at);
    let all = take(&mut t, "access")?.unwrap_or_else(|| fallback.clone());
    let access = links_of("access", &all)?;
    let edge = links_of("edge", &take(&mut t, "edge")?.unwrap_or(fallback))?;
    // The sender's cable of one path may differ: it carries the association alone.
    let mut own = Vec::new();
    for path in 1..=2 {
        let key = format!("path{path}-access");
        if let Some(table) = take(&mut t, &key)? {
            let mut merged = all.clone();
            merged.merge(table);
            own.push((format!("path{path}.left"), links_of(&key, &merged)?));
        }
    }
    let wrong = Part::new(PLACE, &t).wrong("this kind needs 2 paths");
    let middle: [Both; 2] = paths(&mut t, Some(2))?.try_into().map_err(|_| wrong)?;
    let mut topology = Topology::dual_dumbbell(&DualDumbbell { middle, access, edge, edge_hosts });
    for (name, (forward, backward)) in own {
        if let Some(cable) = topology.cables.iter_mut().find(|c| c.name == name) {
            (cable.forward, cable.backward) = (forward, backward);
        }
    }
    Ok(topology)
}

fn shared_bottleneck(mut t: Table) -> Result<Topology, Problem> {
    let pairs = whole(&mut t, "pairs", 2)?;
    let needed = "this kind needs a `bottleneck` such as { rate = \"10mbit\", delay = \"20ms\" }";
    let missing = Part::new(PLACE, &t).wrong(needed);
    let bottleneck = links_of("bottleneck", &take(&mut t, "bottleneck")?.ok_or(missing)?)?;
    let fallback = Table::of_texts(&ACCESS, &t.at);
    let access = links_of("access", &take(&mut t, "access")?.unwrap_or(fallback))?;
    let mut all = Vec::new();
    for i in 1..=pairs {
        // A pair may have an access of its own.
        let key = format!("access{i}");
        let both = match take(&mut t, &key)? {
            Some(table) => links_of(&key, &table)?,
            None => access.clone(),
        };
        all.push((both.clone(), both));
    }
    nothing_left(&t, &["kind", "pairs", "bottleneck", "access", "access1"])?;
    Ok(Topology::shared_bottleneck(bottleneck, all))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Free {
    hosts: Vec<String>,
    #[serde(default)]
    routers: Vec<String>,
    #[serde(default, rename = "cable")]
    _cable: Vec<IgnoredAny>,
}

fn free(t: &Table) -> Result<Topology, Problem> {
    let whole = Part::new(PLACE, t);
    let f: Free = read_keys(whole)?;
    let mut topology = Topology::new();
    for host in &f.hosts {
        topology.host(host);
    }
    for router in &f.routers {
        topology.router(router);
    }
    for (i, cable) in t.list("cable").iter().enumerate() {
        let unnamed = format!("cable {}", i + 1);
        let table = cable.as_table().ok_or_else(|| whole.at("cable", "needs [[topology.cable]]"))?;
        let part = Part::new(&unnamed, table);
        let text = |key: &str| match table.get(key) {
            Some(node) => node.as_text().map(Some).ok_or_else(|| part.at(key, "needs a name")),
            None => Ok(None),
        };
        let missing = |key: &str| part.wrong(format!("the key `{key}` is missing: the name of a host or router"));
        let (from, to) = (text("from")?.ok_or_else(|| missing("from"))?, text("to")?.ok_or_else(|| missing("to"))?);
        let name = text("name")?.map_or_else(|| format!("{from}-{to}"), str::to_owned);
        let place = format!("cable `{name}`");
        let node = |key: &str, end: &str| {
            let known: Vec<&str> = topology.nodes.iter().map(|n| n.name.as_str()).collect();
            let what = || format!("there is no host or router `{end}`; there are {}", known.join(", "));
            topology.find(end).ok_or_else(|| Part::new(&place, table).at(key, what()))
        };
        let (a, b) = (node("from", from)?, node("to", to)?);
        let mut keys = table.clone();
        keys.split(|key| matches!(key, "from" | "to" | "name"));
        let (forward, backward) = links::read(Part::new(&place, &keys))?;
        topology.cable(&name, a, b, forward, backward);
    }
    Ok(topology)
}
