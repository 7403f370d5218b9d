//! A message is given up when it can no longer arrive by its deadline.
//!
//! Source: ours, on top of RFC 3758 §4.1 and RFC 7496 §3, whose deadlines limit when a message may leave. Under
//! overload those rules deliver nearly everything just too late. This policy gives a message up as soon as no active
//! path could deliver it in time, which leaves the capacity to messages that can still be in time.
//! The arrival on a path is the time to send what is queued there, the flight (see `predict`), `risk` mean deviations
//! of the round trip, `doubt` of the time that what is in flight waits in a queue, for rates are known to some per cent
//! only, and `margin`. Four rules keep a wrong prediction from stopping the traffic that would correct
//! it: when nothing has left for `trickle`, one message leaves although it may be late; a new message beside which nothing
//! waits leaves while the shortest flight of a path without a queue brings it in time; on a path without a round-trip
//! sample nothing is predicted; and when for five times `trickle` every group would have been given up for want of rate
//! alone, `drain` is suspended for one `trickle`.
//! A message may belong to a group that is only useful whole, such as a video frame. With `whole`, the rest of a group
//! is given up once part of it was. With `drain`, the time that the rest of the group needs at the paths' rates counts
//! too, less what more important classes take of these rates. Limits of retransmissions and priorities hold as in
//! `rfc7496`.
//! Parameters: as described; times in ms.

use super::{Abandon, Reason};
use crate::asks::Asks;
use crate::predict::{Forecast, luck, newest_rtt, rate, uncertainty};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, Ppm, Rate};
use core::cell::Cell;

pub(super) const POLICY: Policy<dyn Abandon> = Policy {
    info: PolicyInfo {
        hook: Hook::Abandon,
        name: "arrival",
        source: "ours; RFC 3758 §4.1, RFC 7496 §3",
        file: file!(),
        summary: "Gives up what can no longer arrive by its deadline over any path.",
        params: &[
            ParamInfo::flag("whole", false, "give up what is left of a group of which something was given up"),
            ParamInfo::flag("drain", false, "count the time the rest of the group takes"),
            ParamInfo::number("risk", 1.0, "of the jitter", 0.0, 16.0, "variation to spare"),
            ParamInfo::number("doubt", 0.0, "of the time in the queue", 0.0, 4.0, "time to spare where a queue stands"),
            ParamInfo::millis("margin", 0, 0, 10_000, "further time to spare"),
            ParamInfo::millis("trickle", 100, 1, 10_000, "without anything sent, after which a message leaves anyway"),
        ],
    },
    build: |p| Box::new(Arrival::new(p)),
};

/// Time to spare that schedulers want on a path that is not the fastest, and a little more.
const SPARE: Duration = Duration::from_millis(30);
/// Packets waiting on a path, from which on it counts as one where the paths cannot keep up.
const BACKLOG: u64 = 8;
/// Times `trickle` in which no group passes, after which the rates are in doubt, and for how long they then stay so.
const DOUBT: (u64, u64) = (5, 6);
/// Least part of the rate that more important classes leave to the others: one in so many.
const LEAST_LEFT: u64 = 10;

struct Arrival {
    whole: bool,
    drain: bool,
    risk: Ppm,
    doubt: Ppm,
    margin: Duration,
    trickle: Duration,
    /// Since when no group has passed that could have been in time at a higher rate.
    none_drained: Cell<Option<Instant>>,
}

