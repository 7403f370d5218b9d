//! When would a chunk handed to a path now arrive?
//!
//! The prediction splits a path into a flight time and a queue. What is in flight beyond the bytes the empty path
//! holds (rate times smallest round trip) stands in a queue and leaves it at the path's rate; a full window waits in
//! the sender for the same rate, so one formula serves open and closed paths.

use crate::view::PathView;
use anabranch_base::{Duration, Ppm, Rate};

/// What is known of a path's timing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forecast {
    /// One-way flight time in the data direction.
    pub flight: Duration,
    /// Bytes the path carries per second.
    pub rate: Rate,
    /// Bytes that leave before anything new.
    pub queued: u64,
}

impl Forecast {
    /// The forecast for `p`, of whose smallest round trip the data direction takes `forward`.
    pub fn of(p: &PathView, forward: Ppm) -> Self {
        let rate = p.delivery_rate.max(p.window_rate());
        let held = rate.bytes_in(p.min_rtt);
        Forecast {
            flight: Duration::from_nanos(forward.of(p.min_rtt.as_nanos())),
            rate,
            queued: p.in_flight.saturating_sub(held),
        }
    }
    /// Time in the queue for a chunk that follows `ahead` further bytes.
    pub fn wait(&self, ahead: u64) -> Duration {
        self.rate.time_for(self.queued.saturating_add(ahead))
    }
    /// Time until `bytes` more have arrived.
    pub fn arrival(&self, bytes: u64) -> Duration {
        self.flight + self.wait(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    #[test]
    fn flight_then_queue() {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 100);
        (p.cwnd, p.in_flight) = (10_000, 0);
        let half = Ppm(500_000);
        // 10000 bytes per 100 ms: a packet of 1000 takes 10 ms, half of the round trip is 50 ms.
        assert_eq!(Forecast::of(p, half).arrival(1_000), ms(60));
        p.in_flight = 10_000;
        assert_eq!(Forecast::of(p, half).arrival(1_000), ms(60), "the pipe is full, the queue empty");
        p.in_flight = 12_000;
        assert_eq!(Forecast::of(p, half).arrival(1_000), ms(80));
        assert_eq!(Forecast::of(p, Ppm::ONE).arrival(1_000), ms(130));
    }

    #[test]
    fn queueing_seen_in_the_round_trip_counts() {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 100);
        (p.srtt, p.cwnd, p.in_flight) = (ms(200), 20_000, 20_000);
        // 100 bytes per ms; 10000 of the 20000 in flight are queued.
        assert_eq!(Forecast::of(p, Ppm(500_000)).arrival(1_000), ms(160));
        p.delivery_rate = Rate::from_bytes_per_sec(200_000);
        assert_eq!(Forecast::of(p, Ppm(500_000)).arrival(1_000), ms(55), "the path has shown to be faster");
    }
}
