//! All paths take equally long: the fast ones hold back what they carry.
//!
//! Source: the min-max division of Shailendra, Bhattacharjee, Bose 2010, which Becke et al. 2013 §III.B compare delay
//! compensation with. New data are dealt to the paths by the weights of §IV as they come; on a path they leave as much
//! later as the slowest path in use takes longer than this one. What is handed over in order arrives in order, for the
//! price of the slowest path's delay.
//! Deviations: of a path's delay the least of ten seconds is known, one way or half of a round trip, and what round trips
//! take longer than that on average counts as the data's. Nothing is held back for longer than `most`, nor so long
//! that it would miss its deadline. What was dealt to a path that is out of use leaves by another.
//! Parameters: `weights`, what the shares follow; `most`, the longest time for which anything is held back.

use super::{Decision, LookAhead, Occasion, PathScheduler};
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::shares::{Credits, Weights};
use crate::view::{AssocView, ChunkView, PathView, QueueView};
use anabranch_base::{Duration, Instant, PathId, PathSet, Tsn};
use std::collections::VecDeque;

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "delay_equalisation",
        source: "Shailendra, Bhattacharjee, Bose 2010 (min-max), as Becke et al. 2013 §III.B describe it",
        file: file!(),
        summary: "Shares new data by weights and holds it back on fast paths, so that all paths take equally long.",
        params: &[
            ParamInfo::word("weights", &["srtt", "equal", "rate"], "what the shares follow"),
            ParamInfo::millis("most", 1_000, 0, 10_000, "longest time for which anything is held back"),
        ],
    },
    build: |p| Box::new(DelayEqualisation::new(p)),
};

/// Chunks dealt and not sent yet; the look-ahead is never longer (TSNs span 16 bits).
const MOST_DEALT: usize = 1 << 16;

struct DelayEqualisation {
    credits: Credits,
    most: Duration,
    /// The paths of the chunks from `first` on.
    dealt: VecDeque<PathId>,
    first: Tsn,
}

impl DelayEqualisation {
    fn new(p: &Params) -> Self {
        DelayEqualisation {
            credits: Credits::new(Weights::of(p.word("weights"))),
            most: p.millis("most"),
            dealt: VecDeque::new(),
            first: Tsn(0),
        }
    }
    /// The path a chunk was dealt to.
    fn owner(&self, c: &ChunkView) -> Option<PathId> {
        self.dealt.get(c.tsn.0.wrapping_sub(self.first.0) as usize).copied()
    }
    /// How long a packet takes on `p`.
    fn delay(p: &PathView) -> Duration {
        let least = if p.one_way.is_zero() { p.min_rtt / 2 } else { p.one_way };
        least + p.srtt.saturating_sub(p.min_rtt)
    }
    fn slowest(cx: &AssocView<'_>) -> Duration {
        cx.active().map(Self::delay).max().unwrap_or_default()
    }
    /// When `c` leaves on `p`.
    fn due(&self, c: &ChunkView, p: &PathView, slowest: Duration) -> Instant {
        let own = Self::delay(p);
        let held = c.queued_at + slowest.saturating_sub(own).min(self.most);
        c.deadline.map_or(held, |d| held.min(c.queued_at + d.since(c.queued_at).saturating_sub(own)))
    }
}

