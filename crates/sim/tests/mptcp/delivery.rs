//! Whatever the networks do, the data arrive once and in order, content and all, and the same seed does the same.

use super::{at, both, connect, link, sink, source};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_sim::link::Schedule;
use anabranch_sim::traffic::{Emission, Kind, Source};
use anabranch_sim::transport::mptcp::{Coding, Coupling, FmtcpConfig, MptcpConfig, NcConfig, Scheduler};
use anabranch_sim::transport::tcp::{Recovery, SackRule, Supply, TcpConfig};
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

/// A bad link: it may lose, double, delay and turn round.
fn bad() -> impl Strategy<Value = LinkConfig> {
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

fn coding() -> impl Strategy<Value = Coding> {
    let fmtcp = (100u32..1_400, 1u16..100, 0u16..12)
        .prop_map(|(symbol, block, margin)| Coding::Fmtcp(FmtcpConfig { symbol, block, margin }));
    let nc = (1u16..60).prop_map(|generation| Coding::Nc(NcConfig { generation }));
    prop_oneof![
        Just(Coding::Plain),
        fmtcp,
        nc,
        Just(Coding::Fmtcp(FmtcpConfig::DEFAULT)),
        Just(Coding::Nc(NcConfig::DEFAULT))
    ]
}

fn config() -> impl Strategy<Value = MptcpConfig> {
    let recovery = prop_oneof![Just(Recovery::NewReno), Just(Recovery::Sack(SackRule::Rfc6675)), Just(Recovery::Rack)];
    let coupling = proptest::sample::select(&Coupling::ALL);
    let options = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (recovery, coupling, options, 3_000u64..200_000, coding()).prop_map(
        |(recovery, coupling, (delayed, coalesce, turns, opportunistic, penalise), receive_buffer, coding)| {
            MptcpConfig {
                tcp: TcpConfig {
                    delayed_ack: delayed.then_some(Duration::from_millis(100)),
                    coalesce,
                    ..TcpConfig::rfc(recovery)
                },
                coupling,
                scheduler: if turns { Scheduler::RoundRobin } else { Scheduler::MinRtt },
                receive_buffer,
                opportunistic,
                penalise,
                coding,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn everything_once_and_in_order(
        config in config(),
        ways in proptest::collection::vec((bad(), bad()), 1..5),
        writes in proptest::collection::vec((0u64..2_000, 1u64..90_000), 1..30),
        seed in any::<u64>(),
    ) {
        let total: u64 = writes.iter().map(|w| w.1).sum();
        let run = || {
            let supply = Supply::Source(Box::new(Writes { left: writes.clone(), at: None }));
            let mut network = connect(config, supply, ways.clone(), seed);
            // Time-outs of up to a minute, many in a row: a day is enough for any.
            network.run_until(at(86_400));
            let (source, sink) = (source(&network), sink(&network));
            let a = sink.assembly();
            let sent = (source.sender_counters(), source.counters(), source.done());
            (sink.delivered(), a.digest(), a.expected_digest(), a.most_held(), sink.counters(), sent)
        };
        let all = run();
        let (delivered, digest, expected, held, received, (_, _, done)) = all;
        prop_assert_eq!(delivered, total);
        if config.coding == Coding::Plain {
            prop_assert_eq!(received.received.bytes, total, "each byte counts as new once");
        }
        prop_assert_eq!(digest, expected, "what came is what was sent, in its order");
        prop_assert!(held <= config.receive_buffer);
        prop_assert!(done.is_some());
        prop_assert_eq!(run(), all, "the same seed does the same");
    }
}

/// What a path that dies held arrives over the others, and it is used again when it is back.
#[test]
fn a_path_that_dies_and_comes_back() {
    for ways in [2, 3] {
        for (down, up) in [(20_000, 60_000), (20_400, 90_000), (21_000, 400_000)] {
            let mut all = vec![both(link(4_000, 20, 40)); ways];
            let outage = Schedule::outage(Duration::from_millis(down), Duration::from_millis(up));
            (all[0].0.schedule, all[0].1.schedule) = (outage.clone(), outage);
            let mut network = connect(MptcpConfig::rfc(), Supply::Endless, all, 7);
            let mut until = |seconds| {
                network.run_until(at(seconds));
                (sink(&network).delivered(), sink(&network).assembly().held())
            };
            let (before, _) = until(20);
            // Within the time-out of a second and its repair everything is there.
            let (first, _) = until(25);
            let (second, held) = until(45);
            let rate = (second - first) as f64 * 8.0 / 20.0;
            let left = 4e6 * (ways - 1) as f64;
            assert!(first > before && held < 256 << 10);
            assert!((0.85..1.0).contains(&(rate / left)), "{ways} {down}: {rate} of {left}");
            assert!(source(&network).counters().reinjected > 0);
            if up < 100_000 {
                // A back-off of a minute at most, then slow start.
                network.run_until(at(200));
                let before = sink(&network).delivered();
                network.run_until(at(220));
                let rate = (sink(&network).delivered() - before) as f64 * 8.0 / 20.0;
                assert!((0.85..1.0).contains(&(rate / (left + 4e6))), "{ways} {up}: {rate}");
            }
            let a = sink(&network).assembly();
            assert_eq!(a.digest(), a.expected_digest());
        }
    }
}
