//! When a message is given up (PR-SCTP, RFC 3758 and RFC 7496).

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, ChunkView};

/// Which policy of RFC 7496 a message was given up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its time is over (RFC 3758 §4.1).
    Lifetime,
    /// It was sent again as often as it was worth (RFC 7496 §3.1).
    Retransmissions,
    /// Something more important needed its room (RFC 7496 §3.2).
    Priority,
}

/// Gives up on messages.
pub trait Abandon: Send {
    every_policy!();
    /// Give up `c`, and why? Asked before each transmission and retransmission of a message that is not fully
    /// reliable.
    fn give_up(&self, cx: &AssocView<'_>, c: &ChunkView) -> Option<Reason>;
    /// Is every message given up once its deadline is over, whatever else holds? Then what waits needs no chance to leave
    /// for that.
    fn ends_at_deadlines(&self) -> bool {
        false
    }
    /// When the send buffer is full: drop what is less important to take what is more.
    fn makes_room(&self) -> bool {
        false
    }
}

pub mod arrival;
pub mod lifetime;
pub mod never;
pub mod priority;
pub mod retransmissions;
pub mod rfc7496;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Abandon>] =
    &[rfc7496::POLICY, lifetime::POLICY, arrival::POLICY, retransmissions::POLICY, priority::POLICY, never::POLICY];
