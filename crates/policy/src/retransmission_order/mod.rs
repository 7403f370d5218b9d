//! Which marked chunk is sent again first.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::Instant;

/// Position of a marked chunk among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// The least leaves first, and of equals the lowest TSN.
    pub place: u64,
    /// When the rank changes and the policy is asked again; `None` for as long as the chunk is marked.
    pub until: Option<Instant>,
}

/// Orders retransmissions. A chunk is asked about when it was marked and when its rank ends, and never for each packet:
/// what is marked may be all that a window holds.
pub trait RetransmissionOrder: Send {
    every_policy!();
    /// The rank of a chunk that waits to be sent again. By default all are equal.
    fn rank(&self, _cx: &AssocView<'_>, _marked: &ChunkView) -> Rank {
        Rank::default()
    }
    /// Fill the packet with further outstanding chunks of the path (Petlund et al. 2009 §5).
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
