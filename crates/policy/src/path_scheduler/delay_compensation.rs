//! Path delay compensation: a slow path gets only what the fast one would not deliver earlier.
//!
//! Source: Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.B. Wraps another scheduler. For a path that is not the
//! fastest it looks for the first chunk that the fastest path, working through the window in order, would deliver no
//! earlier; the inner choice moves up to that chunk, or the path stays idle.
//! Deviations: the base delay is half of the smallest round trip of ten seconds. `estimate=srtt` is the paper's:
//! half of the smoothed round trip without the backlog, which oscillates with our own queue. A path without a sample
//! is tried with one chunk. The window is kept open and as long as the fast path works during the delay
//! difference; with drained rounds the slow path would starve.
//! The fast path takes the first chunk whenever it has room and the inner scheduler does not name a slow path that is in
//! time: an inner scheduler that waits, for the path that was refused or for a full one, would keep the fast path idle.
//! The deadline guard is the abandon hook's. It blocks only while something is in flight that will wake it.
//! Parameters: `inner` scheduler, `estimate`; beside them those of the inner scheduler by their own names, as in
//! `inner=round_robin,strict=1`.

use super::{Decision, LookAhead, Occasion, PathScheduler, Settled};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, Direction, PathView, QueueView};
use anabranch_base::{Duration, PathId};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "delay_compensation",
        source: "Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 (PDC)",
        file: file!(),
        summary: "Wraps a scheduler: slow paths get only chunks that the fast one would not deliver earlier.",
        params: &[
            ParamInfo::word(
                "inner",
                &["confluent", "weighted_round_robin", "round_robin", "min_rtt", "redundant"],
                "the scheduler it wraps",
            ),
            ParamInfo::word(
                "estimate",
                &["base", "srtt"],
                "base delay and backlog, or half of the smoothed round trip",
            ),
            super::confluent::POLICY.info.params[0],
            super::confluent::POLICY.info.params[1],
            super::confluent::POLICY.info.params[2],
            super::confluent::POLICY.info.params[3],
            super::weighted_round_robin::POLICY.info.params[0],
            super::round_robin::POLICY.info.params[0],
        ],
    },
    build: |p| Box::new(DelayCompensation::new(p)),
};

struct DelayCompensation {
    inner: Box<dyn PathScheduler>,
    by_srtt: bool,
}

impl DelayCompensation {
    fn new(p: &Params) -> Self {
        let name = p.word("inner");
        // Never itself: its name is not among the words above.
        let entry = super::POLICIES.iter().find(|e| e.info.name == name && name != POLICY.info.name);
        let entry = entry.unwrap_or(&super::confluent::POLICY);
        let inner = (entry.build)(&p.of(&entry.info));
        // Read for all, so that none is declared in vain; `rules` refuses those of another inner scheduler.
        POLICY.info.params.iter().for_each(|i| p.touch(i.name));
        DelayCompensation { inner, by_srtt: p.word("estimate") == "srtt" }
    }
    fn flight(&self, p: &PathView) -> Duration {
        if self.by_srtt { p.srtt / 2 } else { p.min_rtt / 2 }
    }
    /// Time until `len` bytes handed to `p` now have arrived.
    fn arrival(&self, p: &PathView, len: u64) -> Duration {
        let backlog = if self.by_srtt { 0 } else { p.in_flight };
        self.flight(p) + p.window_rate().time_for(backlog + len)
    }
    /// The path with the earliest arrival among those that can send or still await an acknowledgement.
    fn fastest<'a>(&self, cx: &AssocView<'a>, len: u64) -> Option<&'a PathView> {
        let reachable = cx.paths.iter().filter(|p| cx.eligible.has(p.id) || p.state.usable() && p.in_flight > 0);
        // Without a sample a path looks fast; it must not hold the others back.
        reachable.min_by_key(|p| (p.srtt.is_zero(), self.arrival(p, len), p.id))
    }
    /// The first chunk `slow` delivers no later than `fast` would.
    fn in_time(&self, q: &QueueView<'_>, fast: &PathView, slow: &PathView) -> Option<usize> {
        if slow.srtt.is_zero() {
            // Nothing can be predicted: one chunk makes a sample.
            return (slow.in_flight == 0).then_some(0);
        }
        let mut ahead = 0;
        q.chunks.iter().position(|c| {
            let by_fast = self.arrival(fast, ahead + c.len);
            ahead += c.len;
            by_fast >= self.arrival(slow, c.len)
        })
    }
}

