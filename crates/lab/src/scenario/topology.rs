//! `[topology]`: a kind and its links.

use super::error::{Problem, section};
use super::links;
use anabranch_sim::topology::{DualDumbbell, Topology};
use serde::Deserialize;
use toml::{Table, Value};

type Both = (anabranch_sim::LinkConfig, anabranch_sim::LinkConfig);

const PLACE: &str = "[topology]";
const KINDS: [&str; 5] = ["single-path", "disjoint-paths", "dual-dumbbell", "shared-bottleneck", "free"];

/// Reads `[topology]`.
pub(super) fn read(table: &Table) -> Result<Topology, Problem> {
    let mut t = table.clone();
    let kind = match t.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(_) => return Err(Problem::at(PLACE, "kind", format!("is one of {}", KINDS.join(", ")))),
        None => return Err(Problem::new(PLACE, format!("the key `kind` is missing: one of {}", KINDS.join(", ")))),
    };
    let topology = match kind.as_str() {
        "single-path" => Topology::single_path(links::read(PLACE, &t)?),
        "disjoint-paths" => Topology::disjoint_paths(paths(&mut t, None)?),
        "dual-dumbbell" => dual_dumbbell(t)?,
        "shared-bottleneck" => shared_bottleneck(t)?,
        "free" => free(t)?,
        _ => return Err(Problem::at(PLACE, "kind", format!("is one of {}, not `{kind}`", KINDS.join(", ")))),
    };
    topology.check().map_err(|e| {
        let text = e.to_string();
        let name = text.split('`').nth(1).unwrap_or_default();
        match topology.cables.iter().any(|c| c.name == name) {
            true => {
                Problem::new(&format!("cable `{name}`"), text.trim_start_matches(&format!("cable `{name}` "))).again()
            }
            false => Problem::at(PLACE, "hosts", text),
        }
    })?;
    Ok(topology)
}

/// Takes a table out of the table.
fn take(t: &mut Table, key: &str) -> Result<Option<Table>, Problem> {
    match t.remove(key) {
        None => Ok(None),
        Some(Value::Table(inner)) => Ok(Some(inner)),
        Some(_) => Err(Problem::at(PLACE, key, "needs keys of a link, such as { rate = \"10mbit\" }")),
    }
}

fn link(t: &mut Table, key: &str, fallback: &str) -> Result<Both, Problem> {
    let text = || fallback.parse::<Table>().unwrap_or_default();
    let table = take(t, key)?.unwrap_or_else(text);
    links::read(&format!("[topology.{key}]"), &table)
}

fn whole(t: &mut Table, key: &str, fallback: usize) -> Result<usize, Problem> {
    match t.remove(key) {
        None => Ok(fallback),
        Some(Value::Integer(n)) if (1..=10_000).contains(&n) => Ok(n as usize),
        Some(_) => Err(Problem::at(PLACE, key, "needs a whole number from 1 to 10000")),
    }
}

fn nothing_left(t: &Table, known: &[&str]) -> Result<(), Problem> {
    t.keys().next().map_or(Ok(()), |key| Err(Problem::unknown(PLACE, key, known)))
}

/// `path1`, `path2` and so on; keys beside them hold for all.
fn paths(t: &mut Table, want: Option<usize>) -> Result<Vec<Both>, Problem> {
    let mut own = Vec::new();
    while let Some(path) = take(t, &format!("path{}", own.len() + 1))? {
        own.push(path);
    }
    let shared = core::mem::take(t);
    let numbered = |k: &&String| k.strip_prefix("path").is_some_and(|n| n.parse::<u32>().is_ok());
    if let Some(key) = shared.keys().find(numbered) {
        return Err(Problem::at(PLACE, key, format!("there is no `path{}` before it", own.len() + 1)));
    }
    if own.is_empty() || want.is_some_and(|n| n != own.len()) {
        let n = want.map_or("one or more".to_owned(), |n| n.to_string());
        return Err(Problem::new(PLACE, format!("this kind needs {n} paths: `path1`, `path2` and so on")));
    }
    // The keys of all are looked at by themselves, so that a mistake in them is named there.
    links::read(PLACE, &shared)?;
    let merged = own.into_iter().enumerate().map(|(i, path)| {
        let mut all = shared.clone();
        super::sweep::merge(&mut all, path);
        links::read(&format!("[topology.path{}]", i + 1), &all)
    });
    merged.collect()
}

