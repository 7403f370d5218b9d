//! Timeouts within RTO.Max. Policies have limits of their own; whatever they answer, nothing of an association waits
//! longer than [`rto_max`](crate::config::Timers) for an answer.

use super::set::Policies;
use super::views::Views;
use crate::association::path_table::PathTable;
use crate::config::Timers;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::timer::Arm;
use anabranch_policy::view::{AssocView, PathView};

/// Least time from one packet beyond the window to the next.
const MIN_PROBE: Duration = Duration::from_millis(1);

/// What bounds timeouts.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtoLimits {
    initial: Duration,
    max: Duration,
}

impl RtoLimits {
    pub fn of(timers: &Timers) -> RtoLimits {
        RtoLimits { initial: timers.rto_initial, max: timers.rto_max }
    }
}

impl Policies {
    /// Other limits from now on.
    pub fn limit_rto(&mut self, timers: &Timers) {
        self.rto = RtoLimits::of(timers);
    }

    /// RTO of a path, its back-off included.
    pub fn rto(&self, p: &PathView) -> Duration {
        self.timer.rto(p).min(self.rto.max)
    }

    /// When T3 of `p` fires.
    pub fn t3(&self, cx: &AssocView<'_>, p: &PathView, why: Arm) -> Instant {
        self.timer.arm(cx, p, why).min(cx.now + self.rto.max)
    }

    /// When the probe before T3 leaves.
    pub fn tail_probe(&self, cx: &AssocView<'_>, p: &PathView) -> Option<Instant> {
        self.loss_timer.deadline(cx, p).map(|at| at.min(cx.now + self.rto.max))
    }

    /// When the next packet beyond the window may leave, after one on a path whose expiry is not answered.
    pub fn window_probe(&self, now: Instant, p: &PathView) -> Option<Instant> {
        let interval = self.timer.probe_interval(p)?;
        Some(now + interval.min(self.rto.max).max(MIN_PROBE))
    }
}

impl Views {
    /// RTO of a path, its back-off included.
    pub fn rto(&self, paths: &PathTable, policies: &Policies, id: PathId) -> Duration {
        match paths.get(id.index()) {
            Some(p) => policies.rto(&p.view(paths.mtu(), self.signals(id))),
            None => policies.rto.initial.min(policies.rto.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AssocConfig;
    use anabranch_policy::registry::Profile;

    /// However far T3 is backed off, and whatever limits the policy has of its own.
    #[test]
    fn no_rto_is_beyond_the_limit() {
        let mut policies =
            Policies::of_profile(&AssocConfig::new(Profile::named("sctp").expect("a profile"))).expect("policies");
        for (max, backoff) in [1, 100, 1_000, 60_000].into_iter().flat_map(|m| (0..20).map(move |b| (m, b))) {
            let max = Duration::from_millis(max);
            policies.limit_rto(&Timers { rto_max: max, ..Timers::default() });
            let p = PathView { srtt: Duration::from_millis(300), backoff, ..PathView::idle(PathId(0)) };
            let unlimited = policies.timer.rto(&p);
            assert_eq!(policies.rto(&p), unlimited.min(max), "backed off {backoff} times");
        }
    }
}
