//! `[topology]`: a kind and its links.

use super::links;
use super::names::cable_name;
use super::plan::covers;
use crate::document::{Node, Part, Problem, Table, Value, read as read_keys};
use anabranch_sim::netem::nearest;
use anabranch_sim::topology::{Cable, DualDumbbell, NodeId, Role, Topology, TopologyError};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

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
    if !KINDS.contains(&kind.as_str()) {
        return Err(whole.at("kind", format!("is one of {}, not `{kind}`", KINDS.join(", "))));
    }
    // In the others single cables are named in a table, and follow from the kind.
    let single = if kind == "free" { None } else { take_cables(&mut t)? };
    let (mut topology, keys) = match kind.as_str() {
        "single-path" => single_path(t)?,
        "disjoint-paths" => disjoint_paths(t)?,
        "dual-dumbbell" => dual_dumbbell(t)?,
        "shared-bottleneck" => shared_bottleneck(t)?,
        "free" => (free(&t)?, KeysOf::default()),
        _ => return Err(whole.at("kind", format!("is one of {}, not `{kind}`", KINDS.join(", ")))),
    };
    if let Some(single) = single {
        single_cables(&single, &mut topology, &keys)?;
    }
    topology.check().map_err(|e| cannot_run(whole, &topology, &e))?;
    check_reports(whole, &topology)?;
    Ok(topology)
}

/// A link layer reports to the host that sends through it.
fn check_reports(whole: Part<'_>, topology: &Topology) -> Result<(), Problem> {
    let is_host = |id: NodeId| topology.nodes.get(id.0 as usize).is_some_and(|n| n.role == Role::Host);
    let unheard = |c: &&Cable| c.forward.frames.every.is_some() && !is_host(c.a) && !is_host(c.b);
    let Some(cable) = topology.cables.iter().find(unheard) else { return Ok(()) };
    let named = format!("cable `{}`", cable.name);
    let own = own_table(whole.table, &cable.name).or_else(|| whole.table.table(&cable.name));
    let what = "is for the cable of a host, to which its link layer reports: this one lies between routers";
    Err(Part::new(&named, own.unwrap_or(whole.table)).at("report", what))
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
    let own = own_table(whole.table, cable);
    Part::new(&named, own.unwrap_or(whole.table)).wrong(what)
}

/// What the file says of a single cable by its name.
pub(super) fn own_table<'t>(topology: &'t Table, cable: &str) -> Option<&'t Table> {
    let listed = topology.list("cable").iter().rev().filter_map(Node::as_table).find(|t| is_called(t, cable));
    listed.or_else(|| topology.table("cable")?.table(cable))
}

