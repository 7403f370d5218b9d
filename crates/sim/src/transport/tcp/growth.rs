//! How the congestion window grows and falls: Reno (RFC 5681) here, CUBIC in `cubic.rs`.

use super::hystart::{LARGEST_STEP, Step};
use super::sender::Sender;
use anabranch_base::{Duration, Instant};

/// What a congestion control that couples subflows has in place of Reno's constants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::transport) struct Terms {
    /// Was the window what limited the sender? Otherwise it does not grow.
    pub grows: bool,
    /// Segments by which an acknowledgement opens the window in congestion avoidance; may close it.
    pub increase: f64,
    /// Part of the window that a loss leaves.
    pub left: f64,
}

impl Sender {
    /// Opens the window for an acknowledgement of something new, however much (RFC 5681 §3.1).
    pub(super) fn grow(&mut self) {
        if self.una == 1 {
            self.cwnd = f64::from(self.config.initial_window); // The SYN.
        } else if self.terms.is_some_and(|t| !t.grows) {
        } else if self.cwnd < self.ssthresh {
            self.cwnd += 1.0;
        } else if let Some(terms) = self.terms {
            self.cwnd = (self.cwnd + terms.increase).max(1.0);
        } else {
            self.cwnd += 1.0 / self.cwnd;
        }
    }

    /// Halves, or does what CUBIC does; the window becomes what is left, or `window` after a time-out.
    pub(super) fn reduce(&mut self, window: Option<f64>) {
        if self.reduce_cubic(window) {
            return;
        }
        let left = self.terms.map_or(0.5, |t| t.left);
        let half = if self.config.halve_flight {
            (self.max - self.una).saturating_sub(self.limited) as f64 * left
        } else {
            (self.cwnd + f64::from(self.inflation)).min(f64::from(self.config.window)) * left
        };
        self.ssthresh = libm::floor(half).max(2.0);
        let half = if self.config.halve_flight { self.ssthresh } else { half };
        self.cwnd = window.unwrap_or(half);
    }

    /// Opens the window for `acked` segments that have been acknowledged, by the rule of the configuration.
    pub(super) fn grow_by(&mut self, now: Instant, acked: u64) {
        if self.cubic.is_none() {
            return self.grow();
        }
        let hystart = self.hystart.as_mut().map(|h| h.acknowledged(now, self.una, self.max));
        if self.una == 1 && acked > 0 {
            self.cwnd = f64::from(self.config.initial_window); // The SYN.
        } else if self.cwnd < self.ssthresh {
            self.grow_slow_start(acked, hystart);
        } else {
            self.hystart = None;
            let rtt = self.rto.srtt().unwrap_or(Duration::ZERO);
            if let Some(cubic) = &mut self.cubic {
                self.cwnd = cubic.grow(now, self.cwnd, acked, rtt);
            }
        }
    }

    fn grow_slow_start(&mut self, acked: u64, hystart: Option<Step>) {
        let Some(cubic) = &mut self.cubic else { return };
        cubic.slow_start();
        // What doubles in a round may be filled by half before.
        let half_full = (self.max - self.una + acked) as f64 * 2.0 > self.cwnd;
        let by = match hystart {
            Some(Step::Over) => {
                self.hystart = None;
                self.ssthresh = self.cwnd;
                return;
            }
            Some(Step::Grow(by)) => by,
            None => acked.min(LARGEST_STEP) as f64,
        };
        if cubic.is_limit() || half_full {
            self.cwnd = (self.cwnd + by).min(self.ssthresh);
        }
    }

    /// Something waits and the congestion window has no room for it, or else it is not what limits the sender.
    pub(super) fn window_limits(&mut self, now: Instant, waits: bool) {
        let limits = waits && self.cwnd < f64::from(self.config.window);
        if let Some(cubic) = &mut self.cubic {
            cubic.limits(now, limits);
        }
    }

    /// CUBIC's reduction; says whether it was one.
    fn reduce_cubic(&mut self, window: Option<f64>) -> bool {
        let Some(cubic) = &mut self.cubic else { return false };
        self.hystart = None;
        let timeout = window.is_some();
        self.ssthresh = if timeout { cubic.time_out(self.cwnd) } else { cubic.reduce(self.cwnd) };
        self.cwnd = window.unwrap_or(self.ssthresh);
        true
    }
}
