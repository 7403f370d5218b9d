//! Ours: TSNs that were restored from parity.

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::Tsn;

/// A REPAIRED chunk. Beside a SACK: these TSNs, which the SACK calls missing, were restored, and need not be sent again.
/// The other way: what became of them on their paths is known, and they count as received from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repaired<'a> {
    /// The answer of the sender of the data.
    pub settled: bool,
    tsns: &'a [u8],
}

/// The flag of the answer.
const SETTLED: u8 = 1;

impl<'a> Repaired<'a> {
    /// The TSNs.
    pub fn tsns(&self) -> impl Iterator<Item = Tsn> + use<'a> {
        self.tsns.chunks_exact(4).filter_map(|t| t.try_into().ok()).map(|t| Tsn(u32::from_be_bytes(t)))
    }

    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let whole = raw.value.len().is_multiple_of(4).then_some(raw.value);
        Ok(Repaired { settled: raw.flags & SETTLED != 0, tsns: whole.ok_or(raw.misshapen())? })
    }
}

impl Encode for Repaired<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::REPAIRED, u8::from(self.settled), |o| o.extend_from_slice(self.tsns));
    }
}

/// A REPAIRED chunk to be written.
#[derive(Clone, Copy, Debug)]
pub struct RepairedOut<'a> {
    /// See [`Repaired::settled`].
    pub settled: bool,
    /// The TSNs.
    pub tsns: &'a [Tsn],
}

impl RepairedOut<'_> {
    /// Bytes of a chunk with so many TSNs.
    pub const fn len_with(tsns: usize) -> usize {
        CHUNK_HEADER_LEN + 4 * tsns
    }
}

impl Encode for RepairedOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::REPAIRED, u8::from(self.settled) * SETTLED, |o| {
            self.tsns.iter().for_each(|t| put32(o, t.0));
        });
    }
}
