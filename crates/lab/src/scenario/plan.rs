//! A network at one point of a sweep, ready to run.

use super::drawn::{self, Drawn, Take};
use super::flow::{self, Flow, Sctp, Transport};
use super::queue_limits;
use super::series::SeriesOf;
use super::sweep::Sweep;
use super::topology;
use super::units::{Span, Time};
use crate::document::{Part, Problem, Table, read as read_keys};
use crate::metrics::{FlowMetric, LinkMetric, parted};
use crate::node::Pairs;
use anabranch_base::Duration;
use anabranch_sim::netem::nearest;
use anabranch_sim::network::Network;
use anabranch_sim::topology::{Role, Topology};
use serde::Deserialize;
use std::cell::OnceCell;

/// A network and what is measured in it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Nodes and links.
    pub topology: Topology,
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// How long it runs.
    pub duration: Duration,
    /// What is measured begins here, or at the start of a flow that starts later.
    pub from: Duration,
    /// Width of throughput bins.
    pub bin: Duration,
    /// What befalls the network, from when until when, in the order of time.
    pub events: Vec<(Duration, Duration)>,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// What is noted over time.
    pub series: Vec<SeriesOf>,
    /// Values that were drawn for the seed; in the plan of a point, which is for all seeds, those in the middle.
    pub drawn: Vec<Drawn>,
}

/// A metric of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measure {
    /// As written: `main.goodput`.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Of what.
    pub of: Of,
}

