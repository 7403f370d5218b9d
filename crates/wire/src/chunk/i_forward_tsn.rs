//! I-FORWARD-TSN (RFC 8260 §2.3.1).

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::bits::split;
use crate::encode::{Encode, MAX_ITEM, put_chunk, put16, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::{Mid, StreamId, Tsn};

/// Most entries that a length field can count.
const MAX_ENTRIES: usize = (MAX_ITEM - CHUNK_HEADER_LEN - 4) / 8;
/// U bit of an entry, behind 15 reserved ones.
const UNORDERED: u16 = 1;

/// What is skipped in a stream, of one kind of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The stream.
    pub stream: StreamId,
    /// Its unordered messages, not its ordered ones.
    pub unordered: bool,
    /// The largest identifier that is skipped.
    pub mid: Mid,
}

/// An I-FORWARD-TSN chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IForwardTsn<'a> {
    /// New Cumulative TSN: everything up to it counts as received.
    pub new_cum: Tsn,
    entries: &'a [[u8; 8]],
}

impl<'a> IForwardTsn<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let (tsn, list) = split::<4>(raw.value).ok_or(raw.misshapen())?;
        match list.as_chunks::<8>() {
            (entries, []) => Ok(IForwardTsn { new_cum: Tsn(u32::from_be_bytes(*tsn)), entries }),
            _ => Err(raw.misshapen()),
        }
    }

    /// What is skipped, as listed.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Skipped> + Clone + use<'a> {
        self.entries.iter().map(|&[s0, s1, f0, f1, m0, m1, m2, m3]| Skipped {
            stream: StreamId(u16::from_be_bytes([s0, s1])),
            unordered: u16::from_be_bytes([f0, f1]) & UNORDERED != 0,
            mid: Mid(u32::from_be_bytes([m0, m1, m2, m3])),
        })
    }
}

impl Encode for IForwardTsn<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_i_forward_tsn(out, self.new_cum, self.entries());
    }
}

/// An I-FORWARD-TSN to send. A list too long for a length field loses its tail.
#[derive(Clone, Copy, Debug)]
pub struct IForwardTsnOut<'a> {
    /// New Cumulative TSN.
    pub new_cum: Tsn,
    /// Each stream and kind of messages at most once.
    pub entries: &'a [Skipped],
}

impl IForwardTsnOut<'_> {
    /// Length on the wire in bytes with so many entries.
    pub const fn len_with(entries: usize) -> usize {
        CHUNK_HEADER_LEN + 4 + 8 * entries
    }
}

impl Encode for IForwardTsnOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_i_forward_tsn(out, self.new_cum, self.entries.iter().copied());
    }
}

fn put_i_forward_tsn(out: &mut Vec<u8>, new_cum: Tsn, entries: impl Iterator<Item = Skipped>) {
    put_chunk(out, kind::I_FORWARD_TSN, 0, |o| {
        put32(o, new_cum.0);
        for e in entries.take(MAX_ENTRIES) {
            put16(o, e.stream.0);
            put16(o, if e.unordered { UNORDERED } else { 0 });
            put32(o, e.mid.0);
        }
    });
}
