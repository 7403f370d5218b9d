//! Probes before T3.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::Instant;

/// What to do when the timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Do nothing.
    None,
    /// Send the newest outstanding chunk of the path once more (RFC 8985's tail probe).
    Newest,
    /// Mark the newest `n` chunks of the path as lost.
    MarkNewest(u16),
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
}

pub mod early_fast_retransmit;
pub mod none;
pub mod tail_probe;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn LossTimer>] = &[none::POLICY, tail_probe::POLICY, early_fast_retransmit::POLICY];