impl Arrival {
    fn new(p: &Params) -> Self {
        Arrival {
            whole: p.flag("whole"),
            drain: p.flag("drain"),
            risk: Ppm(p.ppm("risk") as u32),
            doubt: Ppm(p.ppm("doubt") as u32),
            margin: p.millis("margin"),
            trickle: p.millis("trickle"),
            none_drained: Cell::new(None),
        }
    }
    /// Arrival of `c` over `p` if its flight takes at least `flight`. A path without a sample might be fast.
    fn over(&self, cx: &AssocView<'_>, c: &ChunkView, p: &PathView, flight: Duration) -> Option<Instant> {
        let takes = || {
            let forecast = Forecast::of(cx.now, p).at_least(flight);
            forecast.arrival(c.len) + uncertainty(cx.now, p, self.risk) + self.doubted(p) + self.margin
        };
        (!p.min_rtt.is_zero()).then(|| cx.now + takes())
    }
    /// What to spare for the time in the queue.
    fn doubted(&self, p: &PathView) -> Duration {
        let queue = || rate(p).time_for(p.in_flight).saturating_sub(p.min_rtt);
        if self.doubt.0 == 0 { Duration::ZERO } else { Duration::from_nanos(self.doubt.of(queue().as_nanos())) }
    }
    /// Earliest arrival over all paths; `None` while some are not known yet: then nothing is given up early.
    fn arrival(&self, cx: &AssocView<'_>, c: &ChunkView, flight: impl Fn(&PathView) -> Duration) -> Option<Instant> {
        let mut fastest = None;
        for p in cx.active() {
            let there = self.over(cx, c, p, flight(p))?;
            fastest = Some(fastest.map_or(there, |f: Instant| f.min(there)));
        }
        fastest
    }
    /// How a round trip divides is a guess. Too long a flight costs a little of the time to wait, too short a one makes
    /// everything late: so for new data the whole round trip counts, but not more than leaves it time to wait, and not
    /// for what others depend on.
    fn careful(&self, cx: &AssocView<'_>, c: &ChunkView, p: &PathView, deadline: Instant) -> Duration {
        if c.class < 2 || c.transmissions > 0 {
            return Duration::ZERO;
        }
        newest_rtt(cx.now, p).min(longest_flight(c, deadline))
    }
    /// Nothing waits beside it, and there is a path without a queue by which it may be in time: given up it would leave its
    /// room to nothing. What the newest round trips were longer by is of no matter then; it may be the peer's waiting with
    /// its acknowledgements.
    fn costs_nothing(&self, cx: &AssocView<'_>, c: &ChunkView, deadline: Instant) -> bool {
        let in_time = |p: &PathView| {
            let flight = if p.one_way.is_zero() { p.min_rtt / 2 } else { p.one_way };
            Forecast::of(cx.now, p).queued == 0 && cx.now + flight + rate(p).time_for(c.len) <= deadline
        };
        c.transmissions == 0 && cx.unsent <= c.len && cx.active().any(in_time)
    }
    /// Has nothing left for so long that one message leaves whatever is predicted?
    fn starves(&self, cx: &AssocView<'_>, c: &ChunkView) -> bool {
        c.transmissions == 0 && cx.data_sent_at.is_none_or(|t| cx.now.since(t) >= self.trickle)
    }
    /// Time until the rest of the group has left, at the rate of all paths together; zero while that still doubles.
    fn rest(&self, cx: &AssocView<'_>, c: &ChunkView) -> Duration {
        let settled = cx.active().all(|p| !p.in_slow_start());
        if !self.drain || !settled || c.group_unsent <= c.len {
            return Duration::ZERO;
        }
        let rate: u64 = cx.active().map(|p| rate(p).bytes_per_sec()).sum();
        // What is more important will come in between. Of what others depend on, no more of that counts than its part of
        // the stream: where the paths came to carry little, most of it goes as well.
        let sum = |classes: &[Rate]| classes.iter().map(|r| r.bytes_per_sec()).sum::<u64>();
        let above = sum(cx.class_rates.get(..usize::from(c.class)).unwrap_or(&cx.class_rates));
        let part = (u128::from(rate) * u128::from(above) / u128::from(sum(&cx.class_rates).max(1))) as u64;
        let above = if c.class < 2 { above.min(part) } else { above };
        let left = rate.saturating_sub(above).max(rate / LEAST_LEFT);
        if left == 0 { Duration::ZERO } else { Rate::from_bytes_per_sec(left).time_for(c.group_unsent - c.len) }
    }
    /// Would it be late itself, or its group with it? Once a rate was measured low, nothing would ever correct it again
    /// if all groups were given up because of it.
    fn drains_late(&self, cx: &AssocView<'_>, c: &ChunkView, deadline: Instant) -> bool {
        let Some(there) = self.arrival(cx, c, |_| Duration::ZERO) else { return false };
        let rest = self.rest(cx, c);
        if there > deadline || rest.is_zero() {
            return there > deadline;
        }
        if there + rest <= deadline {
            self.none_drained.set(None);
            return false;
        }
        let since = self.none_drained.get().filter(|t| cx.now.since(*t) < self.trickle * DOUBT.1).unwrap_or(cx.now);
        self.none_drained.set(Some(since));
        cx.now.since(since) < self.trickle * DOUBT.0
    }
    fn is_late(&self, cx: &AssocView<'_>, c: &ChunkView, deadline: Instant) -> bool {
        if cx.now > deadline {
            return true;
        }
        if self.starves(cx, c) || self.costs_nothing(cx, c, deadline) {
            return false;
        }
        self.arrival(cx, c, |p| self.careful(cx, c, p, deadline)).is_some_and(|there| there > deadline)
            || self.drains_late(cx, c, deadline)
            || self.keeps_paths_idle(cx, c, deadline)
    }
    /// Under overload what is oldest could be in time over the fastest path alone, and all others would have nothing
    /// to send. What waits behind it has more time: it goes as soon as a path that could carry fresh messages in time,
    /// surely or more likely than not, would be late with it. Not so what others depend on, and not where the paths that it
    /// can still take carry all that is offered: there a burst only waits for its turn.
    fn keeps_paths_idle(&self, cx: &AssocView<'_>, c: &ChunkView, deadline: Instant) -> bool {
        let waits = cx.unsent >= c.len * BACKLOG;
        if c.class < 2 || c.group_unsent > 0 || c.transmissions > 0 || !waits {
            return false;
        }
        let (most, life) = (longest_flight(c, deadline), deadline - c.queued_at);
        let (mut idle, mut carried) = (false, 0);
        for p in cx.active() {
            let risk = uncertainty(cx.now, p, self.risk);
            // Schedulers want time to spare on a path that is not the fastest.
            let spare = SPARE + risk * 2 + luck(cx.now, p);
            let there = self.over(cx, c, p, Duration::ZERO);
            let late = there.is_some_and(|t| t + spare > deadline);
            let takes_fresh = there.is_some_and(|t| t + spare <= cx.now + life);
            idle |= late && takes_fresh && Forecast::of(cx.now, p).flight + risk <= most;
            let likely = Forecast::and_luck(cx.now, p).0.arrival(c.len);
            idle |= cx.now + likely > deadline && likely + SPARE / 2 <= life;
            carried += if late { 0 } else { rate(p).bytes_per_sec() };
        }
        idle && cx.class_rates.iter().map(|r| r.bytes_per_sec()).sum::<u64>() > carried
    }
}

