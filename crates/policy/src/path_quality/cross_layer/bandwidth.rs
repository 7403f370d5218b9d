//! Bandwidth from what the sender releases: mean sizes over mean gaps, as TIBET has it, then a Kalman filter (Xu et al.
//! 2014 §IV.B, algorithm 1). It follows what the sender emits, not what the path can carry.

use anabranch_base::{Duration, Instant};

/// Share of the old mean that stays, of sizes (a) and of gaps (b).
const STAYS: f64 = 0.99;
/// Variance of the process.
const Q: f64 = 0.01;
/// Variance of the samples.
const R: f64 = 1.0;
/// Shorter gaps belong to one sending opportunity.
const LEAST_GAP: Duration = Duration::from_micros(1);

/// The estimate of one path, in bytes and seconds.
#[derive(Clone, Debug, Default)]
pub struct Bandwidth {
    last: Option<Instant>,
    folded: u64,
    means: Option<(f64, f64)>,
    filter: Option<Kalman>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Kalman {
    value: f64,
    variance: f64,
}

impl Kalman {
    fn begin(value: f64) -> Kalman {
        Kalman { value, variance: 1.0 }
    }
    /// Takes a sample in; answers the gain.
    fn sample(&mut self, z: f64) -> f64 {
        self.variance += Q;
        let gain = self.variance / (self.variance + R);
        self.value += gain * (z - self.value);
        self.variance *= 1.0 - gain;
        gain
    }
}

impl Bandwidth {
    /// One sending opportunity released `bytes`. A gap longer than `rto` was a pause.
    pub fn released(&mut self, now: Instant, bytes: u64, rto: Duration) {
        let gap = self.last.replace(now).map(|t| now.since(t));
        self.folded += bytes;
        let Some(gap) = gap.filter(|g| *g <= rto) else {
            self.folded = 0;
            return;
        };
        if gap < LEAST_GAP {
            return;
        }
        let (len, gap) = (core::mem::take(&mut self.folded) as f64, gap.as_secs_f64());
        let mix = |old: f64, new: f64| STAYS * old + (1.0 - STAYS) * new;
        let (len, gap) = self.means.map_or((len, gap), |(l, g)| (mix(l, len), mix(g, gap)));
        self.means = Some((len, gap));
        let z = len / gap;
        match &mut self.filter {
            None => self.filter = Some(Kalman::begin(z)),
            Some(k) => {
                k.sample(z);
            }
        }
    }
    /// Bytes a second; zero while nothing is known.
    pub fn get(&self) -> f64 {
        self.filter.map_or(0.0, |k| k.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn the_gain_settles() {
        let mut k = Kalman::begin(0.0);
        let mut gain = 0.0;
        for _ in 0..200 {
            gain = k.sample(1.0);
        }
        assert!((gain - 0.0951).abs() < 5e-5, "{gain}");
        let mut k = Kalman::begin(0.0);
        assert!((k.sample(1.0) - 1.01 / 2.01).abs() < 1e-12);
        assert!((k.value - 1.01 / 2.01).abs() < 1e-12);
    }

    fn run(b: &mut Bandwidth, now: &mut Instant, n: u32, bytes: u64, gap: u64) {
        for _ in 0..n {
            *now += ms(gap);
            b.released(*now, bytes, ms(1_000));
        }
    }

    #[test]
    fn a_steady_sender_is_measured_exactly_and_a_change_slowly() {
        let (mut b, mut now) = (Bandwidth::default(), Instant::from_millis(1_000));
        run(&mut b, &mut now, 50, 2_000, 10);
        assert!((b.get() - 200_000.0).abs() < 1e-6);
        run(&mut b, &mut now, 10, 4_000, 10);
        assert!((200_001.0..230_000.0).contains(&b.get()), "{}", b.get());
        run(&mut b, &mut now, 1_000, 4_000, 10);
        assert!((b.get() - 400_000.0).abs() < 100.0, "{}", b.get());
    }

    #[test]
    fn one_opportunity_is_one_sample_and_a_pause_is_none() {
        let (mut b, now) = (Bandwidth::default(), Instant::from_millis(1_000));
        b.released(now, 9_999, ms(1_000));
        assert!(b.get() == 0.0, "the first has no gap");
        b.released(now, 1_000, ms(1_000));
        b.released(now, 1_000, ms(1_000));
        b.released(now + ms(10), 1_000, ms(1_000));
        assert!((b.get() - 300_000.0).abs() < 1e-6, "folded into the next: {}", b.get());
        b.released(now + ms(2_000), 50_000, ms(1_000));
        assert!((b.get() - 300_000.0).abs() < 1e-6);
        b.released(now + ms(2_010), 3_000, ms(1_000));
        assert!((b.get() - 300_000.0).abs() < 1e-6, "what left before the pause is not counted: {}", b.get());
    }
}
