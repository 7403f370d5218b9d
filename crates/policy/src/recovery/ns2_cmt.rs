//! As `Agent/SCTP/CMT` of ns-2.35: episodes by TSN, path by path; what was lost keeps its place in the window.
//!
//! Source: ns-2.35, `sctp/sctp-cmt.cc`, found by its behaviour (experiments/crosscheck-ns2). An episode lasts until
//! the highest TSN of its start is acknowledged, beyond timeouts, and only what has a higher TSN begins another one. Each
//! SACK that declares something lost lets one packet leave, on the path that lost it or not at all. Max.Burst applies
//! once something that was sent again is acknowledged.

use super::{Bursts, Loss, Pass, Progress, Recovery};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Recovery> = Policy {
    info: PolicyInfo {
        hook: Hook::Recovery,
        name: "ns2_cmt",
        source: "ns-2.35, Agent/SCTP/CMT",
        file: file!(),
        summary: "Episodes by TSN, beyond timeouts; one packet for each SACK with losses, on its path; losses keep their place.",
        params: &[],
    },
    build: |_| Box::new(Ns2Cmt),
};

struct Ns2Cmt;

impl Recovery for Ns2Cmt {
    fn asks(&self) -> Asks {
        Asks::REPAIRED
    }
    fn begins(&self, l: &Loss) -> bool {
        l.beyond
    }
    fn over(&self, p: &Progress) -> bool {
        p.all
    }
    fn timeout_ends(&self) -> bool {
        false
    }
    fn pass(&self, _begins: bool) -> Pass {
        Pass::OnItsPath
    }
    fn holds_place(&self) -> bool {
        true
    }
    fn bursts(&self) -> Bursts {
        Bursts::OnceRepaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;

    #[test]
    fn episodes_go_by_tsn() {
        let p = built(&POLICY, "", 0);
        for other in [false, true] {
            assert!(p.begins(&Loss { in_episode: other, beyond: true }));
            assert!(!p.begins(&Loss { in_episode: other, beyond: false }));
            assert!(p.over(&Progress { own: other, all: true }));
            assert!(!p.over(&Progress { own: other, all: false }));
            assert_eq!(p.pass(other), Pass::OnItsPath);
        }
        assert!(!p.timeout_ends() && !p.repairs_first() && p.holds_place());
        assert_eq!(p.bursts(), Bursts::OnceRepaired);
    }
}
