//! SHUTDOWN (RFC 9260 §3.3.8).

use super::RawChunk;
use crate::bits::be32;
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::Tsn;

/// A SHUTDOWN chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Cumulative TSN Ack.
    pub cum_tsn: Tsn,
}

impl Shutdown {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, WireError> {
        be32(raw.value, 0).map(|tsn| Shutdown { cum_tsn: Tsn(tsn) }).ok_or(raw.misshapen())
    }
}

impl Encode for Shutdown {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::SHUTDOWN, 0, |o| put32(o, self.cum_tsn.0));
    }
}
