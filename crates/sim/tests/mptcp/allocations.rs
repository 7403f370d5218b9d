//! In a steady state a packet costs no allocation.

use super::{at, both, connect, link, source};
use anabranch_sim::LossConfig;
use anabranch_sim::transport::mptcp::{Coupling, MptcpConfig, Scheduler};
use anabranch_sim::transport::tcp::Supply;

#[test]
fn no_allocation_per_packet() {
    for scheduler in [Scheduler::MinRtt, Scheduler::RoundRobin] {
        for loss in [LossConfig::None, LossConfig::bernoulli(0.01)] {
            let config = MptcpConfig { scheduler, coupling: Coupling::Lia, ..MptcpConfig::rfc() };
            let ways = [10, 30].map(|ms| {
                let mut way = both(link(10_000, ms, 50));
                way.0.loss = loss.clone();
                way
            });
            let mut network = connect(config, Supply::Endless, ways.to_vec(), 1);
            network.run_until(at(100));
            let before = source(&network).span().0;
            let counted = allocation_counter::measure(|| network.run_until(at(200)));
            let packets = source(&network).span().0 - before;
            assert!(packets > 20_000, "{packets}");
            // Rows of packets, of what is held and of wake-ups may still find a new greatest length now and then.
            let count = counted.count_total;
            assert!(count <= 12, "{scheduler:?} {loss:?}: {count} allocations for {packets} packets");
        }
    }
}
