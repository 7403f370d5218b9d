//! The active path with the largest slow-start threshold.
//!
//! Source: Iyengar, Amer, Stewart 2006, RTX-SSTHRESH. Ties are drawn uniformly. Waits when that path is full. No
//! parameters.

use super::{RetransmissionPolicy, Retransmit, Target, best, dormant, draw};
use crate::registry::{Hook, Params, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::RandomStream;

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rtx_ssthresh",
        source: "Iyengar, Amer, Stewart 2006, RTX-SSTHRESH",
        file: file!(),
        summary: "The active path with the largest slow-start threshold.",
        params: &[],
    },
    build: |p| Box::new(RtxSsthresh::new(p)),
};

struct RtxSsthresh {
    random: RandomStream,
}

impl RtxSsthresh {
    fn new(p: &Params) -> Self {
        RtxSsthresh { random: p.random("retransmission") }
    }
}

impl RetransmissionPolicy for RtxSsthresh {
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let leaders = best(cx, r.candidates, |p| p.ssthresh);
        draw(leaders, &mut self.random).map_or_else(|| dormant(cx, r), Target::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use anabranch_base::{PathId, PathSet};

    fn scene() -> Scene {
        let mut s = Scene::new(3, 1);
        for (p, v) in s.paths.iter_mut().zip([9_000, 20_000, 9_000]) {
            p.ssthresh = v;
        }
        s
    }
    fn ask(s: &Scene, candidates: PathSet, seed: u64) -> Target {
        let mut p = built(&POLICY, "", seed);
        p.target(&s.cx(), &Retransmit::of(&s.chunks[0], candidates))
    }

    #[test]
    fn the_best_candidate_wins() {
        let s = scene();
        assert_eq!(ask(&s, PathSet::first(3), 1), Target::On(PathId(1)));
        assert_eq!(ask(&s, PathSet::only(PathId(0)), 1), Target::On(PathId(0)));
    }

    #[test]
    fn ties_are_drawn() {
        let s = scene();
        let tied = PathSet::first(3).without(PathId(1));
        let picks: Vec<_> = (0..40).map(|seed| ask(&s, tied, seed)).collect();
        assert!(picks.contains(&Target::On(PathId(0))) && picks.contains(&Target::On(PathId(2))));
        assert_eq!(ask(&s, tied, 7), ask(&s, tied, 7), "equal seeds, equal draws");
    }
}
