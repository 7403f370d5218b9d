//! How fast sources are combined, and solved for, on one core.
//!
//! ```text
//! cargo run --release -p anabranch-code --example speed
//! ```
//! `sums` is the speed of the inner loop. `encoding`: bytes of sources a second where one repair symbol follows ten
//! sources and covers the last `window` of them, so that each source is part of `window` / 10 repair symbols. `decoding`:
//! bytes of sources a second at the other end, where one of twenty sources is missing.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures")]

use anabranch_code::{Code, Combiner, Decoder, Limits, Repair};
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const LEN: usize = 1_316;
const COUNT: usize = 400_000;
const EVERY: usize = 10;
const ROUNDS: usize = 100;

/// Time that this thread had a processor; where the system does not say, time.
fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    let had = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let had = had.and_then(|s| s.split(' ').next()?.parse().ok());
    had.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn report(name: &str, bytes: usize, since: Duration) {
    println!("{name:<24} {:6.2} GB/s", bytes as f64 / (now() - since).as_secs_f64() / 1e9);
}

fn main() {
    let sources: Vec<Vec<u8>> = (0..256).map(|n| (0..LEN).map(|i| (i * 7 + n * 13) as u8).collect()).collect();
    let at = |n: usize| &sources[n % 256][..];
    for code in [Code::Xor, Code::Rlc] {
        let start = now();
        let mut c = Combiner::with_capacity(code, 1, LEN);
        (0..COUNT).for_each(|n| c.add(n as u64, &[at(n)]));
        black_box(c.finish());
        report(&format!("sums {code:?}"), COUNT * LEN, start);
        for window in [10, 20, 50, 100] {
            let start = now();
            for n in (0..COUNT).step_by(EVERY) {
                let mut c = Combiner::with_capacity(code, n as u16, LEN);
                (n.saturating_sub(window - EVERY)..n + EVERY).for_each(|m| c.add(m as u64, &[at(m)]));
                black_box(c.finish());
            }
            report(&format!("encoding {code:?} {window}"), COUNT * LEN, start);
        }
    }
    for window in [20, 50, 100] {
        let sums: Vec<(usize, Vec<u8>)> = (0..2_560usize)
            .step_by(EVERY)
            .map(|n| {
                let mut c = Combiner::new(Code::Rlc, n as u16);
                (n.saturating_sub(window - EVERY)..n + EVERY).for_each(|m| c.add(m as u64, &[at(m)]));
                (n, c.finish())
            })
            .collect();
        let (start, mut solved) = (now(), 0);
        for _ in 0..ROUNDS {
            let mut d = Decoder::new(Limits::default());
            for (n, symbol) in &sums {
                (*n..n + EVERY).filter(|m| m % 20 != 7).for_each(|m| d.source(m as u64, &[at(m)]));
                let covers = (n.saturating_sub(window - EVERY)..n + EVERY).map(|m| m as u64);
                d.repair(&Repair { code: Code::Rlc, seed: *n as u16, symbol }, covers);
                while d.next_solved().is_some() {
                    solved += 1;
                }
            }
        }
        report(&format!("decoding Rlc {window}"), ROUNDS * 2_560 * LEN, start);
        assert_eq!(solved, ROUNDS * 128);
    }
}
