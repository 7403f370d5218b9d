//! A network at one point of a sweep, ready to run.

use super::error::{Problem, section};
use super::flow::{self, Flow, Sctp, Transport};
use super::room;
use super::series::SeriesOf;
use super::topology;
use super::units::{Span, Time};
use crate::metrics::{FlowMetric, LinkMetric, parted};
use crate::node::Pairs;
use anabranch_base::Duration;
use anabranch_sim::netem::nearest;
use anabranch_sim::network::Network;
use anabranch_sim::topology::{Role, Topology};
use serde::Deserialize;
use std::cell::OnceCell;
use toml::{Table, Value};

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
pub(super) fn measures(base: &Table, metrics: &[String]) -> Result<Vec<Measure>, Problem> {
    let place = "";
    let flows = flows_of(base)?;
    let groups = flows.iter().map(flow::name).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = groups.iter().enumerate().find(|(i, g)| groups[..*i].contains(g)) {
        return Err(Problem::at(&format!("flow `{}`", twice.1), "name", "there are two flows of this name").again());
    }
    let cables = cables(base)?;
    if metrics.is_empty() {
        return Err(Problem::at(place, "metrics", "needs one metric or more, such as \"main.goodput\""));
    }
    let one = |name: &String| {
        let wrong = |what: String| Problem::at(place, "metrics", what);
        let (of, metric) = parted(name).ok_or_else(|| wrong(format!("`{name}` is no FLOW.METRIC")))?;
        if groups.iter().any(|g| covers(of, g)) {
            let (m, unit) = FlowMetric::named(metric).map_err(wrong)?;
            Ok(Measure { name: name.clone(), unit, of: Of::Flow(of.to_owned(), m) })
        } else if cables.iter().any(|c| c == of) {
            let (m, unit) = LinkMetric::named(metric).map_err(wrong)?;
            Ok(Measure { name: name.clone(), unit, of: Of::Link(of.to_owned(), m) })
        } else {
            let near = nearest(of, groups.iter().copied().chain(cables.iter().map(String::as_str)));
            let hint = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            Err(wrong(format!("`{name}`: no flow or cable is called `{of}`{hint}")))
        }
    };
    metrics.iter().map(one).collect()
}

/// Is the flow or group `name` what `of` says: its name, or with a star at its end the beginning of it?
pub fn covers(of: &str, name: &str) -> bool {
    of == name || of.strip_suffix('*').is_some_and(|begin| name.starts_with(begin))
}

/// The names of all flows and groups.
pub(super) fn groups(base: &Table) -> Result<Vec<String>, Problem> {
    flows_of(base)?.iter().map(|t| flow::name(t).map(str::to_owned)).collect()
}

/// The names of all cables.
pub(super) fn cables(base: &Table) -> Result<Vec<String>, Problem> {
    let topology = base.get("topology").and_then(Value::as_table).cloned().unwrap_or_default();
    Ok(topology::read(&topology)?.cables.into_iter().map(|c| c.name).collect())
}

