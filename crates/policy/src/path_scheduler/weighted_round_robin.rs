//! Round robin in proportion to weights.
//!
//! Source: Becke et al. 2013 §IV, its weights without the confluent order of §III.A. Every judgement of ConSN needs it
//! as a baseline.
//! Deviations: among the paths with room the one with the largest credit takes the chunk, so a full path delays none of
//! the others; arrears are bounded by 64 KiB.
//! Parameters: `weights`, what the shares follow.

use super::{Decision, PathScheduler, Settled};
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::shares::{Credits, Weights};
use crate::view::{AssocView, QueueView};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "weighted_round_robin",
        source: "Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013, weights",
        file: file!(),
        summary: "Shares new data by weights, ascending TSNs on every path.",
        params: &[ParamInfo::word("weights", &["srtt", "equal", "rate"], "what the shares follow")],
    },
    build: |p| Box::new(WeightedRoundRobin::new(p)),
};

struct WeightedRoundRobin {
    credits: Credits,
}

impl WeightedRoundRobin {
    fn new(p: &Params) -> Self {
        WeightedRoundRobin { credits: Credits::new(Weights::of(p.word("weights"))) }
    }
}

impl PathScheduler for WeightedRoundRobin {
    fn asks(&self) -> Asks {
        Asks::OUTCOMES
    }
    fn next(&self, cx: &AssocView<'_>, _q: &QueueView<'_>) -> Decision {
        self.credits.best(cx).map_or(Decision::Blocked, |p| Decision::Send { index: 0, path: p.id })
    }
    fn settle(&mut self, cx: &AssocView<'_>, outcome: &Settled) {
        if let Settled::Sent { path, len, .. } = outcome {
            self.credits.pay(cx, *path, *len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use anabranch_base::PathId;

    #[test]
    fn three_to_one() {
        let mut s = Scene::new(2, 400);
        s.rtt(0, 100);
        s.rtt(1, 300);
        let mut p = WeightedRoundRobin::new(&Params::defaults(&POLICY.info, 0));
        let first = (0..400).filter(|_| s.send(&mut p) == Some((0, PathId(0)))).count();
        assert!((298..=302).contains(&first), "{first}");
    }

    #[test]
    fn a_refused_decision_moves_nothing() {
        let mut s = Scene::new(2, 4);
        s.rtt(0, 100);
        s.rtt(1, 100);
        let mut p = WeightedRoundRobin::new(&Params::defaults(&POLICY.info, 0));
        let before = s.ask(&p);
        p.settle(&s.cx(), &Settled::Refused);
        assert_eq!(s.ask(&p), before);
        s.send(&mut p);
        assert_ne!(s.ask(&p), before);
    }
}
