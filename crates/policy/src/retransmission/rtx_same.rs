//! Back to the path it was sent on.
//!
//! Source: Iyengar, Amer, Stewart 2006, RTX-SAME. While that path is not active, the next active one in list order. No
//! parameters.

use super::{RetransmissionPolicy, Retransmit, Target, dormant};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rtx_same",
        source: "Iyengar, Amer, Stewart 2006, RTX-SAME",
        file: file!(),
        summary: "The path of the last transmission while it is active, else the next active one.",
        params: &[],
    },
    build: |_| Box::new(RtxSame),
};

struct RtxSame;

impl RetransmissionPolicy for RtxSame {
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let start = r.chunk.last_path.map_or(0, |p| p.0);
        let next = r.candidates.iter().min_by_key(|p| p.0.wrapping_sub(start));
        next.map_or_else(|| dormant(cx, r), Target::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use anabranch_base::{PathId, PathSet};

    #[test]
    fn same_then_next_in_list_order() {
        let mut s = Scene::new(3, 1);
        s.chunks[0].last_path = Some(PathId(1));
        let ask = |candidates: &[u8]| {
            let candidates: PathSet = candidates.iter().map(|&i| PathId(i)).collect();
            built(&POLICY, "", 0).target(&s.cx(), &Retransmit::of(&s.chunks[0], candidates))
        };
        assert_eq!(ask(&[0, 1, 2]), Target::On(PathId(1)));
        assert_eq!(ask(&[0, 2]), Target::On(PathId(2)));
        assert_eq!(ask(&[0]), Target::On(PathId(0)));
        assert_eq!(ask(&[]), Target::Wait, "active paths exist, all were asked");
    }
}
