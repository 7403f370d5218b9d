//! Radio while the path has capacity to spare, congestion when it has none.
//!
//! Source: Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §VI.C. The residual capacity is that of the distribution period at
//! hand; before there is one, and after a timeout, it is congestion.
//! Deviation: with `guard` a loss is congestion, too, when the smoothed round trip exceeds that of the heartbeat pairs by a
//! quarter and 5 ms: a queue has grown. As printed (`guard=0`) a loss lowers the rate sent, so that whatever was lost
//! looks like radio.
//! Parameters: `guard`.

use super::{Cause, LossCause, LossEvent, LossKind};
use crate::asks::{Asks, Counter};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::Duration;

pub(super) const POLICY: Policy<dyn LossCause> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCause,
        name: "residual_capacity",
        source: "Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §VI.C",
        file: file!(),
        summary: "Fast-retransmit losses are radio while the path has residual capacity, else congestion.",
        params: &[ParamInfo::flag("guard", true, "a round trip that shows a queue means congestion")],
    },
    build: |p| Box::new(ResidualCapacity::new(p)),
};

struct ResidualCapacity {
    guard: bool,
    counters: [Counter; 2],
}

impl ResidualCapacity {
    fn new(p: &Params) -> Self {
        ResidualCapacity { guard: p.flag("guard"), counters: [("radio", 0), ("congestion", 0)] }
    }
    fn has_queue(&self, p: &PathView) -> bool {
        let least = p.reference_rtt;
        self.guard && !least.is_zero() && p.srtt > least + least / 4 + Duration::from_millis(5)
    }
}

impl LossCause for ResidualCapacity {
    fn asks(&self) -> Asks {
        Asks::ESTIMATES
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn classify(&mut self, cx: &AssocView<'_>, e: &LossEvent) -> Cause {
        let Some(p) = cx.path(e.path).filter(|_| e.kind == LossKind::FastRetransmit) else { return Cause::Congestion };
        let radio = p.signals.spare_rate.is_some_and(|r| r > 0) && !self.has_queue(p);
        if e.new_episode {
            self.counters[usize::from(!radio)].1 += 1;
        }
        if radio { Cause::Radio } else { Cause::Congestion }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, loss, ms};

    #[test]
    fn residual_capacity_decides() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 100);
        let mut p = built(&POLICY, "", 0);
        assert_eq!(p.classify(&s.cx(), &loss(0)), Cause::Congestion, "nothing is known");
        for (spare, cause) in [(1, Cause::Radio), (0, Cause::Congestion), (-9, Cause::Congestion)] {
            s.paths[0].signals.spare_rate = Some(spare);
            assert_eq!(p.classify(&s.cx(), &loss(0)), cause);
        }
        s.paths[0].signals.spare_rate = Some(1);
        let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        assert_eq!(p.classify(&s.cx(), &timeout), Cause::Congestion);
        assert_eq!(p.classify(&s.cx(), &LossEvent { new_episode: false, ..loss(0) }), Cause::Radio);
        assert_eq!(p.counters(), [("radio", 1), ("congestion", 3)]);
    }

    #[test]
    fn a_queue_is_a_guard_against_it() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 130).reference_rtt = ms(100);
        s.paths[0].signals.spare_rate = Some(1);
        assert_eq!(built(&POLICY, "", 0).classify(&s.cx(), &loss(0)), Cause::Radio);
        s.paths[0].srtt = ms(131);
        assert_eq!(built(&POLICY, "", 0).classify(&s.cx(), &loss(0)), Cause::Congestion);
        assert_eq!(built(&POLICY, "guard=0", 0).classify(&s.cx(), &loss(0)), Cause::Radio);
    }
}
