//! Why was it lost?

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::AssocView;
use anabranch_base::PathId;

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// By missing reports.
    FastRetransmit,
    /// By the retransmission timer.
    Timeout,
}

/// A loss on a path.
#[derive(Clone, Copy, Debug)]
pub struct LossEvent {
    /// Path that lost something.
    pub path: PathId,
    /// How it was noticed.
    pub kind: LossKind,
    /// Payload bytes newly marked.
    pub bytes: u64,
    /// Opens a recovery episode; within one the window is not cut again (RFC 9260 §7.2.4).
    pub new_episode: bool,
}

/// The cause a window reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A queue overflowed.
    Congestion,
    /// The link damaged it.
    Radio,
    /// The packet was late, not lost.
    Reordering,
    /// The path is gone.
    PathFailure,
}

/// Tells causes apart.
pub trait LossCause: Send {
    every_policy!();
    /// The cause of `e`.
    fn classify(&mut self, cx: &AssocView<'_>, e: &LossEvent) -> Cause;
}

pub mod always_congestion;
pub mod delay_guard;
pub mod residual_capacity;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn LossCause>] =
    &[always_congestion::POLICY, delay_guard::POLICY, residual_capacity::POLICY];
