//! From what was noted to numbers.

use super::build::{Live, Scene};
use super::counts::{Counted, Counts, Snapshots};
use super::framed;
use super::single_run::convergence;
use crate::metrics::{
    Delay, Delays, FlowMetric, Lateness, LinkMetric, Repair, Summary, View, Viewed, Which, Window, Within as Noted,
};
use crate::node::{SctpAgent, Watched};
use crate::scenario::{Measure, Of, Plan, covers};
use anabranch_base::Instant;
use anabranch_sim::transport::mptcp::MptcpSink;
use anabranch_sim::transport::tcp::TcpSink;
use anabranch_sim::{LossPoint, Tally};
use std::collections::BTreeMap;

/// A run that is over.
pub(super) struct Measured<'s> {
    plan: &'s Plan,
    scene: &'s Scene,
    /// What was counted in each window of the plan.
    counted: Vec<Counted>,
    /// The frames of each group that is asked for them, by the window's number, with and without bounds.
    framed: BTreeMap<(String, usize, bool), Option<Vec<framed::Frames>>>,
}

impl<'s> Measured<'s> {
    /// `snapshots` were taken where windows begin and end.
    pub fn new(plan: &'s Plan, scene: &'s Scene, seed: u64, snapshots: &Snapshots) -> Self {
        let now = Counted::now(plan, scene);
        let counted = plan.windows.iter().map(|(_, w)| snapshots.within(*w, &now)).collect();
        let mut framed = BTreeMap::new();
        for m in plan.parts() {
            if let Of::Flow(group, FlowMetric::Framed(of)) = &m.of {
                let (bounds, window) = (of.is_bound(), plan.window(m));
                let one = |i| framed::Frames::of(plan, scene, i, seed, window, bounds);
                let frames = || covered(plan, group).map(one).collect();
                framed.entry((group.clone(), m.window, bounds)).or_insert_with(frames);
            }
        }
        Measured { plan, scene, counted, framed }
    }

    /// The value of a metric; none where there was nothing to measure.
    pub fn value(&self, m: &Measure) -> Option<f64> {
        let within = self.within(m);
        match &m.of {
            Of::Flow(group, of) => within.flow(group, *of),
            Of::Link(cable, of) => within.link(cable, *of),
            Of::Drawn(key) => self.plan.drawn.iter().find(|d| d.key == *key).map(|d| d.value),
            Of::Derived(d) => d.value(&|part| self.value(part)),
        }
    }

    /// All delays that a distribution is made of; none where they were not noted.
    pub fn delays_of(&self, m: &Measure) -> Option<Delays> {
        let within = self.within(m);
        match &m.of {
            Of::Flow(group, FlowMetric::Percentile(d, _)) => Some(within.all_delays(group, *d)),
            Of::Flow(group, FlowMetric::Repair(Repair::Mean(which))) => Some(within.all_repairs(group)?.delays(*which)),
            _ => None,
        }
    }

    fn within(&self, m: &Measure) -> Within<'_> {
        Within { run: self, window: self.plan.window(m), number: m.window }
    }
}

/// What a run was in one of the windows of its plan.
struct Within<'m> {
    run: &'m Measured<'m>,
    window: Window,
    number: usize,
}

