//! How long the way there takes, where the way back is another one.
//!
//! A SACK may come back over any path, so the round trip that a chunk shows is its path's way there and some path's
//! way back. The way back of a path is taken as half of the round trips that it made by itself: of HEARTBEATs, which
//! return the way they came (RFC 9260 §8.3), and of chunks whose SACK came back over their own path.

use super::least::Least;
use anabranch_base::{Duration, Instant};

/// Half of the window for the smallest values; routes change.
const HALF: Duration = Duration::from_secs(5);
/// Least span of what counts as recent.
const RECENT: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OneWay {
    /// Round trips there and back over this path alone.
    own: Least,
    there: Least,
    recent: Least,
}

impl OneWay {
    /// A round trip over this path both ways.
    pub fn own_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.own.update(now, rtt, HALF);
    }

    /// A round trip whose way there was this path, and whose way back takes `back`.
    pub fn sample(&mut self, now: Instant, rtt: Duration, back: Duration) {
        // However the way back was found, the way there takes some time.
        let there = rtt.saturating_sub(back).max(rtt / 8);
        self.there.update(now, there, HALF);
        self.recent.update(now, there, rtt.max(RECENT));
    }

    /// Its way back, as far as is known.
    pub fn back(&self) -> Option<Duration> {
        Some(self.own.get() / 2).filter(|d| !d.is_zero())
    }

    /// Smallest time there of the last seconds; zero without a sample.
    pub fn least(&self) -> Duration {
        self.there.get()
    }

    /// Smallest time there over the last one to two round trips before the newest sample.
    pub fn recent(&self) -> Duration {
        self.recent.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn what_came_back_over_a_faster_path_took_longer_to_get_there() {
        let (mut fast, mut slow) = (OneWay::default(), OneWay::default());
        let now = Instant::from_millis(1_000);
        assert_eq!(fast.back(), None);
        fast.own_round_trip(now, MS(60));
        slow.sample(now, MS(190), fast.back().unwrap());
        assert_eq!((slow.least(), slow.recent()), (MS(160), MS(160)));
        slow.sample(now + MS(10), MS(240), MS(30));
        assert_eq!((slow.least(), slow.recent()), (MS(160), MS(160)));
        slow.sample(now + MS(600), MS(240), MS(30));
        slow.sample(now + MS(1_200), MS(240), MS(30));
        assert_eq!((slow.least(), slow.recent()), (MS(160), MS(210)), "the recent one follows");
    }

    #[test]
    fn nonsense_about_the_way_back_leaves_some_time_for_the_way_there() {
        let mut p = OneWay::default();
        p.sample(Instant::from_millis(5), MS(80), MS(500));
        assert_eq!(p.least(), MS(10));
    }
}
