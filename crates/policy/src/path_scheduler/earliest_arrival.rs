//! Each chunk on the path that delivers it first, and in time.
//!
//! Source: ours; earliest delivery path first (Chebrolu, Rao 2006) with deadlines. The arrival on a path is predicted
//! from its flight time, what is queued there and its rate. The best path takes the chunk if it has room.
//! If it is full, another open path may take a chunk under one of two conditions: it delivers no later than the
//! full path would once everything before the chunk has left; or the chunk has a deadline and still makes it,
//! with `guard` and `risk` mean deviations of the round trip to spare. For a chunk on which others depend, and where packets
//! overtake each other, neither holds if it is more likely to be in time on the full path, unless it has twice that to
//! spare; it is weighed with what is ahead of it of its frame, within the window of chunks, and what waits for a path that
//! reorders counts for a tenth more. So slow paths carry what they can deliver in time, the fast one keeps room for what
//! cannot wait, and a path that would be late stays idle.
//! Where more is offered than the paths carry that are surely in time, a third condition lets another path take a message
//! on which no other depends: it is more likely than not to be in time there, and the best path has enough to do without it.
//! So what would be given up has a chance, and leaves while it is fresh.
//! With `queue_cost` above 1 a queue counts for more than the time it takes: among paths that are in time the load
//! moves to an empty slow one before the fast one's queue overflows.
//! It blocks only while the full path has bytes in flight, whose acknowledgement will wake it.
//! Parameters: see the list; times in ms.

use super::{Decision, LookAhead, PathScheduler};
use crate::asks::Asks;
use crate::predict::{Forecast, is_fresh, rate, uncertainty};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView, QueueView};
use anabranch_base::{Duration, Instant, Ppm};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "earliest_arrival",
        source: "ours, after Chebrolu, Rao 2006 (earliest delivery path first)",
        file: file!(),
        summary: "The path with the earliest predicted arrival; slower ones take what they deliver in time.",
        params: &[
            ParamInfo::number("queue_cost", 1.0, "", 1.0, 100.0, "weight of queueing time against flight time"),
            ParamInfo::millis("guard", 20, 0, 10_000, "time to spare before a deadline on a path that is not the best"),
            ParamInfo::number("risk", 2.0, "of the jitter", 0.0, 16.0, "variation to spare before a deadline"),
            ParamInfo::millis(
                "look_ahead",
                100,
                0,
                1_000,
                "window of chunks, as time at the rate of all paths; thrice that where packets overtake each other",
            ),
        ],
    },
    build: |p| Box::new(EarliestArrival::new(p)),
};

/// A path that loses more than this is one that may lose what others depend on.
const SOME_LOSS: Ppm = Ppm(500);
/// One part of so many of a message's life: as long as that the best path has to have something to send before another one
/// takes what may be late there.
const BUSY: u64 = 7;
/// Where the open path reorders, what others depend on counts what waits for the best one for longer by one part of so many:
/// rates are hoped to be a little more than was measured, and the largest of many samples is a little more than there is.
const DOUBT: u64 = 10;
/// As many times as far it looks ahead where packets overtake each other: there it weighs chunks by their class, and as much
/// as possible of a frame that others depend on has to be among them.
const FURTHER: u64 = 3;
/// Packets in flight that say how a path is now.
const FEW: u32 = 4;

pub(super) struct EarliestArrival {
    queue_cost: Ppm,
    guard: Duration,
    risk: Ppm,
    look_ahead: Duration,
}

/// Classes that are distinguished; the last one is all that are less important.
const CLASSES: usize = 4;

/// What leaves before a chunk by one path: all that is more important, and of its own class what waits in front of it.
struct Ahead {
    /// Bytes of each class, and of what has been asked of them.
    all: [u64; CLASSES],
    asked: [u64; CLASSES],
    least: usize,
    by_class: bool,
}

