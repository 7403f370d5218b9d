//! Budgets by residual capacity: each distribution period grants every path so many bytes of what waits.
//!
//! Source: Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §VI.B, eq. 11 to 13. At the beginning of a period the free windows,
//! within the peer's, are divided over the paths that had no penalty in it, largest residual capacity first: a path with
//! some gets what its window turns over in the period and the residual capacity beside it, another one what its window
//! has free. Chunks wait in their path's buffer and leave as its window allows; what comes later takes what budgets are
//! left.
//! Readings: the ratio of period and handling time is rounded down before it multiplies the window, and is 64 at most; the
//! path at which the free windows run out gets the rest of them; when all paths are blocked by penalties, the one with the
//! largest residual capacity is used.
//! As printed (`refresh=tick,cap=none`) at most one sum of windows leaves in a period, which is much longer than a round
//! trip, and the first path takes nearly all of it. `refresh` grants anew when all budgets are spent (`drain`), or binds
//! everything anew at every sending opportunity (`opportunity`, the default); `cap` bounds a budget by the free window
//! and one more (`window`), or by the free window (`free`, the default). Nothing is held back for a path that is not
//! offered while nothing is in flight; without an estimator every opportunity is a period.
//! Parameters: `refresh`; `cap`.

use super::{Decision, LookAhead, Occasion, PathScheduler, Settled};
use crate::asks::Asks;
use crate::lanes::Lanes;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView, QueueView};
use anabranch_base::{Duration, PathId, Rate};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "residual_capacity",
        source: "Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §VI.B",
        file: file!(),
        summary: "Budgets of a period by residual capacity, the path with most of it first.",
        params: &[
            ParamInfo::word("refresh", &["opportunity", "drain", "tick"], "when budgets are granted"),
            ParamInfo::word("cap", &["free", "window", "none"], "most that a path is granted"),
        ],
    },
    build: |p| Box::new(ResidualCapacity::new(p)),
};

