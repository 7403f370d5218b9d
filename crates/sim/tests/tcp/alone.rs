//! A flow that has a path for itself fills it, whatever it repairs its losses by.

use super::*;
use anabranch_base::{Duration, Rate};
use anabranch_sim::Limit;
use anabranch_sim::transport::tcp::{Recovery, SackRule};

/// What is delivered from 10 s to 40 s of what the path carries, and the timeouts of all 40 s.
fn alone(config: TcpConfig, mbit: u64, delay_ms: u64, packets: u64) -> (f64, u64) {
    let rate = Rate::from_bits_per_sec(mbit * 1_000_000);
    let there = LinkConfig::fixed(Some(rate), Duration::from_millis(delay_ms)).with_limit(Limit::packets(packets));
    let back = LinkConfig::fixed(None, Duration::from_millis(delay_ms));
    let mut network = connect(config, Supply::Endless, there, back, 1);
    network.run_until(Instant::from_millis(10_000));
    let before = sender(&network).acknowledged();
    network.run_until(Instant::from_millis(40_000));
    let carried = rate.bytes_per_sec() * 30 / u64::from(config.segment + config.header);
    ((sender(&network).acknowledged() - before) as f64 / carried as f64, sender(&network).counters().timeouts)
}

/// Slow start loses half of its last window, which NewReno repairs hole by hole until its timer has gone off. What lies
/// between the acknowledgement and the newest segment then is many times what the path holds.
#[test]
fn the_overshoot_of_slow_start_is_not_made_again_and_again() {
    for recovery in [Recovery::NewReno, Recovery::Sack(SackRule::Pipe), Recovery::Sack(SackRule::Rfc6675)] {
        for (mbit, delay_ms) in [(2, 40), (10, 5), (10, 15), (10, 40), (40, 20)] {
            let holds = mbit * delay_ms * 2 / 12;
            for packets in [holds, holds * 2].map(|n| n.max(30)) {
                let (part, timeouts) = alone(TcpConfig::rfc(recovery), mbit, delay_ms, packets);
                assert!(
                    part > 0.9 && timeouts <= 3,
                    "{recovery:?}, {mbit} Mbit/s, {delay_ms} ms, {packets} packets: {part:.3}, {timeouts} timeouts"
                );
            }
        }
    }
}
