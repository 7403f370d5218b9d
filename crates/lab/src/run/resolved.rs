//! Every parameter of a plan with the value that it has in the end: profiles and defaults worked out.

mod transports;

use super::models::{self, rate, time};
use crate::metrics::{Cut, Dependence};
use crate::node::{Follow, Follows};
use crate::scenario::{Flow, Plan, Playout, Point};
use anabranch_media::HEADER_LEN;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::queue::Limit;
use anabranch_sim::topology::{Cable, Role, Topology};
use anabranch_sim::{DamageConfig, FrameReports};
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys in the words of the scenario's file with their values: times in seconds, sizes in bytes, rates in bit/s, shares
/// as fractions of one; policies with all parameters. Models are objects with a `kind`.
pub type Resolved = BTreeMap<String, Value>;

/// All parameters of `plan`.
///
/// # Errors
/// A limit that cannot be, which a plan that was read has not.
pub fn resolved(plan: &Plan) -> Result<Resolved, String> {
    let Plan { topology, flows, duration, windows, bin, events, measures: _, series: _, distributions: _, drawn: _ } =
        plan;
    let mut all = Resolved::new();
    let mut top = Below { prefix: String::new(), all: &mut all };
    top.put("duration", time(*duration));
    let (from, to) = plan.measured().span();
    top.put("measure-from", time(from));
    if to < *duration {
        top.put("measure-to", time(to));
    }
    for (phase, window) in windows.iter().skip(1) {
        let (from, until) = window.span();
        top.put(&format!("phases.{phase}"), [from, until].map(time).to_vec());
    }
    top.put("bin", time(*bin));
    if !events.is_empty() {
        top.put("events", events.iter().map(|e| [e.0, e.1].map(time).to_vec()).collect::<Vec<_>>());
    }
    of_topology(&mut top, topology);
    for group in flows.chunk_by(|a, b| a.group == b.group) {
        of_group(&mut top, group)?;
    }
    Ok(all)
}

/// All parameters at a point. What is drawn for each seed, and what follows from that, is an object of the kind
/// `per-seed` with the lowest and the highest value.
///
/// # Errors
/// As [`resolved`].
pub fn resolved_point(point: &Point) -> Result<Resolved, String> {
    let Some(extremes) = point.extremes().map_err(|e| e.to_string())? else { return resolved(&point.plan) };
    let [low, mut high] = [resolved(&extremes[0])?, resolved(&extremes[1])?];
    let both = |(key, from): (String, Value)| {
        let until = high.remove(&key).unwrap_or_default();
        (key, per_seed(from, until))
    };
    Ok(low.into_iter().map(both).collect())
}

/// One value where both ends have the same; of objects and lists of one form whatever differs inside.
fn per_seed(from: Value, until: Value) -> Value {
    match (from, until) {
        (from, until) if from == until => from,
        (Value::Object(from), Value::Object(mut until)) if from.keys().eq(until.keys()) => {
            let one = |(key, value): (String, Value)| {
                let until = until.remove(&key).unwrap_or_default();
                (key, per_seed(value, until))
            };
            from.into_iter().map(one).collect()
        }
        (Value::Array(from), Value::Array(until)) if from.len() == until.len() => {
            from.into_iter().zip(until).map(|(from, until)| per_seed(from, until)).collect()
        }
        (from, until) => serde_json::json!({ "kind": "per-seed", "from": from, "to": until }),
    }
}

/// What differs at a point from the first one; null for what it does not have.
pub fn changes(first: &Resolved, here: &Resolved) -> Resolved {
    let gone = first.keys().filter(|k| !here.contains_key(*k)).map(|k| (k.clone(), Value::Null));
    let other = here.iter().filter(|(k, v)| first.get(*k) != Some(v)).map(|(k, v)| (k.clone(), v.clone()));
    gone.chain(other).collect()
}

/// Where keys go that begin alike.
struct Below<'a> {
    prefix: String,
    all: &'a mut Resolved,
}

impl Below<'_> {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.all.insert(format!("{}{key}", self.prefix), value.into());
    }

    /// One value where all classes have the same, else those of I, P and B.
    fn by_class<T: Into<Value> + PartialEq>(&mut self, key: &str, [i, p, b]: [Option<T>; 3]) {
        if i == p && p == b {
            return self.put(key, i);
        }
        let all = [i, p, b].map(|v| v.map_or(Value::Null, Into::into));
        self.put(key, Vec::from(all));
    }

    fn below(&mut self, key: &str) -> Below<'_> {
        Below { prefix: format!("{}{key}.", self.prefix), all: self.all }
    }
}

