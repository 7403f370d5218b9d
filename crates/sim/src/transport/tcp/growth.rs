//! How the congestion window grows and falls: Reno (RFC 5681) here, CUBIC in `cubic.rs`.

use super::hystart::{LARGEST_STEP, Step};
use super::sender::{Phase, Sender};
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

/// How much of its window a sender uses, as Linux keeps it: an answer holds for a window of segments, in which "full"
/// outweighs "not full".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    full: bool,
    /// Most segments outstanding since the answer began.
    most: u64,
    /// The answer holds until this is acknowledged.
    until: u64,
}

impl Usage {
    /// Something has left, or would have if the window were not full.
    pub(super) fn note(&mut self, full: bool, una: u64, next: u64) {
        let out = next.saturating_sub(una);
        if full || una >= self.until || (!self.full && out > self.most) {
            *self = Usage { full, most: out, until: next };
        }
    }

    /// What doubles in a round may be filled by half before.
    fn may_grow(&self, cwnd: f64, slow_start: bool) -> bool {
        if slow_start { cwnd < self.most as f64 * 2.0 } else { self.full }
    }
}

impl Sender {
    /// Is the window used as far as it has to be before it may grow?
    fn may_grow(&self) -> bool {
        !self.config.validate_window
            || self.terms.is_some()
            || self.usage.may_grow(self.cwnd, self.cwnd < self.ssthresh)
    }

    /// Opens the window for an acknowledgement of something new, however much (RFC 5681 §3.1).
    pub(super) fn grow(&mut self) {
        if self.una == 1 {
            self.cwnd = f64::from(self.config.initial_window); // The SYN.
        } else if self.terms.is_some_and(|t| !t.grows) || !self.may_grow() {
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
            // In recovery most of what no acknowledgement covers has long arrived, and each of its duplicates let something
            // new leave: what is in the network is no more than the window without them.
            let flight = (self.max - self.una).saturating_sub(self.limited) as f64;
            let window = if self.phase == Phase::Recovering { self.cwnd.max(self.ssthresh) } else { self.cwnd };
            flight.min(window) * left
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
            let (rtt, grows) = (self.rto.srtt().unwrap_or(Duration::ZERO), self.may_grow());
            if let Some(cubic) = self.cubic.as_mut().filter(|_| grows) {
                self.cwnd = cubic.grow(now, self.cwnd, acked, rtt);
            }
        }
    }

    fn grow_slow_start(&mut self, acked: u64, hystart: Option<Step>) {
        let (validates, used) = (self.config.validate_window, self.may_grow());
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
        if (validates && used) || (!validates && (cubic.is_limit() || half_full)) {
            self.cwnd = (self.cwnd + by).min(self.ssthresh);
        }
    }

    /// Something waits and the congestion window has no room for it, or else it is not what limits the sender.
    pub(super) fn window_limits(&mut self, now: Instant, waits: bool) {
        // By Linux's rule CUBIC's clock stands only while nothing is outstanding.
        let limits = if self.config.validate_window {
            self.una < self.max
        } else {
            waits && self.cwnd < f64::from(self.config.window)
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_holds_for_a_window_of_segments() {
        let mut usage = Usage::default();
        usage.note(true, 10, 14);
        usage.note(false, 12, 14);
        assert!(usage.may_grow(4.0, false), "what left with the full window is not acknowledged yet");
        usage.note(false, 14, 16);
        assert!(!usage.may_grow(4.0, false));
        assert!(usage.may_grow(3.0, true) && !usage.may_grow(4.0, true), "half full in slow start");
        usage.note(false, 15, 18);
        assert!(usage.may_grow(5.0, true), "the most of the round counts");
    }
}
