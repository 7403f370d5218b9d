//! The active path with the smallest loss rate.
//!
//! Source: Iyengar, Amer, Stewart 2006, RTX-LOSSRATE. Ties are drawn uniformly. Waits when that path is full.
//! Deviation: the simulations of the paper gave the policy the true loss rates. `oracle=1` reads what the link layer
//! reports, by which the lab passes on the true rate of a simulated path; without it, and on a path without a report,
//! the engine's estimate is used, which a real network has.
//! Parameter: `oracle`.

use super::{RetransmissionPolicy, Retransmit, Target, best, dormant, draw};
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Ppm, RandomStream};
use core::cmp::Reverse;

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rtx_loss_rate",
        source: "Iyengar, Amer, Stewart 2006, RTX-LOSSRATE",
        file: file!(),
        summary: "The active path with the smallest loss rate.",
        params: &[ParamInfo::flag("oracle", false, "the true loss rate of a simulated path, and not the estimate")],
    },
    build: |p| Box::new(RtxLossRate::new(p)),
};

struct RtxLossRate {
    oracle: bool,
    random: RandomStream,
}

impl RtxLossRate {
    fn new(p: &Params) -> Self {
        RtxLossRate { oracle: p.flag("oracle"), random: p.random("retransmission") }
    }

    fn loss(&self, p: &PathView) -> Ppm {
        let reported = p.frame_errors.filter(|e| self.oracle && e.total > 0);
        reported.map_or(p.loss, |e| Ppm((u128::from(e.erroneous) * 1_000_000 / u128::from(e.total)) as u32))
    }
}

impl RetransmissionPolicy for RtxLossRate {
    fn asks(&self) -> Asks {
        if self.oracle { Asks::LINK_REPORTS } else { Asks::NOTHING }
    }
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let leaders = best(cx, r.candidates, |p| Reverse(self.loss(p)));
        draw(leaders, &mut self.random).map_or_else(|| dormant(cx, r), Target::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use crate::view::FrameErrors;
    use anabranch_base::{PathId, PathSet};

    fn scene() -> Scene {
        let mut s = Scene::new(3, 1);
        for (p, v) in s.paths.iter_mut().zip([40, 10, 40]) {
            p.loss = Ppm(v);
        }
        s
    }
    fn ask(s: &Scene, candidates: PathSet, seed: u64) -> Target {
        asked(s, candidates, seed, false)
    }
    fn asked(s: &Scene, candidates: PathSet, seed: u64, oracle: bool) -> Target {
        let mut p = built(&POLICY, if oracle { "oracle=1" } else { "" }, seed);
        p.target(&s.cx(), &Retransmit::of(&s.chunks[0], candidates))
    }

    #[test]
    fn the_best_candidate_wins() {
        let s = scene();
        assert_eq!(ask(&s, PathSet::first(3), 1), Target::On(PathId(1)));
        assert_eq!(ask(&s, PathSet::only(PathId(0)), 1), Target::On(PathId(0)));
    }

    #[test]
    fn an_oracle_reads_what_the_link_reports() {
        assert!(built(&POLICY, "oracle=1", 0).asks().any(Asks::LINK_REPORTS));
        assert!(!built(&POLICY, "", 0).asks().any(Asks::LINK_REPORTS));
        let mut s = scene();
        let lost = |erroneous| Some(FrameErrors::counted(erroneous, 1_000_000));
        (s.paths[0].frame_errors, s.paths[1].frame_errors) = (lost(9), lost(30));
        let all = PathSet::first(3);
        assert_eq!(asked(&s, all, 1, true), Target::On(PathId(0)), "9 of a million, beside 30 and an estimate of 40");
        assert_eq!(asked(&s, all, 1, false), Target::On(PathId(1)), "the estimates alone");
    }

    #[test]
    fn a_report_of_no_frames_says_nothing() {
        let mut s = scene();
        s.paths[0].frame_errors = Some(FrameErrors::default());
        assert_eq!(asked(&s, PathSet::first(3), 1, true), Target::On(PathId(1)), "the estimates");
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
