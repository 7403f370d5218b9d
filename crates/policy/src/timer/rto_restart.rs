//! RTO restart: the timer counts from the earliest outstanding packet when few are outstanding.
//!
//! Source: RFC 7765. The standard restart gives the earliest packet up to one round trip too much; with fewer than
//! four packets outstanding or waiting nothing but the timer can repair, so its age is taken off.
//! Deviation: counted per path; what waits in the send queue counts in packets of that path.
//! Parameters: `threshold` packets (rrthresh), and the limits of the standard timer in ms.

use super::{Arm, Limits, RTO_INITIAL, RTO_MAX, RTO_MIN, TICK, TimerPolicy};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant};

pub(super) const POLICY: Policy<dyn TimerPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Timer,
        name: "rto_restart",
        source: "RFC 7765",
        file: file!(),
        summary: "Takes the age of the earliest packet off a restarted timer when few packets are outstanding.",
        params: &[
            RTO_MIN,
            RTO_INITIAL,
            RTO_MAX,
            ParamInfo::count(
                "threshold",
                4,
                "packets",
                1,
                64,
                "fewer outstanding and waiting packets take the age off",
            ),
        ],
    },
    build: |p| Box::new(RtoRestart::new(p)),
};

struct RtoRestart {
    limits: Limits,
    threshold: u64,
}

impl RtoRestart {
    fn new(p: &Params) -> Self {
        RtoRestart { limits: Limits::new(p), threshold: p.count("threshold") }
    }
}

impl TimerPolicy for RtoRestart {
    fn rto(&self, p: &PathView) -> Duration {
        self.limits.backed_off(self.limits.base(p, self.limits.min), p.backoff)
    }
    fn arm(&self, cx: &AssocView<'_>, p: &PathView, why: Arm) -> Instant {
        let waiting = cx.unsent.div_ceil(p.mtu.max(1));
        match why {
            Arm::Progress { oldest_sent, .. } if u64::from(p.packets_in_flight) + waiting < self.threshold => {
                (oldest_sent + self.rto(p)).max(cx.now + TICK)
            }
            _ => cx.now + self.rto(p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};

    #[test]
    fn takes_the_age_off_only_when_little_is_outstanding() {
        let p = built(&POLICY, "", 0);
        let mut s = Scene::new(1, 0);
        s.rtt(0, 100).packets_in_flight = 3;
        let progress = |age| Arm::Progress { oldest_sent: s.now - ms(age), old_deadline: None };
        assert_eq!(p.arm(&s.cx(), &s.paths[0], progress(100)), s.now + ms(900));
        assert_eq!(p.arm(&s.cx(), &s.paths[0], progress(5_000)), s.now + TICK, "never in the past");
        assert_eq!(p.arm(&s.cx(), &s.paths[0], Arm::Started), s.now + ms(1_000));
        let more = Scene { unsent: 1, ..Scene::new(1, 0) };
        assert_eq!(p.arm(&more.cx(), &s.paths[0], progress(100)), s.now + ms(1_000), "one more waits");
    }
}
