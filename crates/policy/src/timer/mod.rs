//! Retransmission timer: floor, restart, back-off.

use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant};

/// Why T3 is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// It was not running.
    Started,
    /// The earliest outstanding chunk was acknowledged and others remain.
    Progress {
        /// Transmission of the chunk that is now the earliest.
        oldest_sent: Instant,
        /// When the timer would have fired.
        old_deadline: Option<Instant>,
    },
}

/// Rules of T3.
pub trait TimerPolicy: Send {
    /// Timeout of `p`, back-off included.
    fn rto(&self, p: &PathView) -> Duration;
    /// When T3 fires.
    fn arm(&self, cx: &AssocView<'_>, p: &PathView, _why: Arm) -> Instant {
        cx.now + self.rto(p)
    }
    /// It fired; asked before anything leaves the path. Answers the new back-off exponent.
    fn expired(&mut self, p: &PathView) -> u8 {
        p.backoff.saturating_add(1).min(16)
    }
}
