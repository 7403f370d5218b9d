//! What timed out goes elsewhere, what was reported missing stays.
//!
//! Source: RFC 9260 §6.4 and §6.4.1. A chunk whose loss a timer noticed leaves on another active path: its own may be
//! dead, and the other one shares the least with it. Of several the one with the fewest errors is taken, then the one
//! whose remote and local side both differ from the old one's as far as the ids tell: the next in list order. A chunk
//! that reports gave as lost stays on its path while that is active, for the path delivers.
//! No parameters.

use super::{RetransmissionPolicy, Retransmit, Target, dormant};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::PathId;

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rfc9260",
        source: "RFC 9260 §6.4, §6.4.1",
        file: file!(),
        summary: "Another active path after a timeout, the same one after reports.",
        params: &[],
    },
    build: |_| Box::new(Rfc9260),
};

struct Rfc9260;

impl RetransmissionPolicy for Rfc9260 {
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let last = r.chunk.last_path.filter(|p| r.candidates.has(*p));
        let others = last.map_or(r.candidates, |p| r.candidates.without(p));
        match last {
            Some(p) if !r.chunk.timed_out || others.is_empty() => Target::On(p),
            _ => {
                let from = r.chunk.last_path.unwrap_or(PathId(0));
                let errors = |id: PathId| cx.path(id).map_or(u16::MAX, |p| p.errors);
                let next = others.iter().min_by_key(|id| (errors(*id), id.0.wrapping_sub(from.0)));
                next.map_or_else(|| dormant(cx, r), Target::On)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use crate::view::PathState;

    fn ask(s: &Scene) -> Target {
        let candidates = s.cx().active().map(|p| p.id).collect();
        Rfc9260.target(&s.cx(), &Retransmit { chunk: &s.chunks[0], candidates, free_pass: false })
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
    fn a_path_that_is_gone_is_left_whatever_the_reason() {
        let mut s = lost_on(1, false);
        s.paths[1].state = PathState::PotentiallyFailed;
        assert_eq!(ask(&s), Target::On(PathId(2)));
    }
}