impl Ahead {
    /// `by_class`, or all that waits in front of a chunk, whatever it is.
    fn of(q: &QueueView<'_>, by_class: bool) -> Ahead {
        let mut ahead = Ahead { all: [0; CLASSES], asked: [0; CLASSES], least: 0, by_class };
        for c in q.chunks.iter().filter(|_| by_class) {
            let k = ahead.class(c);
            ahead.least = ahead.least.max(k);
            if let Some(bytes) = ahead.all.get_mut(k) {
                *bytes += c.len;
            }
        }
        ahead
    }
    fn class(&self, c: &ChunkView) -> usize {
        if self.by_class { usize::from(c.class).min(CLASSES - 1) } else { 0 }
    }
    fn is_least(&self, c: &ChunkView) -> bool {
        self.class(c) == self.least
    }
    /// The bytes that leave before `c`, asked chunk after chunk in their order.
    fn of_next(&mut self, c: &ChunkView) -> u64 {
        let k = self.class(c);
        let important: u64 = self.all.iter().take(k).sum();
        let Some(own) = self.asked.get_mut(k) else { return important };
        let before = important + *own;
        *own += c.len;
        before
    }
}

/// A path and what is predicted for it.
struct Offer<'a> {
    path: &'a PathView,
    forecast: Forecast,
    /// Time to spare before a deadline.
    slack: Duration,
}

impl EarliestArrival {
    fn new(p: &Params) -> Self {
        EarliestArrival {
            queue_cost: Ppm(p.ppm("queue_cost") as u32),
            guard: p.millis("guard"),
            risk: Ppm(p.ppm("risk") as u32),
            look_ahead: p.millis("look_ahead"),
        }
    }
    fn offer<'a>(&self, now: Instant, path: &'a PathView) -> Offer<'a> {
        let (forecast, luck) = Forecast::and_luck(now, path);
        Offer { path, forecast, slack: self.guard + uncertainty(now, path, self.risk) + luck }
    }
    /// Does `path` deliver `c` by its deadline?
    pub(super) fn makes_it(&self, now: Instant, c: &ChunkView, path: &PathView) -> bool {
        !self.cost(now, c, &self.offer(now, path)).0
    }
    /// Orders paths for a chunk: in time first, then by flight and weighted queue.
    fn cost(&self, now: Instant, c: &ChunkView, o: &Offer<'_>) -> (bool, Duration) {
        let late = c.deadline.is_some_and(|d| now + o.forecast.arrival(c.len) + o.slack > d);
        let wait = o.forecast.wait(c.len);
        // A late or unbounded chunk wants the earliest arrival, whatever the queues.
        let weighted = if late || c.deadline.is_none() { wait.as_nanos() } else { self.queue_cost.of(wait.as_nanos()) };
        (late, o.forecast.flight + Duration::from_nanos(weighted))
    }
    /// May `open` take `c`, which has `ahead` bytes before it, although `best` is better but full?
    fn may_take(&self, now: Instant, c: &ChunkView, ahead: u64, best: &Offer<'_>, open: &Offer<'_>) -> bool {
        let here = open.forecast.arrival(c.len);
        let matters = c.class < 2 && open.path.reorders(now);
        let doubt = if matters { best.forecast.wait(ahead + c.len) / DOUBT } else { Duration::ZERO };
        let there = best.forecast.arrival(ahead + c.len) + doubt;
        let in_time = |d: Instant| {
            let waits = now + there + best.slack > d;
            let risky = c.class < 2 && open.path.loss > SOME_LOSS;
            now + here + open.slack <= d && (!risky || waits || now + Self::repaired(c, best, open) <= d)
        };
        // What others depend on waits for the full path where that is likelier to bring it in time, by the time to spare in
        // parts of what arrivals vary by; unless twice as much as is asked for is to spare here.
        let likelier_there = |d: Instant| {
            let spare = |arrival: Duration| u128::from(d.since(now + arrival).as_nanos());
            let varies = |o: &Offer<'_>| u128::from(o.slack.as_nanos());
            matters
                && now + there <= d
                && spare(here) < varies(open) * 2
                && spare(there) * varies(open) >= spare(here) * varies(best)
        };
        !c.deadline.is_some_and(likelier_there) && (c.deadline.is_some_and(in_time) || here <= there)
    }
    /// Is more offered than the paths carry on which what is fresh now would surely be in time?
    fn overloaded(&self, cx: &AssocView<'_>, life: Duration) -> bool {
        let sure = |p: &&PathView| {
            let o = self.offer(cx.now, p);
            o.forecast.flight + o.slack <= life
        };
        let carried: u64 = cx.active().filter(sure).map(|p| rate(p).bytes_per_sec()).sum();
        cx.class_rates.iter().map(|r| r.bytes_per_sec()).sum::<u64>() > carried
    }
    /// Where not all can be in time, what is likely to be is better than nothing: behind enough to keep `best` busy. What the
    /// path carries is found out so; that it is full its round trips say. A few packets ask how it is now.
    fn overflows(&self, cx: &AssocView<'_>, c: &ChunkView, ahead: u64, best: &Offer<'_>, open: &Offer<'_>) -> bool {
        let Some(d) = c.deadline.filter(|_| c.class >= 2) else { return false };
        let (life, p) = (d - c.queued_at, open.path);
        let usual = open.forecast.flight;
        let likely =
            if is_fresh(cx.now, p) { (usual + p.mean_rtt).saturating_sub(p.without_queue().usual()) } else { usual };
        best.forecast.wait(ahead) >= life / BUSY
            && (cx.now + likely <= d || p.packets_in_flight < FEW)
            && self.overloaded(cx, life)
    }
    /// When `c` would be there in the end if `open`, which loses some, lost it and `best` repeated it: what others depend on
    /// waits for a path that leaves time for that.
    fn repaired(c: &ChunkView, best: &Offer<'_>, open: &Offer<'_>) -> Duration {
        open.forecast.wait(c.len) + open.path.mean_rtt + open.slack + best.forecast.flight + best.slack
    }
}

