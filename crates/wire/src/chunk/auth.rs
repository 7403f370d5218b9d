//! AUTH (RFC 4895 §4.1).

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::bits::{halves, split};
use crate::encode::{Encode, put_chunk, put16};
use crate::error::WireError;
use crate::kind;

/// An AUTH chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Shared key identifier.
    pub key_id: u16,
    /// HMAC identifier: 1 is SHA-1, 3 is SHA-256 (RFC 4895 §3.3).
    pub hmac_id: u16,
    /// The MAC over this chunk (with zeros here) and all of the packet behind it.
    pub mac: &'a [u8],
}

impl<'a> Auth<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let (ids, mac) = split::<4>(raw.value).ok_or(raw.misshapen())?;
        let (key_id, hmac_id) = halves(ids);
        Ok(Auth { key_id, hmac_id, mac })
    }
}

impl Encode for Auth<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::AUTH, 0, |o| {
            put16(o, self.key_id);
            put16(o, self.hmac_id);
            o.extend_from_slice(self.mac);
        });
    }
}

/// An AUTH to send: its MAC is zeros until the packet is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthOut {
    /// Shared key identifier.
    pub key_id: u16,
    /// HMAC identifier.
    pub hmac_id: u16,
    /// Length of the MAC in bytes.
    pub mac_len: usize,
}

impl AuthOut {
    /// Where the MAC stands, counted from the chunk's first byte.
    pub const MAC_OFFSET: usize = CHUNK_HEADER_LEN + 4;

    /// Appends the chunk and returns where in `out` the MAC is to be written.
    pub fn encode_at(&self, out: &mut Vec<u8>) -> usize {
        let mac = out.len() + Self::MAC_OFFSET;
        self.encode(out);
        mac
    }
}

impl Encode for AuthOut {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::AUTH, 0, |o| {
            put16(o, self.key_id);
            put16(o, self.hmac_id);
            o.resize(o.len() + self.mac_len, 0);
        });
    }
}
