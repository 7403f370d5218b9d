//! A path is active until it has failed too often.
//!
//! Source: RFC 9260 §8.2 and §8.3. More errors in a row than Path.Max.Retrans make it inactive; heartbeats go on
//! at their interval plus the timeout. No parameters.

use super::PathStatePolicy;
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{PathState, PathView};
use anabranch_base::Duration;

pub(super) const POLICY: Policy<dyn PathStatePolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::PathState,
        name: "rfc9260",
        source: "RFC 9260 §8.2, §8.3",
        file: file!(),
        summary: "Inactive above Path.Max.Retrans errors in a row.",
        params: &[],
    },
    build: |_| Box::new(Rfc9260),
};

struct Rfc9260;

impl PathStatePolicy for Rfc9260 {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn after_timeout(&self, p: &PathView, max_retrans: u16) -> PathState {
        if p.errors > max_retrans { PathState::Inactive } else { p.state }
    }
    fn leaves_above(&self, max_retrans: u16) -> u16 {
        max_retrans
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
    fn inactive_above_the_limit() {
        let mut s = Scene::new(1, 0);
        s.paths[0].errors = 5;
        assert_eq!(built(&POLICY, "", 0).after_timeout(&s.paths[0], 5), PathState::Active);
        s.paths[0].errors = 6;
        assert_eq!(built(&POLICY, "", 0).after_timeout(&s.paths[0], 5), PathState::Inactive);
        s.paths[0].state = PathState::Unconfirmed;
        s.paths[0].errors = 1;
        assert_eq!(built(&POLICY, "", 0).after_timeout(&s.paths[0], 5), PathState::Unconfirmed);
    }

    #[test]
    fn heartbeat_intervals() {
        let mut s = Scene::new(1, 0);
        assert_eq!(built(&POLICY, "", 0).heartbeat(&s.paths[0], ms(1_000), ms(30_000)), Some(ms(31_000)));
        s.paths[0].state = PathState::Unconfirmed;
        assert_eq!(built(&POLICY, "", 0).heartbeat(&s.paths[0], ms(1_000), ms(30_000)), Some(ms(1_000)));
    }
}
