//! Which marked chunk is sent again first.

use crate::registry::Policy;
use crate::view::{AssocView, ChunkView, PathView};

/// Orders retransmissions.
pub trait RetransmissionOrder: Send {
    /// Index of the first of `marked` (never empty, in TSN order).
    fn first(&self, cx: &AssocView<'_>, marked: &[ChunkView]) -> usize;
    /// Fill the packet with further outstanding chunks of the path (P2 §2.4, mechanism 5).
    fn bundles_outstanding(&self, _path: &PathView) -> bool {
        false
    }
}

pub mod bundle_outstanding;
pub mod class_then_tsn;
pub mod tsn;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn RetransmissionOrder>] =
    &[tsn::POLICY, class_then_tsn::POLICY, bundle_outstanding::POLICY];
