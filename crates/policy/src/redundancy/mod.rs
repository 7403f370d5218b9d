//! Copies, moves or parity in window that new data left free.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId, Tsn};

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
    /// A sum of outstanding chunks, which [`Redundancy::write`] writes next. It leaves as a message of its own, is
    /// acknowledged and counts in flight as DATA, and is never sent again.
    Parity,
}

/// A chunk that parity may cover: all that the peer needs to know of it, in two pieces.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its TSN, extended; lower than that of the parity.
    pub number: u64,
    /// What precedes the payload.
    pub head: SourceHead,
    /// The payload.
    pub payload: &'a [u8],
}

/// Fields of a chunk in front of its payload, as parity covers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceHead {
    bytes: [u8; SourceHead::MOST],
    len: u8,
}

impl SourceHead {
    /// Bytes of the longest one.
    pub const MOST: usize = 16;

    /// At most so many bytes.
    pub fn new(head: &[u8]) -> Self {
        let mut bytes = [0; SourceHead::MOST];
        let len = head.len().min(SourceHead::MOST);
        for (to, from) in bytes.iter_mut().zip(head) {
            *to = *from;
        }
        SourceHead { bytes, len: len as u8 }
    }

    /// The fields.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Where parity finds the chunks that it covers.
pub trait Sources {
    /// The outstanding chunk with this TSN.
    fn source(&self, tsn: Tsn) -> Option<Source<'_>>;
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
    /// The parity that was wanted last, in at most `room` bytes. It will have the TSN `number`, extended. Nothing is sent
    /// without an answer.
    fn write(&mut self, _number: u64, _room: usize, _sources: &dyn Sources) -> Option<Vec<u8>> {
        None
    }
    /// A chunk that left once, by this path, was acknowledged so long after; with [`Asks::ANSWERS`](crate::Asks::ANSWERS).
    fn answered(&mut self, _path: PathId, _age: Duration) {}
    /// The peer restored a chunk from parity.
    fn repaired(&mut self, _tsn: Tsn) {}
    /// A packet with data left by `path`, as it is on the wire, checksum included; with
    /// [`Asks::WHOLE_PACKETS`](crate::Asks::WHOLE_PACKETS).
    fn packet(&mut self, _path: PathId, _bytes: &[u8], _now: Instant) {}
    /// Tap on sent payloads.
    fn sent(&mut self, _s: &SentPayload<'_>) {}
}

pub mod chunk_rescheduling;
pub mod deadline_copy;
pub mod erasure;
pub mod none;
pub mod preventive_copy;
pub mod split_error_correction;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Redundancy>] = &[
    none::POLICY,
    preventive_copy::POLICY,
    deadline_copy::POLICY,
    chunk_rescheduling::POLICY,
    erasure::POLICY,
    split_error_correction::POLICY,
];