/// Is this the table of the cable of this name, or of one that begins so?
pub(super) fn is_called(cable: &Table, name: &str) -> bool {
    cable_name(cable).is_some_and(|own| covers(name, &own))
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

/// The keys of the link of each cable, as far as they follow from the kind of topology.
#[derive(Default)]
struct KeysOf {
    /// By the name of the cable.
    own: BTreeMap<String, Table>,
    /// Of those that are not there.
    others: Option<Table>,
}

impl KeysOf {
    fn get(&self, cable: &str) -> Option<&Table> {
        self.own.get(cable).or(self.others.as_ref())
    }
}

/// `[topology.cable]`: single cables by their names.
fn take_cables(t: &mut Table) -> Result<Option<Table>, Problem> {
    let wrong = Part::new(PLACE, t).at("cable", "needs a table by the names of cables; a list is for kind `free`");
    match t.remove("cable").map(|node| node.value) {
        None => Ok(None),
        Some(Value::Table(cables)) => Ok(Some(cables)),
        Some(_) => Err(wrong),
    }
}

/// Puts what is said of single cables over what follows from the kind: first of names with a star, the shortest first.
fn single_cables(single: &Table, topology: &mut Topology, keys: &KeysOf) -> Result<(), Problem> {
    let mut said: Vec<(&str, &Table)> = Vec::new();
    let part = Part::new("[topology.cable]", single);
    for (name, node) in single.iter() {
        let example = "needs keys of a link, such as { delay = \"10ms\" }";
        said.push((name, node.as_table().ok_or_else(|| part.at(name, example))?));
        if !topology.cables.iter().any(|c| covers(name, &c.name)) {
            let known: Vec<&str> = topology.cables.iter().map(|c| c.name.as_str()).collect();
            let near = nearest(name, known.iter().copied()).map(|n| format!("did you mean `{n}`?"));
            let some = || {
                format!("there are {}", known.get(..12).map_or(known.join(", "), |k| format!("{}, …", k.join(", "))))
            };
            return Err(part.named(name, format!("there is no cable `{name}`; {}", near.unwrap_or_else(some))));
        }
    }
    said.sort_by_key(|(name, _)| (!name.ends_with('*'), name.len()));
    for cable in &mut topology.cables {
        let own: Vec<&Table> = said.iter().filter(|(name, _)| covers(name, &cable.name)).map(|(_, t)| *t).collect();
        let (Some(kin), Some(nearest)) = (keys.get(&cable.name), own.last()) else { continue };
        let mut merged = kin.clone();
        own.iter().for_each(|t| merged.merge((*t).clone()));
        merged.at = nearest.at.clone();
        let place = format!("cable `{}`", cable.name);
        (cable.forward, cable.backward) = links::read(Part::new(&place, &merged))?;
    }
    Ok(())
}

fn nothing_left(t: &Table, known: &[&str]) -> Result<(), Problem> {
    t.keys().next().map_or(Ok(()), |key| Err(Part::new(PLACE, t).unknown(key, known)))
}

/// `path1`, `path2` and so on; keys beside them hold for all.
fn paths(t: &mut Table) -> Result<Vec<(Both, Table)>, Problem> {
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
    if own.is_empty() {
        return Err(all.wrong("this kind needs one or more paths: `path1`, `path2` and so on"));
    }
    // The keys of all are looked at by themselves, so that a mistake in them is named there.
    links::read(all)?;
    let merged = own.into_iter().enumerate().map(|(i, path)| {
        let mut both = shared.clone();
        both.merge(path);
        Ok((links_of(&format!("path{}", i + 1), &both)?, both))
    });
    merged.collect()
}

/// A cable of which nothing is said.
const ACCESS: [(&str, &str); 2] = [("rate", "100mbit"), ("delay", "5ms")];

fn single_path(t: Table) -> Result<(Topology, KeysOf), Problem> {
    let numbered = t.keys().find(|k| k.strip_prefix("path").is_some_and(|n| n.parse::<u32>().is_ok()));
    if let Some(key) = numbered {
        let what =
            format!("`{key}`: this kind has one path, whose keys are those of [topology]; use kind `disjoint-paths`");
        return Err(Part::new(PLACE, &t).named(key, what));
    }
    let both = links::read(Part::new(PLACE, &t))?;
    Ok((Topology::single_path(both), KeysOf { others: Some(t), ..KeysOf::default() }))
}

fn disjoint_paths(mut t: Table) -> Result<(Topology, KeysOf), Problem> {
    let (all, own) = numbered(paths(&mut t)?);
    Ok((Topology::disjoint_paths(all), KeysOf { own, others: None }))
}

/// The links of paths, and their keys by name.
fn numbered(paths: Vec<(Both, Table)>) -> (Vec<Both>, BTreeMap<String, Table>) {
    let named = |(i, (both, keys)): (usize, (Both, Table))| (both, (format!("path{}", i + 1), keys));
    paths.into_iter().enumerate().map(named).unzip()
}

fn dual_dumbbell(mut t: Table) -> Result<(Topology, KeysOf), Problem> {
    let edge_hosts = whole(&mut t, "edge-hosts", 5)?;
    let fallback = Table::of_texts(&ACCESS, &t.at);
    let all = take(&mut t, "access")?.unwrap_or_else(|| fallback.clone());
    let access = links_of("access", &all)?;
    let edges = take(&mut t, "edge")?.unwrap_or(fallback);
    let edge = links_of("edge", &edges)?;
    // The sender's cable of one path may differ: it carries the association alone.
    let mut own = Vec::new();
    let accesses: Vec<(u32, String)> = t.keys().filter_map(|k| Some((path_of_access(k)?, k.to_owned()))).collect();
    for (path, key) in accesses {
        if let Some(table) = take(&mut t, &key)? {
            let mut merged = all.clone();
            merged.merge(table);
            own.push((path, key.clone(), links_of(&key, &merged)?, merged));
        }
    }
    let whole = t.clone();
    let (middle, mut keys) = numbered(paths(&mut t)?);
    if let Some((path, key, ..)) = own.iter().find(|(path, ..)| *path as usize > middle.len()) {
        return Err(Part::new(PLACE, &whole).wrong(format!("`{key}`: there is no `path{path}`")));
    }
    let count = middle.len();
    let mut topology = Topology::dual_dumbbell(&DualDumbbell { middle, access, edge, edge_hosts });
    for side in ["left", "right"] {
        keys.extend((1..=count).map(|path| (format!("path{path}.{side}"), all.clone())));
    }
    for (path, _, (forward, backward), merged) in own {
        let name = format!("path{path}.left");
        if let Some(cable) = topology.cables.iter_mut().find(|c| c.name == name) {
            (cable.forward, cable.backward) = (forward, backward);
        }
        keys.insert(name, merged);
    }
    Ok((topology, KeysOf { own: keys, others: Some(edges) }))
}

/// The number of the path in `path2-access`.
fn path_of_access(key: &str) -> Option<u32> {
    key.strip_prefix("path")?.strip_suffix("-access")?.parse().ok().filter(|n| *n > 0)
}

/// Paths of a pair: more than any association uses.
const MOST_PATHS: usize = 64;

fn shared_bottleneck(mut t: Table) -> Result<(Topology, KeysOf), Problem> {
    let (pairs, paths) = (whole(&mut t, "pairs", 2)?, whole(&mut t, "paths", 1)?);
    if paths > MOST_PATHS {
        return Err(Part::new(PLACE, &t).wrong(format!("`paths`: {paths} are more than {MOST_PATHS}")));
    }
    let needed = "this kind needs a `bottleneck` such as { rate = \"10mbit\", delay = \"20ms\" }";
    let missing = Part::new(PLACE, &t).wrong(needed);
    let middle = take(&mut t, "bottleneck")?.ok_or(missing)?;
    let bottleneck = links_of("bottleneck", &middle)?;
    let fallback = Table::of_texts(&ACCESS, &t.at);
    let of_all = take(&mut t, "access")?.unwrap_or(fallback);
    let access = links_of("access", &of_all)?;
    let mut all = Vec::new();
    let mut own = BTreeMap::from([("bottleneck".to_owned(), middle)]);
    for i in 1..=pairs {
        // A pair may have an access of its own.
        let key = format!("access{i}");
        let both = match take(&mut t, &key)? {
            Some(table) => {
                let both = links_of(&key, &table)?;
                let cable =
                    |host: &str, path| if paths > 1 { format!("{host}{i}.{path}") } else { format!("{host}{i}") };
                for path in 1..=paths {
                    own.extend(["sender", "receiver"].map(|host| (cable(host, path), table.clone())));
                }
                both
            }
            None => access.clone(),
        };
        all.push((both.clone(), both));
    }
    nothing_left(&t, &["kind", "pairs", "paths", "bottleneck", "access", "access1", "cable"])?;
    Ok((Topology::shared_bottleneck(bottleneck, all, paths), KeysOf { own, others: Some(of_all) }))
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
