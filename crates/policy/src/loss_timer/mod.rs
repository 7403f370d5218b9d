//! Probes before T3.

use crate::asks::every_policy;
use crate::registry::Policy;
pub use crate::thin::Needless;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant};

/// What to do when the timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Do nothing.
    None,
    /// Send the newest outstanding chunk of the path once more (RFC 8985's tail probe).
    Newest,
    /// Mark the newest `n` chunks of the path as lost.
    MarkNewest(u16),
    /// Mark as lost what left the path at least so long ago. T3 counts from what remains in flight.
    MarkOverdue(Duration),
}

/// A timer per path that may fire before T3.
pub trait LossTimer: Send {
    every_policy!(PROBE);
    /// When it fires, asked after every transmission and acknowledgement on `path`.
    fn deadline(&self, _cx: &AssocView<'_>, _path: &PathView) -> Option<Instant> {
        None
    }
    /// The timer fired. `outstanding` is newest first.
    fn expired(
        &mut self,
        _cx: &AssocView<'_>,
        _path: &PathView,
        _outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Probe {
        Probe::None
    }
    /// The peer had what was marked as overdue on `path`.
    fn was_needless(&mut self, _path: &PathView, _needless: Needless) {}
}

pub mod early_fast_retransmit;
pub mod none;
pub mod overdue;
pub mod tail_probe;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn LossTimer>] =
    &[none::POLICY, tail_probe::POLICY, early_fast_retransmit::POLICY, overdue::POLICY];
