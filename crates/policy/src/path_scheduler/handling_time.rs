//! Each chunk in the buffer of the path that would bring it first, by the rate that the path has handled.
//!
//! Source: Xu, Liu, Guan, Zhang, Muntean 2013 (CMT-QA), reconstructed from its abstract and from what Xu et al. 2014 say
//! of it; the paper itself was not to be had. In each period the free windows, within the peer's, are filled in the order
//! of TSNs: a chunk goes to the path with the least (bytes bound + bytes in flight + its own) / rate + half of the
//! reference round trip, and to none that has more than it handles in the period; it leaves when the window allows.
//! Without a measured rate a path counts with its window per round trip.
//! Deviations: `refresh=opportunity`, the default, binds everything anew at every sending opportunity, `tick` at the
//! beginning of a period alone; nothing is held back for a path that is not offered while nothing is in flight; without an
//! estimator every opportunity is a period.
//! Parameters: `refresh`.

use super::{Decision, LookAhead, Occasion, PathScheduler, Settled};
use crate::asks::Asks;
use crate::lanes::Lanes;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView, QueueView};
use anabranch_base::{Duration, PathId, Rate};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "handling_time",
        source: "Xu, Liu, Guan, Zhang, Muntean 2013 (CMT-QA, reconstruction)",
        file: file!(),
        summary: "Each chunk waits for the path that would bring it first, by the rate that path has handled.",
        params: &[ParamInfo::word("refresh", &["opportunity", "tick"], "when chunks are bound to paths")],
    },
    build: |p| Box::new(HandlingTime::new(p)),
};

struct HandlingTime {
    each: bool,
    lanes: Lanes,
    /// Bytes that may still be bound in this period.
    left: u64,
}

fn rate(p: &PathView) -> Rate {
    if p.signals.handling_rate > Rate::ZERO { p.signals.handling_rate } else { p.window_rate() }
}

impl HandlingTime {
    fn new(p: &Params) -> Self {
        HandlingTime { each: p.word("refresh") == "opportunity", lanes: Lanes::default(), left: 0 }
    }
    fn best(&self, cx: &AssocView<'_>, len: u64) -> Option<PathId> {
        let takes = |p: &PathView| {
            let before = self.lanes.bytes(p.id).saturating_add(p.in_flight);
            let bytes = before.saturating_add(len);
            let most = rate(p).bytes_in(cx.period.length).max(p.cwnd);
            let way = if p.reference_rtt.is_zero() { p.srtt } else { p.reference_rtt } / 2;
            (before < most)
                .then(|| Duration::from_nanos(rate(p).time_for(bytes).as_nanos().saturating_add(way.as_nanos())))
        };
        cx.active().filter_map(|p| takes(p).map(|t| (t, p.id))).min().map(|(_, id)| id)
    }
    /// Binds what waits; at least one chunk, where budgets were granted and nothing else would leave.
    fn bind(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, granted: bool) {
        for c in self.lanes.rest(q) {
            let idle = || granted && self.lanes.total() == 0 && cx.active().all(|p| p.in_flight == 0);
            // The last chunk may exceed it, as it may a window (RFC 9260 §6.1 B): else no window would be used in full.
            if self.left == 0 && !idle() {
                return;
            }
            let Some(path) = self.best(cx, c.len) else { return };
            self.left = self.left.saturating_sub(c.len);
            self.lanes.bind(c, path);
        }
    }
}

