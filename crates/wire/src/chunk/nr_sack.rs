//! NR-SACK (draft-tuexen-tsvwg-sctp-multipath-29 §4.2): a SACK that also says what will never be taken back.

use super::{CHUNK_HEADER_LEN, GapBlock, RawChunk, Sack};
use crate::bits::split;
use crate::encode::{Encode, MAX_ITEM, put_chunk, put16, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::Tsn;

/// Length of the fixed fields behind the chunk header, in bytes.
const FIXED: usize = 16;
/// Most entries of all lists together that a length field can count.
const MAX_ENTRIES: usize = (MAX_ITEM - CHUNK_HEADER_LEN - FIXED) / 4;

/// An NR-SACK chunk. Order and overlap of the blocks are the peer's word; the engine judges them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NrSack<'a> {
    /// What it has in common with a SACK: its gap blocks are those that may be taken back.
    pub sack: Sack<'a>,
    kept: &'a [[u8; 4]],
}

impl<'a> NrSack<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let (fixed, lists) = split::<FIXED>(raw.value).ok_or(raw.misshapen())?;
        let [c0, c1, c2, c3, a0, a1, a2, a3, g0, g1, n0, n1, d0, d1, _, _] = *fixed;
        let count = |high, low| usize::from(u16::from_be_bytes([high, low]));
        let (entries, _) = lists.as_chunks::<4>();
        let (gaps, rest) = entries.split_at_checked(count(g0, g1)).ok_or(raw.misshapen())?;
        let (kept, rest) = rest.split_at_checked(count(n0, n1)).ok_or(raw.misshapen())?;
        let duplicates = rest.get(..count(d0, d1)).ok_or(raw.misshapen())?;
        let cum_tsn = Tsn(u32::from_be_bytes([c0, c1, c2, c3]));
        let a_rwnd = u32::from_be_bytes([a0, a1, a2, a3]);
        Ok(NrSack { sack: Sack::of_lists(cum_tsn, a_rwnd, gaps, duplicates), kept })
    }

    /// The blocks that will not be taken back, as sent.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = GapBlock> + DoubleEndedIterator + Clone + use<'a> {
        self.kept.iter().map(GapBlock::of_entry)
    }
}

impl Encode for NrSack<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let s = &self.sack;
        put_nr_sack(out, (s.cum_tsn, s.a_rwnd), s.gaps(), self.kept(), s.duplicates());
    }
}

/// An NR-SACK to send. Lists too long for a length field lose their tail.
#[derive(Clone, Copy, Debug)]
pub struct NrSackOut<'a> {
    /// Cumulative TSN Ack.
    pub cum_tsn: Tsn,
    /// Advertised receiver window in bytes.
    pub a_rwnd: u32,
    /// Blocks that may be taken back, rising and apart.
    pub gaps: &'a [GapBlock],
    /// Blocks that will not be taken back, rising and apart, none of them among `gaps`.
    pub kept: &'a [GapBlock],
    /// TSNs received more than once.
    pub duplicates: &'a [Tsn],
}

impl NrSackOut<'_> {
    /// Length on the wire in bytes with so many entries in the three lists together.
    pub const fn len_with(entries: usize) -> usize {
        CHUNK_HEADER_LEN + FIXED + 4 * entries
    }
}

impl Encode for NrSackOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_nr_sack(
            out,
            (self.cum_tsn, self.a_rwnd),
            self.gaps.iter().copied(),
            self.kept.iter().copied(),
            self.duplicates.iter().copied(),
        );
    }
}

fn put_nr_sack(
    out: &mut Vec<u8>,
    (cum_tsn, a_rwnd): (Tsn, u32),
    gaps: impl ExactSizeIterator<Item = GapBlock>,
    kept: impl ExactSizeIterator<Item = GapBlock>,
    duplicates: impl ExactSizeIterator<Item = Tsn>,
) {
    let gap_count = gaps.len().min(MAX_ENTRIES);
    let kept_count = kept.len().min(MAX_ENTRIES - gap_count);
    let duplicate_count = duplicates.len().min(MAX_ENTRIES - gap_count - kept_count);
    put_chunk(out, kind::NR_SACK, 0, |o| {
        put32(o, cum_tsn.0);
        put32(o, a_rwnd);
        put16(o, gap_count as u16);
        put16(o, kept_count as u16);
        put16(o, duplicate_count as u16);
        put16(o, 0);
        for g in gaps.take(gap_count).chain(kept.take(kept_count)) {
            put16(o, g.start);
            put16(o, g.end);
        }
        for d in duplicates.take(duplicate_count) {
            put32(o, d.0);
        }
    });
}
