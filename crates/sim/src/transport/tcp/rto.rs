//! The retransmission time-out (RFC 6298), on a clock of ticks as stacks have it.

use anabranch_base::{Duration, Instant};

/// Bounds of the time-out and the clock it is measured with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtoConfig {
    /// Before the first measurement.
    pub initial: Duration,
    /// Never shorter, before back-off.
    pub min: Duration,
    /// Never longer, back-off included.
    pub max: Duration,
    /// Granularity of the clock.
    pub tick: Duration,
    /// `min` bounds what is added to the round trip, and not their sum: Linux's `rto_min`.
    pub min_of_variation: bool,
}

/// Estimator and back-off of one connection. Round trips are counted in whole ticks; the smoothed mean is kept in
/// eighths of a tick and the deviation in quarters (Jacobson 1988, appendix A).
#[derive(Clone, Debug)]
pub struct Rto {
    config: RtoConfig,
    /// Where in a tick the connection's clock began.
    phase: u64,
    mean_8: i64,
    deviation_4: i64,
    /// Before back-off and bounds; `None` before the first measurement.
    ticks: Option<i64>,
    backoff: u32,
}

/// Back-off beyond this forgets the mean: the way has changed (RFC 6298 §5, last note).
const FORGET_BEYOND: u32 = 8;
/// Back-off goes on to this, or until the longest time-out is reached.
const LARGEST_BACKOFF: u32 = 64;

impl Rto {
    /// Nothing measured yet. `phase` is where in a tick the clock begins.
    pub fn new(config: RtoConfig, phase: Duration) -> Self {
        let tick = config.tick.max(Duration::from_nanos(1));
        let config = RtoConfig { tick, ..config };
        Rto { config, phase: phase.as_nanos(), mean_8: 0, deviation_4: 0, ticks: None, backoff: 1 }
    }

    /// A segment sent once, at `sent`, has been acknowledged now.
    pub fn sample(&mut self, sent: Instant, now: Instant) {
        let tick = self.config.tick.as_nanos();
        let into_tick = (sent.as_nanos() % tick + self.phase % tick) % tick;
        let rtt = (((now.since(sent).as_nanos() + into_tick) / tick) as i64).max(1);
        if self.mean_8 == 0 {
            self.mean_8 = rtt * 8;
            self.deviation_4 = rtt * 2;
        } else {
            let error = rtt - self.mean_8 / 8;
            self.mean_8 = (self.mean_8 + error).max(1);
            self.deviation_4 = (self.deviation_4 + error.abs() - self.deviation_4 / 4).max(1);
        }
        self.ticks = Some((self.deviation_4 * 8 + self.mean_8) / 8);
    }

    /// The time-out now in force.
    pub fn timeout(&self) -> Duration {
        let mut base = self.ticks.map_or(self.config.initial, |t| self.config.tick * t as u64);
        if self.config.min_of_variation
            && let Some(srtt) = self.srtt()
        {
            base = base.max(srtt + self.config.min);
        }
        let backed_off = base.max(self.config.min) * u64::from(self.backoff);
        backed_off.min(self.config.max).max(self.config.tick * 2)
    }

    /// The timer has expired: doubles the time-out (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        if self.backoff < LARGEST_BACKOFF || self.timeout() < self.config.max {
            self.backoff = self.backoff.saturating_mul(2);
        }
        if self.backoff > FORGET_BEYOND {
            self.deviation_4 += self.mean_8 / 8;
            self.mean_8 = 0;
        }
    }

    /// A segment sent once has been acknowledged: the path is alive (Karn and Partridge 1987).
    pub fn end_back_off(&mut self) {
        self.backoff = 1;
    }

    /// Smoothed round-trip time; `None` before the first measurement.
    pub fn srtt(&self) -> Option<Duration> {
        self.ticks?;
        Some(Duration::from_nanos(self.config.tick.as_nanos() * self.mean_8 as u64 / 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn rto(tick: u64) -> Rto {
        Rto::new(
            RtoConfig { initial: ms(3_000), min: ms(200), max: ms(60_000), tick: ms(tick), min_of_variation: false },
            Duration::ZERO,
        )
    }

    #[test]
    fn first_and_next_measurement() {
        let mut r = rto(10);
        assert_eq!((r.timeout(), r.srtt()), (ms(3_000), None));
        r.sample(Instant::ZERO, Instant::from_millis(100));
        // 10 ticks: mean 10, deviation 5, so 10 + 4 * 5 ticks.
        assert_eq!((r.timeout(), r.srtt()), (ms(300), Some(ms(100))));
        r.sample(Instant::ZERO, Instant::from_millis(180));
        // Error 8: mean 11, deviation 5 + (8 - 5) / 4 = 5.75.
        assert_eq!((r.timeout(), r.srtt()), (ms(340), Some(ms(110))));
    }

    #[test]
    fn a_minimum_of_the_variation_is_added_to_the_round_trip() {
        let config = RtoConfig { min_of_variation: true, ..rto(1).config };
        let mut r = Rto::new(config, Duration::ZERO);
        assert_eq!(r.timeout(), ms(3_000));
        (0..50).for_each(|_| r.sample(Instant::ZERO, Instant::from_millis(30)));
        assert_eq!((r.srtt(), r.timeout()), (Some(ms(30)), ms(230)));
    }

    #[test]
    fn the_clock_counts_the_ticks_passed() {
        let mut r = rto(10);
        r.sample(Instant::from_millis(8), Instant::from_millis(41));
        assert_eq!(r.srtt(), Some(ms(40)));
        let mut short = rto(10);
        short.sample(Instant::from_millis(1), Instant::from_millis(2));
        assert_eq!((short.srtt(), short.timeout()), (Some(ms(10)), ms(200)));
    }

    #[test]
    fn doubles_to_the_longest_and_starts_afresh() {
        let mut r = rto(10);
        r.sample(Instant::ZERO, Instant::from_millis(100));
        let mut seen = Vec::new();
        for _ in 0..10 {
            r.back_off();
            seen.push(r.timeout().as_millis());
        }
        assert_eq!(seen, [600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 60_000, 60_000, 60_000]);
        r.end_back_off();
        assert_eq!(r.timeout(), ms(300));
        // The old mean is forgotten: the next measurement counts as the first.
        r.sample(Instant::ZERO, Instant::from_millis(500));
        assert_eq!(r.srtt(), Some(ms(500)));
    }
}
