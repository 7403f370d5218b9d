//! What ends and cables have counted up to a moment. Counters run from the beginning; what is measured may not.

use super::build::{Live, Scene};
use crate::metrics::{OF_MPTCP, Window, is_stage};
use crate::node::{SctpAgent, Totals, Watched};
use crate::scenario::Plan;
use anabranch_base::Instant;
use anabranch_policy::asks::Counter;
use anabranch_sim::Direction;
use anabranch_sim::link::{Frames, Link, LinkCounters, Tally};
use anabranch_sim::network::LinkId;
use anabranch_sim::topology::CableId;
use anabranch_sim::transport::DatagramSink;
use anabranch_sim::transport::mptcp::{MptcpSink, MptcpSource};
use anabranch_sim::transport::tcp::{TcpSink, TcpSource, TcpTransfers};
use std::collections::{BTreeMap, BTreeSet};

/// Of a flow; none where its ends do not count that.
#[derive(Clone, Default)]
pub(super) struct Counts {
    pub losses: Option<u64>,
    pub timeouts: Option<u64>,
    pub recoveries: Option<u64>,
    pub retransmissions: Option<u64>,
    pub spurious: Option<u64>,
    /// Damaged packets that neither end took.
    pub rejected: Option<u64>,
    /// What policies count, by name.
    pub counters: Vec<Counter>,
}

/// Of all flows, and of all cables forward, in the order of the plan.
#[derive(Clone, Default)]
pub(super) struct Counted {
    pub flows: Vec<Counts>,
    pub cables: Vec<LinkCounters>,
    pub frames: Vec<Frames>,
}

/// What had been counted at the moments between which a plan's windows lie.
#[derive(Default)]
pub(super) struct Snapshots {
    to_come: BTreeSet<Instant>,
    taken: BTreeMap<Instant, Counted>,
}

impl Snapshots {
    /// None taken yet.
    pub fn of(plan: &Plan) -> Self {
        // What happens at the first moment of a window is of it.
        let edges = plan.windows.iter().flat_map(|(_, w)| [w.before(), w.end()]).flatten();
        Snapshots { to_come: edges.collect(), taken: BTreeMap::new() }
    }

    /// Runs the network up to a moment, and takes those on the way.
    pub fn run(&mut self, plan: &Plan, scene: &mut Scene, until: Instant) {
        while let Some(at) = self.to_come.first().copied().filter(|at| *at <= until) {
            self.to_come.remove(&at);
            scene.network.run_until(at);
            self.taken.insert(at, Counted::now(plan, scene));
        }
        scene.network.run_until(until);
    }

    /// What was counted in a window; `now` is the end of the run.
    pub fn within(&self, window: Window, now: &Counted) -> Counted {
        let at = |edge: Option<Instant>| edge.and_then(|at| self.taken.get(&at));
        let end = at(window.end()).unwrap_or(now).clone();
        match at(window.before()) {
            Some(before) => end.since(before),
            None => end,
        }
    }
}

impl Counted {
    /// As it is now.
    pub fn now(plan: &Plan, scene: &Scene) -> Self {
        let link = |i: usize| scene.network.link(LinkId::of(CableId(i as u32), Direction::Forward));
        let all = 0..plan.topology.cables.len();
        Counted {
            flows: scene.flows.iter().map(|l| Counts::now(scene, l)).collect(),
            cables: all.clone().map(|i| link(i).map(Link::counters).unwrap_or_default()).collect(),
            frames: all.map(|i| link(i).map(Link::frames).unwrap_or_default()).collect(),
        }
    }

    fn since(mut self, before: &Counted) -> Self {
        self.flows.iter_mut().zip(&before.flows).for_each(|(f, b)| *f = f.since(b));
        self.cables.iter_mut().zip(&before.cables).for_each(|(c, b)| *c = cable_since(c, b));
        self.frames.iter_mut().zip(&before.frames).for_each(|(f, b)| *f = frames_since(*f, *b));
        self
    }
}

impl Counts {
    fn now(scene: &Scene, l: &Live) -> Self {
        let at = |id| {
            let own = scene.network.agent::<SctpAgent>(id).map_or(0, SctpAgent::rejected);
            own + scene.network.rejected(id)
        };
        Counts { rejected: Some(at(l.sender) + at(l.receiver)), ..Counts::of_ends(scene, l) }
    }

