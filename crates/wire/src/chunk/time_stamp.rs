//! Ours: when the newest packet came that a SACK tells of, by the clock of the SACK's sender.

use super::RawChunk;
use crate::bits::be32;
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;

/// A TIME-STAMP chunk. Peers that do not know it skip it; it is sent to those only that said that they read it
/// ([`Parameter::TimeStamps`](crate::Parameter::TimeStamps)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStamp {
    /// Microseconds of the sender's clock, modulo 2^32.
    pub micros: u32,
}

impl TimeStamp {
    /// Bytes of the chunk.
    pub const LEN: usize = 8;

    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, WireError> {
        be32(raw.value, 0).map(|micros| TimeStamp { micros }).ok_or(raw.misshapen())
    }
}

impl Encode for TimeStamp {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::TIME_STAMP, 0, |o| put32(o, self.micros));
    }
}
