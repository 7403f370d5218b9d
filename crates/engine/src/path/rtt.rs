//! Round-trip estimation (RFC 9260 §6.3.1) and a windowed minimum.

use anabranch_base::{Duration, Instant};

/// Clock granularity: RTTVAR never falls below it (RFC 9260 §6.3.1 C3 note).
const GRANULARITY: Duration = Duration::from_micros(1);
/// A minimum older than this is forgotten; routes change.
const MIN_WINDOW: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    deviation: Duration,
    last: Duration,
    last_smoothed_at: Option<Instant>,
    last_at: Option<Instant>,
    // Two half-windows: the minimum is exact over the last 5 s and at most 10 s old.
    min_now: Duration,
    min_before: Duration,
    half_began: Instant,
}

impl RttEstimator {
    /// A sample from unambiguous evidence. The smoothed values take at most one sample per round trip
    /// (RFC 9260 §6.3.1 C4); minimum and newest sample take all.
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        let rtt = Duration::from_nanos(rtt.as_nanos().max(1));
        (self.last, self.last_at) = (rtt, Some(now));
        self.update_min(now, rtt);
        let off = self.srtt.abs_diff(rtt);
        self.deviation = if self.srtt.is_zero() { rtt / 2 } else { (self.deviation * 31 + off) / 32 };
        match self.last_smoothed_at {
            None => {
                self.srtt = rtt;
                self.rttvar = rtt / 2;
            }
            Some(at) if now.since(at) < self.srtt => return,
            Some(_) => {
                self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
                self.srtt = (self.srtt * 7 + rtt) / 8;
            }
        }
        if self.rttvar < GRANULARITY {
            self.rttvar = GRANULARITY;
        }
        self.last_smoothed_at = Some(now);
    }

    /// The first sample after a silence: what was known before it says nothing any more.
    pub fn restart(&mut self, now: Instant, rtt: Duration) {
        (self.srtt, self.last_smoothed_at) = (Duration::ZERO, None);
        self.sample(now, rtt);
    }

    fn update_min(&mut self, now: Instant, rtt: Duration) {
        if self.min_now.is_zero() || now.since(self.half_began) > MIN_WINDOW / 2 {
            self.min_before = if now.since(self.half_began) > MIN_WINDOW { Duration::ZERO } else { self.min_now };
            self.min_now = rtt;
            self.half_began = now;
        }
        self.min_now = self.min_now.min(rtt);
    }

    /// When the last sample was taken.
    pub fn sampled_at(&self) -> Option<Instant> {
        self.last_at
    }
    pub fn srtt(&self) -> Duration {
        self.srtt
    }
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }
    /// Mean deviation over the last thirty samples or so, of which there may be many in a round trip: unlike the
    /// variation it neither forgets nor jumps with a few.
    pub fn deviation(&self) -> Duration {
        self.deviation
    }
    pub fn last(&self) -> Duration {
        self.last
    }
    pub fn min_rtt(&self) -> Duration {
        if self.min_before.is_zero() { self.min_now } else { self.min_now.min(self.min_before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn first_and_second_sample_follow_the_rule() {
        let mut e = RttEstimator::default();
        e.sample(Instant::from_millis(0), MS(100));
        assert_eq!((e.srtt(), e.rttvar()), (MS(100), MS(50)));
        e.sample(Instant::from_millis(200), MS(200));
        assert_eq!(e.srtt(), Duration::from_micros(112_500));
        assert_eq!(e.rttvar(), Duration::from_micros(62_500));
    }

    #[test]
    fn one_smoothed_sample_per_round_trip_but_every_minimum() {
        let mut e = RttEstimator::default();
        e.sample(Instant::from_millis(0), MS(100));
        e.sample(Instant::from_millis(50), MS(40));
        assert_eq!((e.srtt(), e.min_rtt(), e.last()), (MS(100), MS(40), MS(40)));
    }

    #[test]
    fn the_deviation_is_slow_and_takes_every_sample() {
        let mut e = RttEstimator::default();
        e.sample(Instant::from_millis(0), MS(100));
        assert_eq!(e.deviation(), MS(50));
        for t in 1..500 {
            e.sample(Instant::from_millis(t), MS(if t % 2 == 0 { 80 } else { 120 }));
        }
        let settled = e.deviation().as_micros();
        assert!((19_000..=21_000).contains(&settled), "{settled}");
        e.sample(Instant::from_millis(500), MS(260));
        assert!(e.deviation().as_micros() < settled + 5_500, "{}", e.deviation());
        e.restart(Instant::from_millis(600), MS(700));
        assert_eq!((e.srtt(), e.rttvar(), e.deviation()), (MS(700), MS(350), MS(350)));
    }

    #[test]
    fn the_minimum_is_forgotten() {
        let mut e = RttEstimator::default();
        e.sample(Instant::from_millis(0), MS(10));
        for t in 1..25 {
            e.sample(Instant::from_millis(t * 1_000), MS(80));
        }
        assert_eq!(e.min_rtt(), MS(80));
    }
}
