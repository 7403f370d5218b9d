//! ECNE (draft-stewart-tsvwg-sctpecn; RFC 4960 appendix A had its older form): marks of congestion come back.

use super::RawChunk;
use crate::bits::be32;
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::Tsn;

/// An ECNE chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecne {
    /// Lowest TSN of a packet that was marked.
    pub tsn: Tsn,
    /// Marked packets since the last CWR; 1 from the older form, which does not count.
    pub marked: u32,
}

impl Ecne {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, WireError> {
        let tsn = be32(raw.value, 0).map(Tsn).ok_or(raw.misshapen())?;
        Ok(Ecne { tsn, marked: be32(raw.value, 4).unwrap_or(1) })
    }
}

impl Encode for Ecne {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::ECNE, 0, |o| {
            put32(o, self.tsn.0);
            put32(o, self.marked);
        });
    }
}
