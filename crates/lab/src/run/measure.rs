//! From what was noted to numbers.

use super::build::{Live, Scene};
use super::one::convergence;
use crate::metrics::{Delay, Delays, FlowMetric, LinkMetric, Record, Stage, View, Viewed};
use crate::node::SctpAgent;
use crate::scenario::{Of, Plan, covers};
use anabranch_base::Instant;
use anabranch_engine::Association;
use anabranch_sim::Direction;
use anabranch_sim::network::LinkId;
use anabranch_sim::topology::CableId;
use anabranch_sim::transport::tcp::TcpSource;
use std::cell::Ref;

/// A run that is over.
pub(super) struct Measured<'s> {
    plan: &'s Plan,
    scene: &'s Scene,
    end: Instant,
}

impl<'s> Measured<'s> {
    pub fn new(plan: &'s Plan, scene: &'s Scene) -> Self {
        Measured { plan, scene, end: Instant::ZERO + plan.duration }
    }

    /// The value of a metric; none where there was nothing to measure.
    pub fn value(&self, of: &Of) -> Option<f64> {
        match of {
            Of::Flow(group, m) => self.flow(group, *m),
            Of::Link(cable, m) => self.link(cable, *m),
        }
    }

    fn members(&self, group: &str) -> impl Iterator<Item = &'s Live> + Clone {
        let names = self.plan.flows.iter().map(move |f| covers(group, &f.group)).collect::<Vec<_>>();
        self.scene.flows.iter().zip(names).filter(|(_, is)| *is).map(|(l, _)| l)
    }

    fn flow(&self, group: &str, m: FlowMetric) -> Option<f64> {
        let members = self.members(group);
        members.clone().next()?;
        let sum = |f: &dyn Fn(&'s Live) -> Option<f64>| members.clone().map(f).sum::<Option<f64>>();
        match m {
            FlowMetric::Goodput => sum(&|l| self.goodput(l)),
            FlowMetric::Share => {
                let bytes = |l: &Live| lock(l).bytes as f64;
                let all: f64 = self.scene.flows.iter().map(bytes).sum();
                (all > 0.0).then(|| members.map(bytes).sum::<f64>() / all)
            }
            FlowMetric::Mean(d) => self.delays(group, d, &|d| d.mean()),
            FlowMetric::Percentile(d, p) => self.delays(group, d, &|d| d.percentile(f64::from(p) / 10.0)),
            FlowMetric::Longest(d) => self.delays(group, d, &|d| d.max()),
            FlowMetric::Convergence => self.settled(group),
            FlowMetric::Messages => sum(&|l| Some(lock(l).messages as f64)),
            FlowMetric::ReorderMean => sum(&|l| lock(l).held.mean(self.end)),
            FlowMetric::ReorderMax => sum(&|l| Some(lock(l).held.max() as f64)),
            FlowMetric::HolesMean => sum(&|l| receiver(self.scene, l).and(lock(l).holes.mean(self.end))),
            FlowMetric::HolesMax => sum(&|l| receiver(self.scene, l).map(|_| lock(l).holes.max() as f64)),
            FlowMetric::Jain => jain(&members.map(|l| self.goodput(l)).collect::<Option<Vec<f64>>>()?),
            FlowMetric::Viewed(v) => view(v, members.map(|l| lock(l).viewed(self.end))),
            FlowMetric::DeadlineMisses => {
                let (made, kept) =
                    members.map(|l| lock(l).deadlines(self.end)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
                (made > 0).then(|| 1.0 - kept as f64 / made as f64)
            }
            FlowMetric::Stage(s) => self.stage(group, s),
            FlowMetric::Decisions => {
                sum(&|l| Some(sender(self.scene, l)?.stats().retransmission_stages?.contested() as f64))
            }
            FlowMetric::Losses => sum(&|l| self.of_paths(l, |c| c.lost_by_report + c.lost_by_timeout)),
            FlowMetric::Timeouts => sum(&|l| self.tcp(l, |c| c.timeouts).or_else(|| self.of_paths(l, |c| c.timeouts))),
            FlowMetric::Recoveries => {
                sum(&|l| self.tcp(l, |c| c.fast_retransmits).or_else(|| self.of_paths(l, |c| c.recoveries)))
            }
            FlowMetric::Retransmissions => sum(&|l| {
                self.tcp(l, |c| c.again).or_else(|| Some(sender(self.scene, l)?.stats().retransmissions as f64))
            }),
            FlowMetric::Spurious => sum(&|l| Some(receiver(self.scene, l)?.stats().duplicates_received as f64)),
        }
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

    fn settled(&self, group: &str) -> Option<f64> {
        let start = self.members(group).map(|l| l.start).min()?;
        let first = (start.as_nanos() / self.plan.bin.as_nanos().max(1)) as usize;
        let mut sum: Vec<f64> = vec![0.0; (self.plan.duration.as_nanos() / self.plan.bin.as_nanos().max(1)) as usize];
        for l in self.members(group) {
            sum.iter_mut().zip(lock(l).bins()).for_each(|(s, b)| *s += *b as f64);
        }
        convergence(sum.get(first..)?, self.plan.bin)
    }

    fn stage(&self, group: &str, stage: Stage) -> Option<f64> {
        let (mut part, mut all) = (0, 0);
        for l in self.members(group) {
            let s = sender(self.scene, l)?.stats().retransmission_stages?;
            part += match stage {
                Stage::Cwnd => s.cwnd,
                Stage::Ssthresh => s.ssthresh,
                Stage::Timeouts => s.timeouts,
                Stage::Age => s.age,
                Stage::Draw => s.draw,
            };
            all += s.contested();
        }
        (all > 0).then(|| part as f64 / all as f64)
    }

    fn of_paths(&self, l: &Live, of: impl Fn(&anabranch_engine::PathCounters) -> u64) -> Option<f64> {
        Some(sender(self.scene, l)?.paths().map(|(_, p)| of(&p.counters)).sum::<u64>() as f64)
    }

    fn tcp(&self, l: &Live, of: impl Fn(&anabranch_sim::transport::tcp::SenderCounters) -> u64) -> Option<f64> {
        Some(of(&self.scene.network.agent::<TcpSource>(l.sender)?.sender().counters()) as f64)
    }

    fn link(&self, cable: &str, m: LinkMetric) -> Option<f64> {
        let i = self.plan.topology.cables.iter().position(|c| c.name == cable)?;
        let link = self.scene.network.link(LinkId::of(CableId(i as u32), Direction::Forward))?;
        let c = link.counters();
        let part = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
        match m {
            LinkMetric::QueueDrops => part(c.dropped_queue.packets, c.offered.packets),
            LinkMetric::LossDrops => part(c.dropped_loss.packets, c.offered.packets),
            LinkMetric::QueueMarks => part(c.marked.packets, c.offered.packets),
            LinkMetric::Utilisation => {
                // What the loss model dropped has used the line.
                let bytes = c.delivered.bytes + c.dropped_loss.bytes;
                let rate = link.config().rate?.bytes_per_sec() as f64;
                Some(bytes as f64 / (rate * self.plan.duration.as_secs_f64()))
            }
        }
    }
}

fn sender<'s>(scene: &'s Scene, l: &Live) -> Option<&'s Association> {
    scene.network.agent::<SctpAgent>(l.sender)?.association()
}

fn receiver<'s>(scene: &'s Scene, l: &Live) -> Option<&'s Association> {
    scene.network.agent::<SctpAgent>(l.receiver)?.association()
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
