//! A network at one point of a sweep, ready to run.

use super::derived::{Definitions, Derived};
use super::drawn::{self, Drawn, Take};
use super::flow::{self, Flow, Transport};
use super::phases::{Asked, Said};
use super::queue_limits;
use super::series::SeriesOf;
use super::shared_association;
use super::sweep::Sweep;
use super::topology;
use super::units::{Span, Time};
use crate::document::{Part, Problem, Table, read as read_keys};
use crate::metrics::{FlowMetric, LinkMetric, Window, in_phase, parted};
use crate::node::Pairs;
use anabranch_base::{Duration, Instant};
use anabranch_sim::netem::nearest;
use anabranch_sim::network::Network;
use anabranch_sim::topology::{Role, Topology};
use serde::Deserialize;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// A network and what is measured in it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Nodes and links.
    pub topology: Topology,
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// How long it runs.
    pub duration: Duration,
    /// What metrics are of: first the part of the run that is measured, then the phases that any metric is asked for, with
    /// their names.
    pub windows: Vec<(String, Window)>,
    /// Width of throughput bins.
    pub bin: Duration,
    /// What befalls the network, from when until when, in the order of time.
    pub events: Vec<(Duration, Duration)>,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// What is noted over time.
    pub series: Vec<SeriesOf>,
    /// The delays that figures draw one by one.
    pub distributions: Vec<Measure>,
    /// Values that were drawn for the seed; in the plan of a point, which is for all seeds, those in the middle.
    pub drawn: Vec<Drawn>,
}

/// A metric of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// As written: `main.goodput`.
    pub name: String,
    /// Its unit.
    pub unit: Cow<'static, str>,
    /// Of what.
    pub of: Of,
    /// In which of the plan's windows.
    pub window: usize,
}

/// What is measured.
#[derive(Clone, PartialEq, Debug)]
pub enum Of {
    /// Something of a flow, or of all flows of a group, or of groups whose names begin so, together.
    Flow(String, FlowMetric),
    /// Something of a cable.
    Link(String, LinkMetric),
    /// The value of a key that is drawn for each seed.
    Drawn(String),
    /// What these come to by a formula.
    Derived(Box<Derived>),
}

impl Measure {
    /// What has to be measured for it: itself, or what it is made of.
    pub fn parts(&self) -> Vec<&Measure> {
        match &self.of {
            Of::Derived(d) => d.parts().collect(),
            Of::Flow(..) | Of::Link(..) | Of::Drawn(_) => vec![self],
        }
    }

    /// Its name, and what that stands for where the scenario says it.
    pub(super) fn words(&self) -> [&str; 2] {
        let text = if let Of::Derived(d) = &self.of { d.text() } else { "" };
        [&self.name, text]
    }
}

impl Plan {
    /// The window of a metric.
    pub fn window(&self, m: &Measure) -> Window {
        self.windows.get(m.window).map_or_else(|| self.measured(), |w| w.1)
    }

    /// The part of the run that is measured.
    pub fn measured(&self) -> Window {
        self.windows.first().map_or_else(|| Window::since(Instant::ZERO), |w| w.1)
    }

    /// All that has to be measured, as itself or as a part of something else.
    pub fn parts(&self) -> impl Iterator<Item = &Measure> {
        self.measures.iter().flat_map(Measure::parts)
    }

    /// What befalls the network from a moment in this window on.
    pub fn events_in(&self, window: Window) -> Vec<(Duration, Duration)> {
        // What befell a stream before `measure-from` is what is measured after it.
        let all = window == self.measured();
        self.events.iter().copied().filter(|e| all || window.holds(Instant::ZERO + e.0)).collect()
    }

    /// The end of the run.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.duration
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Times {
    duration: Time,
    measure_from: Option<Time>,
    measure_to: Option<Time>,
    #[serde(default)]
    phases: BTreeMap<String, Span>,
    bin: Option<Time>,
    #[serde(default)]
    events: Vec<Span>,
}

/// What metrics may be of.
#[derive(Clone)]
pub(super) struct Known<'b> {
    base: &'b Table,
    groups: &'b [String],
    draws: &'b [Drawn],
    cables: Vec<String>,
    pub asked: Asked,
}

impl<'b> Known<'b> {
    fn of(base: &'b Table, (groups, draws): (&'b [String], &'b [Drawn])) -> Result<Self, Problem> {
        Ok(Known { base, groups, draws, cables: cables(base)?, asked: Asked::default() })
    }

    /// What the value of a key is that is drawn for each seed.
    fn drawn(&self, name: &str, key: &str) -> Result<Measure, String> {
        let Some(found) = self.draws.iter().find(|d| d.key == key) else {
            let near = nearest(key, self.draws.iter().map(|d| d.key.as_str()));
            let near = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return Err(format!("`{name}`: no value of `{key}` is drawn{near}"));
        };
        let (unit, of) = (Cow::Borrowed(found.unit), Of::Drawn(key.to_owned()));
        Ok(Measure { name: name.to_owned(), unit, of, window: 0 })
    }

