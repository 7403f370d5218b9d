//! PAD (RFC 4820 §3): filler whose content means nothing.

use crate::chunk::CHUNK_HEADER_LEN;
use crate::encode::{Encode, put_chunk};
use crate::kind;

/// A PAD chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pad {
    /// Bytes behind the chunk header.
    pub len: usize,
}

impl Pad {
    /// The chunk that takes `bytes` bytes of a packet, a multiple of 4; none where not even its header fits.
    pub const fn filling(bytes: usize) -> Option<Self> {
        if bytes < CHUNK_HEADER_LEN { None } else { Some(Pad { len: (bytes & !3) - CHUNK_HEADER_LEN }) }
    }
}

impl Encode for Pad {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::PAD, 0, |o| o.resize(o.len() + self.len, 0));
    }
}
