//! Any active path with room, at random.
//!
//! Source: Iyengar, Amer, Stewart 2006, RTX-ASAP (baselines B3). The draw is uniform; the reference simulator's
//! successive coin flips are not. No parameters.

use super::{RetransmissionPolicy, Retransmit, Target, dormant, draw};
use crate::registry::{Hook, Params, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::{PathSet, RandomStream};

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "rtx_asap",
        source: "Iyengar, Amer, Stewart 2006, RTX-ASAP",
        file: file!(),
        summary: "Any active path with room, drawn uniformly.",
        params: &[],
    },
    build: |p| Box::new(RtxAsap::new(p)),
};

struct RtxAsap {
    random: RandomStream,
}

impl RtxAsap {
    fn new(p: &Params) -> Self {
        RtxAsap { random: p.random("retransmission") }
    }
}

impl RetransmissionPolicy for RtxAsap {
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        if r.candidates.is_empty() {
            return dormant(cx, r);
        }
        let room = |p: &anabranch_base::PathId| cx.path(*p).is_some_and(|v| v.has_room());
        let open: PathSet = r.candidates.iter().filter(room).collect();
        let set = if open.is_empty() && r.free_pass { r.candidates } else { open };
        draw(set, &mut self.random).map_or(Target::Wait, Target::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use anabranch_base::PathId;

    #[test]
    fn uniform_over_paths_with_room() {
        let mut s = Scene::new(4, 1);
        s.close(2);
        let mut p = RtxAsap { random: RandomStream::named(1, "retransmission") };
        let mut seen = [0; 4];
        for _ in 0..3_000 {
            let r = Retransmit { chunk: &s.chunks[0], candidates: PathSet::first(4), free_pass: false };
            if let Target::On(PathId(i)) = p.target(&s.cx(), &r) {
                seen[usize::from(i)] += 1;
            }
        }
        assert_eq!(seen[2], 0);
        assert!([0, 1, 3].iter().all(|&i| (900..1_100).contains(&seen[i])), "{seen:?}");
    }

    #[test]
    fn waits_when_all_are_full_unless_one_packet_is_free() {
        let mut s = Scene::new(2, 1);
        (0..2).for_each(|i| s.close(i));
        let mut p = RtxAsap { random: RandomStream::named(1, "retransmission") };
        let mut ask = |free_pass| {
            p.target(&s.cx(), &Retransmit { chunk: &s.chunks[0], candidates: PathSet::first(2), free_pass })
        };
        assert_eq!(ask(false), Target::Wait);
        assert!(matches!(ask(true), Target::On(_)));
    }
}
