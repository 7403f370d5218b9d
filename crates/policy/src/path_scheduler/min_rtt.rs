//! Smallest smoothed round trip with room.
//!
//! Source: the default scheduler of multipath TCP (Paasch et al. 2014). A path without a sample
//! comes after those that have one. No parameters.

use super::{Decision, PathScheduler};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, QueueView};
use anabranch_base::Duration;

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "min_rtt",
        source: "Paasch, Ferlin, Alay, Bonaventure 2014; default of multipath TCP",
        file: file!(),
        summary: "The path with the smallest smoothed round trip that has room.",
        params: &[],
    },
    build: |_| Box::new(MinRtt),
};

struct MinRtt;

impl PathScheduler for MinRtt {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn next(&self, cx: &AssocView<'_>, _q: &QueueView<'_>) -> Decision {
        let rtt = |d: Duration| if d.is_zero() { Duration::MAX } else { d };
        match cx.open().min_by_key(|p| (rtt(p.srtt), p.id)) {
            Some(p) => Decision::Send { index: 0, path: p.id },
            None => Decision::Blocked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use anabranch_base::PathId;

    #[test]
    fn fastest_with_room() {
        let mut s = Scene::new(3, 2);
        s.rtt(1, 160);
        s.rtt(2, 30);
        assert_eq!(s.ask(&MinRtt), Decision::Send { index: 0, path: PathId(2) });
        s.close(2);
        assert_eq!(s.ask(&MinRtt), Decision::Send { index: 0, path: PathId(1) });
        s.close(1);
        assert_eq!(s.ask(&MinRtt), Decision::Send { index: 0, path: PathId(0) }, "no sample: last");
    }
}