impl<'m> Within<'m> {
    /// The places of the flows that `group` means and that have started in this window.
    fn covered(&self, group: &str) -> impl Iterator<Item = usize> + Clone + use<'m> {
        let (scene, window) = (self.run.scene, self.window);
        covered(self.run.plan, group).filter(move |i| !scene.flows[*i].within(window).is_empty())
    }

    fn members(&self, group: &str) -> impl Iterator<Item = &'m Live> + Clone + use<'m> {
        let scene = self.run.scene;
        self.covered(group).map(move |i| &scene.flows[i])
    }

    /// What its members have counted.
    fn counts(&self, group: &str) -> impl Iterator<Item = &'m Counts> + Clone + use<'m> {
        let counted = self.run.counted.get(self.number);
        self.covered(group).filter_map(move |i| counted?.flows.get(i))
    }

    /// What was noted of a flow in this window.
    fn noted<T>(&self, l: &Live, of: impl FnOnce(&Noted) -> T) -> Option<T> {
        l.record.borrow().within(l.within(self.window)).map(of)
    }

    fn flow(&self, group: &str, m: FlowMetric) -> Option<f64> {
        let members = self.members(group);
        members.clone().next()?;
        let sum = |f: &dyn Fn(&'m Live) -> Option<f64>| members.clone().map(f).sum::<Option<f64>>();
        let count =
            |f: &dyn Fn(&Counts) -> Option<u64>| self.counts(group).map(f).sum::<Option<u64>>().map(|n| n as f64);
        let end = self.run.plan.end();
        match m {
            FlowMetric::Goodput => sum(&|l| self.goodput(l)),
            FlowMetric::Share => {
                let bytes = |l: &Live| self.noted(l, |n| n.bytes).unwrap_or(0) as f64;
                let all: f64 = self.run.scene.flows.iter().map(bytes).sum();
                (all > 0.0).then(|| members.map(bytes).sum::<f64>() / all)
            }
            FlowMetric::Mean(d) => self.delays(group, d, &|d| d.mean()),
            FlowMetric::Percentile(d, p) => self.delays(group, d, &|d| d.percentile(f64::from(p) / 1_000.0)),
            FlowMetric::Longest(d) => self.delays(group, d, &|d| d.max()),
            FlowMetric::Convergence => self.settled(group),
            FlowMetric::Messages => sum(&|l| self.noted(l, |n| n.messages as f64)),
            FlowMetric::ReorderMean => sum(&|l| self.reorders(l).then(|| self.noted(l, |n| n.held.mean(end))?)?),
            FlowMetric::ReorderMax => sum(&|l| self.reorders(l).then(|| self.noted(l, |n| n.held.max() as f64))?),
            FlowMetric::HolesMean => sum(&|l| self.sctp(l).then(|| self.noted(l, |n| n.holes.mean(end))?)?),
            FlowMetric::HolesMax => sum(&|l| self.sctp(l).then(|| self.noted(l, |n| n.holes.max() as f64))?),
            FlowMetric::Jain => jain(&members.map(|l| self.goodput(l)).collect::<Option<Vec<f64>>>()?),
            FlowMetric::Picture(of) => {
                let each = self.covered(group).map(|i| {
                    let made = self.run.plan.flows[i].picture_rate()?.bits_per_sec() as f64;
                    Some(of.of(made, self.goodput(&self.run.scene.flows[i])?))
                });
                let all = each.collect::<Option<Vec<f64>>>()?;
                Some(all.iter().sum::<f64>() / all.len() as f64)
            }
            FlowMetric::Due(of) => self.lateness(group, of),
            FlowMetric::Viewed(v) => {
                view(v, members.map(|l| Some(l.record.borrow().video()?.viewed(l.within(self.window), end))))
            }
            FlowMetric::Framed(of) => {
                let frames = self.run.framed.get(&(group.to_owned(), self.number, of.is_bound()));
                framed::value(of, self.run.plan, self.window, frames?.as_ref()?)
            }
            FlowMetric::Repair(of) => self.repairs(group, of),
            FlowMetric::DeadlineMisses => {
                let of = |l: &Live| l.record.borrow().deadlines(l.within(self.window), end);
                let (made, kept) = members.map(of).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
                (made > 0).then(|| 1.0 - kept as f64 / made as f64)
            }
            FlowMetric::Stage(name) => self.stage(group, name),
            FlowMetric::Decisions => count(&Counts::decisions),
            FlowMetric::Counter(name) => count(&|c| c.counter(name)),
            FlowMetric::Losses => count(&|c| c.losses),
            FlowMetric::Timeouts => count(&|c| c.timeouts),
            FlowMetric::Rejected => count(&|c| c.rejected),
            FlowMetric::Recoveries => count(&|c| c.recoveries),
            FlowMetric::Retransmissions => count(&|c| c.retransmissions),
            FlowMetric::Spurious => count(&|c| c.spurious),
        }
    }

    /// Is there an association, or was there one?
    fn sctp(&self, l: &Live) -> bool {
        self.run.scene.network.agent::<SctpAgent>(l.receiver).is_some_and(|a| a.totals().is_some())
    }

    /// Does it note what waits for others to be in order?
    fn reorders(&self, l: &Live) -> bool {
        self.sctp(l) || self.run.scene.network.agent::<Watched<MptcpSink>>(l.receiver).is_some()
    }

    fn goodput(&self, l: &Live) -> Option<f64> {
        let time = l.within(self.window).time().as_secs_f64();
        self.noted(l, |n| (time > 0.0).then(|| n.bytes as f64 * 8.0 / time))?
    }

    /// Of the delays of all members together.
    fn delays(&self, group: &str, which: Delay, of: &dyn Fn(&Delays) -> Option<f64>) -> Option<f64> {
        of(&self.all_delays(group, which))
    }

    /// The delays of all members together.
    fn all_delays(&self, group: &str, which: Delay) -> Delays {
        let mut all = Delays::default();
        for l in self.members(group) {
            self.noted(l, |n| {
                all.merge(match which {
                    Delay::Packet => &n.packet_delay,
                    Delay::InOrder => &n.in_order_delay,
                    Delay::Message => &n.message_delay,
                });
            });
        }
        all
    }

    /// What was made in the window and due by the end of the run; none where a member has no deadline.
    fn lateness(&self, group: &str, of: Lateness) -> Option<f64> {
        let (end, mut part, mut all) = (self.run.plan.end(), 0, 0);
        for l in self.members(group) {
            let window = l.within(self.window);
            l.record.borrow().each_due(|d| {
                let (some, whole) = match of {
                    Lateness::Unusable => (d.unusable(), d.packets),
                    Lateness::UnusableOf(class) if d.class != Some(class) => return,
                    Lateness::UnusableOf(_) => (d.unusable(), d.packets),
                    Lateness::Messages => (d.late, d.came),
                    Lateness::Bytes => (d.late_bytes, d.bytes),
                };
                if window.holds(d.made) && d.at <= end {
                    (part, all) = (part + some, all + whole);
                }
            })?;
        }
        (all > 0).then(|| part as f64 / all as f64)
    }

    /// The repairs of all members together; none where those of one of them were not noted.
    fn all_repairs(&self, group: &str) -> Option<Summary> {
        let mut all = Summary::empty();
        for l in self.members(group) {
            let noted = self.sctp(l) || self.run.scene.network.agent::<Watched<TcpSink>>(l.receiver).is_some();
            let summary = || l.record.borrow().repairs()?.summary(l.within(self.window));
            all.merge(&noted.then(summary)??);
        }
        Some(all)
    }

    /// Of the repairs of all members together.
    fn repairs(&self, group: &str, of: Repair) -> Option<f64> {
        let all = self.all_repairs(group)?;
        match of {
            Repair::Mean(which) => all.delays(which).mean(),
            Repair::Percentile(which, p) => all.delays(which).percentile(f64::from(p) / 1_000.0),
            Repair::Longest(which) => all.delays(which).max(),
            Repair::Count(which) => Some(all.repetitions(which).0 as f64),
            Repair::Spurious(which) => {
                let (n, spurious) = all.repetitions(which);
                (n > 0).then(|| spurious as f64 / n as f64)
            }
            Repair::Share(which) => {
                let (part, n) = (all.repetitions(which).0, all.repetitions(Which { cause: None, ..which }).0);
                (n > 0).then(|| part as f64 / n as f64)
            }
            Repair::Needless => all.needless(),
            Repair::Confused(truth, named) => Some(all.confused(truth, named) as f64),
            Repair::Right => all.right(),
        }
    }

    /// From the start of the run, or of the phase.
    fn settled(&self, group: &str) -> Option<f64> {
        let bin = self.run.plan.bin;
        let number = |at: Instant| (at.as_nanos() / bin.as_nanos().max(1)) as usize;
        let start = self.members(group).map(|l| l.start).min()?;
        let start = if self.number == 0 { start } else { start.max(self.window.from()) };
        let mut sum: Vec<f64> = vec![0.0; number(self.window.until())];
        for l in self.members(group) {
            sum.iter_mut().zip(l.record.borrow().bins()).for_each(|(s, b)| *s += *b as f64);
        }
        convergence(sum.get(number(start)..)?, bin)
    }

    fn stage(&self, group: &str, name: &str) -> Option<f64> {
        let (mut part, mut all) = (0, 0);
        for c in self.counts(group) {
            part += c.counter(name)?;
            all += c.decisions()?;
        }
        (all > 0).then(|| part as f64 / all as f64)
    }

    fn link(&self, cable: &str, m: LinkMetric) -> Option<f64> {
        let (i, c) = self.run.plan.topology.cables.iter().enumerate().find(|(_, c)| c.name == cable)?;
        let counted = self.run.counted.get(self.number)?;
        let (config, c, frames) = (&c.forward, counted.cables.get(i)?, counted.frames.get(i)?);
        let part = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
        match m {
            LinkMetric::QueueDrops => part(c.dropped_queue.packets, c.offered.packets),
            LinkMetric::LossDrops => part(c.dropped_loss.packets, c.offered.packets),
            LinkMetric::RepeatsDrops => part(c.dropped_repeats.packets, c.offered.packets),
            LinkMetric::FrameErrors => part(frames.erroneous, frames.sent),
            LinkMetric::FrameRepeats => part(frames.repeated, frames.sent),
            LinkMetric::DownDrops => part(c.dropped_down.packets, c.offered.packets),
            LinkMetric::MtuDrops => part(c.dropped_mtu.packets, c.offered.packets),
            LinkMetric::Damaged => part(c.damaged.packets, c.offered.packets),
            LinkMetric::QueueMarks => part(c.marked.packets, c.offered.packets),
            LinkMetric::Utilisation => {
                let charged = |t: Tally| (t.bytes + t.packets * u64::from(config.overhead)) as f64;
                // What was lost on the wire has used it each time, and a second copy was made behind it.
                let lost = if config.loss_point == LossPoint::Wire { charged(c.dropped_loss) } else { 0.0 };
                let again = charged(c.dropped_repeats) + charged(c.repeated);
                let used = charged(c.delivered) - charged(c.duplicated) + lost + again;
                let (from, until) = self.window.span();
                let capacity = config.capacity(from, until)?;
                Some(if capacity > 0.0 { used.max(0.0) / capacity } else { 0.0 })
            }
        }
    }
}