/// Windows that a path turns over in a period at most.
const MOST_TURNS: u64 = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refresh {
    Opportunity,
    Drain,
    Tick,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cap {
    Free,
    Window,
    None,
}

struct ResidualCapacity {
    refresh: Refresh,
    cap: Cap,
    lanes: Lanes,
    budgets: Vec<u64>,
    /// Paths that are not blocked, best first.
    list: Vec<PathId>,
}

/// A penalty blocks a path for the rest of the period.
fn blocked(cx: &AssocView<'_>, p: &PathView) -> bool {
    cx.period.serial > 0 && p.signals.penalised_at.is_some_and(|t| t >= cx.period.start)
}

fn spare(p: &PathView) -> i64 {
    p.signals.spare_rate.unwrap_or(0)
}

/// T_handle of the paper: how long the window takes at the bandwidth measured; a round trip before there is one.
fn handling_time(p: &PathView) -> Duration {
    let rate = if p.send_rate > Rate::ZERO { p.send_rate } else { p.window_rate() };
    rate.time_for(p.cwnd)
}

fn free(p: &PathView) -> u64 {
    p.cwnd.saturating_sub(p.in_flight)
}

impl ResidualCapacity {
    fn new(p: &Params) -> Self {
        ResidualCapacity {
            refresh: match p.word("refresh") {
                "drain" => Refresh::Drain,
                "tick" => Refresh::Tick,
                _ => Refresh::Opportunity,
            },
            cap: match p.word("cap") {
                "window" => Cap::Window,
                "none" => Cap::None,
                _ => Cap::Free,
            },
            lanes: Lanes::default(),
            budgets: Vec::new(),
            list: Vec::new(),
        }
    }
    /// PathList of the paper.
    fn order(&mut self, cx: &AssocView<'_>) {
        let key = |id: &PathId| cx.path(*id).map(|p| (-spare(p), u64::MAX - p.cwnd, p.id));
        self.list.clear();
        self.list.extend(cx.active().filter(|p| !blocked(cx, p)).map(|p| p.id));
        if self.list.is_empty() {
            let best = cx.active().map(|p| p.id).min_by_key(key);
            self.list.extend(best);
        }
        self.list.sort_unstable_by_key(key);
    }
    /// D of eq. 12 for one path, before the sum is bounded.
    fn wish(&self, cx: &AssocView<'_>, p: &PathView) -> u64 {
        let period = cx.period.length;
        let turns = period.as_nanos() / handling_time(p).as_nanos().max(1);
        let turns = turns.clamp(1, MOST_TURNS);
        let wish = match u64::try_from(spare(p)) {
            Ok(r) if r > 0 => {
                let beside = (u128::from(r) * u128::from(period.as_nanos()) / 1_000_000_000).min(u128::from(u64::MAX));
                turns.saturating_mul(p.cwnd).saturating_add(beside as u64)
            }
            _ => turns.saturating_mul(free(p)),
        };
        match self.cap {
            Cap::None => wish,
            Cap::Window => wish.min(free(p).saturating_add(p.cwnd)),
            Cap::Free => wish.min(free(p)),
        }
    }
    /// Divides the free windows.
    fn grant(&mut self, cx: &AssocView<'_>) {
        self.budgets.clear();
        self.budgets.resize(cx.paths.len(), 0);
        let windows = cx.active().fold(0u64, |sum, p| sum.saturating_add(free(p)));
        let mut left = windows.min(cx.peer_rwnd).saturating_sub(self.lanes.total());
        for &id in &self.list {
            let Some(p) = cx.path(id) else { continue };
            let budget = self.wish(cx, p).min(left);
            left -= budget;
            if let Some(b) = self.budgets.get_mut(id.index()) {
                *b = budget;
            }
        }
    }
    /// Binds what waits as far as budgets reach; at least one chunk, where they were granted and nothing else would leave.
    fn bind(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, granted: bool) {
        for c in self.lanes.rest(q) {
            // The last chunk may exceed it, as it may a window (RFC 9260 §6.1 B): else no window would be used in full.
            let pays = |id: &&PathId| self.budgets.get(id.index()).is_some_and(|b| *b > 0);
            let idle = || granted && self.lanes.total() == 0 && cx.active().all(|p| p.in_flight == 0);
            let Some(&id) = self.list.iter().find(pays).or_else(|| self.list.first().filter(|_| idle())) else {
                return;
            };
            if let Some(b) = self.budgets.get_mut(id.index()) {
                *b = b.saturating_sub(c.len);
            }
            self.lanes.bind(c, id);
        }
    }
    /// All budgets are spent, and nothing is bound.
    fn is_drained(&self) -> bool {
        self.lanes.total() == 0 && self.budgets.iter().all(|b| *b == 0)
    }
}

impl PathScheduler for ResidualCapacity {
    fn asks(&self) -> Asks {
        Asks::LOOK_AHEAD.and(Asks::OUTCOMES).and(Asks::BOUND).and(Asks::ESTIMATES)
    }
    fn look_ahead(&self, _cx: &AssocView<'_>) -> LookAhead {
        let budgets = self.budgets.iter().fold(self.lanes.total(), |sum, b| sum.saturating_add(*b));
        LookAhead { bytes: budgets, when_drained: false }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let mut open = self.list.iter().filter(|id| cx.eligible.has(**id));
        if let Some((index, path)) = open.clone().find_map(|&path| self.lanes.first(q, path).map(|i| (i, path))) {
            return Decision::Send { index, path };
        }
        // What is in flight will wake it, or the next period.
        let in_flight = cx.paths.iter().any(|p| p.in_flight > 0);
        let waits = self.lanes.total() == 0 && !cx.period.length.is_zero() && !self.list.is_empty();
        if in_flight || waits || q.chunks.is_empty() {
            return Decision::Blocked;
        }
        let path = open.next().copied().or_else(|| cx.eligible.iter().next());
        path.map_or(Decision::Blocked, |path| Decision::Send { index: 0, path })
    }
    fn settle(&mut self, _cx: &AssocView<'_>, outcome: &Settled) {
        if let Settled::Sent { tsn, .. } = *outcome {
            self.lanes.sent(tsn);
        }
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        self.lanes.resize(cx.paths.len());
        self.order(cx);
        let astray = !self.lanes.agree(q) || self.lanes.holds_lost(cx);
        let each = self.refresh == Refresh::Opportunity || cx.period.serial == 0;
        let due = match why {
            Occasion::Period => true,
            Occasion::Opportunity => each || self.refresh == Refresh::Drain && self.is_drained(),
            Occasion::Refilled => false,
        };
        if astray || due && each {
            self.lanes.clear();
        }
        if due || astray {
            self.grant(cx);
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

    /// Windows of 8 and 4 chunks at 100 and 50 ms, a period of 200 ms, the second path with capacity to spare.
    fn scene(chunks: u32) -> Scene {
        let mut s = Scene::new(2, chunks);
        for (i, cwnd, rtt, spare) in [(0, 8, 100, -5_000), (1, 4, 50, 11_440)] {
            let p = s.rtt(i, rtt);
            p.cwnd = cwnd * 1_144;
            p.send_rate = Rate::of(p.cwnd, ms(rtt));
            p.signals.spare_rate = Some(spare);
        }
        s.period = Period { serial: 1, start: s.now, length: ms(200) };
        s
    }
    fn policy(params: &str) -> Box<dyn PathScheduler> {
        built(&POLICY, params, 0)
    }
    fn period(s: &Scene, p: &mut dyn PathScheduler) {
        p.observe(&s.cx(), &QueueView::of(&s.chunks), Occasion::Period);
    }
    fn bound(p: &dyn PathScheduler) -> [u64; 2] {
        [A, B].map(|id| p.bound_bytes(id) / 1_144)
    }

    #[test]
    fn as_printed_the_best_path_takes_all_there_is() {
        let s = scene(40);
        let mut p = policy("refresh=tick,cap=none");
        period(&s, &mut *p);
        // 4 turns of 4 chunks and 2 beside; 12 are free in both windows.
        assert_eq!(bound(&*p), [0, 12]);
    }

    #[test]
    fn a_cap_leaves_the_others_their_share() {
        let s = scene(40);
        let mut p = policy("refresh=tick,cap=window");
        period(&s, &mut *p);
        assert_eq!(bound(&*p), [4, 8]);
        let mut p = policy("refresh=tick");
        period(&s, &mut *p);
        assert_eq!(bound(&*p), [8, 4]);
    }

    #[test]
    fn a_path_without_spare_capacity_turns_its_free_window_over() {
        let mut s = scene(40);
        s.paths[1].signals.spare_rate = Some(0);
        s.paths[1].in_flight = 3 * 1_144;
        s.paths[0].cwnd = 20 * 1_144;
        s.paths[0].send_rate = Rate::of(s.paths[0].cwnd, ms(100));
        let mut p = policy("refresh=tick,cap=none");
        period(&s, &mut *p);
        // Four times the one chunk that is free, of 21; the other path gets the rest.
        assert_eq!(bound(&*p), [17, 4]);
    }

    /// The window's time at the bandwidth measured counts, however short the round trip is.
    #[test]
    fn turns_of_a_period_are_by_the_bandwidth() {
        for (rtt, handled, period, turns) in [
            (50, 200, 200, 1),
            (50, 100, 200, 2),
            (50, 60, 200, 3),
            (200, 50, 200, 4),
            (10, 400, 200, 1),
            (50, 1, 200, 64),
        ] {
            let mut s = Scene::new(1, 0);
            let p = s.rtt(0, rtt);
            (p.cwnd, p.in_flight) = (8 * 1_144, 6 * 1_144);
            p.send_rate = Rate::of(p.cwnd, ms(handled));
            p.signals.spare_rate = Some(0);
            s.period = Period { serial: 1, start: s.now, length: ms(period) };
            let r = ResidualCapacity { cap: Cap::None, ..ResidualCapacity::new(&Params::defaults(&POLICY.info, 0)) };
            assert_eq!(r.wish(&s.cx(), &s.paths[0]), turns * 2 * 1_144, "{rtt} {handled}");
            s.paths[0].send_rate = Rate::ZERO;
            let by_round_trips = (period / rtt).clamp(1, MOST_TURNS);
            assert_eq!(r.wish(&s.cx(), &s.paths[0]), by_round_trips * 2 * 1_144, "{rtt}: no bandwidth yet");
        }
    }

    #[test]
    fn budgets_end_and_the_next_period_grants_anew() {
        let mut s = scene(40);
        let mut p = policy("refresh=tick");
        period(&s, &mut *p);
        let mut sent = [0, 0];
        while let Some((_, path)) = s.send(&mut *p) {
            sent[path.index()] += 1;
            s.paths[path.index()].in_flight += 1_144;
        }
        assert_eq!(sent, [8, 4]);
        s.paths.iter_mut().for_each(|p| p.in_flight = 0);
        s.opportunity(&mut *p);
        assert_eq!(s.ask(&*p), Decision::Blocked, "until the next period");
        s.period = Period { serial: 2, start: s.now + ms(200), length: ms(200) };
        s.now = s.period.start;
        period(&s, &mut *p);
        assert!(matches!(s.ask(&*p), Decision::Send { path: B, .. }));
        // With refreshing there is no wait.
        for refresh in ["drain", "opportunity"] {
            let mut s = scene(40);
            let mut p = policy(&format!("refresh={refresh}"));
            period(&s, &mut *p);
            (0..12).for_each(|_| assert!(s.send(&mut *p).is_some()));
            s.opportunity(&mut *p);
            assert_eq!(bound(&*p), [8, 4], "{refresh}");
        }
    }

    #[test]
    fn penalties_block_until_the_period_ends() {
        let mut s = scene(40);
        s.paths[1].signals.penalised_at = Some(s.now);
        let mut p = policy("refresh=tick,cap=none");
        period(&s, &mut *p);
        assert_eq!(bound(&*p)[1], 0);
        s.paths[0].signals.penalised_at = Some(s.now);
        let mut p = policy("refresh=tick,cap=none");
        period(&s, &mut *p);
        assert_eq!(bound(&*p), [0, 12], "all are blocked: the best of them");
        s.period.start = s.now + ms(1);
        s.paths[0].signals.penalised_at = None;
        let mut p = policy("refresh=tick");
        period(&s, &mut *p);
        assert_eq!(bound(&*p), [8, 4], "the penalty was in the period before");
    }

    #[test]
    fn what_comes_later_takes_what_is_left_of_the_budgets() {
        let mut s = scene(3);
        let mut p = policy("refresh=tick");
        period(&s, &mut *p);
        assert_eq!(bound(&*p), [0, 3]);
        s.chunks.extend(scene(20).chunks.into_iter().skip(3));
        s.refilled(&mut *p);
        assert_eq!(bound(&*p), [8, 4]);
    }

    #[test]
    fn a_path_that_goes_gives_its_chunks_back() {
        let mut s = scene(40);
        let mut p = policy("refresh=tick");
        period(&s, &mut *p);
        s.paths[1].state = crate::view::PathState::Inactive;
        s.opportunity(&mut *p);
        assert_eq!(bound(&*p), [8, 0]);
    }

    #[test]
    fn without_an_estimator_every_opportunity_grants() {
        let mut s = scene(40);
        s.period = Period::default();
        let mut p = policy("refresh=tick");
        s.opportunity(&mut *p);
        assert_eq!(bound(&*p), [8, 4]);
    }
}
