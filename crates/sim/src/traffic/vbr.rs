//! A constant rate in packets whose size is drawn anew each interval: the variable rate source of Cao et al. 2012 §2.2.
//! ns-2 has no such agent; the paper prints 448 kbit/s, 100 to 200 bytes and "interval 200".

use super::{Emission, packet};
use anabranch_base::{Duration, Instant, RandomStream, Rate};

/// Each `interval` a packet size is drawn evenly from `min_size..=max_size`; packets of that size
/// follow each other at `rate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vbr {
    /// Bytes of payload per second.
    pub rate: Rate,
    /// Smallest packet, in bytes of payload.
    pub min_size: u32,
    /// Largest packet, in bytes of payload.
    pub max_size: u32,
    /// How long a size holds.
    pub interval: Duration,
}

impl Vbr {
    /// As in Cao et al. 2012 (table 1): 448 kbit/s, 100 to 200 bytes, 200 ms.
    pub const P0: Vbr = Vbr {
        rate: Rate::from_bits_per_sec(448_000),
        min_size: 100,
        max_size: 200,
        interval: Duration::from_millis(200),
    };

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.rate == Rate::ZERO {
            return Err("a variable rate source needs a mean rate above zero");
        }
        if self.min_size == 0 || self.max_size < self.min_size {
            return Err("packet sizes must be at least one byte, the largest no smaller than the smallest");
        }
        if self.interval.is_zero() {
            return Err("the interval after which a new size is drawn must be longer than zero");
        }
        Ok(())
    }
}

pub(super) struct Source {
    config: Vbr,
    random: RandomStream,
    next: Option<Instant>,
    /// The size in use, and until when.
    size: u64,
    until: Instant,
    /// Part of a nanosecond still to wait, in byte-nanoseconds per second.
    rest: u128,
}

impl Source {
    pub(super) fn new(config: Vbr, random: RandomStream) -> Self {
        Source { config, random, next: None, size: 0, until: Instant::ZERO, rest: 0 }
    }

    fn draw(&mut self) -> u64 {
        let (min, max) = (u64::from(self.config.min_size), u64::from(self.config.max_size));
        min + self.random.below(max.saturating_sub(min) + 1)
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let rate = u128::from(self.config.rate.bytes_per_sec());
        let at = *self.next.get_or_insert_with(|| {
            self.until = now;
            now
        });
        if at >= self.until {
            self.size = self.draw();
            let interval = self.config.interval.as_nanos();
            let over = at.since(self.until).as_nanos() / interval + 1;
            self.until += self.config.interval * over;
        }
        let work = u128::from(self.size) * 1_000_000_000 + self.rest;
        self.rest = work % rate;
        self.next = Some(at + Duration::from_nanos(u64::try_from(work / rate).ok()?));
        Some(packet(at, self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Source as _, TrafficConfig};
    use super::*;

    fn emissions(seed: u64, n: usize) -> Vec<Emission> {
        let mut source = Source::new(Vbr::P0, RandomStream::named(seed, "vbr"));
        std::iter::from_fn(|| source.next(Instant::from_millis(500))).take(n).collect()
    }

    #[test]
    fn the_mean_rate_is_exact_and_sizes_change_with_the_interval() {
        let all = emissions(1, 50_000);
        assert_eq!(all[0].at, Instant::from_millis(500));
        let sent: u64 = all[..49_999].iter().map(|e| e.size).sum();
        let took = all[49_999].at.since(all[0].at);
        assert!(took.abs_diff(Vbr::P0.rate.time_for(sent)) <= Duration::from_nanos(1), "{took}");
        // One size per 200 ms.
        let slot = |e: &Emission| e.at.since(Instant::from_millis(500)).as_millis() / 200;
        assert!(all.windows(2).all(|w| slot(&w[0]) != slot(&w[1]) || w[0].size == w[1].size));
    }

    #[test]
    fn sizes_are_even_between_the_bounds() {
        let all = emissions(2, 400_000);
        let slots: Vec<u64> = all.chunk_by(|a, b| a.size == b.size).map(|c| c[0].size).collect();
        assert!(slots.iter().all(|s| (100..=200).contains(s)));
        let n = slots.len() as f64;
        let mean = slots.iter().sum::<u64>() as f64 / n;
        // 101 even values: standard deviation 29.15; four standard errors.
        assert!((mean - 150.0).abs() < 4.0 * 29.15 / n.sqrt(), "{mean} of {n}");
    }

    #[test]
    fn nonsense_is_named() {
        let bad = |v: Vbr| TrafficConfig::Vbr(v).check().is_err();
        assert!(!bad(Vbr::P0));
        assert!(bad(Vbr { min_size: 201, ..Vbr::P0 }));
        assert!(bad(Vbr { min_size: 0, ..Vbr::P0 }));
        assert!(bad(Vbr { interval: Duration::ZERO, ..Vbr::P0 }));
        assert!(bad(Vbr { rate: Rate::ZERO, ..Vbr::P0 }));
    }
}
