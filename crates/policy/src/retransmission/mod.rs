//! Path of a retransmission.

use crate::view::{AssocView, ChunkView};
use anabranch_base::{PathId, PathSet};

/// When a marked chunk gets its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// When its packet is built (the papers).
    AtSend,
    /// When it was marked.
    AtLoss,
}

/// Where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This path.
    On(PathId),
    /// Not now.
    Wait,
}

/// The question.
#[derive(Clone, Copy)]
pub struct Retransmit<'a> {
    /// First chunk of the packet.
    pub chunk: &'a ChunkView,
    /// Paths the engine offers: active ones, or the remaining ones after a full answer.
    pub candidates: PathSet,
    /// One packet may ignore the window now (RFC 9260 §7.2.4 step 3, §6.3.3 E3).
    pub free_pass: bool,
}

/// Chooses the destination of retransmissions (P0).
pub trait RetransmissionPolicy: Send {
    /// When paths are chosen.
    fn binds(&self) -> Binding {
        Binding::AtSend
    }
    /// When the chosen path is full: ask again without it, instead of waiting.
    fn if_full_next(&self) -> bool {
        false
    }
    /// Where to.
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target;
}
