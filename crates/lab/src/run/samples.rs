//! Windows, round-trip times and queues, looked at once in each bin of a run.

use super::build::{Live, Scene};
use super::counts::Snapshots;
use crate::node::SctpAgent;
use crate::scenario::{Noted, Plan, SeriesOf, Transport};
use crate::trace::threshold;
use anabranch_base::Instant;
use anabranch_engine::{PathStats, UsableRate};
use anabranch_sim::Direction;
use anabranch_sim::network::LinkId;
use anabranch_sim::topology::CableId;
use anabranch_sim::transport::mptcp::MptcpSource;
use anabranch_sim::transport::tcp::{Sender, TcpSource};

/// A state over time.
pub(super) struct Sampled {
    /// `main.cwnd`.
    pub name: String,
    /// The path, from 1.
    pub path: Option<usize>,
    /// At the end of each bin; none where there was no such path or value.
    pub values: Vec<Option<f64>>,
}

/// All that a scenario asked for of one run.
#[derive(Default)]
pub(super) struct Samples {
    pub all: Vec<Sampled>,
}

impl Samples {
    /// Runs the network to its end, and tells what had been counted where the windows of metrics begin and end. Where
    /// nothing is asked for it runs without a stop.
    pub fn of_a_run(plan: &Plan, scene: &mut Scene) -> (Samples, Snapshots) {
        let (mut s, mut snapshots) = (Samples::default(), Snapshots::of(plan));
        let asked: Vec<&SeriesOf> = plan.series.iter().filter(|s| s.what.sampled()).collect();
        if !asked.is_empty() && !plan.bin.is_zero() {
            let bins = plan.duration.as_nanos() / plan.bin.as_nanos();
            for bin in 0..bins {
                snapshots.run(plan, scene, Instant::ZERO + plan.bin * (bin + 1));
                asked.iter().for_each(|a| s.look(plan, scene, a, bin as usize));
            }
        }
        snapshots.run(plan, scene, plan.end());
        (s, snapshots)
    }

    fn look(&mut self, plan: &Plan, scene: &Scene, asked: &SeriesOf, bin: usize) {
        if let Some(i) = plan.topology.cables.iter().position(|c| c.name == asked.of) {
            let link = scene.network.link(LinkId::of(CableId(i as u32), Direction::Forward));
            let waits = link.map(|l| l.backlog());
            let value = waits.map(|w| if asked.what == Noted::Queue { w.packets } else { w.bytes } as f64);
            return self.add(&asked.name, None, bin, value);
        }
        for (f, live) in plan.flows.iter().zip(&scene.flows).filter(|(f, _)| asked.covers(&f.group)) {
            let name = format!("{}.{}", f.name, asked.what.name());
            match &f.transport {
                Transport::Sctp(_) => {
                    let association = scene.network.agent::<SctpAgent>(live.sender).and_then(SctpAgent::association);
                    if matches!(asked.what, Noted::UsableLow | Noted::UsableMiddle) {
                        let value = association.and_then(|a| of_all(asked.what, a.usable_rate()));
                        self.add(&name, None, bin, value);
                        continue;
                    }
                    for (id, p) in association.into_iter().flat_map(|a| a.paths()) {
                        self.add(&name, Some(id.index() + 1), bin, of_path(asked.what, &p));
                    }
                }
                Transport::Tcp(c) => {
                    let value = of_tcp(asked.what, scene, live, f64::from(c.segment));
                    self.add(&name, Some(1), bin, value);
                }
                Transport::Mptcp(m) => {
                    let source = scene.network.agent::<MptcpSource>(live.sender);
                    for (path, sender) in source.into_iter().flat_map(MptcpSource::subflows).enumerate() {
                        let value = of_sender(asked.what, sender, f64::from(m.config.tcp.segment));
                        self.add(&name, Some(path + 1), bin, value);
                    }
                }
                Transport::Udp(_) => {}
            }
        }
    }

    fn add(&mut self, name: &str, path: Option<usize>, bin: usize, value: Option<f64>) {
        let place = self.all.iter().position(|s| s.path == path && s.name == name);
        let place = place.unwrap_or_else(|| {
            self.all.push(Sampled { name: name.to_owned(), path, values: Vec::new() });
            self.all.len() - 1
        });
        // One that two names ask for is noted once.
        if let Some(s) = self.all.get_mut(place).filter(|s| s.values.len() <= bin) {
            s.values.resize(bin, None);
            s.values.push(value);
        }
    }
}

fn of_path(what: Noted, p: &PathStats) -> Option<f64> {
    match what {
        Noted::Cwnd => Some(p.cwnd as f64),
        Noted::Ssthresh => threshold(p.ssthresh).map(|t| t as f64),
        Noted::InFlight => Some(p.in_flight as f64),
        Noted::Srtt => Some(p.srtt.as_secs_f64()).filter(|s| *s > 0.0),
        Noted::Capacity => Some(p.capacity.bits_per_sec() as f64).filter(|r| *r > 0.0),
        _ => None,
    }
}

fn of_all(what: Noted, r: UsableRate) -> Option<f64> {
    let rate = if what == Noted::UsableLow { r.low } else { r.middle };
    (r.changes > 0).then(|| rate.bits_per_sec() as f64)
}

/// Windows of TCP are in segments; here they are bytes, as those of SCTP.
fn of_tcp(what: Noted, scene: &Scene, live: &Live, segment: f64) -> Option<f64> {
    of_sender(what, scene.network.agent::<TcpSource>(live.sender)?.sender(), segment)
}

fn of_sender(what: Noted, sender: &Sender, segment: f64) -> Option<f64> {
    match what {
        Noted::Cwnd => Some(sender.cwnd() * segment),
        Noted::Ssthresh => Some(sender.ssthresh() * segment),
        Noted::Srtt => sender.srtt().map(|d| d.as_secs_f64()),
        _ => None,
    }
}
