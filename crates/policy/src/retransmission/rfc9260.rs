//! What timed out goes elsewhere, what was reported missing stays.
//!
//! Source: RFC 9260 §6.4 and §6.4.1. A chunk whose loss a timer noticed leaves on another active path: its own may be
//! dead, and the other one shares the least with it. Of several the one with the fewest errors is taken, then the most
//! divergent one, whose interface and remote address both differ, then the next in list order. A chunk that reports
//! declared lost stays on its path while that is active, for the path delivers.
//! Parameter `reports_move` 1 sends those elsewhere too, as RFC 4960 §6.4.1 was often read.

use super::{RetransmissionPolicy, Retransmit, Target, dormant};
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::PathId;

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rfc9260",
        source: "RFC 9260 §6.4, §6.4.1",
        file: file!(),
        summary: "Another active path after a timeout, the same one after reports.",
        params: &[ParamInfo::flag("reports_move", false, "what reports declared lost takes another path as well")],
    },
    // Without state an association holds nothing for it.
    build: |p| match p.flag("reports_move") {
        true => Box::new(Rfc9260::<true>),
        false => Box::new(Rfc9260::<false>),
    },
};

struct Rfc9260<const REPORTS_MOVE: bool>;

impl<const REPORTS_MOVE: bool> RetransmissionPolicy for Rfc9260<REPORTS_MOVE> {
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let last = r.chunk.last_path.filter(|p| r.candidates.has(*p));
        let others = last.map_or(r.candidates, |p| r.candidates.without(p));
        match last {
            Some(p) if !(r.chunk.timed_out || REPORTS_MOVE) || others.is_empty() => Target::On(p),
            _ => {
                let from = r.chunk.last_path.unwrap_or(PathId(0));
                let old = cx.path(from);
                let shared = |p: &PathView| {
                    old.map_or(0, |o| {
                        u8::from(o.local == p.local) + u8::from(p.remote.is_some() && o.remote == p.remote)
                    })
                };
                let rank = |id: PathId| cx.path(id).map_or((u16::MAX, 0), |p| (p.errors, shared(p)));
                let next = others.iter().min_by_key(|id| (rank(*id), id.0.wrapping_sub(from.0)));
                next.map_or_else(|| dormant(cx, r), Target::On)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use crate::view::PathState;

    fn ask(s: &Scene) -> Target {
        let candidates = s.cx().active().map(|p| p.id).collect();
        built(&POLICY, "", 0).target(&s.cx(), &Retransmit::of(&s.chunks[0], candidates))
    }
    fn lost_on(path: u8, timed_out: bool) -> Scene {
        let mut s = Scene::new(3, 1);
        (s.chunks[0].last_path, s.chunks[0].timed_out) = (Some(PathId(path)), timed_out);
        s
    }

    #[test]
    fn reports_stay_and_timeouts_move() {
        assert_eq!(ask(&lost_on(1, false)), Target::On(PathId(1)));
        assert_eq!(ask(&lost_on(1, true)), Target::On(PathId(2)));
        assert_eq!(ask(&lost_on(2, true)), Target::On(PathId(0)), "round the list");
    }

    #[test]
    fn reports_may_move_too() {
        let s = lost_on(1, false);
        let r = Retransmit::of(&s.chunks[0], s.cx().active().map(|p| p.id).collect());
        assert_eq!(built(&POLICY, "reports_move=1", 0).target(&s.cx(), &r), Target::On(PathId(2)));
    }

    #[test]
    fn the_other_one_should_work() {
        let mut s = lost_on(1, true);
        s.paths[2].errors = 1;
        assert_eq!(ask(&s), Target::On(PathId(0)));
        s.paths[0].state = PathState::Inactive;
        s.paths[2].state = PathState::Inactive;
        assert_eq!(ask(&s), Target::On(PathId(1)), "nowhere else");
        s.paths[1].state = PathState::Inactive;
        assert_eq!(ask(&s), Target::On(PathId(0)), "the least broken");
    }

    #[test]
    fn the_most_divergent_pair_first() {
        let mut s = lost_on(0, true);
        let (a, b) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        for (p, (local, remote)) in s.paths.iter_mut().zip([(0, a), (0, b), (1, b)]) {
            (p.local, p.remote) = (local, Some(remote));
        }
        assert_eq!(ask(&s), Target::On(PathId(2)), "neither interface nor address is shared");
        s.paths[2].remote = Some(a);
        assert_eq!(ask(&s), Target::On(PathId(1)), "as much shared: list order");
    }

    #[test]
    fn a_path_that_is_gone_is_left_whatever_the_reason() {
        let mut s = lost_on(1, false);
        s.paths[1].state = PathState::PotentiallyFailed;
        assert_eq!(ask(&s), Target::On(PathId(2)));
    }
}
