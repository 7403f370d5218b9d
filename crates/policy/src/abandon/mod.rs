//! When a message is given up (PR-SCTP, RFC 3758 and RFC 7496).

use crate::registry::Policy;
use crate::view::{AssocView, ChunkView};

/// Gives up on messages.
pub trait Abandon: Send {
    /// Give up `c`? Asked before each transmission and retransmission of a message that is not fully reliable.
    fn give_up(&self, cx: &AssocView<'_>, c: &ChunkView) -> bool;
}

pub mod lifetime;
pub mod never;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Abandon>] = &[lifetime::POLICY, never::POLICY];