    fn of_ends(scene: &Scene, l: &Live) -> Self {
        let n = &scene.network;
        let totals = |id| n.agent::<SctpAgent>(id).and_then(SctpAgent::totals);
        if n.agent::<SctpAgent>(l.sender).is_some() {
            let spurious = totals(l.receiver).map(|r| r.duplicates);
            return Counts { spurious, ..totals(l.sender).map(Counts::of).unwrap_or_default() };
        }
        if let Some(sink) = n.agent::<Watched<DatagramSink>>(l.receiver) {
            return Counts { losses: Some(sink.inner().missing()), ..Counts::default() };
        }
        if let Some(source) = n.agent::<MptcpSource>(l.sender) {
            let sink = n.agent::<Watched<MptcpSink>>(l.receiver);
            return Counts::of_mptcp(source, sink.map(|s| s.inner()));
        }
        let sender = n.agent::<TcpSource>(l.sender).map(|s| s.sender().counters());
        let Some(c) = sender.or_else(|| n.agent::<TcpTransfers>(l.sender).map(TcpTransfers::counters)) else {
            return Counts::default();
        };
        let sink = n.agent::<Watched<TcpSink>>(l.receiver);
        Counts {
            timeouts: Some(c.timeouts),
            recoveries: Some(c.fast_retransmits),
            retransmissions: Some(c.again),
            spurious: sink.map(|s| s.inner().counters().duplicates.packets),
            ..Counts::default()
        }
    }

    fn of_mptcp(source: &MptcpSource, sink: Option<&MptcpSink>) -> Self {
        let (all, own) = (source.sender_counters(), source.counters());
        let (packets, again) = OF_MPTCP.split_at(8);
        let each = || source.subflows().map(|s| s.counters());
        let packets = packets.iter().zip(each()).map(|(name, c)| (*name, c.sent));
        let again = again.iter().take(8).zip(each()).map(|(name, c)| (*name, c.again));
        let of_connection = [
            ("reinjections", own.reinjected),
            ("opportunistic-retransmissions", own.opportunistic),
            ("penalties", own.penalties),
            ("window-stops", own.window_stops),
            ("coded-symbols", own.sums),
            ("coded-needed", sink.map_or(0, |s| s.sums().1)),
        ];
        Counts {
            timeouts: Some(all.timeouts),
            recoveries: Some(all.fast_retransmits),
            retransmissions: Some(all.again),
            spurious: sink.map(|s| s.counters().duplicates.packets),
            counters: packets.chain(again).chain(of_connection).collect(),
            ..Counts::default()
        }
    }

    /// What a policy counts under this name; none when none does.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|c| c.0 == name).map(|c| c.1)
    }

    /// Decisions that a criterion of a cascade made; none without a cascade.
    pub fn decisions(&self) -> Option<u64> {
        let stages = self.counters.iter().filter(|c| is_stage(c.0)).map(|c| c.1);
        stages.reduce(|a, b| a + b)
    }

    /// Of a sender.
    fn of(t: Totals) -> Self {
        Counts {
            losses: Some(t.losses),
            timeouts: Some(t.timeouts),
            recoveries: Some(t.recoveries),
            retransmissions: Some(t.retransmissions),
            spurious: None,
            rejected: None,
            counters: t.counters,
        }
    }

    fn since(&self, before: &Counts) -> Self {
        let less = |now: Option<u64>, before: Option<u64>| now.map(|n| n.saturating_sub(before.unwrap_or(0)));
        Counts {
            losses: less(self.losses, before.losses),
            timeouts: less(self.timeouts, before.timeouts),
            recoveries: less(self.recoveries, before.recoveries),
            retransmissions: less(self.retransmissions, before.retransmissions),
            spurious: less(self.spurious, before.spurious),
            rejected: less(self.rejected, before.rejected),
            counters: self
                .counters
                .iter()
                .map(|c| (c.0, c.1.saturating_sub(before.counter(c.0).unwrap_or(0))))
                .collect(),
        }
    }
}

fn cable_since(now: &LinkCounters, before: &LinkCounters) -> LinkCounters {
    let less = |a: Tally, b: Tally| Tally {
        packets: a.packets.saturating_sub(b.packets),
        bytes: a.bytes.saturating_sub(b.bytes),
    };
    LinkCounters {
        offered: less(now.offered, before.offered),
        delivered: less(now.delivered, before.delivered),
        duplicated: less(now.duplicated, before.duplicated),
        marked: less(now.marked, before.marked),
        damaged: less(now.damaged, before.damaged),
        dropped_queue: less(now.dropped_queue, before.dropped_queue),
        dropped_loss: less(now.dropped_loss, before.dropped_loss),
        dropped_repeats: less(now.dropped_repeats, before.dropped_repeats),
        repeated: less(now.repeated, before.repeated),
        repaired: less(now.repaired, before.repaired),
        dropped_down: less(now.dropped_down, before.dropped_down),
        dropped_mtu: less(now.dropped_mtu, before.dropped_mtu),
    }
}

