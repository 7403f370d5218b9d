//! From what was noted to numbers.

use super::build::{Live, Scene};
use super::counts::{Counted, Counts};
use super::framed;
use super::single_run::convergence;
use crate::metrics::{Delay, Delays, FlowMetric, LinkMetric, Record, Repair, Summary, View, Viewed, Which};
use crate::node::{SctpAgent, Watched};
use crate::scenario::{Of, Plan, covers};
use anabranch_base::Instant;
use anabranch_sim::transport::tcp::TcpSink;
use anabranch_sim::{LossPoint, Tally};
use std::cell::Ref;
use std::collections::BTreeMap;

/// A run that is over.
pub(super) struct Measured<'s> {
    plan: &'s Plan,
    scene: &'s Scene,
    /// What was counted since the measuring began.
    counted: Counted,
    end: Instant,
    /// The frames of each group that is asked for them, with and without bounds.
    framed: BTreeMap<(String, bool), Option<Vec<framed::Frames>>>,
}

impl<'s> Measured<'s> {
    /// `before` is what had been counted when the measuring began.
    pub fn new(plan: &'s Plan, scene: &'s Scene, seed: u64, before: &Counted) -> Self {
        let counted = Counted::now(plan, scene).since(before);
        let mut framed = BTreeMap::new();
        for m in &plan.measures {
            if let Of::Flow(group, FlowMetric::Framed(of)) = &m.of {
                let bounds = of.is_bound();
                let frames =
                    || covered(plan, group).map(|i| framed::Frames::of(plan, scene, i, seed, bounds)).collect();
                framed.entry((group.clone(), bounds)).or_insert_with(frames);
            }
        }
        Measured { plan, scene, counted, end: Instant::ZERO + plan.duration, framed }
    }

    /// The value of a metric; none where there was nothing to measure.
    pub fn value(&self, of: &Of) -> Option<f64> {
        match of {
            Of::Flow(group, m) => self.flow(group, *m),
            Of::Link(cable, m) => self.link(cable, *m),
            Of::Drawn(key) => self.plan.drawn.iter().find(|d| d.key == *key).map(|d| d.value),
        }
    }

