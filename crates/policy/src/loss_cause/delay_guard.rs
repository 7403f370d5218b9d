//! A loss without a queue is radio.
//!
//! Source: ours, after the queue evidence of CMT-QA (Xu et al. 2013), reconstructed from its abstract. A
//! drop-tail queue that overflows was full just before, and a full queue shows in the round trip: when neither the
//! smoothed nor the newest one exceeds the smallest by more than a quarter, the link damaged the packet.
//! Timeouts stay congestion, and from the second in a row on the path counts as gone. Wrong for links with a queue
//! much shorter than a quarter of their round trip: leave it off there.
//! CMT-QA also takes it for congestion when the rate that the path handles has fallen by a fifth against the interval
//! before: `falling=0.2`, which needs an estimator of rates.
//! Parameters: `guard`, largest round trip over the smallest that still means "no queue"; `falling`.

use super::{Cause, LossCause, LossEvent, LossKind};
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::Ppm;

pub(super) const POLICY: Policy<dyn LossCause> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCause,
        name: "delay_guard",
        source: "ours, after Xu et al. 2013 (CMT-QA, reconstruction)",
        file: file!(),
        summary: "Fast-retransmit losses are radio while the round trip shows no queue, else congestion.",
        params: &[
            ParamInfo::number("guard", 1.25, "of min RTT", 1.0, 10.0, "round trip that still means no queue"),
            ParamInfo::number("falling", 1.0, "of one", 0.0, 1.0, "share that the handled rate may lose; all with 1"),
        ],
    },
    build: |p| Box::new(DelayGuard::new(p)),
};

struct DelayGuard {
    guard: Ppm,
    /// What must be left of the rate of the interval before.
    left: Ppm,
}

impl DelayGuard {
    fn new(p: &Params) -> Self {
        DelayGuard { guard: Ppm(p.ppm("guard") as u32), left: Ppm(1_000_000 - p.ppm("falling").min(1_000_000) as u32) }
    }
    fn has_fallen(&self, p: &PathView) -> bool {
        p.signals.handling_rate.bytes_per_sec() < self.left.of(p.signals.previous_rate.bytes_per_sec())
    }
}

impl LossCause for DelayGuard {
    fn asks(&self) -> Asks {
        if self.left == Ppm(0) { Asks::NOTHING } else { Asks::ESTIMATES }
    }
    fn classify(&mut self, cx: &AssocView<'_>, e: &LossEvent) -> Cause {
        let Some(p) = cx.path(e.path) else { return Cause::Congestion };
        match e.kind {
            LossKind::Timeout if p.consecutive_timeouts >= 2 => Cause::PathFailure,
            LossKind::Timeout => Cause::Congestion,
            LossKind::FastRetransmit => {
                let rtt = p.srtt.max(p.last_rtt).as_nanos();
                let quiet = self.guard.of(p.min_rtt.as_nanos());
                if rtt > 0 && rtt <= quiet && !self.has_fallen(p) { Cause::Radio } else { Cause::Congestion }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, loss, ms};

    #[test]
    fn the_queue_decides() {
        let mut s = Scene::new(1, 0);
        let mut p = built(&POLICY, "", 0);
        assert_eq!(p.classify(&s.cx(), &loss(0)), Cause::Congestion, "no sample, no acquittal");
        s.rtt(0, 40);
        assert_eq!(p.classify(&s.cx(), &loss(0)), Cause::Radio);
        s.paths[0].last_rtt = ms(51);
        assert_eq!(p.classify(&s.cx(), &loss(0)), Cause::Congestion);
        s.paths[0].last_rtt = ms(50);
        assert_eq!(p.classify(&s.cx(), &loss(0)), Cause::Radio);
    }

    #[test]
    fn a_falling_rate_decides() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 40);
        let rate = |n| anabranch_base::Rate::from_bytes_per_sec(n);
        s.paths[0].signals.previous_rate = rate(100_000);
        for (now, cause) in [(80_000, Cause::Radio), (79_999, Cause::Congestion)] {
            s.paths[0].signals.handling_rate = rate(now);
            assert_eq!(built(&POLICY, "falling=0.2", 0).classify(&s.cx(), &loss(0)), cause);
            assert_eq!(built(&POLICY, "", 0).classify(&s.cx(), &loss(0)), Cause::Radio);
        }
    }

    #[test]
    fn timeouts() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 40);
        let mut p = built(&POLICY, "", 0);
        let e = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        assert_eq!(p.classify(&s.cx(), &e), Cause::Congestion);
        s.paths[0].consecutive_timeouts = 2;
        assert_eq!(p.classify(&s.cx(), &e), Cause::PathFailure);
    }
}
