//! Most important class first, inside a class the lowest TSN.
//!
//! Source: Cheng, Shih, Ke, Zhou 2011 (P4), §2.3 of our specification: differential retransmission.
//! Classes above 2 count as 2. Deviation: a chunk is promoted by one class for every two timeouts it has waited
//! since it was marked, so that no class starves and the cumulative TSN cannot stand still for ever; the timeout is
//! estimated from the round-trip time of its last path.
//! Parameters: `rto_floor` ms, least timeout used for the promotion.

use super::RetransmissionOrder;
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
    /// Class less one per two timeouts of waiting.
    fn rank(&self, cx: &AssocView<'_>, c: &ChunkView) -> u64 {
        let estimate = c.last_path.and_then(|p| cx.path(p)).map_or(Duration::ZERO, |p| p.srtt + p.rttvar * 4);
        let patience = estimate.max(self.rto_floor) * 2;
        let waited = c.marked_at.map_or(Duration::ZERO, |t| cx.now - t);
        u64::from(c.class.min(2)).saturating_sub(waited.as_nanos() / patience.as_nanos().max(1))
    }
}

impl RetransmissionOrder for ClassThenTsn {
    fn first(&self, cx: &AssocView<'_>, marked: &[ChunkView]) -> usize {
        // The first of equals is the lowest TSN.
        marked.iter().enumerate().min_by_key(|(_, c)| self.rank(cx, c)).map_or(0, |(i, _)| i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn scene(classes: [u8; 4]) -> Scene {
        let mut s = Scene::new(1, 4);
        for (c, class) in s.chunks.iter_mut().zip(classes) {
            (c.class, c.marked_at) = (class, Some(s.now));
        }
        s
    }

    #[test]
    fn class_then_tsn_order() {
        let p = ClassThenTsn { rto_floor: ms(1_000) };
        let s = scene([2, 1, 0, 0]);
        assert_eq!(p.first(&s.cx(), &s.chunks), 2);
        let s = scene([7, 2, 3, 2]);
        assert_eq!(p.first(&s.cx(), &s.chunks), 0, "classes from 2 on are equal");
    }

    #[test]
    fn age_promotes() {
        let p = ClassThenTsn { rto_floor: ms(1_000) };
        let mut s = scene([2, 1, 1, 1]);
        s.chunks[0].marked_at = Some(s.now - ms(1_999));
        assert_eq!(p.first(&s.cx(), &s.chunks), 1);
        s.chunks[0].marked_at = Some(s.now - ms(2_000));
        assert_eq!(p.first(&s.cx(), &s.chunks), 0);
    }

    #[test]
    fn patience_grows_with_the_round_trip() {
        let p = ClassThenTsn { rto_floor: ms(1_000) };
        let mut s = scene([2, 1, 1, 1]);
        s.chunks[0].marked_at = Some(s.now - ms(2_500));
        s.chunks[0].last_path = Some(anabranch_base::PathId(0));
        s.rtt(0, 1_500);
        assert_eq!(p.first(&s.cx(), &s.chunks), 1);
    }
}