    fn members(&self, group: &str) -> impl Iterator<Item = &'s Live> + Clone {
        covered(self.plan, group).map(|i| &self.scene.flows[i])
    }

    /// What its members have counted.
    fn counts(&self, group: &str) -> impl Iterator<Item = &Counts> + Clone {
        covered(self.plan, group).map(|i| &self.counted.flows[i])
    }

    fn flow(&self, group: &str, m: FlowMetric) -> Option<f64> {
        let members = self.members(group);
        members.clone().next()?;
        let sum = |f: &dyn Fn(&'s Live) -> Option<f64>| members.clone().map(f).sum::<Option<f64>>();
        let count =
            |f: &dyn Fn(&Counts) -> Option<u64>| self.counts(group).map(f).sum::<Option<u64>>().map(|n| n as f64);
        match m {
            FlowMetric::Goodput => sum(&|l| self.goodput(l)),
            FlowMetric::Share => {
                let bytes = |l: &Live| lock(l).bytes as f64;
                let all: f64 = self.scene.flows.iter().map(bytes).sum();
                (all > 0.0).then(|| members.map(bytes).sum::<f64>() / all)
            }
            FlowMetric::Mean(d) => self.delays(group, d, &|d| d.mean()),
            FlowMetric::Percentile(d, p) => self.delays(group, d, &|d| d.percentile(f64::from(p) / 1_000.0)),
            FlowMetric::Longest(d) => self.delays(group, d, &|d| d.max()),
            FlowMetric::Convergence => self.settled(group),
            FlowMetric::Messages => sum(&|l| Some(lock(l).messages as f64)),
            FlowMetric::ReorderMean => sum(&|l| self.sctp(l).then(|| lock(l).held.mean(self.end))?),
            FlowMetric::ReorderMax => sum(&|l| self.sctp(l).then(|| lock(l).held.max() as f64)),
            FlowMetric::HolesMean => sum(&|l| self.sctp(l).then(|| lock(l).holes.mean(self.end))?),
            FlowMetric::HolesMax => sum(&|l| self.sctp(l).then(|| lock(l).holes.max() as f64)),
            FlowMetric::Jain => jain(&members.map(|l| self.goodput(l)).collect::<Option<Vec<f64>>>()?),
            FlowMetric::Viewed(v) => view(v, members.map(|l| lock(l).viewed(self.end))),
            FlowMetric::Framed(of) => {
                let frames = self.framed.get(&(group.to_owned(), of.is_bound()));
                framed::value(of, self.plan, frames?.as_ref()?)
            }
            FlowMetric::Repair(of) => self.repairs(group, of),
            FlowMetric::DeadlineMisses => {
                let (made, kept) =
                    members.map(|l| lock(l).deadlines(self.end)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
                (made > 0).then(|| 1.0 - kept as f64 / made as f64)
            }
            FlowMetric::Stage(name) => self.stage(group, name),
            FlowMetric::Decisions => count(&Counts::decisions),
            FlowMetric::Counter(name) => count(&|c| c.counter(name)),
            FlowMetric::Losses => count(&|c| c.losses),
            FlowMetric::Timeouts => count(&|c| c.timeouts),
            FlowMetric::Recoveries => count(&|c| c.recoveries),
            FlowMetric::Retransmissions => count(&|c| c.retransmissions),
            FlowMetric::Spurious => count(&|c| c.spurious),
        }
    }

    /// Is there an association, or was there one?
    fn sctp(&self, l: &Live) -> bool {
        self.scene.network.agent::<SctpAgent>(l.receiver).is_some_and(|a| a.totals().is_some())
    }

    fn goodput(&self, l: &Live) -> Option<f64> {
        let time = (self.end - l.from).as_secs_f64();
        (time > 0.0).then(|| lock(l).bytes as f64 * 8.0 / time)
    }

    /// The delays of all members together.
    fn delays(&self, group: &str, which: Delay, of: &dyn Fn(&Delays) -> Option<f64>) -> Option<f64> {
        let mut all = Delays::default();
        for l in self.members(group) {
            let r = lock(l);
            all.merge(match which {
                Delay::Packet => &r.packet_delay,
                Delay::InOrder => &r.in_order_delay,
                Delay::Message => &r.message_delay,
            });
        }
        of(&all)
    }

    /// Of the repairs of all members together; none where those of one of them were not noted.
    fn repairs(&self, group: &str, of: Repair) -> Option<f64> {
        let mut all = Summary::empty();
        for l in self.members(group) {
            let noted = self.sctp(l) || self.scene.network.agent::<Watched<TcpSink>>(l.receiver).is_some();
            all.merge(&noted.then(|| lock(l).repairs().map(|r| r.summary()))??);
        }
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

    fn settled(&self, group: &str) -> Option<f64> {
        let start = self.members(group).map(|l| l.start).min()?;
        let first = (start.as_nanos() / self.plan.bin.as_nanos().max(1)) as usize;
        let mut sum: Vec<f64> = vec![0.0; (self.plan.duration.as_nanos() / self.plan.bin.as_nanos().max(1)) as usize];
        for l in self.members(group) {
            sum.iter_mut().zip(lock(l).bins()).for_each(|(s, b)| *s += *b as f64);
        }
        convergence(sum.get(first..)?, self.plan.bin)
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
        let (i, c) = self.plan.topology.cables.iter().enumerate().find(|(_, c)| c.name == cable)?;
        let (config, c) = (&c.forward, self.counted.cables.get(i)?);
        let part = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
        match m {
            LinkMetric::QueueDrops => part(c.dropped_queue.packets, c.offered.packets),
            LinkMetric::LossDrops => part(c.dropped_loss.packets, c.offered.packets),
            LinkMetric::DownDrops => part(c.dropped_down.packets, c.offered.packets),
            LinkMetric::MtuDrops => part(c.dropped_mtu.packets, c.offered.packets),
            LinkMetric::QueueMarks => part(c.marked.packets, c.offered.packets),
            LinkMetric::Utilisation => {
                let charged = |t: Tally| (t.bytes + t.packets * u64::from(config.overhead)) as f64;
                // What was lost on the wire has used it, and a second copy was made behind it.
                let lost = if config.loss_point == LossPoint::Wire { charged(c.dropped_loss) } else { 0.0 };
                let used = charged(c.delivered) - charged(c.duplicated) + lost;
                let capacity = config.capacity(self.plan.from, self.plan.duration)?;
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
        (all.packets, all.unusable) = (all.packets + v.packets, all.unusable + v.unusable);
        (all.frames, all.decodable) = (all.frames + v.frames, all.decodable + v.decodable);
        (all.underflows, all.underflow_time) = (all.underflows + v.underflows, all.underflow_time + v.underflow_time);
    }
    let part = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
    match of {
        View::Unusable => part(all.unusable, all.packets),
        View::Decodable => part(all.decodable, all.frames),
        View::Underflows => Some(all.underflows as f64),
        View::UnderflowTime => Some(all.underflow_time),
    }
}

fn lock(l: &Live) -> Ref<'_, Record> {
    l.record.borrow()
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
