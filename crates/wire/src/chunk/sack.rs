//! SACK (RFC 9260 §3.3.4).

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::bits::{halves, split};
use crate::encode::{Encode, MAX_ITEM, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::Tsn;

/// Length of the fixed fields behind the chunk header, in bytes.
const FIXED: usize = 12;
/// Bits of the chunk flags that count packets.
const COUNT_MASK: u8 = 3;
/// Most gap blocks and duplicates together that a length field can count.
const MAX_ENTRIES: usize = (MAX_ITEM - CHUNK_HEADER_LEN - FIXED) / 4;

/// A run of TSNs received above the cumulative TSN: offsets from it, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GapBlock {
    /// Offset of the first TSN.
    pub start: u16,
    /// Offset of the last TSN.
    pub end: u16,
}

impl GapBlock {
    pub(super) fn of_entry(entry: &[u8; 4]) -> Self {
        let (start, end) = halves(entry);
        GapBlock { start, end }
    }
}

/// A SACK chunk. Order and overlap of the gap blocks are the peer's word; the engine judges them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sack<'a> {
    /// Cumulative TSN Ack.
    pub cum_tsn: Tsn,
    /// Advertised receiver window in bytes.
    pub a_rwnd: u32,
    /// Ours, see [`CountedSack`]: DATA packets since the SACK before, 0 from a peer that does not count.
    pub packets: u8,
    gaps: &'a [[u8; 4]],
    duplicates: &'a [[u8; 4]],
}

impl<'a> Sack<'a> {
    /// A SACK of the lists of an NR-SACK.
    pub(super) fn of_lists(cum_tsn: Tsn, a_rwnd: u32, gaps: &'a [[u8; 4]], duplicates: &'a [[u8; 4]]) -> Self {
        Sack { cum_tsn, a_rwnd, packets: 0, gaps, duplicates }
    }

    #[inline(always)]
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let (fixed, lists) = split::<FIXED>(raw.value).ok_or(raw.misshapen())?;
        let [c0, c1, c2, c3, a0, a1, a2, a3, g0, g1, d0, d1] = *fixed;
        let gap_count = usize::from(u16::from_be_bytes([g0, g1]));
        let duplicate_count = usize::from(u16::from_be_bytes([d0, d1]));
        let (entries, _) = lists.as_chunks::<4>();
        let (gaps, rest) = entries.split_at_checked(gap_count).ok_or(raw.misshapen())?;
        let duplicates = rest.get(..duplicate_count).ok_or(raw.misshapen())?;
        Ok(Sack {
            cum_tsn: Tsn(u32::from_be_bytes([c0, c1, c2, c3])),
            a_rwnd: u32::from_be_bytes([a0, a1, a2, a3]),
            packets: raw.flags & COUNT_MASK,
            gaps,
            duplicates,
        })
    }

    /// The gap blocks as sent.
    pub fn gaps(&self) -> impl ExactSizeIterator<Item = GapBlock> + DoubleEndedIterator + Clone + use<'a> {
        self.gaps.iter().map(GapBlock::of_entry)
    }

    /// The TSNs received more than once since the last SACK, as often as they were.
    pub fn duplicates(&self) -> impl ExactSizeIterator<Item = Tsn> + DoubleEndedIterator + Clone + use<'a> {
        self.duplicates.iter().map(|e| Tsn(u32::from_be_bytes(*e)))
    }
}

impl Encode for Sack<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        put_sack(out, self.cum_tsn, self.a_rwnd, self.gaps(), self.duplicates());
        set_count(out, at, self.packets);
    }
}

/// A SACK to send. Lowest gap blocks first; lists too long for a length field lose their tail.
#[derive(Clone, Copy, Debug)]
pub struct SackOut<'a> {
    /// Cumulative TSN Ack.
    pub cum_tsn: Tsn,
    /// Advertised receiver window in bytes.
    pub a_rwnd: u32,
    /// Gap blocks, rising and apart.
    pub gaps: &'a [GapBlock],
    /// TSNs received more than once.
    pub duplicates: &'a [Tsn],
}

/// A SACK that says in two bits of its flags how many DATA packets came since the one before, at most 3: an extension
/// of ours for a peer that announced to read it (delayed acknowledgement for CMT).
#[derive(Clone, Copy, Debug)]
pub struct CountedSack<'a> {
    /// Everything but the count.
    pub sack: SackOut<'a>,
    /// Packets; 3 stands for more, too.
    pub packets: u8,
}

impl Encode for CountedSack<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        self.sack.encode(out);
        set_count(out, at, self.packets);
    }
}

/// Sets the count in the flags of the SACK that begins at `at`.
fn set_count(out: &mut [u8], at: usize, packets: u8) {
    if let Some(flags) = out.get_mut(at + 1) {
        *flags |= packets.min(COUNT_MASK);
    }
}

impl SackOut<'_> {
    /// Length on the wire in bytes with so many entries in the two lists together.
    pub const fn len_with(entries: usize) -> usize {
        CHUNK_HEADER_LEN + FIXED + 4 * entries
    }
}

impl Encode for SackOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_sack(out, self.cum_tsn, self.a_rwnd, self.gaps.iter().copied(), self.duplicates.iter().copied());
    }
}

fn put_sack(
    out: &mut Vec<u8>,
    cum_tsn: Tsn,
    a_rwnd: u32,
    gaps: impl ExactSizeIterator<Item = GapBlock>,
    duplicates: impl ExactSizeIterator<Item = Tsn>,
) {
    let gap_count = gaps.len().min(MAX_ENTRIES);
    let duplicate_count = duplicates.len().min(MAX_ENTRIES - gap_count);
    let length = SackOut::len_with(gap_count + duplicate_count) as u16;
    let mut head = [0; CHUNK_HEADER_LEN + FIXED];
    let (first, second) = head.split_at_mut(8);
    first
        .copy_from_slice(&(u64::from(kind::SACK) << 56 | u64::from(length) << 32 | u64::from(cum_tsn.0)).to_be_bytes());
    let counts = u64::from(gap_count as u16) << 16 | u64::from(duplicate_count as u16);
    second.copy_from_slice(&(u64::from(a_rwnd) << 32 | counts).to_be_bytes());
    out.extend_from_slice(&head);
    for g in gaps.take(gap_count) {
        put32(out, u32::from(g.start) << 16 | u32::from(g.end));
    }
    for d in duplicates.take(duplicate_count) {
        put32(out, d.0);
    }
}