fn frames_since(now: Frames, before: Frames) -> Frames {
    Frames {
        sent: now.sent.saturating_sub(before.sent),
        erroneous: now.erroneous.saturating_sub(before.erroneous),
        repeated: now.repeated.saturating_sub(before.repeated),
    }
}

#[cfg(test)]
mod tests {
    use crate::results::Row;
    use crate::run::run_one;
    use crate::scenario::Scenario;

    const MIXED: &str = r#"
name = "mixed"
duration = "30s"
metrics = [
  "main.losses", "main.retransmissions", "main.spurious", "main.timeouts", "main.recoveries", "main.decisions",
  "cross.retransmissions", "cross.spurious", "cross.timeouts", "cross.recoveries",
  "web.retransmissions", "web.spurious", "web.timeouts", "web.recoveries", "noise.losses", "noise.messages",
  "path1.utilisation", "path1.queue-drops", "path1.loss-drops", "main.stage-cwnd", "main.reorder-mean",
]
[topology]
kind = "disjoint-paths"
delay = "30ms"
limit = "25p"
path1 = { rate = "5mbit", up.loss = "3%" }
path2 = { rate = "2mbit", up = { loss = "5%", jitter = "20ms" } }
[[flow]]
name = "main"
transport = "sctp"
profile = "cmt-rtx-csi"
[[flow]]
name = "cross"
recovery = "tahoe"
transport = "tcp"
[[flow]]
name = "web"
transport = "tcp"
traffic = "web"
[[flow]]
name = "noise"
transport = "udp"
start = "1s"
traffic = { kind = "cbr", rate = "900kbit", size = 500 }
"#;
    /// So many of its metrics are counts; that of its utilisation follows.
    const COUNTS: usize = 16;

    fn run(duration: &str, from: &str, series: bool) -> (Row, Scenario) {
        let mut text = MIXED.replacen("30s", duration, 1);
        text = text.replacen("[topology]", &format!("measure-from = \"{from}\"\n[topology]"), 1);
        if series {
            text = text.replacen("[topology]", "series = [\"main.cwnd\"]\nbin = \"300ms\"\n[topology]", 1);
        }
        let s = Scenario::parse("mixed.toml", &text, &|_| Err(String::new())).expect("a scenario");
        let point = s.points().expect("points").remove(0);
        (run_one(&point, 1).expect("runs"), s)
    }

    #[test]
    fn what_came_before_the_measuring_does_not_count() {
        let (whole, s) = run("30s", "0s", false);
        let (before, after) = (run("4003ms", "0s", false).0, run("30s", "4003ms", false).0);
        assert_eq!(after.fingerprint, whole.fingerprint, "measuring changes nothing");
        let all = |i: usize| [&whole, &before, &after].map(|r| r.values[i].expect("a value"));
        for (i, m) in s.measures.iter().take(COUNTS).enumerate() {
            let [whole, before, after] = all(i);
            assert_eq!(whole - before, after, "{}", m.name);
        }
        // None of them is zero for want of a counter.
        let zero: Vec<&str> = (0..COUNTS).filter(|i| all(*i)[2] == 0.0).map(|i| s.measures[i].name.as_str()).collect();
        assert!(zero.is_empty(), "{zero:?}");
        let [used, first, rest] = all(COUNTS);
        assert!((used * 30.0 - first * 4.003 - rest * 25.997).abs() < 1e-9, "{used} {first} {rest}");
        for i in COUNTS + 1..COUNTS + 4 {
            // A part of the whole lies between those of its two spans.
            let [whole, before, after] = all(i);
            let name = &s.measures[i].name;
            assert!(whole > before.min(after) && whole < before.max(after), "{name}: {before} {whole} {after}");
        }
        // Neither does a stop at every bin.
        assert_eq!(run("30s", "4003ms", true).0, after);
        assert_eq!(run("30s", "0s", true).0, whole);
    }

    #[test]
    fn a_flow_that_starts_later_is_measured_from_its_start() {
        let noise = |row: &Row| row.values[14];
        let (early, none) = (run("30s", "900ms", false).0, run("30s", "0s", false).0);
        assert_eq!(noise(&early), noise(&none));
        assert!(noise(&early).is_some_and(|n| n > 0.0));
    }
}
