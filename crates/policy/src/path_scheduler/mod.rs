//! Which ready chunk leaves on which path, now.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, Direction, QueueView};
use anabranch_base::{Instant, PathId, PathSet, Tsn};

/// A scheduler's answer. The engine verifies it (path eligible, windows, index) before it acts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// Send chunk `index` of the look-ahead on `path`.
    Send {
        /// Index into [`QueueView::chunks`].
        index: usize,
        /// Path the chunk is sent on.
        path: PathId,
    },
    /// Send chunk `index` on each of `paths`.
    Copies {
        /// Index into [`QueueView::chunks`].
        index: usize,
        /// Paths that get a copy each.
        paths: PathSet,
    },
    /// Nothing before this instant, although a path is open.
    WaitUntil(Instant),
    /// Nothing until something changes.
    Blocked,
}

/// What became of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Settled {
    /// The chunk left.
    Sent {
        /// Its TSN.
        tsn: Tsn,
        /// Path it left on.
        path: PathId,
        /// Payload bytes.
        len: u64,
    },
    /// The engine waits as asked.
    Waiting(Instant),
    /// Nothing left.
    Blocked,
    /// The engine refused to carry the decision out.
    Refused,
}

/// How far ahead of transmission chunks get their TSN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookAhead {
    /// Bytes; 0 means one chunk.
    pub bytes: u64,
    /// Refill only once the window is empty (rounds), instead of continuously.
    pub when_drained: bool,
}

impl LookAhead {
    /// One chunk at a time, the least.
    pub const ONE: LookAhead = LookAhead { bytes: 0, when_drained: false };
}

/// Why a scheduler is shown the queue outside a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The look-ahead was refilled.
    Refilled,
    /// A distribution period began.
    Period,
    /// A sending opportunity begins.
    Opportunity,
}

/// Chooses chunk and path of new data.
///
/// `next` is a pure question: wrappers ask and discard, the engine may refuse. Memory moves in `settle`.
pub trait PathScheduler: Send {
    every_policy!(LOOK_AHEAD, OUTCOMES, BOUND);
    /// The look-ahead it wants, asked at every refill.
    fn look_ahead(&self, _cx: &AssocView<'_>) -> LookAhead {
        LookAhead::ONE
    }
    /// Does it send TSNs out of order?
    fn permutes(&self) -> bool {
        false
    }
    /// The next decision. Asked only while `q` is not empty and `cx.eligible` is not empty.
    ///
    /// [`Decision::Blocked`] needs something that will wake it: something in flight, or, for a scheduler that spends
    /// budgets, a period that runs (`cx.period.length` is not zero): it is asked again when the next one begins, after
    /// [`Occasion::Period`], and may not be blocked then while nothing is in flight.
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision;
    /// What became of the answer.
    fn settle(&mut self, _cx: &AssocView<'_>, _outcome: &Settled) {}
    /// The queue changed for another reason.
    fn observe(&mut self, _cx: &AssocView<'_>, _q: &QueueView<'_>, _why: Occasion) {}
    /// End of the look-ahead a path works on, published on the board.
    fn direction(&self, _p: PathId) -> Option<Direction> {
        None
    }
    /// Bytes bound to a path and not sent yet, published on the board.
    fn bound_bytes(&self, _p: PathId) -> u64 {
        0
    }
}

pub mod confluent;
pub mod delay_compensation;
pub mod delay_equalisation;
pub mod earliest_arrival;
pub mod handling_time;
pub mod min_rtt;
pub mod primary_only;
pub mod redundant;
pub mod residual_capacity;
pub mod round_robin;
pub mod round_robin_deadline;
pub mod weighted_round_robin;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn PathScheduler>] = &[
    primary_only::POLICY,
    round_robin::POLICY,
    round_robin_deadline::POLICY,
    weighted_round_robin::POLICY,
    min_rtt::POLICY,
    confluent::POLICY,
    delay_compensation::POLICY,
    delay_equalisation::POLICY,
    earliest_arrival::POLICY,
    redundant::POLICY,
    residual_capacity::POLICY,
    handling_time::POLICY,
];
