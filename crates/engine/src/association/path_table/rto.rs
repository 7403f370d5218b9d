//! Timeouts within RTO.Max. Policies have limits of their own; whatever they answer, nothing of an association waits
//! longer than [`rto_max`](crate::config::Timers) for an answer.

use crate::association::{Association, State};
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::loss_timer::LossTimer;
use anabranch_policy::timer::{Arm, TimerPolicy};
use anabranch_policy::view::{AssocView, PathView};

/// Doublings beyond which every timeout is at its ceiling.
const MAX_DOUBLINGS: u32 = 16;

impl Association {
    /// RTO of a path, its back-off included.
    pub(in crate::association) fn rto(&self, p: PathId) -> Duration {
        let Some(path) = self.paths.get(p.index()) else { return self.within_rto_max(self.config.timers.rto_initial) };
        let signals = self.views.signals(p);
        self.within_rto_max(self.policies.timer.rto(&path.view(self.paths.mtu, signals)))
    }

    /// `base` doubled so many times (RFC 9260 §6.3.3 E2).
    pub(in crate::association) fn doubled(&self, base: Duration, times: u32) -> Duration {
        self.within_rto_max(double(base, times))
    }

    fn within_rto_max(&self, d: Duration) -> Duration {
        d.min(self.config.timers.rto_max)
    }

    /// `base` doubled for the chunk that the control timer repeats: INIT and COOKIE ECHO may have a ceiling of their own.
    pub(in crate::association) fn doubled_for_control(&self, base: Duration, times: u32) -> Duration {
        let setup = matches!(self.handshake.state(), State::CookieWait | State::CookieEchoed { .. });
        let most = self.config.timers.max_init_timeout.filter(|_| setup).unwrap_or(self.config.timers.rto_max);
        double(base, times).min(most)
    }
}

fn double(base: Duration, times: u32) -> Duration {
    Duration::from_nanos(base.as_nanos().saturating_mul(1 << times.min(MAX_DOUBLINGS)))
}

/// When T3 of `p` fires.
pub(in crate::association) fn t3(
    timer: &dyn TimerPolicy,
    max: Duration,
    cx: &AssocView<'_>,
    p: &PathView,
    why: Arm,
) -> Instant {
    timer.arm(cx, p, why).min(cx.now + max)
}

/// When the probe before T3 leaves.
pub(in crate::association) fn probe(
    timer: &dyn LossTimer,
    max: Duration,
    cx: &AssocView<'_>,
    p: &PathView,
) -> Option<Instant> {
    timer.deadline(cx, p).map(|at| at.min(cx.now + max))
}
