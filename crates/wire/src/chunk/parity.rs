//! Ours: a sum of DATA chunks, from which a missing one can be restored.

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::bits::be32;
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::Tsn;

/// A PARITY chunk: a TSN, as of a DATA chunk, and what the code in use wrote. Acknowledged and skipped as DATA is, never
/// sent again. It leaves only for a peer that takes it ([`Parameter::Parity`](crate::Parameter::Parity)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parity<'a> {
    /// Its TSN.
    pub tsn: Tsn,
    /// What the code wrote.
    pub record: &'a [u8],
}

impl<'a> Parity<'a> {
    /// Bytes of the chunk in front of the record.
    pub const HEADER_LEN: usize = CHUNK_HEADER_LEN + 4;

    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let tsn = be32(raw.value, 0).ok_or(raw.misshapen())?;
        Ok(Parity { tsn: Tsn(tsn), record: raw.value.get(4..).unwrap_or_default() })
    }
}

impl Encode for Parity<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::PARITY, 0, |o| {
            put32(o, self.tsn.0);
            o.extend_from_slice(self.record);
        });
    }
}