impl PathScheduler for DelayEqualisation {
    fn asks(&self) -> Asks {
        Asks::LOOK_AHEAD.and(Asks::OUTCOMES)
    }
    fn look_ahead(&self, cx: &AssocView<'_>) -> LookAhead {
        let delays = || cx.active().map(Self::delay);
        let gap = (delays().max().unwrap_or_default() - delays().min().unwrap_or_default()).min(self.most);
        let held: u64 = cx.active().map(|p| p.window_rate().bytes_in(gap).saturating_add(2 * p.mtu)).sum();
        LookAhead { bytes: held.saturating_add(cx.window_sum()).min(cx.peer_rwnd), when_drained: false }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let Some(quickest) = cx.open().min_by_key(|p| (p.srtt, p.id)) else { return Decision::Blocked };
        let slowest = Self::slowest(cx);
        let (mut unseen, mut wait) = (cx.eligible, None::<Instant>);
        for (index, c) in q.chunks.iter().enumerate() {
            let owner = self.owner(c).and_then(|id| cx.path(id));
            // Its path is gone, or can neither send nor wake us.
            let stranded = |p: &PathView| !p.state.usable() || !cx.eligible.has(p.id) && p.in_flight == 0;
            let on = owner.filter(|p| !stranded(p)).unwrap_or(quickest);
            if !unseen.has(on.id) {
                continue;
            }
            // What comes after it on this path is due later.
            unseen = unseen.without(on.id);
            let due = self.due(c, on, slowest);
            if due <= cx.now {
                return Decision::Send { index, path: on.id };
            }
            wait = Some(wait.map_or(due, |t| t.min(due)));
            if unseen.is_empty() {
                break;
            }
        }
        wait.map_or(Decision::Blocked, Decision::WaitUntil)
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        let (Some(head), Occasion::Refilled) = (q.chunks.first(), why) else { return };
        let gone = head.tsn.0.wrapping_sub(self.first.0) as usize;
        if gone <= self.dealt.len() {
            self.dealt.drain(..gone);
        } else {
            self.dealt.clear();
        }
        self.first = head.tsn;
        let active: PathSet = cx.active().map(|p| p.id).collect();
        let view = AssocView { eligible: active, ..*cx };
        for c in q.chunks {
            let place = c.tsn.0.wrapping_sub(self.first.0) as usize;
            if place < self.dealt.len() || place >= MOST_DEALT {
                continue;
            }
            let Some(path) = self.credits.best(&view).map(|p| p.id) else { return };
            // TSNs in between were sent already.
            self.dealt.resize(place, path);
            self.dealt.push_back(path);
            self.credits.pay(&view, path, c.len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    /// 30 and 160 ms one way, acknowledged at once.
    fn scene(chunks: u32) -> Scene {
        let mut s = Scene::new(2, chunks);
        for (i, delay) in [(0, 30), (1, 160)] {
            let p = s.rtt(i, delay);
            (p.one_way, p.cwnd) = (ms(delay), 1_000_000);
        }
        let now = s.now;
        s.chunks.iter_mut().for_each(|c| c.queued_at = now);
        s
    }
    fn policy() -> DelayEqualisation {
        DelayEqualisation::new(&Params::defaults(&POLICY.info, 0))
    }
    /// What leaves now: TSN and path.
    fn leaves(s: &mut Scene, p: &mut DelayEqualisation) -> Vec<(u32, u8)> {
        let mut all = vec![];
        loop {
            let before = s.chunks.clone();
            let Some((index, path)) = s.send(p) else { return all };
            all.push((before[index as usize].tsn.0, path.0));
        }
    }

    #[test]
    fn the_fast_path_waits_for_the_difference() {
        let mut s = scene(19);
        let mut p = policy();
        s.refilled(&mut p);
        let slow = leaves(&mut s, &mut p);
        assert_eq!(slow.len(), 3, "0.158 of 19: {slow:?}");
        assert!(slow.iter().all(|(_, path)| *path == 1));
        let due = s.now + ms(130);
        assert_eq!(s.ask(&p), Decision::WaitUntil(due));
        s.now = due - ms(1);
        assert_eq!(leaves(&mut s, &mut p), []);
        s.now = due;
        let fast = leaves(&mut s, &mut p);
        assert_eq!((fast.len(), s.chunks.len()), (16, 0));
        assert!(fast.iter().all(|(_, path)| *path == 0) && fast.is_sorted(), "{fast:?}");
    }

    #[test]
    fn neither_a_deadline_nor_a_limit_is_missed() {
        let mut s = scene(4);
        let mut p = policy();
        s.refilled(&mut p);
        leaves(&mut s, &mut p);
        let now = s.now;
        s.chunks.iter_mut().for_each(|c| c.deadline = Some(now + ms(100)));
        assert_eq!(s.ask(&p), Decision::WaitUntil(now + ms(70)), "it takes 30 ms");
        s.chunks.iter_mut().for_each(|c| c.deadline = None);
        p.most = ms(20);
        assert_eq!(s.ask(&p), Decision::WaitUntil(now + ms(20)));
    }

    #[test]
    fn what_a_path_leaves_behind_goes_on_without_waiting_for_it() {
        let mut s = scene(19);
        let mut p = policy();
        s.refilled(&mut p);
        s.paths[1].state = crate::view::PathState::PotentiallyFailed;
        s.eligible = PathSet::only(PathId(0));
        let all = leaves(&mut s, &mut p);
        assert_eq!(all.len(), 19, "alone it is the slowest: {all:?}");
        assert!(all.is_sorted() && all.iter().all(|(_, path)| *path == 0));
    }

    #[test]
    fn later_chunks_are_dealt_on() {
        let mut s = scene(19);
        let mut p = policy();
        s.refilled(&mut p);
        leaves(&mut s, &mut p);
        s.now += ms(130);
        leaves(&mut s, &mut p);
        let mut more = scene(19);
        more.now = s.now;
        more.chunks.iter_mut().for_each(|c| (c.tsn, c.queued_at) = (c.tsn.plus(19), s.now));
        more.refilled(&mut p);
        assert_eq!(leaves(&mut more, &mut p).len(), 3);
        assert_eq!(p.dealt.len(), 19);
    }
}
