//! Reports by send order on a path: split fast retransmit.
//!
//! Source: Iyengar, Amer, Stewart 2006 (SFR); draft-tuexen-tsvwg-sctp-multipath. A copy is reported missing by a
//! SACK that newly acknowledges something sent later on the same path.
//! Deviation: the order is that of packets on the path, not of TSNs, so that it also holds when a scheduler sends
//! TSNs permuted and for second copies; on one path with rising TSNs both are the same. No parameters.

use super::LossCount;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, CopyView, SackView};

pub(super) const POLICY: Policy<dyn LossCount> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCount,
        name: "per_path",
        source: "Iyengar, Amer, Stewart 2006 (SFR); draft-tuexen-tsvwg-sctp-multipath",
        file: file!(),
        summary: "One report per SACK that newly acknowledges something sent later on the same path.",
        params: &[],
    },
    build: |_| Box::new(PerPath),
};

struct PerPath;

impl LossCount for PerPath {
    fn reports(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> u8 {
        let newest = sack.newest_seq.get(copy.path.index()).copied().flatten();
        let passed = newest.is_some_and(|s| s > copy.tx_seq);
        u8::from(passed || super::hole_in_recovery(cx, sack, copy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, copy, sack};
    use anabranch_base::Tsn;

    #[test]
    fn only_the_own_path_testifies() {
        let s = Scene::new(2, 0);
        let newest = [Some(9), None];
        let mut seen = sack(Some(Tsn(90)));
        seen.newest_seq = &newest;
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 0, 8)), 1);
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 0, 9)), 0);
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 1, 3)), 0, "nothing heard of its path");
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 7, 3)), 0, "unknown path");
    }

    #[test]
    fn a_descending_path_is_judged_by_send_order() {
        let s = Scene::new(2, 0);
        let newest = [None, Some(5)];
        let mut seen = sack(Some(Tsn(45)));
        seen.newest_seq = &newest;
        // 49 left before 45: it is missing although its TSN is higher. 44 left after it.
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(49, 1, 1)), 1);
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 1, 6)), 0);
    }
}
