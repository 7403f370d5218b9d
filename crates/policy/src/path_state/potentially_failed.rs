//! A path that timed out carries no data until it answers.
//!
//! Source: RFC 7829; Natarajan et al. 2009 (CMT-PF). More errors than PFMR, by default one timeout, make a path
//! potentially failed: no data, a heartbeat at once and one per timeout, until an answer makes it active.
//! Parameters: `pfmr`, errors tolerated before (PF.Max.Retrans).

use super::PathStatePolicy;
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{PathState, PathView};
use anabranch_base::Duration;

pub(super) const POLICY: Policy<dyn PathStatePolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::PathState,
        name: "potentially_failed",
        source: "RFC 7829; Natarajan et al. 2009 (CMT-PF)",
        file: file!(),
        summary: "No data on a path that timed out; one heartbeat per timeout until it answers.",
        params: &[ParamInfo::count("pfmr", 0, "errors", 0, 255, "errors tolerated before (PF.Max.Retrans)")],
    },
    build: |p| Box::new(PotentiallyFailed::new(p)),
};

struct PotentiallyFailed {
    pfmr: u16,
}

impl PotentiallyFailed {
    fn new(p: &Params) -> Self {
        PotentiallyFailed { pfmr: p.count("pfmr") as u16 }
    }
}

impl PathStatePolicy for PotentiallyFailed {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn after_timeout(&self, p: &PathView, max_retrans: u16) -> PathState {
        super::with_potential_failure(p, self.pfmr, max_retrans)
    }
    fn leaves_above(&self, max_retrans: u16) -> u16 {
        self.pfmr.min(max_retrans)
    }
    fn heartbeat(&self, p: &PathView, rto: Duration, interval: Duration) -> Option<Duration> {
        Some(super::standard_heartbeat(p, rto, interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};

    #[test]
    fn first_timeout_then_the_limit() {
        let mut s = Scene::new(1, 0);
        let p = built(&POLICY, "", 0);
        let mut after = |errors, state| {
            (s.paths[0].errors, s.paths[0].state) = (errors, state);
            p.after_timeout(&s.paths[0], 5)
        };
        assert_eq!(after(1, PathState::Active), PathState::PotentiallyFailed);
        assert_eq!(after(5, PathState::PotentiallyFailed), PathState::PotentiallyFailed);
        assert_eq!(after(6, PathState::PotentiallyFailed), PathState::Inactive);
        assert_eq!(after(1, PathState::Unconfirmed), PathState::Unconfirmed, "never was in use");
        assert_eq!(built(&POLICY, "pfmr=1", 0).after_timeout(&s.paths[0], 5), PathState::Unconfirmed);
    }

    /// Path.Max.Retrans makes a path inactive even where PFMR would tolerate more (RFC 7829 §3.1).
    #[test]
    fn data_leaves_at_the_lesser_limit() {
        let p = built(&POLICY, "pfmr=3", 0);
        assert_eq!([2, 3, 5].map(|max| p.leaves_above(max)), [2, 3, 3]);
    }

    #[test]
    fn one_probe_per_timeout() {
        let mut s = Scene::new(1, 0);
        s.paths[0].state = PathState::PotentiallyFailed;
        let p = built(&POLICY, "", 0);
        assert_eq!(p.heartbeat(&s.paths[0], ms(2_000), ms(30_000)), Some(ms(2_000)));
    }
}
