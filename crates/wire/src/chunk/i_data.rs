//! I-DATA (RFC 8260 §2.1).

use super::{CHUNK_HEADER_LEN, DataFlags, RawChunk};
use crate::bits::{round4, split};
use crate::encode::{Encode, put16, put32};
use crate::error::WireError;
use crate::kind;
use anabranch_base::{Mid, StreamId, Tsn};

/// Length of an I-DATA chunk in front of its payload, in bytes.
pub const I_DATA_HEADER_LEN: usize = 20;

/// Everything of an I-DATA chunk but its payload. The first fragment of a message carries its PPID and is number 0,
/// all others carry their number: the two share a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IDataHeader {
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: StreamId,
    /// Message identifier: ordered and unordered messages of a stream count apart.
    pub mid: Mid,
    /// Payload protocol identifier; 0 where the B bit is not set, and not written.
    pub ppid: u32,
    /// Fragment sequence number; 0 where the B bit is set, and not written.
    pub fsn: u32,
    /// Flag bits.
    pub flags: DataFlags,
}

impl IDataHeader {
    /// Most payload that a chunk's length field can count, in bytes.
    pub const MAX_PAYLOAD: usize = crate::encode::MAX_ITEM - I_DATA_HEADER_LEN;

    /// Appends the 20 bytes that stand before a payload of `payload` bytes; the caller adds it and its padding.
    /// `payload` is at most [`MAX_PAYLOAD`](Self::MAX_PAYLOAD).
    pub fn encode_for(&self, payload: usize, out: &mut Vec<u8>) {
        let len = I_DATA_HEADER_LEN + payload.min(Self::MAX_PAYLOAD);
        out.extend_from_slice(&[kind::I_DATA, self.flags.to_bits()]);
        put16(out, len as u16);
        put32(out, self.tsn.0);
        put16(out, self.stream.0);
        put16(out, 0);
        put32(out, self.mid.0);
        put32(out, if self.flags.begin { self.ppid } else { self.fsn });
    }
}

/// An I-DATA chunk. One without payload is as wrong as DATA without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IData<'a> {
    /// The fixed part.
    pub header: IDataHeader,
    /// The user's bytes.
    pub payload: &'a [u8],
}

impl<'a> IData<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        const FIXED: usize = I_DATA_HEADER_LEN - CHUNK_HEADER_LEN;
        let (fixed, payload) = split::<FIXED>(raw.value).ok_or(raw.misshapen())?;
        let [t0, t1, t2, t3, i0, i1, _, _, m0, m1, m2, m3, p0, p1, p2, p3] = *fixed;
        let flags = DataFlags::from_bits(raw.flags);
        let shared = u32::from_be_bytes([p0, p1, p2, p3]);
        let header = IDataHeader {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            mid: Mid(u32::from_be_bytes([m0, m1, m2, m3])),
            ppid: if flags.begin { shared } else { 0 },
            fsn: if flags.begin { 0 } else { shared },
            flags,
        };
        Ok(IData { header, payload: raw.payload.map_or(payload, |p| p) })
    }
}

impl Encode for IData<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let payload = self.payload.get(..IDataHeader::MAX_PAYLOAD).unwrap_or(self.payload);
        self.header.encode_for(payload.len(), out);
        out.extend_from_slice(payload);
        out.resize(out.len() + round4(payload.len()) - payload.len(), 0);
    }
}
