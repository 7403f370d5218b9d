//! Copies, moves or parity in window that new data left free.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Instant, Tsn};

/// What to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Another copy of an outstanding chunk; the first one stays in flight.
    Copy {
        /// TSN of the chunk to copy.
        tsn: Tsn,
    },
    /// Send it again here and take it off the path it is on.
    Move {
        /// TSN of the chunk to move.
        tsn: Tsn,
        /// The old path's window reacts as to a loss (Dreibholz et al. 2010).
        blame: bool,
    },
}

/// A packet with DATA that left, for policies that make parity.
#[derive(Clone, Copy)]
pub struct SentPayload<'a> {
    /// Its chunk.
    pub chunk: &'a ChunkView,
    /// The payload.
    pub payload: &'a [u8],
    /// Time the packet left.
    pub at: Instant,
}

/// Asked per path with window, last unless it says otherwise.
pub trait Redundancy: Send {
    every_policy!(EXTRA);
    /// Asked first, once in each opportunity: might anything be added now? It may look at paths, not at chunks.
    fn worth_asking(&mut self, _cx: &AssocView<'_>) -> bool {
        true
    }
    /// What to add on `path`; `outstanding` runs oldest first and may be left early.
    fn extra(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra>;
    /// When it wants to be asked again although nothing else happens; read after [`Redundancy::extra`] declined.
    fn wakeup(&self) -> Option<Instant> {
        None
    }
    /// Tap on sent payloads.
    fn sent(&mut self, _s: &SentPayload<'_>) {}
}

pub mod chunk_rescheduling;
pub mod deadline_copy;
pub mod none;
pub mod preventive_copy;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Redundancy>] =
    &[none::POLICY, preventive_copy::POLICY, deadline_copy::POLICY, chunk_rescheduling::POLICY];