/// What is measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Of {
    /// Something of a flow, or of all flows of a group, or of groups whose names begin so, together.
    Flow(String, FlowMetric),
    /// Something of a cable.
    Link(String, LinkMetric),
    /// The value of a key that is drawn for each seed.
    Drawn(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Times {
    duration: Time,
    measure_from: Option<Time>,
    bin: Option<Time>,
    #[serde(default)]
    events: Vec<Span>,
}

/// Finds what the names in `metrics` mean.
pub(super) fn measures(
    head: Part<'_>,
    base: &Table,
    groups: &[String],
    draws: &[Drawn],
    metrics: &[String],
) -> Result<Vec<Measure>, Problem> {
    let cables = cables(base)?;
    if metrics.is_empty() {
        return Err(head.at("metrics", "needs one metric or more, such as \"main.goodput\""));
    }
    let one = |name: &String| {
        let wrong = |what: String| head.at("metrics", what);
        if let Some(key) = drawn_key(name) {
            let Some(found) = draws.iter().find(|d| d.key == key) else {
                let near = nearest(key, draws.iter().map(|d| d.key.as_str())).map(|n| format!("; did you mean `{n}`?"));
                let what = format!("`{name}`: no value of `{key}` is drawn{}", near.unwrap_or_default());
                return Err(wrong(what));
            };
            return Ok(Measure { name: name.clone(), unit: found.unit, of: Of::Drawn(key.to_owned()) });
        }
        let (of, metric) = parted(name).ok_or_else(|| wrong(format!("`{name}` is no FLOW.METRIC")))?;
        if groups.iter().any(|g| covers(of, g)) {
            let (m, unit) = FlowMetric::named(metric).map_err(wrong)?;
            Ok(Measure { name: name.clone(), unit, of: Of::Flow(of.to_owned(), m) })
        } else if cables.iter().any(|c| c == of) {
            let (m, unit) = LinkMetric::named(metric).map_err(wrong)?;
            Ok(Measure { name: name.clone(), unit, of: Of::Link(of.to_owned(), m) })
        } else {
            let near = nearest(of, groups.iter().map(String::as_str).chain(cables.iter().map(String::as_str)));
            let hint = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            Err(wrong(format!("`{name}`: no flow or cable is called `{of}`{hint}")))
        }
    };
    metrics.iter().map(one).collect()
}

/// The key of which a metric such as `drawn.topology.path1.delay` is the value.
pub(super) fn drawn_key(metric: &str) -> Option<&str> {
    metric.strip_prefix("drawn.").filter(|key| key.starts_with("topology.") || key.starts_with("flow."))
}

/// Is the flow or group `name` what `of` says: its name, or with a star at its end the beginning of it?
pub fn covers(of: &str, name: &str) -> bool {
    of == name || of.strip_suffix('*').is_some_and(|begin| name.starts_with(begin))
}

/// The names of all flows and groups, those that a sweep adds too.
pub(super) fn groups(base: &Table, sweeps: &[Sweep]) -> Result<Vec<String>, Problem> {
    let mut added: Vec<String> = sweeps.iter().flat_map(Sweep::added_flows).collect();
    let mut all = match base.get("flow") {
        None if !added.is_empty() => Vec::new(),
        _ => differ(&flows_of(base)?)?,
    };
    added.retain(|name| !all.contains(name));
    added.sort();
    added.dedup();
    all.append(&mut added);
    Ok(all)
}

/// The names of these flows, of which no two are alike.
fn differ(flows: &[&Table]) -> Result<Vec<String>, Problem> {
    let names = flows.iter().map(|t| flow::name(t).map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
    match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        Some((i, twice)) => {
            Err(Part::new(&format!("flow `{twice}`"), flows[i]).at("name", "there are two flows of this name"))
        }
        None => Ok(names),
    }
}

/// The names of all cables.
pub(super) fn cables(base: &Table) -> Result<Vec<String>, Problem> {
    let settled = drawn::take(base, Take::Middle)?.0;
    Ok(topology::read(topology_of(&settled)?)?.cables.into_iter().map(|c| c.name).collect())
}

fn topology_of(base: &Table) -> Result<&Table, Problem> {
    base.table("topology").ok_or_else(|| Part::new("", base).wrong("there is no [topology]"))
}

fn flows_of(base: &Table) -> Result<Vec<&Table>, Problem> {
    let whole = Part::new("", base);
    let wrong = || whole.at("flow", "needs [[flow]]");
    match base.get("flow") {
        Some(node) => node.as_list().ok_or_else(wrong)?.iter().map(|v| v.as_table().ok_or_else(wrong)).collect(),
        None => Err(whole.wrong("there is no [[flow]]")),
    }
}

/// Reads the keys of the network with these of its ranges; `head` has the keys that say what is measured in it.
pub(super) fn read(
    table: &Table,
    values: Take,
    head: Part<'_>,
    measures: &[Measure],
    series: &[SeriesOf],
) -> Result<Plan, Problem> {
    let (table, drawn) = drawn::take(table, values)?;
    let table = &table;
    let mut times = table.clone();
    times.split(|key| matches!(key, "topology" | "flow"));
    let whole = Part::new("", &times);
    let times: Times = read_keys(whole)?;
    let links = topology_of(table)?;
    let topology = topology::read(links)?;
    // Each with the table that it is read from.
    let mut flows: Vec<(&Table, Flow)> = Vec::new();
    let tables = flows_of(table)?;
    differ(&tables)?;
    for t in tables {
        flows.extend(flow::read(t)?.into_iter().map(|f| (t, f)));
    }
    let duration = times.duration.0;
    if duration.is_zero() {
        return Err(whole.at("duration", "needs a time longer than zero"));
    }
    let from = times.measure_from.map_or(Duration::ZERO, |t| t.0);
    if from >= duration {
        return Err(whole.at("measure-from", "must come before the end, `duration`"));
    }
    let bin = times.bin.map_or(Duration::from_millis(500), |t| t.0);
    if bin.is_zero() || duration.as_nanos() / bin.as_nanos() > 10_000_000 {
        return Err(whole.at("bin", "is too short for so long a run"));
    }
    let events: Vec<(Duration, Duration)> = times.events.iter().map(|s| (s.from, s.until)).collect();
    if let Some((i, e)) = events.iter().enumerate().find(|(i, e)| e.1 > duration || *i > 0 && e.0 < events[*i - 1].1) {
        let what = if e.1 > duration { "ends after the run" } else { "begins before the one before it has ended" };
        return Err(whole.at("events", format!("number {}: {what}", i + 1)));
    }
    let ways = Ways { part: Part::new(topology::PLACE, links), topology: &topology, network: OnceCell::new() };
    for (t, f) in &flows {
        let place = format!("flow `{}`", f.group);
        let part = Part::new(&place, t);
        check_flow(part, &topology, f, duration)?;
        if let Transport::Sctp(s) = &f.transport {
            check_paths(part, &ways, f, s)?;
        }
        if queue_limits::counts_bytes(&topology) {
            queue_limits::check(links, &topology, ways.network()?, f)?;
        }
    }
    if !series.is_empty() && duration.as_nanos() / bin.as_nanos() > 100_000 {
        let what = "is too short for a series of so long a run: it would have more than 100000 lines for each flow";
        return Err(whole.at("bin", what));
    }
    series.iter().try_for_each(|s| flows.iter().try_for_each(|(_, f)| s.check(head, f)))?;
    let flows = flows.into_iter().map(|(_, f)| f).collect();
    let measures = measures.to_vec();
    let series = series.to_vec();
    Ok(Plan { topology, flows, duration, from, bin, events, measures, series, drawn })
}

fn check_flow(part: Part<'_>, t: &Topology, f: &Flow, duration: Duration) -> Result<(), Problem> {
    let mut ends = Vec::new();
    for (key, name) in [("from", &f.from), ("to", &f.to)] {
        let hosts = || t.nodes.iter().filter(|n| n.role == Role::Host).map(|n| n.name.as_str());
        let Some(node) = t.find(name).filter(|_| hosts().any(|h| h == name)) else {
            let near = nearest(name, hosts()).map(|n| format!("did you mean `{n}`?"));
            let known = || format!("there are {}", hosts().collect::<Vec<_>>().join(", "));
            let what = format!("there is no host `{name}`; {}", near.unwrap_or_else(known));
            return Err(part.at(key, what));
        };
        ends.push(node);
    }
    if f.from == f.to {
        return Err(part.at("to", format!("`{}` cannot talk to itself", f.to)));
    }
    if let [from, to] = ends[..]
        && !t.leads(from, to)
    {
        let what = format!("no way leads from `{}` to `{}`; only routers pass packets on", f.from, f.to);
        return Err(part.at("to", what));
    }
    if f.start + f.start_within >= duration {
        return Err(part.at("start", "must come before the end, `duration`"));
    }
    Ok(())
}

/// A network of the topology that carries nothing knows the ways; it is built for the first flow that asks.
struct Ways<'t> {
    part: Part<'t>,
    topology: &'t Topology,
    network: OnceCell<Network<()>>,
}

impl Ways<'_> {
    fn network(&self) -> Result<&Network<()>, Problem> {
        if self.network.get().is_none() {
            let made = Network::new(self.topology, 0).map_err(|e| self.part.wrong(e.to_string()))?;
            let _ = self.network.set(made);
        }
        self.network.get().ok_or_else(|| self.part.wrong("has no ways"))
    }
}

fn check_paths(part: Part<'_>, ways: &Ways<'_>, f: &Flow, s: &Sctp) -> Result<(), Problem> {
    let there = Pairs::between(ways.network()?, &f.from, &f.to).iter().count();
    if s.paths.is_some_and(|n| n == 0 || n > there) {
        let what = format!("must lie between 1 and {there}, the paths between its hosts");
        return Err(part.at("paths", what));
    }
    s.profile.check(s.paths.unwrap_or(there)).map_err(|e| part.at("profile", e.to_string()))
}
