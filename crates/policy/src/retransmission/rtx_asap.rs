//! Any active path with room, at random.
//!
//! Source: Iyengar, Amer, Stewart 2006, RTX-ASAP. The draw is uniform; the reference simulator's successive coin flips
//! are not. Where a repair may ignore the window of the path that lost it, and of no other (`Retransmit::passes`,
//! ns-2.35's rule), that path is drawn from too until it did so, full or not. No parameters.

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
        let open: PathSet = r.candidates.iter().filter(|p| room(p) || r.passes.has(*p)).collect();
        let set = if open.is_empty() && r.may_exceed_cwnd_once { r.candidates } else { open };
        draw(set, &mut self.random).map_or(Target::Wait, Target::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use anabranch_base::PathId;

    #[test]
    fn uniform_over_paths_with_room() {
        let mut s = Scene::new(4, 1);
        s.close(2);
        let mut p = built(&POLICY, "", 1);
        let mut seen = [0; 4];
        for _ in 0..3_000 {
            let r = Retransmit::of(&s.chunks[0], PathSet::first(4));
            if let Target::On(PathId(i)) = p.target(&s.cx(), &r) {
                seen[usize::from(i)] += 1;
            }
        }
        assert_eq!(seen[2], 0);
        assert!([0, 1, 3].iter().all(|&i| (900..1_100).contains(&seen[i])), "{seen:?}");
    }

    /// ns-2.35: the path that lost something is drawn from as often as any with room.
    #[test]
    fn a_full_path_with_a_pass_of_its_own_is_drawn_from() {
        let mut s = Scene::new(3, 1);
        (0..2).for_each(|i| s.close(i));
        let mut p = built(&POLICY, "", 1);
        let mut seen = [0; 3];
        for _ in 0..2_000 {
            let passes = PathSet::only(PathId(0));
            let r =
                Retransmit { chunk: &s.chunks[0], candidates: PathSet::first(3), may_exceed_cwnd_once: true, passes };
            if let Target::On(PathId(i)) = p.target(&s.cx(), &r) {
                seen[usize::from(i)] += 1;
            }
        }
        assert!(seen[1] == 0 && (900..1_100).contains(&seen[0]) && seen[0] + seen[2] == 2_000, "{seen:?}");
    }

    #[test]
    fn waits_when_all_are_full_unless_one_packet_is_free() {
        let mut s = Scene::new(2, 1);
        (0..2).for_each(|i| s.close(i));
        let mut p = built(&POLICY, "", 1);
        let mut ask = |may_exceed_cwnd_once| {
            p.target(
                &s.cx(),
                &Retransmit {
                    chunk: &s.chunks[0],
                    candidates: PathSet::first(2),
                    may_exceed_cwnd_once,
                    passes: PathSet::EMPTY,
                },
            )
        };
        assert_eq!(ask(false), Target::Wait);
        assert!(matches!(ask(true), Target::On(_)));
    }
}