const ACCESS: &str = "rate = '100mbit'\ndelay = '5ms'";

fn dual_dumbbell(mut t: Table) -> Result<Topology, Problem> {
    let edge_hosts = whole(&mut t, "edge-hosts", 5)?;
    let all = t.get("access").and_then(Value::as_table).cloned();
    let (access, edge) = (link(&mut t, "access", ACCESS)?, link(&mut t, "edge", ACCESS)?);
    // The sender's cable of one path may differ: it carries the association alone.
    let mut own = Vec::new();
    for path in 1..=2 {
        let key = format!("path{path}-access");
        if let Some(table) = take(&mut t, &key)? {
            let mut merged = all.clone().or_else(|| ACCESS.parse().ok()).unwrap_or_default();
            super::sweep::merge(&mut merged, table);
            own.push((format!("path{path}.left"), links::read(&format!("[topology.{key}]"), &merged)?));
        }
    }
    let middle = paths(&mut t, Some(2))?;
    let middle: [Both; 2] = middle.try_into().map_err(|_| Problem::new(PLACE, "this kind needs 2 paths"))?;
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
    let missing =
        || Problem::new(PLACE, "this kind needs a `bottleneck` such as { rate = \"10mbit\", delay = \"20ms\" }");
    let bottleneck = links::read("[topology.bottleneck]", &take(&mut t, "bottleneck")?.ok_or_else(missing)?)?;
    let access = link(&mut t, "access", ACCESS)?;
    // A pair may have an access of its own.
    let own = |i: usize| format!("access{}", i + 1);
    let mut all = Vec::new();
    for i in 0..pairs {
        let both = match take(&mut t, &own(i))? {
            Some(table) => links::read(&format!("[topology.{}]", own(i)), &table)?,
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
    #[serde(default)]
    cable: Vec<Table>,
}

fn free(t: Table) -> Result<Topology, Problem> {
    let f: Free = section(PLACE, Value::Table(t))?;
    let mut topology = Topology::new();
    for host in &f.hosts {
        topology.host(host);
    }
    for router in &f.routers {
        topology.router(router);
    }
    for (i, mut cable) in f.cable.into_iter().enumerate() {
        let unnamed = format!("cable {}", i + 1);
        let mut text = |key: &str| match cable.remove(key) {
            Some(Value::String(s)) => Ok(Some(s)),
            Some(_) => Err(Problem::at(&unnamed, key, "needs a name")),
            None => Ok(None),
        };
        let missing =
            |key: &str| Problem::new(&unnamed, format!("the key `{key}` is missing: the name of a host or router"));
        let (from, to) = (text("from")?.ok_or_else(|| missing("from"))?, text("to")?.ok_or_else(|| missing("to"))?);
        let name = text("name")?.unwrap_or_else(|| format!("{from}-{to}"));
        let place = format!("cable `{name}`");
        let node = |key: &str, end: &str| {
            let known: Vec<&str> = topology.nodes.iter().map(|n| n.name.as_str()).collect();
            let what = || format!("there is no host or router `{end}`; there are {}", known.join(", "));
            topology.find(end).ok_or_else(|| Problem::at(&place, key, what()))
        };
        let (a, b) = (node("from", &from)?, node("to", &to)?);
        let (forward, backward) = links::read(&place, &cable)?;
        topology.cable(&name, a, b, forward, backward);
    }
    Ok(topology)
}
