//! Whatever the network does, everything arrives once and in order, and the same seed does the same.

use super::{connect, sender, sink};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_sim::traffic::{Emission, Kind, Source};
use anabranch_sim::transport::tcp::{Congestion, Recovery, SackRule, Supply, TcpConfig};
use anabranch_sim::{Jitter, Limit, LinkConfig, LossConfig};
use proptest::prelude::*;

/// Writes of these sizes, each so many ms after the one before.
struct Writes {
    left: Vec<(u64, u64)>,
    at: Option<Instant>,
}

impl Source for Writes {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let (gap, size) = self.left.pop()?;
        let at = self.at.unwrap_or(now) + Duration::from_millis(gap);
        self.at = Some(at);
        Some(Emission { at, size, kind: Kind::Stream })
    }
}

fn link() -> impl Strategy<Value = LinkConfig> {
    let rate = proptest::option::of(100_000u64..20_000_000);
    let shares = (0.0..0.3f64, 0.0..0.3f64, 0.0..0.3f64);
    (rate, 0u64..80, 0u64..60, any::<bool>(), shares, 2u64..40).prop_map(
        |(rate, delay, jitter, overtakes, (loss, duplicate, reorder), limit)| LinkConfig {
            jitter: if jitter > 30 { Jitter::Uniform(Duration::from_millis(jitter)) } else { Jitter::None },
            jitter_reorders: overtakes,
            loss: LossConfig::bernoulli(loss),
            duplicate,
            reorder: if overtakes { reorder } else { 0.0 },
            limit: Limit::packets(limit),
            ..LinkConfig::fixed(rate.map(Rate::from_bits_per_sec), Duration::from_millis(delay))
        },
    )
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let recovery = prop_oneof![
        Just(Recovery::Tahoe),
        Just(Recovery::Reno),
        Just(Recovery::NewReno),
        Just(Recovery::Sack(SackRule::Pipe)),
        Just(Recovery::Sack(SackRule::Rfc6675)),
        Just(Recovery::Rack),
        Just(Recovery::Rack),
    ];
    let options = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (recovery, 0u8..3, any::<bool>(), options, 1u32..60, 1u8..4).prop_map(
        |(recovery, rules, delayed, (cubic, prr, tail_probe, quick_ack, nagle), window, blocks)| {
            let config = match rules {
                0 => TcpConfig::ns2(recovery),
                1 => TcpConfig::rfc(recovery),
                _ => TcpConfig { recovery, congestion: Congestion::Reno, ..TcpConfig::linux() },
            };
            let congestion = if cubic && config.is_selective() { Congestion::Cubic } else { Congestion::Reno };
            TcpConfig {
                congestion,
                prr,
                tail_probe,
                quick_ack,
                nagle,
                delayed_ack: delayed.then_some(Duration::from_millis(100)),
                sack_blocks: blocks,
                ..config.with_window(window)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn everything_once_and_in_order(
        config in config(),
        there in link(),
        back in link(),
        writes in proptest::collection::vec((0u64..2_000, 1u64..9_000), 1..30),
        seed in any::<u64>(),
    ) {
        let total: u64 = writes.iter().map(|w| w.1).sum();
        let run = || {
            let source = Writes { left: writes.clone(), at: None };
            let mut network = connect(config, Supply::Source(Box::new(source)), there.clone(), back.clone(), seed);
            // Time-outs of up to a minute, many in a row: a day is enough for any.
            network.run_until(Instant::ZERO + Duration::from_secs(86_400));
            (sink(&network).delivered(), sink(&network).counters(), sender(&network).counters(), sender(&network).done())
        };
        let (delivered, received, sent, done) = run();
        prop_assert_eq!(delivered, total);
        // Each byte counted for the first time once, in whatever order.
        prop_assert_eq!(received.received.bytes, total);
        prop_assert!(done.is_some());
        prop_assert!(sent.sent - sent.again > received.received.packets, "the SYN and each segment once");
        prop_assert_eq!(run(), (delivered, received, sent, done), "the same seed does the same");
    }
}
