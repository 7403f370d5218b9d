//! When would a chunk handed to a path now arrive?
//!
//! The prediction splits a path into a flight time and a queue. What is in flight beyond the bytes the empty path
//! holds (rate times smallest round trip) waits in a queue and leaves it at the path's rate; a full window waits in
//! the sender for the same rate, so one formula serves open and closed paths.
//!
//! The flight time is the smallest of the last one to two round trips: what it includes of a standing queue, the bytes
//! that the path holds include too. A path of which nothing was heard for some round trips is taken to be as it was at
//! its best in the last ten seconds, so that a bad moment that is over cannot keep data off a path for ever.
//!
//! The quickest of a few round trips can be luck. Who asks with `Forecast::and_luck` learns by how much, and has it in the
//! flight on a path of which nothing is news. Where packets overtake each other both flight and queue are counted by what a
//! round trip usually takes there.

use crate::view::PathView;
use anabranch_base::{Duration, Instant, Ppm, Rate};

/// Samples older than so many round trips, and than this, are no news.
const STALE_ROUND_TRIPS: u64 = 4;
const STALE: Duration = Duration::from_millis(250);
/// Least time after a path answered again in which its round trips are those of the time before.
const STOOD: Duration = Duration::from_millis(50);

/// Paths are taken to carry one part of so many more than was measured: what was given up by mistake leaves them idle,
/// and what was kept by mistake is a few packets late at the end of a queue.
const HOPE: u64 = 20;

/// Mean deviations by which the quickest of many packets that overtake each other is quicker than most: four, and half as
/// many more since a deviation that was measured over few packets may be a third too small.
const LUCKIEST: u64 = 6;

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

/// Is the newest round trip recent enough to say how the path is now? The first ones after the path stood tell how it was
/// while it did.
pub(crate) fn is_fresh(now: Instant, p: &PathView) -> bool {
    let lasts = (p.mean_rtt * STALE_ROUND_TRIPS).max(STALE);
    let stood = p.stalled_at.is_some_and(|t| now.since(t) < (p.min_rtt * 2).max(STOOD));
    !stood && p.sampled_at.is_some_and(|t| now.since(t) <= lasts)
}

/// The smallest of the newest round trips, while they say how the path is now; else the smallest of all.
pub(crate) fn newest_rtt(now: Instant, p: &PathView) -> Duration {
    if is_fresh(now, p) && !p.recent_rtt.is_zero() { p.recent_rtt } else { p.min_rtt }
}

/// How far an arrival on `p` may differ from its prediction: `risk` mean deviations of the newest round trips, which
/// after a bad moment say less than the newest round trips themselves. Where packets overtake each other the delay varies
/// from one to the next, and what a few samples of a path that carries little vary by is chance: there it is at least what
/// round trips without a queue vary by.
pub(crate) fn uncertainty(now: Instant, p: &PathView, risk: Ppm) -> Duration {
    let newest = p.jitter.min(newest_rtt(now, p).max(p.min_rtt));
    let lasting = if p.reorders(now) { p.unloaded_deviation } else { Duration::ZERO };
    Duration::from_nanos(risk.of(newest.max(lasting).as_nanos()))
}

/// By how much the flight that is forecast, the quickest of the newest round trips, was luck: where round trips vary by
/// themselves the next one takes what they usually do.
pub(crate) fn luck(now: Instant, p: &PathView) -> Duration {
    let most = if p.reorders(now) { p.jitter.max(p.unloaded_deviation) * LUCKIEST } else { p.jitter * 2 };
    p.without_queue().usual().saturating_sub(newest_rtt(now, p)).min(most)
}

