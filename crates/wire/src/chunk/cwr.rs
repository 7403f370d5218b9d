//! CWR (draft-stewart-tsvwg-sctpecn; RFC 4960 appendix A): the sender has reacted to an ECNE.

use super::RawChunk;
use crate::bits::be32;
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::Tsn;

/// A CWR chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cwr {
    /// Its flags: 1 when the reduction is of another path than the one marked, 2 when it is the window of before.
    pub flags: u8,
    /// Highest TSN sent when the window was reduced: no ECNE for it or one before needs repeating.
    pub tsn: Tsn,
}

impl Cwr {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, WireError> {
        be32(raw.value, 0).map(|tsn| Cwr { flags: raw.flags, tsn: Tsn(tsn) }).ok_or(raw.misshapen())
    }
}

impl Encode for Cwr {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::CWR, self.flags, |o| put32(o, self.tsn.0));
    }
}
