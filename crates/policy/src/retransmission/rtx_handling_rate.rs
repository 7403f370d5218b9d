//! The path with room that has handled most.
//!
//! Source: Xu, Liu, Guan, Zhang, Muntean 2013 (CMT-QA), reconstructed from its abstract; the rate is that of
//! [`crate::path_quality`]. Ties are drawn. When no path has room it waits for the best of all. No parameters.

use super::{RetransmissionPolicy, Retransmit, Target, best, dormant, draw};
use crate::asks::Asks;
use crate::registry::{Hook, Params, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::{PathSet, RandomStream};

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rtx_handling_rate",
        source: "Xu, Liu, Guan, Zhang, Muntean 2013 (CMT-QA, reconstruction)",
        file: file!(),
        summary: "The active path with room that has handled the largest rate.",
        params: &[],
    },
    build: |p| Box::new(RtxHandlingRate::new(p)),
};

struct RtxHandlingRate {
    random: RandomStream,
}

impl RtxHandlingRate {
    fn new(p: &Params) -> Self {
        RtxHandlingRate { random: p.random("retransmission") }
    }
}

impl RetransmissionPolicy for RtxHandlingRate {
    fn asks(&self) -> Asks {
        Asks::ESTIMATES
    }
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let room: PathSet = r.candidates.iter().filter(|id| cx.path(*id).is_some_and(|p| p.has_room())).collect();
        let among = if room.is_empty() { r.candidates } else { room };
        let leaders = best(cx, among, |p| p.signals.handling_rate);
        draw(leaders, &mut self.random).map_or_else(|| dormant(cx, r), Target::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use anabranch_base::{PathId, Rate};

    fn ask(s: &Scene, candidates: PathSet) -> Target {
        let r = Retransmit::of(&s.chunks[0], candidates);
        built(&POLICY, "", 1).target(&s.cx(), &r)
    }

    #[test]
    fn the_largest_rate_with_room_wins() {
        let mut s = Scene::new(3, 1);
        for (p, rate) in s.paths.iter_mut().zip([9_000, 20_000, 8_000]) {
            p.signals.handling_rate = Rate::from_bytes_per_sec(rate);
        }
        let all = PathSet::first(3);
        assert_eq!(ask(&s, all), Target::On(PathId(1)));
        assert_eq!(ask(&s, all.without(PathId(1))), Target::On(PathId(0)));
        s.close(1);
        assert_eq!(ask(&s, all), Target::On(PathId(0)));
        s.close(0);
        s.close(2);
        assert_eq!(ask(&s, all), Target::On(PathId(1)), "all are full: the best is waited for");
        assert_eq!(ask(&s, PathSet::EMPTY), Target::Wait);
    }
}
