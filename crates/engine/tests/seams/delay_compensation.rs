//! Becke et al. 2013's path delay compensation: a scheduler wrapped around another one, which it asks with fewer paths.

use super::two_paths::*;
use anabranch_base::{Duration, Instant, PathId, PathSet, StreamId};
use anabranch_engine::SendOptions;
use anabranch_policy::path_scheduler::{Decision, LookAhead, Occasion, PathScheduler, Settled};
use anabranch_policy::registry::{Hook, PolicySet};
use anabranch_policy::view::{AssocView, Direction, PathView, QueueView};
use anabranch_sim::LinkConfig;

/// 20 and 400 ms of round trip.
fn links() -> [(LinkConfig, LinkConfig); 2] {
    [both_ways(link(10, 10)), both_ways(link(4, 200))]
}

fn confluent() -> PolicySet {
    policies(&profile("confluent", &[]), 2)
}
fn compensated() -> PolicySet {
    policies(&profile("confluent", &[(Hook::PathScheduler, "delay_compensation:inner=confluent")]), 2)
}

/// Twenty bursts of eight chunks. The longest time a burst took until it was there whole, and what path 1 carried.
fn bursts(set: PolicySet) -> (Duration, u64, Bench) {
    let mut b = connected_by(31, set, &links());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 400, ms(30_000)).expect("arrives");
    b.run_for(ms(1_000));
    let carried = b.path(Side::Client, 1).counters.data_sent;
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let took = flow.transfer(&mut b, 8, ms(10_000)).expect("arrives");
        longest = longest.max(took);
        b.run_for(ms(600));
    }
    let carried = b.path(Side::Client, 1).counters.data_sent - carried;
    (longest, carried, b)
}

#[test]
fn a_slow_path_gets_nothing_the_fast_one_delivers_earlier() {
    let (longest, carried, mut b) = bursts(confluent());
    assert!(longest >= ms(200) && carried > 20_000, "confluent alone: {longest:?}, {carried} bytes on path 1");
    assert_eq!(b.assoc(Side::Client).stats().decisions_refused, 0);
    let (longest, carried, mut b) = bursts(compensated());
    assert!(longest <= ms(60), "{longest:?}");
    assert_eq!(carried, 0, "bytes on path 1");
    assert_eq!(b.assoc(Side::Client).stats().decisions_refused, 0);
}

#[test]
fn with_enough_to_do_both_paths_work() {
    let mut b = connected_by(32, compensated(), &links());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 12_000, ms(60_000)).expect("arrives");
    let carried = b.path(Side::Client, 1).counters.data_sent;
    assert!(carried > 1_000_000, "{carried} of 12 MB on path 1");
    let all = departures(&b);
    assert!(all.iter().all(|d| d.tsns.is_sorted()));
    assert_eq!(b.assoc(Side::Client).stats().retransmissions, 0, "loss-free links");
}

/// What the decorator below was asked and answered.
#[derive(Default)]
struct Seen {
    /// Eligible paths of each question to the inner scheduler, in the order of one decision.
    asked: Vec<Vec<PathSet>>,
    answers: Vec<Decision>,
    settled: u32,
    sent: u32,
    not_eligible: u32,
}

/// The idea in miniature: what the wait for the fast path would take less time than the slow path is not given to
/// the slow one.
struct Patient {
    inner: Box<dyn PathScheduler>,
    seen: Notes<Seen>,
}

fn arrival(p: &PathView, bytes: u64) -> Duration {
    p.min_rtt / 2 + p.window_rate().time_for(p.in_flight + bytes)
}