impl Default for EarliestArrival {
    fn default() -> Self {
        EarliestArrival::new(&Params::defaults(&POLICY.info, 0))
    }
}

impl PathScheduler for EarliestArrival {
    fn asks(&self) -> Asks {
        Asks::LOOK_AHEAD.and(Asks::LOAD)
    }
    fn look_ahead(&self, cx: &AssocView<'_>) -> LookAhead {
        let unsteady = cx.active().any(|p| p.reorders(cx.now));
        let window = self.look_ahead * if unsteady { FURTHER } else { 1 };
        let bytes: u64 = cx.active().map(|p| rate(p).bytes_in(window)).sum();
        LookAhead { bytes: bytes.min(cx.peer_rwnd), when_drained: false }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        // What others depend on overtakes what waits already.
        let Some((first, head)) = q.most_important() else { return Decision::Blocked };
        let by_cost = |o: &Offer<'_>| (self.cost(cx.now, head, o), o.path.id);
        let Some(open) = cx.open().map(|p| self.offer(cx.now, p)).min_by_key(by_cost) else { return Decision::Blocked };
        let full = cx.active().filter(|p| !cx.eligible.has(p.id) && p.in_flight > 0).map(|p| self.offer(cx.now, p));
        let best = full.min_by_key(by_cost).filter(|o| by_cost(o) < by_cost(&open));
        let Some(best) = best else { return Decision::Send { index: first, path: open.path.id } };

        // Elsewhere all that waits in front counts: load moves to the other path early, and is in time there.
        let mut ahead = Ahead::of(q, open.path.reorders(cx.now));
        for (index, c) in q.chunks.iter().enumerate() {
            let before = ahead.of_next(c);
            // What waits behind the window keeps the full path busy too.
            let last = index + 1 == q.chunks.len() && ahead.is_least(c);
            let before = if last { before.max(cx.unsent.saturating_sub(c.len)) } else { before };
            if self.may_take(cx.now, c, before, &best, &open) || self.overflows(cx, c, before, &best, &open) {
                return Decision::Send { index, path: open.path.id };
            }
        }
        Decision::Blocked
    }
}

#[cfg(test)]
#[path = "earliest_arrival/tests.rs"]
mod tests;