impl PathScheduler for DelayCompensation {
    fn look_ahead(&self, cx: &AssocView<'_>) -> LookAhead {
        let inner = self.inner.look_ahead(cx);
        if cx.active().nth(1).is_none() {
            return inner;
        }
        let flights = || cx.active().map(|p| self.flight(p));
        let gap = flights().max().unwrap_or_default() - flights().min().unwrap_or_default();
        let rate = cx.active().map(|p| p.window_rate()).max().unwrap_or_default();
        let bytes = cx.window_sum().saturating_add(rate.bytes_in(gap)).min(cx.peer_rwnd);
        LookAhead { bytes: inner.bytes.max(bytes), when_drained: false }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let Some(head) = q.chunks.first() else { return Decision::Blocked };
        let Some(fast) = self.fastest(cx, head.len) else { return Decision::Blocked };
        let mut view = *cx;
        while !view.eligible.is_empty() {
            let (index, path) = match self.inner.next(&view, q) {
                Decision::Send { index, path } => (index, path),
                copies @ Decision::Copies { .. } => return copies,
                Decision::WaitUntil(_) | Decision::Blocked => break,
            };
            if path == fast.id {
                return Decision::Send { index, path };
            }
            if let Some(first) = cx.path(path).and_then(|slow| self.in_time(q, fast, slow)) {
                return Decision::Send { index: index.max(first), path };
            }
            view = view.narrowed(view.eligible.without(path));
        }
        if cx.eligible.has(fast.id) {
            return Decision::Send { index: 0, path: fast.id };
        }
        if view.eligible == cx.eligible {
            return Decision::Blocked;
        }
        // It may wait for the path that was refused, which would hold back those that were not.
        let others = view.open().filter_map(|p| Some((self.arrival(p, head.len), p.id, self.in_time(q, fast, p)?)));
        let next = others.min_by_key(|(arrival, id, _)| (*arrival, *id));
        next.map_or(Decision::Blocked, |(_, path, index)| Decision::Send { index, path })
    }
    fn settle(&mut self, cx: &AssocView<'_>, outcome: &Settled) {
        self.inner.settle(cx, outcome);
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        self.inner.observe(cx, q, why);
    }
    fn direction(&self, p: PathId) -> Option<Direction> {
        self.inner.direction(p)
    }
    fn bound_bytes(&self, p: PathId) -> u64 {
        self.inner.bound_bytes(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Policy, Value};
    use crate::testing::{Scene, built, ms};

    fn policy(inner: &'static str) -> DelayCompensation {
        let defaults = POLICY.info.params.iter().map(|i| (i.name, i.default));
        let words = defaults.map(|(n, v)| if n == "inner" { (n, Value::Word(inner)) } else { (n, v) });
        DelayCompensation::new(&Params::new(words.collect::<Vec<_>>(), 1))
    }
    /// 20 ms with 1 byte/us, and 220 ms with half of that, both open and empty.
    fn scene(chunks: u32) -> Scene {
        let mut s = Scene::new(2, chunks);
        s.rtt(0, 20).cwnd = 20_000;
        s.rtt(1, 220).cwnd = 110_000;
        s
    }

    #[test]
    fn the_slow_path_waits_until_the_queue_is_long_enough() {
        // The slow path delivers 100 ms later; the fast one sends 100 kB or 88 chunks in that time.
        let mut s = scene(60);
        s.close(0);
        s.paths[0].in_flight = 20_000;
        assert_eq!(s.ask(&policy("round_robin")), Decision::Blocked);
        let mut s = scene(90);
        s.close(0);
        s.paths[0].in_flight = 20_000;
        let Decision::Send { index, path } = s.ask(&policy("round_robin")) else { panic!("not sent") };
        assert_eq!(path, PathId(1));
        // 30 ms for the flight and what is in flight on the fast path; 110 + 2.288 ms on the slow one.
        assert_eq!(index, (112_288 - 30_000 - 1) / 1_144);
    }

    #[test]
    fn with_confluent_the_descending_end_is_far_enough() {
        let mut s = scene(90);
        let mut p = policy("confluent");
        s.refilled(&mut p);
        assert_eq!(p.direction(PathId(1)), Some(Direction::Descending));
        s.close(0);
        s.paths[0].in_flight = 20_000;
        assert_eq!(s.ask(&p), Decision::Send { index: 89, path: PathId(1) });
    }

    #[test]
    fn inert_on_one_path_and_on_equal_ones() {
        let s = Scene::new(1, 3);
        assert_eq!(s.ask(&policy("round_robin")), Decision::Send { index: 0, path: PathId(0) });
        let mut s = Scene::new(2, 3);
        s.rtt(0, 50);
        s.rtt(1, 50);
        s.close(0);
        assert_eq!(s.ask(&policy("weighted_round_robin")), Decision::Send { index: 0, path: PathId(1) });
    }

    #[test]
    fn a_vetoed_path_gives_way_to_the_fast_one() {
        let mut s = scene(5);
        let mut p = policy("round_robin");
        assert_eq!(s.send(&mut p), Some((0, PathId(0))));
        s.opportunity(&mut p);
        assert_eq!(s.send(&mut p), Some((0, PathId(0))), "round robin wanted the slow path");
    }

    const AROUND: [&str; 8] = [
        "inner=round_robin",
        "inner=round_robin,strict=1",
        "inner=weighted_round_robin",
        "inner=weighted_round_robin,weights=equal",
        "inner=min_rtt",
        "inner=confluent",
        "fixed_split=1",
        "variant=1,fixed_split=1,rounds=0",
    ];

    #[test]
    fn the_fast_path_waits_for_none_whatever_it_wraps() {
        for (spec, full, in_flight) in
            AROUND.iter().flat_map(|spec| [(spec, false, 5_000), (spec, true, 5_000), (spec, false, 0)])
        {
            let mut p = built(&POLICY, spec, 1);
            let mut s = scene(20);
            s.refilled(p.as_mut());
            s.opportunity(p.as_mut());
            if full {
                s.close(1);
            }
            s.paths[1].in_flight = in_flight;
            for n in 0..20 {
                let sent = s.send(p.as_mut());
                assert_eq!(sent, Some((0, PathId(0))), "{spec}, chunk {n}, {in_flight} in flight, full {full}");
            }
        }
    }

    #[test]
    fn a_path_in_time_does_not_wait_for_one_that_was_refused() {
        for spec in AROUND {
            let mut p = built(&POLICY, spec, 1);
            let mut s = Scene::new(3, 20);
            s.rtt(0, 20).cwnd = 20_000;
            s.rtt(1, 220).cwnd = 110_000;
            s.rtt(2, 70).cwnd = 70_000;
            s.refilled(p.as_mut());
            assert_eq!(s.send(p.as_mut()), Some((0, PathId(0))), "{spec}");
            s.close(0);
            (s.paths[0].in_flight, s.paths[1].in_flight) = (20_000, 1_144);
            let Decision::Send { index, path } = s.ask(p.as_ref()) else { panic!("{spec}: not sent") };
            assert!(path == PathId(2) && index >= 5, "{spec}: {index} by {path:?}");
        }
    }

    #[test]
    fn an_unknown_path_is_tried_with_one_chunk() {
        let mut s = scene(5);
        s.close(0);
        s.rtt(1, 0);
        assert_eq!(s.ask(&policy("min_rtt")), Decision::Send { index: 0, path: PathId(1) });
        s.paths[1].in_flight = 1_144;
        assert_eq!(s.ask(&policy("min_rtt")), Decision::Blocked);
    }

    #[test]
    fn look_ahead_spans_the_delay_difference() {
        let s = scene(5);
        let l = policy("confluent").look_ahead(&s.cx());
        assert_eq!(l, LookAhead { bytes: 130_000 + 100_000, when_drained: false });
    }

    #[test]
    fn the_inner_scheduler_is_what_was_asked_for() {
        let names: Vec<_> = super::super::POLICIES.iter().map(|p: &Policy<dyn PathScheduler>| p.info.name).collect();
        assert!(POLICY.info.params[0].words.iter().all(|w| names.contains(w)));
    }

    #[test]
    fn every_parameter_of_an_inner_scheduler_can_be_given() {
        let own: Vec<_> = POLICY.info.params.iter().skip(2).copied().collect();
        for name in POLICY.info.params[0].words {
            let inner = super::super::POLICIES.iter().find(|p| p.info.name == *name).expect("registered");
            assert!(inner.info.params.iter().all(|i| own.contains(i)), "{name} has another parameter");
        }
        // Two thirds to the first path by shares; one each when it alternates strictly.
        let sent = |spec: &str| {
            let mut p = built(&POLICY, spec, 1);
            let mut s = Scene::new(2, 40);
            for (i, rtt) in [(0, 50), (1, 100)] {
                (s.rtt(i, rtt).min_rtt, s.paths[usize::from(i)].cwnd) = (ms(50), 1 << 20);
            }
            (0..30).filter(|_| s.send(p.as_mut()).expect("sends").1 == PathId(0)).count()
        };
        assert_eq!(sent("inner=round_robin,strict=1"), 15);
        assert_eq!(sent("inner=weighted_round_robin,weights=equal"), 15);
        assert_eq!(sent("inner=weighted_round_robin"), 20);
    }

    #[test]
    fn a_parameter_of_another_scheduler_is_refused() {
        let refused = |spec: &str| {
            let mut p = crate::Profile::named("cmt").unwrap();
            p.set(Hook::PathScheduler, spec).unwrap();
            p.check(2).err().map(|e| e.to_string())
        };
        assert_eq!(refused("delay_compensation:inner=round_robin,strict=1"), None);
        assert_eq!(refused("delay_compensation:variant=1,rounds=0"), None);
        let what = refused("delay_compensation:inner=min_rtt,strict=1").expect("refused");
        assert!(what.contains("parameter") && !what.contains('\n'), "{what}");
        assert!(refused("delay_compensation:strict=1").is_some(), "confluent is the inner one");
    }
}