    /// What a metric of a flow or a cable means, in this phase where it names none itself.
    pub fn measure(&mut self, name: &str, phase: Option<&str>) -> Result<Measure, String> {
        if let Some(key) = drawn_key(name) {
            return self.drawn(name, key);
        }
        let (metric, own) = in_phase(name);
        let (of, metric) = parted(metric).ok_or_else(|| format!("`{name}` is no FLOW.METRIC"))?;
        let (of, unit) = if self.groups.iter().any(|g| covers(of, g)) {
            let (m, unit) = FlowMetric::named(metric)?;
            (Of::Flow(of.to_owned(), m), unit)
        } else if self.cables.iter().any(|c| c == of) {
            let (m, unit) = LinkMetric::named(metric)?;
            (Of::Link(of.to_owned(), m), unit)
        } else {
            let near = nearest(of, self.groups.iter().chain(&self.cables).map(String::as_str));
            let hint = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return Err(format!("`{name}`: no flow or cable is called `{of}`{hint}"));
        };
        let window = self.asked.window(self.base, own.or(phase)).map_err(|what| format!("`{name}`: {what}"))?;
        Ok(Measure { name: name.to_owned(), unit: Cow::Borrowed(unit), of, window })
    }
}

/// Finds what the names in `metrics` mean.
pub(super) fn measures(
    whole: Part<'_>,
    base: &Table,
    there: (&[String], &[Drawn]),
    metrics: &[String],
) -> Result<(Vec<Measure>, Asked), Problem> {
    let mut known = Known::of(base, there)?;
    if metrics.is_empty() {
        return Err(whole.at("metrics", "needs one metric or more, such as \"main.goodput\""));
    }
    if let Some(i) = (1..metrics.len()).find(|i| metrics[..*i].contains(&metrics[*i])) {
        let at = whole.table.list("metrics").get(i).map_or(&whole.table.at, |node| &node.at);
        return Err(Problem::of_key("", "metrics", at, format!("`{}` is there twice: remove one", metrics[i])));
    }
    let defined = Definitions::read(whole, &mut known)?;
    let mut one = |name: &String| {
        if let Some(found) = defined.find(name, &mut known) {
            return found;
        }
        let near = || nearest(in_phase(name).0, defined.names()).filter(|_| !name.contains('.'));
        known.measure(name, None).map_err(|what| {
            let hint = near().map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            whole.at("metrics", format!("{what}{hint}"))
        })
    };
    let all = metrics.iter().map(&mut one).collect::<Result<_, _>>()?;
    Ok((all, known.asked))
}

/// The key of which a metric such as `drawn.topology.path1.delay` is the value.
pub(super) fn drawn_key(metric: &str) -> Option<&str> {
    metric.strip_prefix("drawn.").filter(|key| key.starts_with("topology.") || key.starts_with("flow."))
}

/// The delays of these means, of all that is measured.
pub(super) fn distributions(all: &[Measure], names: &[String]) -> Vec<Measure> {
    let of = |m: &Measure| {
        let of = match &m.of {
            // What asks for a percentile keeps each delay.
            Of::Flow(group, FlowMetric::Mean(d)) => Of::Flow(group.clone(), FlowMetric::Percentile(*d, 50_000)),
            other => other.clone(),
        };
        Measure { of, ..m.clone() }
    };
    all.iter().filter(|m| names.contains(&m.name)).map(of).collect()
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
    (measures, asked): (&[Measure], &Asked),
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
    for t in &tables {
        let own = match shared_association::of(t, &tables)? {
            None => flow::read(t)?,
            Some((name, merged)) => {
                let place = format!("flow `{}`", flow::name(t)?);
                let mut others: Vec<&mut Flow> = flows.iter_mut().map(|(_, f)| f).collect();
                shared_association::join(Part::new(&place, t), &name, flow::read(&merged)?, &mut others)?
            }
        };
        flows.extend(own.into_iter().map(|f| (*t, f)));
    }
    let duration = times.duration.0;
    if duration.is_zero() {
        return Err(whole.at("duration", "needs a time longer than zero"));
    }
    let (from, to) = (times.measure_from.map(|t| t.0), times.measure_to.map(|t| t.0));
    let windows = Said { duration, from, to, phases: times.phases }.windows(whole, asked)?;
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
        match &f.transport {
            Transport::Sctp(s) => {
                let paths = paths(part, &ways, f, s.paths)?;
                s.profile.check(paths).map_err(|e| part.at("profile", e.to_string()))?;
            }
            Transport::Mptcp(m) => {
                paths(part, &ways, f, m.paths)?;
            }
            _ => {}
        }
        if queue_limits::limits_packets(&topology) {
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
    let distributions = Vec::new();
    Ok(Plan { topology, flows, duration, windows, bin, events, measures, series, distributions, drawn })
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
    if f.start >= duration {
        return Err(part.at("start", "must come before the end, `duration`"));
    }
    if f.start + f.start_within >= duration {
        return Err(part.at("start-within", "the latest start must come before the end, `duration`"));
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

/// How many paths a flow uses, of which it says so many.
fn paths(part: Part<'_>, ways: &Ways<'_>, f: &Flow, said: Option<usize>) -> Result<usize, Problem> {
    let there = Pairs::between(ways.network()?, &f.from, &f.to).iter().count();
    match said {
        Some(n) if n == 0 || n > there => {
            let what = format!("must lie between 1 and {there}, the paths between its hosts");
            Err(part.at("paths", what))
        }
        said => Ok(said.unwrap_or(there)),
    }
}
