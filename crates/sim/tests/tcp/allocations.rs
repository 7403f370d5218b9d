//! In a steady state a packet costs no allocation.

use super::{connect, sender};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_sim::transport::tcp::{Recovery, SackRule, Supply, TcpConfig};
use anabranch_sim::{Limit, LinkConfig, LossConfig};

fn allocations(config: TcpConfig, loss: LossConfig) -> (u64, u64) {
    let link = LinkConfig::fixed(Some(Rate::from_bits_per_sec(10_000_000)), Duration::from_millis(10));
    let link = link.with_limit(Limit::packets(50));
    let mut network = connect(config, Supply::Endless, link.clone().with_loss(loss), link, 1);
    network.run_until(Instant::ZERO + Duration::from_secs(100));
    let before = sender(&network).acknowledged();
    let counted = allocation_counter::measure(|| network.run_until(Instant::ZERO + Duration::from_secs(200)));
    (counted.count_total, sender(&network).acknowledged() - before)
}

#[test]
fn no_allocation_per_packet() {
    let selective = [SackRule::Pipe, SackRule::Rfc6675].map(Recovery::Sack);
    let all = [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Rack].into_iter().chain(selective);
    for config in all.map(TcpConfig::ns2).chain([TcpConfig::linux()]) {
        let (recovery, config) = (config.recovery, config.with_window(100));
        for loss in [LossConfig::None, LossConfig::bernoulli(0.01)] {
            let (count, packets) = allocations(config, loss.clone());
            assert!(packets > 20_000, "{packets}");
            // Rows of packets and of wake-ups may still find a new greatest length now and then.
            assert!(count <= 8, "{recovery:?} {loss:?}: {count} allocations for {packets} packets");
        }
    }
}
