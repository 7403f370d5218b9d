//! Round robin over the paths that are in time.
//!
//! Source: ours. Dealt out in turn, chunks with a deadline fill the queue of every path beyond it: under overload all but
//! one path then deliver everything too late. So a chunk with a deadline goes round the open paths that deliver it in
//! time; where none does, it leaves as `earliest_arrival` says, which looks for a later chunk that is in time there.
//! A path whose window still doubles takes its turn whatever is predicted, or it would never show what it carries.
//! Everything else leaves as `round_robin` says. No parameters.

use super::earliest_arrival::EarliestArrival;
use super::round_robin::RoundRobin;
use super::{Decision, LookAhead, Occasion, PathScheduler, Settled};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, PathView, QueueView};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "round_robin_deadline",
        source: "ours, of round_robin and earliest_arrival",
        file: file!(),
        summary: "In turn; what has a deadline over the paths that are in time for it.",
        params: &[],
    },
    build: |_| Box::new(RoundRobinDeadline::default()),
};

#[derive(Default)]
struct RoundRobinDeadline {
    in_turn: RoundRobin,
    in_time: EarliestArrival,
}

impl PathScheduler for RoundRobinDeadline {
    fn asks(&self) -> Asks {
        self.in_turn.asks().and(self.in_time.asks())
    }
    fn look_ahead(&self, cx: &AssocView<'_>) -> LookAhead {
        self.in_time.look_ahead(cx)
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let Some(head) = q.chunks.first().filter(|c| c.deadline.is_some()) else { return self.in_turn.next(cx, q) };
        let takes = |p: &&PathView| p.in_slow_start() || self.in_time.makes_it(cx.now, head, p);
        match self.in_turn.among(cx.open().filter(takes).map(|p| p.id)) {
            Some(path) => Decision::Send { index: 0, path },
            None => self.in_time.next(cx, q),
        }
    }
    fn settle(&mut self, cx: &AssocView<'_>, outcome: &Settled) {
        self.in_turn.settle(cx, outcome);
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        self.in_turn.observe(cx, q, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};
    use anabranch_base::PathId;

    #[test]
    fn what_has_a_deadline_goes_round_the_paths_that_are_in_time() {
        let mut s = Scene::new(2, 9);
        s.rtt(0, 100);
        s.rtt(1, 600);
        for path in &mut s.paths {
            (path.cwnd, path.in_flight, path.ssthresh) = (100_000, 10_000, 50_000);
        }
        let mut p = RoundRobinDeadline::default();
        assert_eq!(s.send(&mut p), Some((0, PathId(0))));
        s.opportunity(&mut p);
        assert_eq!(s.ask(&p), Decision::Send { index: 0, path: PathId(1) }, "in turn");
        let deadline = s.now + ms(900);
        s.chunks.iter_mut().for_each(|c| c.deadline = Some(deadline));
        assert_eq!(s.ask(&p), Decision::Send { index: 0, path: PathId(1) }, "both are in time");
        let deadline = s.now + ms(200);
        s.chunks.iter_mut().for_each(|c| c.deadline = Some(deadline));
        assert_eq!(s.ask(&p), Decision::Send { index: 0, path: PathId(0) });
        s.close(0);
        assert_eq!(s.ask(&p), Decision::Blocked, "the full one wakes it");
        s.chunks.iter_mut().for_each(|c| c.deadline = None);
        assert_eq!(s.ask(&p), Decision::Send { index: 0, path: PathId(1) });
    }
}