impl PathScheduler for Patient {
    fn look_ahead(&self, cx: &AssocView<'_>) -> LookAhead {
        LookAhead { when_drained: false, ..self.inner.look_ahead(cx) }
    }
    fn permutes(&self) -> bool {
        self.inner.permutes()
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let mut asked = vec![];
        let backlog: u64 = q.chunks.iter().map(|c| c.len).sum();
        let fastest = cx.active().min_by_key(|p| arrival(p, backlog)).map(|p| p.id);
        let mut view = *cx;
        let answer = loop {
            if view.eligible.is_empty() {
                break Decision::Blocked;
            }
            asked.push(view.eligible);
            let d = self.inner.next(&view, q);
            let Decision::Send { index, path } = d else { break d };
            let slow = cx.path(path).zip(fastest.and_then(|f| cx.path(f)));
            let late = slow.is_some_and(|(slow, fast)| {
                slow.id != fast.id && arrival(fast, backlog) < arrival(slow, q.chunks[index].len)
            });
            if !late {
                break d;
            }
            view = view.narrowed(view.eligible.without(path));
        };
        let mut seen = self.seen.get();
        if let Decision::Send { path, .. } = answer {
            seen.not_eligible += u32::from(!cx.eligible.has(path));
        }
        seen.asked.push(asked);
        seen.answers.push(answer);
        answer
    }
    fn settle(&mut self, cx: &AssocView<'_>, outcome: &Settled) {
        self.seen.get().settled += 1;
        self.seen.get().sent += u32::from(matches!(outcome, Settled::Sent { .. }));
        self.inner.settle(cx, outcome);
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        self.inner.observe(cx, q, why);
    }
    fn direction(&self, p: PathId) -> Option<Direction> {
        self.inner.direction(p)
    }
}

#[test]
fn a_wrapper_asks_its_inner_scheduler_again_with_fewer_paths() {
    for inner in ["confluent", "round_robin", "weighted_round_robin"] {
        let seen = Notes::<Seen>::default();
        let mut set = policies(&profile("confluent", &[(Hook::PathScheduler, inner)]), 2);
        set.path_scheduler = Box::new(Patient { inner: set.path_scheduler, seen: seen.clone() });
        let (longest, carried, mut b) = bursts(set);
        assert!(longest <= ms(80), "{inner}: {longest:?}");
        assert!(carried < 20_000, "{inner}: {carried}");
        let s = seen.get();
        let both = PathSet::first(2);
        assert!(
            s.asked.iter().any(|a| a.first() == Some(&both) && a.last() == Some(&PathSet::only(PathId(0)))),
            "{inner}"
        );
        assert!(s.asked.iter().flat_map(|a| a.windows(2)).all(|w| w[1].and(w[0]) == w[1] && w[1] != w[0]));
        assert_eq!(s.not_eligible, 0);
        // The engine settles what it did, not what was asked on the way.
        let departed: usize = departures(&b).iter().map(|d| d.tsns.len()).sum();
        assert_eq!(s.sent as usize, departed);
        assert_eq!(b.assoc(Side::Client).stats().decisions_refused, 0);
        assert!(s.settled as usize <= s.answers.len());
    }
}

/// Sends nothing before `at`.
struct Holds {
    inner: Box<dyn PathScheduler>,
    until: Notes<Option<Instant>>,
}

impl PathScheduler for Holds {
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        match *self.until.get() {
            Some(t) if cx.now < t => Decision::WaitUntil(t),
            _ => self.inner.next(cx, q),
        }
    }
    fn settle(&mut self, cx: &AssocView<'_>, outcome: &Settled) {
        self.inner.settle(cx, outcome);
    }
}

#[test]
fn a_scheduler_that_waits_is_asked_again_in_time() {
    let until = Notes::<Option<Instant>>::default();
    let mut set = confluent();
    set.path_scheduler = policies(&profile("cmt", &[]), 2).path_scheduler;
    set.path_scheduler = Box::new(Holds { inner: set.path_scheduler, until: until.clone() });
    let mut b = connected_by(33, set, &links());
    let t = b.now + ms(123);
    *until.get() = Some(t);
    assert!(b.send(Side::Client, SendOptions { stream: StreamId(1), ..SendOptions::default() }, numbered(1, 0, 50)));
    b.run_for(ms(1_000));
    let all = departures(&b);
    assert_eq!((all.len(), all[0].at), (1, t));
}
