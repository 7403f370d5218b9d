//! Most important class first, inside a class the lowest TSN.
//!
//! Source: Cheng, Shih, Ke, Zhou 2011 §III: differential retransmission.
//! Classes above 2 count as 2. Deviation: a chunk is promoted by one class for every two timeouts it has waited
//! since it was marked, so that no class starves and the cumulative TSN cannot stall for ever; the timeout is
//! estimated from the round-trip time of its last path.
//! Parameters: `rto_floor` ms, least timeout used for the promotion.

use super::{Rank, RetransmissionOrder};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};
use anabranch_base::Duration;

pub(super) const POLICY: Policy<dyn RetransmissionOrder> = Policy {
    info: PolicyInfo {
        hook: Hook::RetransmissionOrder,
        name: "class_then_tsn",
        source: "Cheng, Shih, Ke, Zhou 2011 (media streams), differential retransmission",
        file: file!(),
        summary: "The most important class first, with promotion by age.",
        params: &[ParamInfo::millis("rto_floor", 1_000, 1, 60_000, "least timeout used for promotion by age")],
    },
    build: |p| Box::new(ClassThenTsn::new(p)),
};

struct ClassThenTsn {
    rto_floor: Duration,
}

impl ClassThenTsn {
    fn new(p: &Params) -> Self {
        ClassThenTsn { rto_floor: p.millis("rto_floor") }
    }
    fn patience(&self, cx: &AssocView<'_>, c: &ChunkView) -> Duration {
        let estimate = c.last_path.and_then(|p| cx.path(p)).map_or(Duration::ZERO, |p| p.srtt + p.rttvar * 4);
        (estimate.max(self.rto_floor) * 2).max(Duration::from_nanos(1))
    }
}

impl RetransmissionOrder for ClassThenTsn {
    /// Class less one per two timeouts of waiting.
    fn rank(&self, cx: &AssocView<'_>, c: &ChunkView) -> Rank {
        let (patience, marked_at) = (self.patience(cx, c), c.marked_at.unwrap_or(cx.now));
        let steps = cx.now.since(marked_at).as_nanos() / patience.as_nanos();
        let place = u64::from(c.class.min(2)).saturating_sub(steps);
        Rank { place, until: (place > 0).then(|| marked_at + patience * (steps + 1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};

    fn scene(classes: [u8; 4]) -> Scene {
        let mut s = Scene::new(1, 4);
        for (c, class) in s.chunks.iter_mut().zip(classes) {
            (c.class, c.marked_at) = (class, Some(s.now));
        }
        s
    }

    /// Index of the chunk the engine would take first.
    fn first(p: &dyn RetransmissionOrder, s: &Scene) -> usize {
        let places = s.chunks.iter().enumerate().map(|(i, c)| (p.rank(&s.cx(), c).place, i));
        places.min().map_or(0, |(_, i)| i)
    }

    #[test]
    fn class_then_tsn_order() {
        let p = built(&POLICY, "", 0);
        assert_eq!(first(&*p, &scene([2, 1, 0, 0])), 2);
        assert_eq!(first(&*p, &scene([7, 2, 3, 2])), 0, "classes from 2 on are equal");
    }

    #[test]
    fn age_promotes() {
        let p = built(&POLICY, "", 0);
        let mut s = scene([2, 1, 1, 1]);
        s.chunks[0].marked_at = Some(s.now - ms(1_999));
        assert_eq!(first(&*p, &s), 1);
        s.chunks[0].marked_at = Some(s.now - ms(2_000));
        assert_eq!(first(&*p, &s), 0);
    }

    /// A rank says itself when it ends: up to then it is what it was, and from then on a better one.
    #[test]
    fn a_rank_ends_when_the_chunk_is_promoted() {
        let p = ClassThenTsn { rto_floor: ms(400) };
        for (class, promotions) in [(0, 0), (1, 1), (2, 2), (9, 2)] {
            let mut s = scene([class; 4]);
            s.chunks[0].marked_at = Some(s.now - ms(123));
            let mut rank = p.rank(&s.cx(), &s.chunks[0]);
            for _ in 0..promotions {
                let until = rank.until.expect("an end");
                s.now = until - ms(1);
                assert_eq!(p.rank(&s.cx(), &s.chunks[0]), rank);
                s.now = until;
                let next = p.rank(&s.cx(), &s.chunks[0]);
                assert_eq!(next.place + 1, rank.place);
                rank = next;
            }
            assert_eq!(rank, Rank::default(), "class {class}: nothing is better");
        }
    }

    #[test]
    fn patience_grows_with_the_round_trip() {
        let p = built(&POLICY, "", 0);
        let mut s = scene([2, 1, 1, 1]);
        s.chunks[0].marked_at = Some(s.now - ms(2_500));
        s.chunks[0].last_path = Some(anabranch_base::PathId(0));
        s.rtt(0, 1_500);
        assert_eq!(first(&*p, &s), 1);
    }
}
