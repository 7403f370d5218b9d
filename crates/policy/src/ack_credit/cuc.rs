//! Credit when the path's own oldest chunk was acknowledged.
//!
//! Source: Iyengar, Amer, Stewart 2006 (CUC); draft-tuexen-tsvwg-sctp-multipath. Every path keeps a cumulative
//! point of its own, so a hole on one path does not stop the window of another.
//! Deviation: the point follows the order of packets on the path instead of TSNs, so it also holds for permuted
//! TSNs and needs no second variable for retransmissions. Parameters: `by_tsn` 1 has both variables of the paper, as the
//! reference simulator does: a loss that is repaired on its own path holds the window until it arrives. `when_full` 1
//! leaves out what is acknowledged cumulatively beyond the threshold while the window is not used in full.

use super::{AckCredit, Expects, PathAck, WHEN_FULL, counted};
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::AssocView;

pub(super) const POLICY: Policy<dyn AckCredit> = Policy {
    info: PolicyInfo {
        hook: Hook::AckCredit,
        name: "cuc",
        source: "Iyengar, Amer, Stewart 2006 (CUC); draft-tuexen-tsvwg-sctp-multipath",
        file: file!(),
        summary: "Acknowledged bytes count when the oldest chunk of their path was among them.",
        params: &[ParamInfo::flag("by_tsn", false, "a path expects TSNs and not what left first"), WHEN_FULL],
    },
    build: |p| Box::new(Cuc { by_tsn: p.flag("by_tsn"), when_full: p.flag("when_full") }),
};

struct Cuc {
    by_tsn: bool,
    when_full: bool,
}

impl AckCredit for Cuc {
    fn credit(&self, cx: &AssocView<'_>, ack: &PathAck) -> u64 {
        if ack.oldest_advanced { counted(self.when_full, cx, ack) } else { 0 }
    }
    fn expects(&self) -> Expects {
        if self.by_tsn { Expects::LowestTsn } else { Expects::FirstSent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, acked, built};

    #[test]
    fn follows_the_path_not_the_association() {
        let (s, cuc) = (Scene::new(1, 0), built(&POLICY, "", 0));
        assert_eq!(cuc.credit(&s.cx(), &acked(500, true, false)), 500);
        assert_eq!(cuc.credit(&s.cx(), &acked(500, false, true)), 0);
        assert!(!cuc.needs_order());
        assert_eq!(cuc.expects(), Expects::FirstSent);
        assert_eq!(built(&POLICY, "by_tsn=1", 0).expects(), Expects::LowestTsn);
    }

    #[test]
    fn beyond_the_threshold_a_window_half_used_may_count_for_less() {
        let mut s = Scene::new(1, 0);
        let of = |s: &Scene, params, fully_used| {
            let ack = PathAck { cumulative_bytes: 300, fully_used, ..acked(500, true, true) };
            built(&POLICY, params, 0).credit(&s.cx(), &ack)
        };
        assert_eq!([of(&s, "", false), of(&s, "when_full=1", false)], [500, 500], "slow start");
        s.paths[0].ssthresh = s.paths[0].cwnd - 1;
        assert_eq!([of(&s, "", false), of(&s, "when_full=1", false)], [500, 200]);
        assert_eq!(of(&s, "when_full=1", true), 500);
    }
}