impl Forecast {
    /// The forecast for `p`.
    pub fn of(now: Instant, p: &PathView) -> Self {
        let fresh = is_fresh(now, p);
        let newest = |recent: Duration, least: Duration| if fresh && !recent.is_zero() { recent } else { least };
        let flight = newest(p.recent_one_way, p.one_way);
        let rate = rate(p);
        let held = rate.bytes_in(newest_rtt(now, p));
        Forecast {
            flight: if flight.is_zero() { p.min_rtt / 2 } else { flight },
            rate,
            queued: p.in_flight.saturating_sub(held),
        }
    }
    /// The forecast for `p`, and by how much its flight may be luck beside that. Where packets overtake each other, or of a
    /// path of which nothing is news, it is not the quickest of a few that counts but what a flight usually takes.
    pub fn and_luck(now: Instant, p: &PathView) -> (Self, Duration) {
        let (forecast, luck) = (Forecast::of(now, p), luck(now, p));
        if p.reorders(now) {
            return (Forecast::usually(now, p, forecast, luck), Duration::ZERO);
        }
        if !is_fresh(now, p) {
            // What the path holds takes as long.
            let queued = forecast.queued.saturating_sub(forecast.rate.bytes_in(luck));
            return (Forecast { flight: forecast.flight + luck, queued, ..forecast }, Duration::ZERO);
        }
        (forecast, luck)
    }
    /// A usual flight: a usual round trip less the way back. The quickest flight of late and what a usual round trip takes
    /// longer than the quickest of late are of two packets: their sum is shorter than a usual flight. What is in flight beyond
    /// what a usual round trip holds waits, and by that queue the newest flights are longer. What they are longer beyond it,
    /// the delay itself has risen by. A queue judged by the quickest of the newest round trips, which has most of it in
    /// itself, is as long as chance has it, and what leaves by another path varies by as much from one burst to the next.
    fn usually(now: Instant, p: &PathView, forecast: Forecast, luck: Duration) -> Self {
        let usual = p.without_queue().usual().min(newest_rtt(now, p) + luck);
        let back = p.min_rtt.saturating_sub(if p.one_way.is_zero() { p.min_rtt / 2 } else { p.one_way });
        let queued = p.in_flight.saturating_sub(forecast.rate.bytes_in(usual));
        let newest = forecast.flight.saturating_sub(forecast.rate.time_for(queued));
        Forecast { flight: usual.saturating_sub(back).max(newest), queued, ..forecast }
    }
    /// This forecast with a flight time of at least `flight`.
    pub fn at_least(self, flight: Duration) -> Self {
        Forecast { flight: self.flight.max(flight), ..self }
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

/// What `p` carries: its measured capacity. What the window allows, where that is more, at the start of a path when the
/// rate still doubles, and where the source alone has limited what was seen: taken for the path's rate it would hold
/// back what could show more.
pub(crate) fn rate(p: &PathView) -> Rate {
    match p.capacity {
        Rate::ZERO => p.window_rate(),
        measured if p.in_slow_start() || p.capacity_may_be_more => measured.max(p.window_rate()),
        measured => Rate::from_bytes_per_sec(measured.bytes_per_sec() + measured.bytes_per_sec() / HOPE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn arrival(s: &Scene) -> Duration {
        Forecast::of(s.now, &s.paths[0]).arrival(1_000)
    }

    #[test]
    fn flight_then_queue() {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 100);
        (p.cwnd, p.in_flight) = (10_000, 0);
        // 10000 bytes per 100 ms: a packet of 1000 takes 10 ms, half of the round trip is 50 ms.
        assert_eq!(arrival(&s), ms(60));
        s.paths[0].in_flight = 10_000;
        assert_eq!(arrival(&s), ms(60), "the pipe is full, the queue empty");
        s.paths[0].in_flight = 12_000;
        assert_eq!(arrival(&s), ms(80));
        s.paths[0].one_way = ms(90);
        assert_eq!(arrival(&s), ms(120), "the way there is longer than the way back");
    }

    #[test]
    fn a_measured_capacity_counts_more_than_the_window() {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 100);
        (p.cwnd, p.ssthresh, p.in_flight) = (20_000, 10_000, 20_000);
        assert_eq!(arrival(&s), ms(55));
        s.paths[0].capacity = Rate::from_bytes_per_sec(100_000);
        assert_eq!(arrival(&s), ms(150), "9500 of the 20000 in flight wait in a queue, at 5 % more than was measured");
        s.paths[0].capacity_may_be_more = true;
        assert_eq!(arrival(&s), ms(55), "a source that offered less has shown no more");
        s.paths[0].capacity_may_be_more = false;
        s.paths[0].ssthresh = u64::MAX;
        assert!(s.paths[0].in_slow_start());
        assert_eq!(arrival(&s), ms(55), "at the start more is possible than was seen");
    }

    #[test]
    fn what_was_seen_long_ago_is_no_prediction() {
        let mut s = Scene::new(1, 0);
        s.paths[0].capacity = Rate::from_bytes_per_sec(1_000_000);
        let now = s.now;
        let p = s.rtt(0, 100);
        (p.srtt, p.mean_rtt, p.recent_rtt, p.recent_one_way) = (ms(800), ms(800), ms(700), ms(650));
        p.sampled_at = Some(now - ms(3_000));
        assert_eq!(arrival(&s), ms(651));
        s.now += ms(201);
        assert_eq!(arrival(&s), ms(51), "four round trips old");
    }

    #[test]
    fn the_quickest_of_a_few_was_luck_where_round_trips_vary() {
        let mut s = Scene::new(1, 0);
        s.paths[0].capacity = Rate::from_bytes_per_sec(1_000_000);
        let now = s.now;
        let p = s.rtt(0, 20);
        (p.unloaded_rtt, p.unloaded_deviation, p.jitter) = (ms(160), ms(40), ms(15));
        let usual = |s: &Scene| {
            let (forecast, luck) = Forecast::and_luck(s.now, &s.paths[0]);
            (forecast.arrival(1_000), luck)
        };
        let risk = |s: &Scene| uncertainty(s.now, &s.paths[0], Ppm::ONE);
        (s.paths[0].recent_rtt, s.paths[0].sampled_at) = (ms(20), Some(now));
        assert_eq!(
            (arrival(&s), usual(&s), risk(&s)),
            (ms(11), (ms(11), ms(30)), ms(15)),
            "two mean deviations at most"
        );
        s.paths[0].jitter = ms(100);
        assert_eq!((usual(&s), risk(&s)), ((ms(11), ms(140)), ms(20)));
        s.paths[0].overtaken_at = Some(now);
        assert_eq!((usual(&s), risk(&s)), ((ms(151), ms(0)), ms(40)), "what a few samples vary by is chance");
        s.paths[0].in_flight = 150_000;
        assert_eq!(usual(&s).0, ms(151), "what the path holds takes as long");
        (s.paths[0].in_flight, s.paths[0].jitter) = (0, ms(15));
        assert_eq!(usual(&s), (ms(151), ms(0)), "four deviations of those without a queue at most");
        s.paths[0].jitter = ms(100);
        s.paths[0].overtaken_at = None;
        s.now += ms(2_000);
        assert_eq!(usual(&s), (ms(151), ms(0)), "nothing was heard for long");
    }

    /// A path whose round trips vary: the quickest way there of late was another packet's than the quickest round trip.
    #[test]
    fn the_quickest_flight_and_the_quickest_round_trip_are_of_different_packets() {
        for (rtt, usual, quickest) in [(30, 160, 10), (60, 200, 25), (100, 140, 60)] {
            for recent in [quickest, quickest + 10, quickest + 30] {
                let mut s = Scene::new(1, 0);
                s.paths[0].capacity = Rate::from_bytes_per_sec(1_000_000);
                let now = s.now;
                let p = s.rtt(0, rtt);
                (p.one_way, p.unloaded_rtt, p.unloaded_deviation) = (ms(quickest), ms(usual), ms(usual / 4));
                (p.recent_rtt, p.recent_one_way) = (ms(rtt + 40), ms(recent));
                (p.sampled_at, p.overtaken_at) = (Some(now), Some(now));
                let flight = |s: &Scene| Forecast::and_luck(s.now, &s.paths[0]).0.flight;
                let usually = usual - (rtt - quickest);
                assert_eq!(flight(&s), ms(usually), "{usual} less the way back, {}", rtt - quickest);
                s.paths[0].recent_one_way = ms(usually + 5);
                assert_eq!(flight(&s), ms(usually + 5), "longer than usual");
                s.paths[0].recent_one_way = ms(usual * 3);
                assert_eq!(flight(&s), ms(usual * 3), "nothing stands there: the path has become longer");
                s.paths[0].in_flight = 30_000 + rate(&s.paths[0]).bytes_in(ms(usual));
                let queue = rate(&s.paths[0]).time_for(30_000);
                assert_eq!(flight(&s), ms(usual * 3) - queue, "what is longer than the queue");
                s.paths[0].in_flight += 1_000_000;
                assert_eq!(flight(&s), ms(usually), "the queue is all of it");
                s.paths[0].in_flight -= 1_000_000;
                assert_eq!(Forecast::and_luck(s.now, &s.paths[0]).0.queued, 30_000, "beyond a usual round trip");
            }
        }
    }

    /// Where packets overtake each other what waits is judged from one round trip to the next by what they usually take,
    /// whatever the quickest of late took: a queue that stands is in that, and would count as flight one time and as waiting
    /// the other.
    #[test]
    fn what_waits_is_what_a_usual_round_trip_does_not_hold() {
        for deviation in [1, 7, 20] {
            for recent in [32, 36, 40, 44] {
                let mut s = Scene::new(1, 0);
                s.paths[0].capacity = Rate::from_bytes_per_sec(1_000_000);
                let now = s.now;
                let p = s.rtt(0, 30);
                (p.one_way, p.unloaded_rtt, p.unloaded_deviation, p.jitter) = (ms(15), ms(32), ms(deviation), ms(3));
                (p.recent_rtt, p.recent_one_way) = (ms(recent), ms(recent - 15));
                (p.sampled_at, p.overtaken_at) = (Some(now), Some(now));
                s.paths[0].in_flight = 20_000 + rate(&s.paths[0]).bytes_in(ms(32));
                let forecast = Forecast::and_luck(s.now, &s.paths[0]).0;
                assert_eq!((forecast.flight, forecast.queued), (ms(32 - 15), 20_000), "{deviation} ms, {recent} ms");
            }
        }
    }

    #[test]
    fn the_first_answers_after_a_stall_are_of_the_time_before() {
        let mut s = Scene::new(1, 0);
        s.paths[0].capacity = Rate::from_bytes_per_sec(1_000_000);
        let now = s.now;
        let p = s.rtt(0, 100);
        (p.mean_rtt, p.recent_rtt, p.recent_one_way, p.jitter) = (ms(800), ms(700), ms(650), ms(600));
        (p.sampled_at, p.stalled_at) = (Some(now), Some(now));
        let risk = |s: &Scene| uncertainty(s.now, &s.paths[0], Ppm::ONE);
        assert_eq!((arrival(&s), risk(&s)), (ms(51), ms(100)));
        s.now += ms(200);
        assert_eq!((arrival(&s), risk(&s)), (ms(651), ms(600)), "two round trips later they say how it is");
    }
}
