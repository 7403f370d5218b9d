//! What is missing, restored from parity at the receiving end.

use crate::asks::every_policy;
use crate::registry::Policy;
use anabranch_base::Instant;

/// Shown what came and what parity says, where both ends agreed on parity; gives back chunks that did not come.
///
/// Numbers are TSNs, extended to 64 bits. A chunk is what [`redundancy::Source`](crate::redundancy::Source) has of it:
/// fields and payload, one behind the other. What is given back may have zeros behind it.
pub trait Repair: Send {
    every_policy!(REPAIR);
    /// A chunk came for the first time.
    fn arrived(&mut self, number: u64, pieces: &[&[u8]]);
    /// Parity came, with a TSN of its own.
    fn parity(&mut self, now: Instant, number: u64, record: &[u8]);
    /// A chunk that was missing; to be asked until there is none.
    fn restored(&mut self) -> Option<(u64, &[u8])>;
    /// A packet came whose checksum is wrong; with [`Asks::DAMAGED`](crate::Asks::DAMAGED).
    fn damaged(&mut self, _now: Instant, _packet: &[u8]) {}
    /// Such a packet, corrected; to be asked until there is none, after parity and after damage. What it is worth its
    /// checksum says.
    fn corrected(&mut self) -> Option<Vec<u8>> {
        None
    }
    /// Nothing below is missing any more, whether it came or was skipped.
    fn settle_below(&mut self, number: u64);
    /// TSNs begin anew.
    fn begin_anew(&mut self) {}
    /// What it holds, bytes.
    fn held_bytes(&self) -> usize {
        0
    }
}

pub mod erasure;
pub mod none;
pub mod split_error_correction;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Repair>] = &[none::POLICY, erasure::POLICY, split_error_correction::POLICY];
