//! RTX-CSI: window, then threshold, then recent timeouts, then their age.
//!
//! Source: Cao, Xu, Guan, Zhang 2012 §4.2. A path that timed out recently is likely to be bad again, so among equal
//! windows and thresholds the one with the fewest timeouts in the last `tau` wins, and among those the one whose last
//! timeout is the longest ago.
//! Deviations: Algorithm 1 as printed reuses indices it needs twice and leaves some unset; each criterion is kept apart
//! here.
//! `scope=tied` narrows the set from criterion to criterion, as the prose ranks them; `scope=global` is as printed:
//! each criterion looks for a single best among all active paths. With two paths they agree.
//! `on_full=next` (ours) asks for the next best when the chosen path is full; the paper waits.
//! How often each criterion decided is counted, once for each packet that left; what left while no path was active
//! counts as dormant.
//! Parameters: `tau` s (the paper's run length), `scope`, `on_full`.

use super::{RetransmissionPolicy, Retransmit, Target, best, dormant, draw};
use crate::asks::Counter;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, PathId, PathSet, RandomStream};
use core::cmp::Reverse;

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rtx_csi",
        source: "Cao, Xu, Guan, Zhang 2012 (RTX-CSI)",
        file: file!(),
        summary: "Largest window, then threshold, then fewest recent timeouts, then the oldest last timeout.",
        params: &[
            ParamInfo::number("tau", 30.0, "s", 0.001, 86_400.0, "how long a timeout is remembered"),
            ParamInfo::word("scope", &["tied", "global"], "criteria narrow the tied set, or look at all active paths"),
            ParamInfo::word("on_full", &["wait", "next"], "what to do when the chosen path is full"),
        ],
    },
    build: |p| Box::new(RtxCsi::new(p)),
};

/// Each criterion in its order, the draw, and where there was nothing to decide: one active path, or none.
const COUNTERS: [Counter; 7] = [
    ("stage-cwnd", 0),
    ("stage-ssthresh", 0),
    ("stage-timeouts", 0),
    ("stage-age", 0),
    ("stage-draw", 0),
    ("alone", 0),
    ("dormant", 0),
];

struct RtxCsi {
    tau: Duration,
    global: bool,
    next_when_full: bool,
    random: RandomStream,
    counters: [Counter; 7],
    /// How many candidates the last question had, and how many criteria its answer took.
    proposed: Option<(usize, usize)>,
}

impl RtxCsi {
    fn new(p: &Params) -> Self {
        RtxCsi {
            tau: p.secs("tau"),
            global: p.word("scope") == "global",
            next_when_full: p.word("on_full") == "next",
            random: p.random("retransmission"),
            counters: COUNTERS,
            proposed: None,
        }
    }

    /// The paths still tied after all criteria, or the single best one, and how many criteria it took.
    fn leaders(&self, cx: &AssocView<'_>, all: PathSet) -> (PathSet, usize) {
        let recent = |p: &PathView| cx.timeouts_since(p.id, cx.now - self.tau);
        let age = |p: &PathView| p.last_timeout.map_or(Duration::MAX, |t| cx.now - t);
        let criteria: [&dyn Fn(PathSet) -> PathSet; 4] = [
            &|s| best(cx, s, |p| p.cwnd),
            &|s| best(cx, s, |p| p.ssthresh),
            &|s| best(cx, s, |p| Reverse(recent(p))),
            &|s| best(cx, s, age),
        ];
        let mut tied = all;
        for (i, criterion) in criteria.iter().enumerate() {
            let leaders = criterion(tied);
            if leaders.len() <= 1 {
                return (leaders, i);
            }
            if !self.global {
                tied = leaders;
            }
        }
        (tied, criteria.len())
    }

    fn count(&mut self, candidates: usize, criteria: usize) {
        let decided = match (candidates, criteria) {
            (0, _) => 6,
            (1, _) => 5,
            (_, n) => n.min(4),
        };
        self.counters[decided].1 += 1;
    }
}