fn of_topology(to: &mut Below<'_>, t: &Topology) {
    let Topology { nodes, cables } = t;
    let mut to = to.below("topology");
    for (role, key) in [(Role::Host, "hosts"), (Role::Router, "routers")] {
        let names: Vec<&str> = nodes.iter().filter(|n| n.role == role).map(|n| n.name.as_str()).collect();
        to.put(key, names);
    }
    for Cable { name, a, b, forward, backward } in cables {
        let mut to = to.below(name);
        let node = |id: usize| nodes.get(id).map_or("", |n| n.name.as_str());
        to.put("from", node(a.0 as usize));
        to.put("to", node(b.0 as usize));
        of_link(&mut to.below("up"), forward);
        of_link(&mut to.below("down"), backward);
    }
}

fn of_link(to: &mut Below<'_>, l: &LinkConfig) {
    let LinkConfig {
        rate: speed,
        deliveries,
        delay,
        jitter,
        jitter_reorders,
        loss,
        loss_point,
        repeats,
        frames,
        limit: Limit { packets, bytes, waiting_only },
        discipline,
        overhead,
        mtu,
        duplicate,
        reorder,
        damage,
        schedule,
    } = l;
    to.put("rate", speed.map(rate));
    to.put("deliveries", deliveries.as_ref().map(models::deliveries));
    to.put("delay", time(*delay));
    let (span, distribution) = models::jitter(*jitter);
    to.put("jitter", span);
    to.put("jitter-distribution", distribution);
    to.put("order", if *jitter_reorders { "free" } else { "kept" });
    to.put("loss", models::loss(loss));
    to.put("loss-at", models::loss_point(*loss_point));
    to.put("limit-packets", *packets);
    to.put("limit-bytes", *bytes);
    to.put("limit-waiting-only", *waiting_only);
    to.put("queue", models::queue(discipline));
    to.put("overhead", *overhead);
    to.put("mtu", *mtu);
    to.put("duplicate", *duplicate);
    to.put("reorder", *reorder);
    // What a link without these is called by does not change.
    if *damage != DamageConfig::None {
        to.put("corrupt", models::damage(*damage));
    }
    if *repeats > 0 {
        to.put("arq", *repeats);
    }
    if *frames != FrameReports::NONE {
        to.put("technology", frames.technology.to_string());
        to.put("modulation", frames.modulated().to_string());
        to.put("frame", frames.frame);
        to.put("report", frames.every.map(time));
    }
    to.put("schedule", models::changes(schedule));
    to.put("every", schedule.period().map(time));
}

/// The flows of a group, which differ in their hosts only.
fn of_group(to: &mut Below<'_>, group: &[Flow]) -> Result<(), String> {
    let Some(f) = group.first() else { return Ok(()) };
    let mut to = to.below(&format!("flow.{}", f.group));
    to.put("from", group.iter().map(|f| f.from.as_str()).collect::<Vec<_>>());
    to.put("to", group.iter().map(|f| f.to.as_str()).collect::<Vec<_>>());
    of_flow(&mut to, f)
}

