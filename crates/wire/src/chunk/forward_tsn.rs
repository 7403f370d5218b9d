//! FORWARD-TSN (RFC 3758 §3.2).

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::bits::{halves, split};
use crate::encode::{Encode, MAX_ITEM, put_chunk, put16, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::{Ssn, StreamId, Tsn};

/// Most stream entries that a length field can count.
const MAX_ENTRIES: usize = (MAX_ITEM - CHUNK_HEADER_LEN - 4) / 4;

/// A FORWARD-TSN chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardTsn<'a> {
    /// New Cumulative TSN: everything up to it counts as received.
    pub new_cum: Tsn,
    streams: &'a [[u8; 4]],
}

impl<'a> ForwardTsn<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let (tsn, list) = split::<4>(raw.value).ok_or(raw.misshapen())?;
        match list.as_chunks::<4>() {
            (streams, []) => Ok(ForwardTsn { new_cum: Tsn(u32::from_be_bytes(*tsn)), streams }),
            _ => Err(raw.misshapen()),
        }
    }

    /// Streams with skipped ordered messages, each with the largest skipped SSN.
    pub fn streams(&self) -> impl ExactSizeIterator<Item = (StreamId, Ssn)> + Clone + use<'a> {
        self.streams.iter().map(|e| {
            let (stream, ssn) = halves(e);
            (StreamId(stream), Ssn(ssn))
        })
    }
}

impl Encode for ForwardTsn<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_forward_tsn(out, self.new_cum, self.streams());
    }
}

/// A FORWARD-TSN to send. A list too long for a length field loses its tail.
#[derive(Clone, Copy, Debug)]
pub struct ForwardTsnOut<'a> {
    /// New Cumulative TSN.
    pub new_cum: Tsn,
    /// Each stream with skipped ordered messages once, with the largest skipped SSN.
    pub streams: &'a [(StreamId, Ssn)],
}

impl ForwardTsnOut<'_> {
    /// Length on the wire in bytes with so many streams.
    pub const fn len_with(streams: usize) -> usize {
        CHUNK_HEADER_LEN + 4 + 4 * streams
    }
}

impl Encode for ForwardTsnOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_forward_tsn(out, self.new_cum, self.streams.iter().copied());
    }
}

fn put_forward_tsn(out: &mut Vec<u8>, new_cum: Tsn, streams: impl Iterator<Item = (StreamId, Ssn)>) {
    put_chunk(out, kind::FORWARD_TSN, 0, |o| {
        put32(o, new_cum.0);
        for (stream, ssn) in streams.take(MAX_ENTRIES) {
            put16(o, stream.0);
            put16(o, ssn.0);
        }
    });
}
