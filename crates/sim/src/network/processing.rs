//! Hosts that take a random time for each packet before it leaves.
//!
//! In a simulator hosts take none, and packets of equal size come to a queue in step with what leaves it: which flow's
//! packet finds it full then hangs on nothing but the exact times on the way (S. Floyd, V. Jacobson: On traffic phase
//! effects in packet-switched gateways. Internetworking: Research and Experience 3(3), 1992). ns-2 breaks this by
//! `overhead_` of its TCPs.

use super::packet::Parcel;
use super::{AgentId, Network};
use anabranch_base::{Duration, Instant, RandomStream};
use std::collections::VecDeque;

/// Packets that an agent has sent and its host has not handed to a link yet.
pub(super) struct Processing<X> {
    most: Duration,
    random: RandomStream,
    /// In the order in which they were sent, which is the one in which they leave.
    waiting: VecDeque<(Instant, Parcel<X>)>,
}

impl<X> Processing<X> {
    /// Takes what the agent has sent now.
    pub fn take(&mut self, now: Instant, parcels: &mut Vec<Parcel<X>>) {
        for parcel in parcels.drain(..) {
            let at = now + Duration::from_nanos(self.random.below(self.most.as_nanos().saturating_add(1)));
            let last = self.waiting.back().map_or(at, |(last, _)| *last);
            self.waiting.push_back((at.max(last), parcel));
        }
    }

    /// When the next packet leaves.
    pub fn next(&self) -> Option<Instant> {
        self.waiting.front().map(|(at, _)| *at)
    }

    fn due(&mut self, now: Instant) -> Option<Parcel<X>> {
        self.next().filter(|at| *at <= now)?;
        self.waiting.pop_front().map(|(_, parcel)| parcel)
    }
}

impl<X: Clone + Send + 'static> Network<X> {
    /// The host of `agent` takes a time for each packet that the agent sends, drawn evenly from 0 to `most`; none
    /// overtakes another. Call it before the network runs.
    pub fn process(&mut self, agent: AgentId, most: Duration, random: RandomStream) {
        if let Some(slot) = self.agents.get_mut(agent.0 as usize) {
            slot.processing = Some(Box::new(Processing { most, random, waiting: VecDeque::new() }));
        }
    }

    /// What the agent's host is done with leaves.
    pub(super) fn release(&mut self, id: AgentId) {
        let now = self.now;
        let due = |n: &mut Self| n.agents.get_mut(id.0 as usize)?.processing.as_mut()?.due(now);
        while let Some(parcel) = due(self) {
            self.depart(id, parcel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Agent, Body, Context, Packet, Peer};
    use super::*;
    use crate::link::LinkConfig;
    use crate::topology::Topology;
    use crate::traffic::{Cbr, TrafficConfig};
    use crate::transport::DatagramSource;
    use anabranch_base::Rate;

    /// Number of each datagram, and its time on the way in microseconds.
    #[derive(Default)]
    struct Sink(Vec<(u64, u64)>);

    impl Agent<()> for Sink {
        fn start(&mut self, _: &mut Context<'_, ()>) {}
        fn receive(&mut self, cx: &mut Context<'_, ()>, p: &mut Packet<()>) {
            if let Body::Datagram { number, sent, .. } = p.body {
                self.0.push((number, cx.now().since(sent).as_nanos() / 1_000));
            }
        }
        fn timeout(&mut self, _: &mut Context<'_, ()>) {}
        fn next_timeout(&self) -> Option<Instant> {
            None
        }
    }

    /// A datagram each so many milliseconds over 10 ms, processed for at most so many.
    fn run(every: u64, most: Option<u64>, seed: u64) -> Vec<(u64, u64)> {
        let line = LinkConfig::fixed(None, Duration::from_millis(10));
        let mut n = Network::<()>::new(&Topology::single_path((line.clone(), line)), 1).expect("a network");
        let [from, to] = ["sender", "receiver"].map(|host| n.addresses(n.node(host).expect("a host"))[0]);
        let sink = n.add(Box::new(Sink::default()), Instant::ZERO);
        let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(100_000 / every), size: 100, burst: 1 });
        let source = DatagramSource::new(from, Peer { address: to, agent: sink }, cbr.build(1, "cbr"));
        let source = n.add(Box::new(source), Instant::ZERO);
        if let Some(most) = most {
            n.process(source, Duration::from_millis(most), RandomStream::named(seed, "processing"));
        }
        n.run_until(Instant::from_millis(10_100));
        n.agent::<Sink>(sink).expect("the sink").0.clone()
    }

    #[test]
    fn packets_wait_evenly_up_to_the_most_and_keep_their_order() {
        assert!(run(10, None, 1).iter().all(|(_, us)| *us == 10_000));
        for (every, most) in [(10, 0), (10, 1), (10, 9), (1, 5), (1, 50), (5, 20)] {
            let all = run(every, Some(most), 3);
            let missing = (10_000 / every).saturating_sub(all.len() as u64);
            assert!(missing <= most / every + 1, "every {every}, most {most}: {}", all.len());
            assert!(all.iter().enumerate().all(|(i, (number, _))| *number == i as u64), "every {every}, most {most}");
            let waits = || all.iter().map(|(_, us)| us - 10_000);
            assert!(waits().all(|us| us <= 1_000 * most), "every {every}, most {most}");
            let mean = waits().sum::<u64>() as f64 / all.len() as f64;
            let half = 500.0 * most as f64;
            // What waits for those before it waits longer.
            let fits = if every > most { (mean - half).abs() <= 0.06 * half } else { mean > half };
            assert!(fits, "every {every}, most {most}: {mean}");
        }
        assert_eq!(run(1, Some(5), 7), run(1, Some(5), 7));
        assert_ne!(run(1, Some(5), 7), run(1, Some(5), 8));
    }
}
