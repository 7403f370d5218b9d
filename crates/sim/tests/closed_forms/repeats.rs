//! Links that send again what was lost on them.

use crate::stats::{agrees, parts};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_sim::loss::LossConfig;
use anabranch_sim::{Frames, Link, LinkConfig, LinkCounters};

const PACKETS: u64 = 5_000;

/// A link that is never idle, its counts, and when the last packet had left.
fn busy(loss: LossConfig, repeats: u32, seed: u64) -> (Frames, LinkCounters, Duration) {
    // A packet takes 1 ms.
    let config = LinkConfig::fixed(Some(Rate::from_bits_per_sec(8_000_000)), Duration::ZERO);
    let mut link = Link::new("l", seed, config.with_loss(loss).with_repeats(repeats));
    for i in 0..PACKETS {
        link.enqueue(Instant::ZERO, 1_000, i);
    }
    let mut last = Instant::ZERO;
    while let Some(next) = link.next_event() {
        last = next;
        while link.poll_deliver(next).is_some() {}
    }
    (link.frames(), link.counters(), last.since(Instant::ZERO))
}

/// Of packets that are each lost with probability p, and sent again up to N times: through are 1 - p^(N+1), in error p,
/// and each is sent p + p^2 + ... + p^N times beyond the first.
#[test]
fn repetitions_of_independent_losses() {
    for p in [0.05, 0.1, 0.4, 0.8] {
        for n in [0, 1, 3, 7] {
            let runs: Vec<_> = (0..40).map(|seed| busy(LossConfig::bernoulli(p), n, seed)).collect();
            let share = |of: &dyn Fn(&Frames, &LinkCounters) -> u64| {
                parts(|seed| {
                    let (f, c, _) = &runs[seed as usize];
                    of(f, c) as f64 / f.sent as f64
                })
            };
            let given_up = p.powi(n as i32 + 1);
            let name = |what: &str| format!("{what}, p = {p}, N = {n}");
            // So rare that no interval says anything is what the other two follow from.
            if given_up > 1e-3 {
                let lost = |_: &Frames, c: &LinkCounters| c.dropped().packets;
                agrees(&name("given up"), &share(&lost), given_up, 0.3);
            }
            agrees(&name("in error"), &share(&|f, _| f.erroneous), p, 0.05);
            let again: f64 = (1..=n as i32).map(|k| p.powi(k)).sum();
            let repeated = share(&|f, _| f.repeated);
            if n == 0 {
                assert!(repeated.iter().all(|r| *r == 0.0));
            } else {
                agrees(&name("repeated"), &repeated, again, 0.05);
            }
            for (f, c, took) in &runs {
                assert_eq!(f.sent, PACKETS);
                assert_eq!(c.delivered.packets + c.dropped().packets, PACKETS);
                assert_eq!(f.erroneous, c.repaired.packets + c.dropped().packets);
                // Each transmission takes its time, and no other.
                assert_eq!(*took, Duration::from_millis(PACKETS + f.repeated));
            }
        }
    }
}

/// A burst that lasts longer than all repetitions takes the packet with it: a chain with mean bursts of b transmissions
/// goes on in its bad state with 1 - 1/b each time.
#[test]
fn repetitions_within_bursts() {
    let (p, b, n) = (0.05, 5.0, 3);
    let runs: Vec<_> = (0..40).map(|seed| busy(LossConfig::bursts(p, b), n, seed)).collect();
    let share = |of: &dyn Fn(&LinkCounters, &Frames) -> (u64, u64)| {
        parts(|seed| {
            let (f, c, _) = &runs[seed as usize];
            let (part, all) = of(c, f);
            part as f64 / all as f64
        })
    };
    let stays: f64 = 1.0 - 1.0 / b;
    agrees("given up of those in error", &share(&|c, f| (c.dropped().packets, f.erroneous)), stays.powi(n as i32), 0.1);
    let lost = |c: &LinkCounters, f: &Frames| (f.repeated + c.dropped().packets, f.sent + f.repeated);
    agrees("lost of all transmissions", &share(&lost), p, 0.1);
}
