//! DATA (RFC 9260 §3.3.1).

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::bits::{round4, split};
use crate::encode::Encode;
use crate::error::WireError;
use crate::kind;
use anabranch_base::{Ssn, StreamId, Tsn};

/// Length of a DATA chunk in front of its payload, in bytes.
pub const DATA_HEADER_LEN: usize = 16;

/// Length on the wire of a DATA chunk with `payload` bytes, padding included.
pub const fn data_chunk_len(payload: usize) -> usize {
    DATA_HEADER_LEN + round4(payload)
}

/// The flag bits of a DATA chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataFlags {
    /// I: the sender asks for a SACK at once.
    pub immediate: bool,
    /// U: the message is unordered, its SSN means nothing.
    pub unordered: bool,
    /// B: first fragment of a message.
    pub begin: bool,
    /// E: last fragment of a message.
    pub end: bool,
}

impl DataFlags {
    /// The flags in the chunk header's flags byte.
    pub const fn to_bits(self) -> u8 {
        (self.immediate as u8) << 3 | (self.unordered as u8) << 2 | (self.begin as u8) << 1 | self.end as u8
    }
    /// The flags from a chunk header's flags byte; reserved bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        DataFlags { immediate: bits & 8 != 0, unordered: bits & 4 != 0, begin: bits & 2 != 0, end: bits & 1 != 0 }
    }
}

/// Everything of a DATA chunk but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: StreamId,
    /// Stream sequence number.
    pub ssn: Ssn,
    /// Payload protocol identifier: the user's, carried as a number and not interpreted.
    pub ppid: u32,
    /// Flag bits.
    pub flags: DataFlags,
}

impl DataHeader {
    /// Most payload that a chunk's length field can count, in bytes.
    pub const MAX_PAYLOAD: usize = crate::encode::MAX_ITEM - DATA_HEADER_LEN;

    /// Appends the 16 bytes that stand before a payload of `payload` bytes; the caller adds it and its padding.
    /// `payload` is at most [`MAX_PAYLOAD`](Self::MAX_PAYLOAD).
    #[inline]
    pub fn encode_for(&self, payload: usize, out: &mut Vec<u8>) {
        let len = DATA_HEADER_LEN + payload.min(Self::MAX_PAYLOAD);
        let mut head = [0; DATA_HEADER_LEN];
        let (first, second) = head.split_at_mut(8);
        let (kind, flags) = (u64::from(kind::DATA) << 56, u64::from(self.flags.to_bits()) << 48);
        first.copy_from_slice(&(kind | flags | (len as u64) << 32 | u64::from(self.tsn.0)).to_be_bytes());
        let place = u64::from(self.stream.0) << 48 | u64::from(self.ssn.0) << 32;
        second.copy_from_slice(&(place | u64::from(self.ppid)).to_be_bytes());
        out.extend_from_slice(&head);
    }
}

/// A DATA chunk. A payload of no bytes is a protocol violation (RFC 9260 §6.2) that the receiver's engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The fixed part.
    pub header: DataHeader,
    /// The user's bytes.
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    #[inline(always)]
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        const FIXED: usize = DATA_HEADER_LEN - CHUNK_HEADER_LEN;
        let (fixed, payload) = split::<FIXED>(raw.value).ok_or(raw.misshapen())?;
        let [t0, t1, t2, t3, i0, i1, s0, s1, p0, p1, p2, p3] = *fixed;
        let header = DataHeader {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            ssn: Ssn(u16::from_be_bytes([s0, s1])),
            ppid: u32::from_be_bytes([p0, p1, p2, p3]),
            flags: DataFlags::from_bits(raw.flags),
        };
        Ok(Data { header, payload: raw.payload.map_or(payload, |p| p) })
    }
}

impl Encode for Data<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let payload = self.payload.get(..DataHeader::MAX_PAYLOAD).unwrap_or(self.payload);
        self.header.encode_for(payload.len(), out);
        out.extend_from_slice(payload);
        out.resize(out.len() + round4(payload.len()) - payload.len(), 0);
    }
}