/// The places of the flows that `group` means.
fn covered(plan: &Plan, group: &str) -> impl Iterator<Item = usize> + Clone + use<> {
    let flows = plan.flows.iter().enumerate();
    let all: Vec<usize> = flows.filter(|(_, f)| covers(group, &f.group)).map(|(i, _)| i).collect();
    all.into_iter()
}

/// Jain's fairness index: 1 where all are equal, 1/n where one has all.
fn jain(x: &[f64]) -> Option<f64> {
    let (sum, squares) = (x.iter().sum::<f64>(), x.iter().map(|x| x * x).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (x.len() as f64 * squares))
}

/// Of all viewers together.
fn view(of: View, viewers: impl Iterator<Item = Option<Viewed>>) -> Option<f64> {
    let mut all = Viewed::default();
    for v in viewers {
        let v = v?;
        (all.frames, all.decodable) = (all.frames + v.frames, all.decodable + v.decodable);
        all.quality += v.quality;
        (all.underflows, all.underflow_time) = (all.underflows + v.underflows, all.underflow_time + v.underflow_time);
    }
    let part = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
    match of {
        View::Decodable => part(all.decodable, all.frames),
        View::Underflows => Some(all.underflows as f64),
        View::UnderflowTime => Some(all.underflow_time),
        View::Quality => (all.frames > 0).then(|| all.quality / all.frames as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_lies_between_one_of_n_and_one() {
        assert_eq!((jain(&[]), jain(&[0.0, 0.0])), (None, None));
        assert_eq!((jain(&[3.0]), jain(&[2.0, 2.0, 2.0, 2.0])), (Some(1.0), Some(1.0)));
        assert_eq!(jain(&[0.0, 7.0, 0.0, 0.0]), Some(0.25));
        // (1 + 3)^2 / (2 * (1 + 9)).
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
    }
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests_of_runs;