fn flows_of(base: &Table) -> Result<Vec<Table>, Problem> {
    let wrong = || Problem::at("", "flow", "needs [[flow]]");
    match base.get("flow") {
        Some(Value::Array(a)) => a.iter().map(|v| v.as_table().cloned().ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
        None => Err(Problem::new("", "there is no [[flow]]")),
    }
}

/// Reads the keys of the network.
pub(super) fn read(table: &Table, measures: &[Measure], series: &[SeriesOf]) -> Result<Plan, Problem> {
    let mut times = table.clone();
    let topology = times.remove("topology");
    times.remove("flow");
    let times: Times = section("", Value::Table(times))?;
    let missing = || Problem::new("", "there is no [topology]");
    let links = topology.as_ref().and_then(Value::as_table).ok_or_else(missing)?;
    let topology = topology::read(links)?;
    let mut flows = Vec::new();
    for t in flows_of(table)? {
        flows.extend(flow::read(&t)?);
    }
    let duration = times.duration.0;
    if duration.is_zero() {
        return Err(Problem::at("", "duration", "needs a time longer than zero"));
    }
    let from = times.measure_from.map_or(Duration::ZERO, |t| t.0);
    if from >= duration {
        return Err(Problem::at("", "measure-from", "must come before the end, `duration`"));
    }
    let bin = times.bin.map_or(Duration::from_millis(500), |t| t.0);
    if bin.is_zero() || duration.as_nanos() / bin.as_nanos() > 10_000_000 {
        return Err(Problem::at("", "bin", "is too short for so long a run"));
    }
    let events: Vec<(Duration, Duration)> = times.events.iter().map(|s| (s.from, s.until)).collect();
    if let Some((i, e)) = events.iter().enumerate().find(|(i, e)| e.1 > duration || *i > 0 && e.0 < events[*i - 1].1) {
        let what = if e.1 > duration { "ends after the run" } else { "begins before the one before it has ended" };
        return Err(Problem::at("", "events", format!("number {}: {what}", i + 1)));
    }
    let ways = OnceCell::new();
    for f in &flows {
        check_flow(&topology, f, duration)?;
        if let Transport::Sctp(s) = &f.transport {
            check_paths(&topology, &ways, f, s)?;
        }
        if room::counts_bytes(&topology) {
            room::check(links, &topology, network(&topology, &ways)?, f)?;
        }
    }
    if !series.is_empty() && duration.as_nanos() / bin.as_nanos() > 100_000 {
        return Err(Problem::at(
            "",
            "bin",
            "is too short for a series of so long a run: it would have more than 100000 lines for each flow",
        ));
    }
    series.iter().try_for_each(|s| flows.iter().try_for_each(|f| s.check(f)))?;
    let measures = measures.to_vec();
    let series = series.to_vec();
    Ok(Plan { topology, flows, duration, from, bin, events, measures, series })
}

fn check_flow(t: &Topology, f: &Flow, duration: Duration) -> Result<(), Problem> {
    let place = format!("flow `{}`", f.group);
    let mut ends = Vec::new();
    for (key, name) in [("from", &f.from), ("to", &f.to)] {
        let hosts = || t.nodes.iter().filter(|n| n.role == Role::Host).map(|n| n.name.as_str());
        let Some(node) = t.find(name).filter(|_| hosts().any(|h| h == name)) else {
            let near = nearest(name, hosts()).map(|n| format!("did you mean `{n}`?"));
            let known = || format!("there are {}", hosts().collect::<Vec<_>>().join(", "));
            let what = format!("there is no host `{name}`; {}", near.unwrap_or_else(known));
            return Err(Problem::at(&place, key, what));
        };
        ends.push(node);
    }
    if f.from == f.to {
        return Err(Problem::at(&place, "to", format!("`{}` cannot talk to itself", f.to)));
    }
    if let [from, to] = ends[..]
        && !t.leads(from, to)
    {
        let what = format!("no way leads from `{}` to `{}`; only routers pass packets on", f.from, f.to);
        return Err(Problem::at(&place, "to", what));
    }
    if f.start + f.start_within >= duration {
        return Err(Problem::at(&place, "start", "must come before the end, `duration`"));
    }
    Ok(())
}

/// A network of this topology that carries nothing knows the ways; it is built for the first flow that asks.
type Ways = OnceCell<Network<()>>;

fn network<'w>(t: &Topology, ways: &'w Ways) -> Result<&'w Network<()>, Problem> {
    if ways.get().is_none() {
        let _ = ways.set(Network::new(t, 0).map_err(|e| Problem::new("[topology]", e.to_string()))?);
    }
    ways.get().ok_or_else(|| Problem::new("[topology]", "has no ways"))
}

fn check_paths(t: &Topology, ways: &Ways, f: &Flow, s: &Sctp) -> Result<(), Problem> {
    let place = format!("flow `{}`", f.group);
    let there = Pairs::between(network(t, ways)?, &f.from, &f.to).iter().count();
    if s.paths.is_some_and(|n| n == 0 || n > there) {
        let what = format!("must lie between 1 and {there}, the paths between its hosts");
        return Err(Problem::at(&place, "paths", what));
    }
    s.profile.check(s.paths.unwrap_or(there)).map_err(|e| Problem::at(&place, "profile", e.to_string()))
}