/// The part of a message's time that its flight may take; the rest is for waiting.
fn longest_flight(c: &ChunkView, deadline: Instant) -> Duration {
    (deadline - c.queued_at) * 3 / 5
}

impl Abandon for Arrival {
    fn asks(&self) -> Asks {
        Asks::LOAD.and(Asks::TIME_STAMPS)
    }
    fn give_up(&self, cx: &AssocView<'_>, c: &ChunkView) -> Option<Reason> {
        if c.deadline.is_some_and(|d| self.whole && c.group_broken || self.is_late(cx, c, d)) {
            return Some(Reason::Lifetime);
        }
        c.retransmissions_used_up().then_some(Reason::Retransmissions)
    }
    fn ends_at_deadlines(&self) -> bool {
        true
    }
    fn makes_room(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn policy() -> Arrival {
        Arrival::new(&Params::defaults(&POLICY.info, 0))
    }
    fn at(s: &mut Scene, left: u64, p: &Arrival) -> bool {
        (s.chunks[0].queued_at, s.chunks[0].deadline) = (s.now, Some(s.now + ms(left)));
        p.give_up(&s.cx(), &s.chunks[0]) == Some(Reason::Lifetime)
    }
    /// 1 byte per microsecond and 20 ms each way, 4 ms of jitter; the other path with 100 ms.
    fn scene() -> Scene {
        let mut s = Scene::new(2, 1);
        s.rtt(0, 40).jitter = ms(4);
        s.rtt(1, 200);
        for p in &mut s.paths {
            (p.capacity, p.cwnd, p.ssthresh) = (Rate::from_bytes_per_sec(1_000_000), 80_000, 40_000);
        }
        s.chunks[0].len = 1_000;
        s.unsent = 2_000;
        s.data_sent_at = Some(s.now);
        s
    }

    #[test]
    fn when_no_path_can_deliver_it_in_time() {
        let mut s = scene();
        assert!(at(&mut s, 24, &policy()), "20 ms of flight, 1 ms to leave, 4 ms to spare");
        assert!(!at(&mut s, 25, &policy()));
        s.paths[0].in_flight = 60_000;
        assert!(at(&mut s, 44, &policy()), "20 ms of queue");
        assert!(!at(&mut s, 63, &policy()));
        s.paths[0].state = crate::view::PathState::Suspected;
        assert!(at(&mut s, 100, &policy()), "only the slow path is left");
        assert!(!at(&mut s, 252, &policy()));
    }

    #[test]
    fn a_rate_that_is_known_to_some_per_cent_leaves_a_part_of_the_queue_to_spare() {
        let mut s = scene();
        // One way is left, with 100 ms of queue at 1 MB a second.
        s.paths[1].state = crate::view::PathState::Suspected;
        s.paths[0].in_flight = 140_000;
        let least = |s: &mut Scene, p: &Arrival| (0..400).find(|left| !at(s, *left, p)).expect("in time");
        let plain = least(&mut s, &policy());
        let doubtful = least(&mut s, &Arrival { doubt: Ppm(500_000), ..policy() });
        assert!((44..=50).contains(&(doubtful - plain)), "{plain} and {doubtful}");
    }

    #[test]
    fn the_way_there_may_take_most_of_the_round_trip() {
        let mut s = scene();
        let late = |s: &mut Scene, latency: u64, left: u64| {
            (s.chunks[0].queued_at, s.chunks[0].deadline) = (s.now - ms(latency - left), Some(s.now + ms(left)));
            policy().give_up(&s.cx(), &s.chunks[0]).is_some()
        };
        assert!(late(&mut s, 300, 44) && !late(&mut s, 300, 45), "40 ms, 1 ms to leave, 4 ms to spare");
        assert!(late(&mut s, 50, 34) && !late(&mut s, 50, 35), "30 ms of 50: some time to wait is left");
    }

    /// Acknowledgements that wait make round trips vary, and a path that is empty has room for what may be in time.
    #[test]
    fn where_nothing_waits_what_may_be_in_time_leaves() {
        let mut s = scene();
        s.paths[0].jitter = ms(50);
        (s.paths[0].recent_rtt, s.paths[0].sampled_at) = (ms(140), Some(s.now));
        for (class, left) in [(2, 22), (2, 40), (0, 22), (0, 60)] {
            s.chunks[0].class = class;
            s.unsent = 2_000;
            assert!(at(&mut s, left, &policy()), "another one waits: {class}, {left} ms");
            s.unsent = 1_000;
            assert!(!at(&mut s, left, &policy()), "{class}, {left} ms");
            s.paths[0].in_flight = 300_000;
            assert!(at(&mut s, left, &policy()), "a queue stands: {class}, {left} ms");
            s.paths[0].in_flight = 0;
            s.chunks[0].transmissions = 1;
            assert!(left > 50 || at(&mut s, left, &policy()), "fresh data, not repetitions");
            s.chunks[0].transmissions = 0;
            assert!(at(&mut s, 20, &policy()), "never in time");
        }
    }

    #[test]
    fn what_is_not_known_is_not_predicted() {
        let mut s = scene();
        s.paths[1].min_rtt = Duration::ZERO;
        assert!(!at(&mut s, 1, &policy()), "the other path may be faster");
        s.now += ms(2);
        s.chunks[0].deadline = Some(s.now - ms(1));
        assert!(policy().give_up(&s.cx(), &s.chunks[0]).is_some(), "past is past");
    }

    #[test]
    fn where_nothing_leaves_one_message_does() {
        let mut s = scene();
        s.paths.iter_mut().for_each(|p| p.min_rtt = ms(2_000));
        s.data_sent_at = Some(s.now - ms(99));
        assert!(at(&mut s, 500, &policy()));
        s.data_sent_at = Some(s.now - ms(100));
        assert!(!at(&mut s, 500, &policy()));
        s.chunks[0].transmissions = 1;
        assert!(at(&mut s, 500, &policy()), "fresh data, not repetitions");
    }

    #[test]
    fn under_overload_the_oldest_leave_the_slow_path_what_it_can_carry() {
        let mut s = scene();
        let p = policy();
        (s.chunks[0].class, s.unsent) = (2, 20_000);
        let gives_up = |s: &mut Scene, offered: u64, left: u64| {
            s.class_rates[2] = Rate::from_bytes_per_sec(offered);
            (s.chunks[0].queued_at, s.chunks[0].deadline) = (s.now - ms(300 - left), Some(s.now + ms(left)));
            p.give_up(&s.cx(), &s.chunks[0]).is_some()
        };
        assert!(gives_up(&mut s, 1_500_000, 120), "the path of 100 ms would be late, the other carries 1 MB a second");
        assert!(!gives_up(&mut s, 1_500_000, 140), "either path is in time");
        assert!(!gives_up(&mut s, 900_000, 120), "a burst: the fast path carries all that is offered");
        s.paths[1].jitter = ms(10);
        assert!(gives_up(&mut s, 1_500_000, 140), "it wants twice the jitter to spare");
        assert!(!gives_up(&mut s, 1_500_000, 185), "and has it");
        s.paths[1].jitter = ms(90);
        assert!(gives_up(&mut s, 1_500_000, 100), "a fresh one is likely to be in time there, however much it varies");
        assert!(!gives_up(&mut s, 1_500_000, 120), "and this one is as well");
        s.paths[1].jitter = ms(0);
        s.unsent = 2_000;
        assert!(!gives_up(&mut s, 1_500_000, 120), "nothing waits");
    }

    #[test]
    fn a_group_goes_as_a_whole() {
        let mut s = scene();
        let p = Arrival { whole: true, drain: true, ..policy() };
        s.chunks[0].group_unsent = 401_000;
        assert!(at(&mut s, 215, &p), "400000 bytes more at 2000000 bytes a second and what may be more of it");
        assert!(!at(&mut s, 216, &p));
        (s.chunks[0].class, s.class_rates[0]) = (2, Rate::from_bytes_per_sec(600_000));
        s.class_rates[1] = Rate::from_bytes_per_sec(400_000);
        assert!(at(&mut s, 388, &p) && !at(&mut s, 389, &p), "1000000 of 2100000 go to what is more important");
        // Far less is carried than offered: P frames leave I frames their part of the stream, and are not held back for
        // all that I frames would like.
        (s.chunks[0].class, s.class_rates) = (1, [3_000_000, 6_000_000, 3_000_000].map(Rate::from_bytes_per_sec));
        assert!(at(&mut s, 278, &p) && !at(&mut s, 280, &p), "400000 bytes at three quarters of 2100000 a second");
        s.chunks[0].class = 0;
        assert!(!at(&mut s, 225, &p));
        s.paths[1].ssthresh = u64::MAX;
        assert!(!at(&mut s, 25, &p), "what a path carries is not known at its start");
        s.chunks[0].group_broken = true;
        assert!(at(&mut s, 5_000, &p));
        assert!(!at(&mut s, 5_000, &policy()));
    }

    #[test]
    fn a_rate_by_which_no_group_would_ever_leave_is_doubted() {
        let mut s = scene();
        let p = Arrival { drain: true, ..policy() };
        s.chunks[0].group_unsent = 401_000;
        let mut late = |after: u64| {
            s.now += ms(after);
            s.data_sent_at = Some(s.now);
            at(&mut s, 200, &p)
        };
        assert!(late(0) && late(499) && !late(1) && !late(99), "after 500 ms for 100");
        assert!(late(1) && late(499), "and again");
        s.chunks[0].group_unsent = 101_000;
        assert!(!at(&mut s, 200, &p));
        s.chunks[0].group_unsent = 401_000;
        s.now += ms(1);
        s.data_sent_at = Some(s.now);
        assert!(at(&mut s, 200, &p), "one that passed ended the doubt");
    }

    #[test]
    fn limits_of_retransmissions_hold() {
        let mut s = scene();
        (s.chunks[0].transmissions, s.chunks[0].max_retransmissions) = (2, Some(1));
        assert_eq!(policy().give_up(&s.cx(), &s.chunks[0]), Some(Reason::Retransmissions));
    }
}
