//! Reports by TSN.
//!
//! Source: RFC 9260 §7.2.4, highest TSN newly acknowledged. A copy is reported missing by a SACK that newly
//! acknowledges a higher TSN; in fast recovery every SACK that advances the cumulative TSN reports all holes.
//! Right on one path only, and only while TSNs leave in order. A hole in recovery is recognised by the report it
//! got when it became one. Parameter `remember` 1 looks at the highest TSN acknowledged since the cumulative TSN advanced
//! last, so that a SACK which only fills a hole, or says nothing new, reports the holes below that too.

use super::LossCount;
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::{AssocView, CopyView, SackView};

pub(super) const POLICY: Policy<dyn LossCount> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCount,
        name: "tsn",
        source: "RFC 9260 §7.2.4",
        file: file!(),
        summary: "One report per SACK that newly acknowledges a higher TSN (HTNA).",
        params: &[ParamInfo::flag(
            "remember",
            false,
            "the highest TSN acknowledged since the cumulative one advanced counts, whichever SACK it was",
        )],
    },
    build: |p| Box::new(ByTsn { remember: p.flag("remember") }),
};

struct ByTsn {
    remember: bool,
}

impl LossCount for ByTsn {
    fn asks(&self) -> Asks {
        Asks::ALL_COPIES
    }
    fn reports(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> u8 {
        let highest = if self.remember { sack.highest_since_advance } else { sack.highest_newly_acked };
        let passed = highest.is_some_and(|h| copy.chunk.tsn.before(h));
        u8::from(passed || super::hole_in_recovery(cx, sack, copy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, copy, sack};
    use anabranch_base::Tsn;

    #[test]
    fn counts_below_the_highest_newly_acknowledged() {
        let s = Scene::new(1, 0);
        let seen = sack(Some(Tsn(45)));
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 0, 4)), 1);
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(46, 0, 6)), 0);
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &sack(None), &copy(44, 0, 4)), 0);
    }

    #[test]
    fn counts_across_the_wrap() {
        let s = Scene::new(1, 0);
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &sack(Some(Tsn(2))), &copy(u32::MAX, 0, 0)), 1);
    }

    #[test]
    fn recovery_counts_known_holes_when_the_cumulative_tsn_advances() {
        let mut s = Scene::new(1, 0);
        let mut hole = copy(50, 0, 4);
        hole.misses = 1;
        let mut seen = sack(Some(Tsn(45)));
        seen.cumulative_advanced = true;
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &hole), 0, "not in recovery");
        s.paths[0].in_recovery = true;
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &hole), 1);
        hole.misses = 0;
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &hole), 0, "never passed, so no hole");
    }

    #[test]
    fn what_an_earlier_sack_acknowledged_may_count() {
        let s = Scene::new(1, 0);
        let seen = SackView { highest_since_advance: Some(Tsn(45)), ..sack(Some(Tsn(42))) };
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 0, 4)), 0);
        assert_eq!(built(&POLICY, "remember=1", 0).reports(&s.cx(), &seen, &copy(44, 0, 4)), 1);
        assert_eq!(built(&POLICY, "remember=1", 0).reports(&s.cx(), &seen, &copy(46, 0, 6)), 0);
    }
}