impl PathScheduler for HandlingTime {
    fn asks(&self) -> Asks {
        Asks::LOOK_AHEAD.and(Asks::OUTCOMES).and(Asks::BOUND).and(Asks::ESTIMATES)
    }
    fn look_ahead(&self, _cx: &AssocView<'_>) -> LookAhead {
        LookAhead { bytes: self.lanes.total().saturating_add(self.left), when_drained: false }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let bound = cx.open().filter_map(|p| self.lanes.first(q, p.id).map(|index| (index, p.id)));
        if let Some((index, path)) = bound.min() {
            return Decision::Send { index, path };
        }
        // What is in flight will wake it, or the next period.
        let in_flight = cx.paths.iter().any(|p| p.in_flight > 0);
        let waits = self.lanes.total() == 0 && !cx.period.length.is_zero() && cx.active().next().is_some();
        if in_flight || waits || q.chunks.is_empty() {
            return Decision::Blocked;
        }
        cx.eligible.iter().next().map_or(Decision::Blocked, |path| Decision::Send { index: 0, path })
    }
    fn settle(&mut self, _cx: &AssocView<'_>, outcome: &Settled) {
        if let Settled::Sent { tsn, .. } = *outcome {
            self.lanes.sent(tsn);
        }
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        self.lanes.resize(cx.paths.len());
        let astray = !self.lanes.agree(q) || self.lanes.holds_lost(cx);
        let each = self.each || cx.period.serial == 0;
        let due = why == Occasion::Period || why == Occasion::Opportunity && each;
        if astray || due && each {
            self.lanes.clear();
        }
        if due || astray {
            let free = cx.active().fold(0u64, |sum, p| sum.saturating_add(p.cwnd.saturating_sub(p.in_flight)));
            self.left = free.min(cx.peer_rwnd).saturating_sub(self.lanes.total());
        }
        self.bind(cx, q, due || astray);
    }
    fn bound_bytes(&self, p: PathId) -> u64 {
        self.lanes.bytes(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};
    use crate::view::Period;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    /// 100 ms at 114400 bytes/s and 50 ms at a quarter of it, windows of 12 and 6 chunks, a period of 200 ms.
    fn scene(chunks: u32) -> Scene {
        let mut s = Scene::new(2, chunks);
        for (i, cwnd, rtt, rate) in [(0, 12, 100, 114_400), (1, 6, 50, 28_600)] {
            let p = s.rtt(i, rtt);
            (p.cwnd, p.reference_rtt) = (cwnd * 1_144, ms(rtt));
            p.signals.handling_rate = Rate::from_bytes_per_sec(rate);
        }
        s.period = Period { serial: 1, start: s.now, length: ms(200) };
        s
    }
    fn bound(p: &dyn PathScheduler) -> [u64; 2] {
        [A, B].map(|id| p.bound_bytes(id) / 1_144)
    }

    #[test]
    fn each_chunk_goes_where_it_arrives_first() {
        // 60, 70, 80, 90 ms by the first path; 65, 105 by the second.
        let mut s = scene(5);
        let mut p = built(&POLICY, "", 0);
        s.opportunity(&mut *p);
        assert_eq!(bound(&*p), [4, 1]);
        let order: Vec<_> = core::iter::from_fn(|| s.send(&mut *p)).map(|(_, path)| path).collect();
        assert_eq!(order, [A, B, A, A, A]);
    }

    #[test]
    fn a_path_takes_what_it_handles_in_a_period_and_all_together_their_free_windows() {
        let s = scene(100);
        let mut p = built(&POLICY, "", 0);
        s.opportunity(&mut *p);
        // 18 chunks are free; by the 16th the second path's fourth arrives as early.
        assert_eq!(bound(&*p).iter().sum::<u64>(), 18);
        let mut s = scene(100);
        s.paths[0].in_flight = 20 * 1_144;
        s.opportunity(&mut *p);
        assert_eq!(bound(&*p), [0, 6], "the first path handles 20 in the period");
    }

    #[test]
    fn without_a_rate_the_window_per_round_trip_counts() {
        let mut s = scene(100);
        s.paths.iter_mut().for_each(|p| p.signals.handling_rate = Rate::ZERO);
        let mut p = built(&POLICY, "refresh=tick", 0);
        p.observe(&s.cx(), &QueueView::of(&s.chunks), Occasion::Period);
        assert_eq!(bound(&*p).iter().sum::<u64>(), 18);
        (0..18).for_each(|_| assert!(s.send(&mut *p).is_some()));
        s.opportunity(&mut *p);
        assert_eq!(s.ask(&*p), Decision::Blocked, "until the next period");
    }
}
