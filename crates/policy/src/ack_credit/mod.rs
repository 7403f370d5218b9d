//! Which acknowledged bytes may open which window.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::AssocView;
use anabranch_base::PathId;

/// What a SACK acknowledged on one path.
#[derive(Clone, Copy, Debug)]
pub struct PathAck {
    /// Path the acknowledged bytes were sent on.
    pub path: PathId,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// The path's oldest outstanding chunk, by send order, was among them (CUC's pseudo-cumulative progress).
    pub oldest_advanced: bool,
    /// The association's cumulative TSN advanced.
    pub cumulative_advanced: bool,
}

/// Credits acknowledged bytes.
pub trait AckCredit: Send {
    every_policy!();
    /// Bytes credited to the path's window.
    fn credit(&self, cx: &AssocView<'_>, ack: &PathAck) -> u64;
    /// Does it need TSNs that leave in order?
    fn needs_order(&self) -> bool {
        false
    }
}

pub mod cuc;
pub mod cumulative;
pub mod sack_bytes;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn AckCredit>] = &[cumulative::POLICY, cuc::POLICY, sack_bytes::POLICY];