impl RetransmissionPolicy for RtxCsi {
    fn if_full_next(&self) -> bool {
        self.next_when_full
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn settle(&mut self) {
        if let Some((candidates, criteria)) = self.proposed.take() {
            self.count(candidates, criteria);
        }
    }
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let (leaders, criteria) = self.leaders(cx, r.candidates);
        let drawn: Option<PathId> = draw(leaders, &mut self.random);
        // Where no path is active the engine offers the least broken one.
        let active = drawn.and_then(|id| cx.path(id)).is_some_and(|p| p.state.usable());
        self.proposed = Some((if active { r.candidates.len() } else { 0 }, criteria));
        drawn.map_or_else(|| dormant(cx, r), Target::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};
    use crate::view::PathState;

    fn policy(global: bool, seed: u64) -> Box<dyn RetransmissionPolicy> {
        built(&POLICY, if global { "scope=global" } else { "" }, seed)
    }
    fn counts(p: &dyn RetransmissionPolicy) -> Vec<u64> {
        p.counters().iter().map(|c| c.1).collect()
    }
    /// Three active paths with these windows and thresholds.
    fn scene(windows: [(u64, u64); 3]) -> Scene {
        let mut s = Scene::new(3, 1);
        for (p, (cwnd, ssthresh)) in s.paths.iter_mut().zip(windows) {
            (p.cwnd, p.ssthresh) = (cwnd, ssthresh);
        }
        s
    }
    fn timeouts(s: &mut Scene, path: usize, ages_ms: &[u64]) {
        for &age in ages_ms {
            s.timeouts[path].push(s.now - ms(age));
            s.paths[path].last_timeout = Some(s.now - ms(age));
        }
    }
    fn ask(s: &Scene, global: bool, seed: u64) -> Target {
        let candidates = s.cx().active().map(|p| p.id).collect();
        policy(global, seed).target(&s.cx(), &Retransmit::of(&s.chunks[0], candidates))
    }
    fn picks(s: &Scene, global: bool) -> Vec<u8> {
        let mut all: Vec<u8> = (0..60)
            .filter_map(|seed| if let Target::On(p) = ask(s, global, seed) { Some(p.0) } else { None })
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn the_window_decides_first() {
        let mut s = scene([(20, 5), (10, 90), (10, 90)]);
        timeouts(&mut s, 0, &[500, 100]);
        assert_eq!(picks(&s, false), [0]);
        assert_eq!(picks(&s, true), [0]);
    }

    #[test]
    fn then_the_threshold_then_timeouts_then_age() {
        let mut s = scene([(20, 50), (20, 60), (20, 60)]);
        timeouts(&mut s, 1, &[9_000, 4_000]);
        timeouts(&mut s, 2, &[1_000]);
        assert_eq!(picks(&s, false), [2], "fewer timeouts, although the last is younger");
        timeouts(&mut s, 2, &[500]);
        assert_eq!(picks(&s, false), [1], "equal counts: the older last timeout");
    }

    #[test]
    fn each_decision_is_counted_where_it_fell_once_its_packet_left() {
        let mut p = policy(false, 1);
        let mut ask = |s: &Scene, candidates: PathSet| {
            let before = counts(&*p);
            for _ in 0..3 {
                p.target(&s.cx(), &Retransmit::of(&s.chunks[0], candidates));
                assert_eq!(counts(&*p), before, "the path is full");
            }
            p.settle();
            counts(&*p)
        };
        let all = PathSet::first(3);
        ask(&scene([(20, 5), (10, 90), (10, 90)]), all);
        ask(&scene([(20, 50), (20, 60), (10, 90)]), all);
        let mut s = scene([(20, 60), (20, 60), (20, 60)]);
        ask(&s, all);
        timeouts(&mut s, 0, &[500]);
        timeouts(&mut s, 1, &[700]);
        ask(&s, all);
        ask(&s, PathSet::first(2));
        ask(&s, PathSet::only(PathId(2)));
        let got = ask(&s, PathSet::EMPTY);
        assert_eq!(got, [1; 7]);
    }

    #[test]
    fn tau_forgets_and_never_timed_out_is_oldest() {
        let mut s = scene([(20, 50), (20, 50), (20, 10)]);
        timeouts(&mut s, 0, &[40_000, 31_000]);
        timeouts(&mut s, 1, &[29_999]);
        assert_eq!(picks(&s, false), [0]);
        let mut s = scene([(20, 50), (20, 50), (20, 10)]);
        timeouts(&mut s, 0, &[40_000]);
        assert_eq!(picks(&s, false), [1], "no recent timeout on either, but path 1 never had one");
    }

    #[test]
    fn tied_and_global_differ_with_three_paths() {
        // Paths 0 and 1 lead by window; path 2 has the smaller window and the largest threshold.
        let s = scene([(20, 50), (20, 50), (10, 90)]);
        assert_eq!(picks(&s, true), [2], "as printed: against the stated priority");
        assert_eq!(picks(&s, false), [0, 1]);
    }

    #[test]
    fn the_last_draw_is_over_the_tied_set_or_over_all() {
        let s = scene([(20, 50), (20, 50), (10, 50)]);
        assert_eq!(picks(&s, false), [0, 1]);
        assert_eq!(picks(&s, true), [0, 1, 2]);
    }

    #[test]
    fn two_paths_agree_whatever_happens() {
        for bits in 0..81u32 {
            let level = |i: u32| u64::from(bits / 3u32.pow(i) % 3);
            let mut s = scene([(level(0), level(1)), (level(2), level(3)), (0, 0)]);
            s.paths[2].state = PathState::Inactive;
            timeouts(&mut s, 0, if bits % 2 == 0 { &[700] } else { &[] });
            assert_eq!(picks(&s, false), picks(&s, true), "{bits}");
        }
    }

    #[test]
    fn an_offer_without_an_active_path_counts_as_dormant() {
        let mut s = scene([(1, 1), (1, 1), (1, 1)]);
        s.paths.iter_mut().for_each(|p| p.state = PathState::PotentiallyFailed);
        let mut p = policy(false, 1);
        let r = Retransmit::of(&s.chunks[0], PathSet::only(PathId(1)));
        assert_eq!(p.target(&s.cx(), &r), Target::On(PathId(1)));
        p.settle();
        assert_eq!(counts(&*p), [0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn dormant_takes_the_least_broken_path() {
        let mut s = scene([(1, 1), (1, 1), (1, 1)]);
        let states = [PathState::Inactive, PathState::PotentiallyFailed, PathState::PotentiallyFailed];
        for (p, (state, errors)) in s.paths.iter_mut().zip(states.into_iter().zip([0, 4, 2])) {
            (p.state, p.errors) = (state, errors);
        }
        assert_eq!(ask(&s, false, 1), Target::On(PathId(2)));
        s.paths[1].state = PathState::Inactive;
        s.paths[2].state = PathState::Inactive;
        assert_eq!(ask(&s, false, 1), Target::On(PathId(0)));
    }
}
