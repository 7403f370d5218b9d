//! Credit when the path's own oldest chunk was acknowledged.
//!
//! Source: Iyengar, Amer, Stewart 2006 (CUC); draft-tuexen-tsvwg-sctp-multipath. Every path keeps a cumulative
//! point of its own, so a hole on one path does not stop the window of another.
//! Deviation: the point follows the order of packets on the path instead of TSNs, so it also holds for permuted
//! TSNs and needs no second variable for retransmissions. No parameters.

use super::{AckCredit, PathAck};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;

pub(super) const POLICY: Policy<dyn AckCredit> = Policy {
    info: PolicyInfo {
        hook: Hook::AckCredit,
        name: "cuc",
        source: "Iyengar, Amer, Stewart 2006 (CUC); draft-tuexen-tsvwg-sctp-multipath",
        file: file!(),
        summary: "Acknowledged bytes count when the oldest chunk of their path was among them.",
        params: &[],
    },
    build: |_| Box::new(Cuc),
};

struct Cuc;

impl AckCredit for Cuc {
    fn credit(&self, _cx: &AssocView<'_>, ack: &PathAck) -> u64 {
        if ack.oldest_advanced { ack.bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, acked};

    #[test]
    fn follows_the_path_not_the_association() {
        let s = Scene::new(1, 0);
        assert_eq!(Cuc.credit(&s.cx(), &acked(500, true, false)), 500);
        assert_eq!(Cuc.credit(&s.cx(), &acked(500, false, true)), 0);
        assert!(!Cuc.needs_order());
    }
}
