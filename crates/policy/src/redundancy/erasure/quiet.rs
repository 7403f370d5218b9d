//! Nothing was wanted: remembered until something changes that says what is.

use crate::predict::is_fresh;
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathSet};

/// What is known of a path: all that is acknowledged, lost or given up there changes it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    in_flight: u64,
    cwnd: u64,
    loss: u32,
    mean_rtt: Duration,
    sampled_at: Option<Instant>,
    fresh: bool,
    reorders: bool,
}

impl Seen {
    fn of(now: Instant, p: &PathView) -> Self {
        Seen {
            in_flight: p.in_flight,
            cwnd: p.cwnd,
            loss: p.loss.0,
            mean_rtt: p.mean_rtt,
            sampled_at: p.sampled_at,
            fresh: is_fresh(now, p),
            reorders: p.reorders(now),
        }
    }
}

/// The paths as they were when nothing was wanted, and until when that holds.
#[derive(Default)]
pub(super) struct Quiet {
    holds: bool,
    until: Option<Instant>,
    eligible: PathSet,
    paths: Vec<Seen>,
    /// The counter of why.
    why: Option<usize>,
}

impl Quiet {
    /// Nothing is wanted, and time alone changes that behind `until` at the earliest.
    pub fn begin(&mut self, cx: &AssocView<'_>, until: Option<Instant>, why: Option<usize>) {
        (self.holds, self.until, self.eligible, self.why) = (true, until, cx.eligible, why);
        self.paths.clear();
        self.paths.extend(cx.paths.iter().map(|p| Seen::of(cx.now, p)));
    }
    /// Something left or was restored.
    pub fn end(&mut self) {
        self.holds = false;
    }
    /// Is still nothing wanted?
    pub fn holds(&mut self, cx: &AssocView<'_>) -> bool {
        self.holds = self.holds
            && self.until.is_none_or(|t| cx.now <= t)
            && self.eligible == cx.eligible
            && self.paths.iter().copied().eq(cx.paths.iter().map(|p| Seen::of(cx.now, p)));
        self.holds
    }
    /// The counter of why nothing was.
    pub const fn why(&self) -> Option<usize> {
        self.why
    }
}
