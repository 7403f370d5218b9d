//! Timeouts within RTO.Max. Policies have limits of their own; whatever they answer, nothing of an association waits
//! longer than [`rto_max`](crate::config::Timers) for an answer.

use crate::association::Association;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::loss_timer::LossTimer;
use anabranch_policy::timer::{Arm, TimerPolicy};
use anabranch_policy::view::{AssocView, PathView};

impl Association {
    /// RTO of a path, its back-off included.
    pub(in crate::association) fn rto(&self, p: PathId) -> Duration {
        let rto = match self.paths.get(p.index()) {
            Some(path) => self.policies.timer.rto(&path.view(self.paths.mtu, self.views.signals(p))),
            None => self.config.timers.rto_initial,
        };
        rto.min(self.config.timers.rto_max)
    }
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