fn of_flow(to: &mut Below<'_>, f: &Flow) -> Result<(), String> {
    let Flow {
        group: _,
        name: _,
        association,
        from: _,
        to: _,
        start,
        start_within,
        processing,
        traffic,
        transport,
        playout,
        cut,
        follow,
        deadline,
        psnr_rate,
    } = f;
    if let Some(association) = association {
        to.put("association", association.as_str());
    }
    to.put("start", time(*start));
    to.put("start-within", time(*start_within));
    to.put("processing", time(*processing));
    to.put("traffic", models::traffic(traffic));
    if let Some(Playout { after, fps, dependence }) = playout {
        to.put("playout", time(*after));
        to.put("playout-fps", *fps);
        if let Dependence::Display { closed: true } | Dependence::Decoding { closed: true } = dependence {
            to.put("playout-closed-gop", true);
        }
        match dependence {
            Dependence::Display { .. } => {}
            Dependence::Decoding { .. } => to.put("playout-order", "decoding"),
            Dependence::Named(needs) => to.put("playout-needs", models::hash(needs)),
        }
    }
    if let Some(deadline) = deadline {
        to.put("deadline", time(*deadline));
    }
    if let Some(psnr_rate) = psnr_rate {
        to.put("psnr-rate", rate(*psnr_rate));
    }
    if let Some(Follow { what, least, lag }) = follow {
        to.put("follow-rate", if *what == Follows::Low { "low" } else { "middle" });
        to.put("least-rate", rate(*least));
        to.put("rate-lag", time(*lag));
    }
    if let Some(Cut { packet, as_media }) = cut {
        to.put("playout-packet", *packet);
        to.put("playout-header", if *as_media { HEADER_LEN as u64 } else { 0 });
    }
    transports::of_transport(to, transport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use anabranch_engine::AssocConfig;
    use anabranch_policy::registry::Profile;
    use serde_json::json;

    const TWO: &str = r#"
name = "two"
duration = "20s"
metrics = ["main.goodput"]
[topology]
kind = "disjoint-paths"
delay = "10ms"
path1 = { rate = "4mbit", up.loss = "5%" }
path2 = { rate = "1234bit" }
[[flow]]
name = "main"
transport = "sctp"
profile = "ns2-era-cmt"
retransmission = "rtx_csi:tau=10"
[[flow]]
name = "tcp"
transport = "tcp"
start-within = "2s"
[[sweep]]
name = "rbuf"
sets = ["flow.main.receive-buffer", "flow.tcp.window"]
values = ["16KB", "64KB"]
as = [16000, 64000]
[[sweep]]
name = "cross"
sets = "flow.tcp.enabled"
values = ["with", "without"]
as = [true, false]
"#;

    fn points() -> Vec<Resolved> {
        let s = Scenario::parse("two.toml", TWO, &|_| Err(String::new())).unwrap();
        s.points().unwrap().iter().map(|p| resolved(&p.plan).unwrap()).collect()
    }

    #[test]
    fn profiles_and_defaults_are_worked_out() {
        let first = points().remove(0);
        let is = |key: &str, value: Value| assert_eq!(first.get(key), Some(&value), "{key}");
        is("duration", 20.0.into());
        is("topology.path1.up.loss", json!({ "kind": "random", "p": 0.05 }));
        is("topology.path1.down.loss", json!({ "kind": "none" }));
        is("topology.path1.up.delay", 0.01.into());
        // Rates are whole bytes.
        is("topology.path2.up.rate", 1232.into());
        is("flow.main.receive-buffer", 16_000.into());
        is("flow.main.retransmission", "rtx_csi:tau=10,scope=tied,on_full=wait".into());
        is("flow.main.ack-credit", "cuc:by_tsn=1,when_full=1".into());
        is("flow.main.rto-initial", 3.0.into());
        is("flow.tcp.traffic", json!({ "kind": "bulk", "size": 1448, "total": null }));
        is("flow.tcp.start-within", 2.0.into());
        is("flow.tcp.window", 16_000.into());
        is("flow.tcp.recovery", "newreno".into());
        is("flow.main.recovery", "ns2_cmt".into());
    }

    /// Whoever adds a field to a group adds it to the manifest.
    #[test]
    fn every_field_of_an_association_is_noted() {
        let first = points().remove(0);
        let shown = format!("{:#?}", AssocConfig::new(Profile::named("cmt").expect("a profile")));
        let (mut group, mut fields) = (String::new(), 0);
        for line in shown.lines() {
            let Some((name, _)) = line.trim_start().split_once(": ") else { continue };
            match line.len() - line.trim_start().len() {
                4 => group = name.into(),
                8 if group != "profile" => {
                    let key = match (&*group, name) {
                        ("mtu", "packet_size") => "sctp-packet-size".into(),
                        ("mtu", "discovery") => "path-mtu-discovery".into(),
                        ("failure", "max_association_retrans") => "association-max-retrans".into(),
                        ("failure", "max_path_retrans") => "path-max-retrans".into(),
                        ("auth", name) => format!("auth-{}", name.replace('_', "-")),
                        ("addresses", "types") => "address-types".into(),
                        // The network's own.
                        ("addresses", "listed") => continue,
                        (_, name) => name.replace('_', "-"),
                    };
                    assert!(first.contains_key(&format!("flow.main.{key}")), "{group}.{name}");
                    fields += 1;
                }
                _ => {}
            }
        }
        assert!(fields > 40, "{fields} of\n{shown}");
    }

    #[test]
    fn a_point_is_shown_by_what_differs() {
        let all = points();
        assert!(changes(&all[0], &all[0]).is_empty());
        let other = changes(&all[0], &all[2]);
        let keys: Vec<&str> = other.keys().map(String::as_str).collect();
        assert_eq!(keys, ["flow.main.receive-buffer", "flow.tcp.window"]);
        assert_eq!(other["flow.tcp.window"], 64_000);
        let without = changes(&all[0], &all[1]);
        assert!(without.keys().all(|k| k.starts_with("flow.tcp.")) && without.values().all(Value::is_null));
        assert_eq!(without.len(), all[0].keys().filter(|k| k.starts_with("flow.tcp.")).count());
    }
}
