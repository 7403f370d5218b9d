//! SHUTDOWN COMPLETE (RFC 9260 §3.3.13).

use super::{RawChunk, T_BIT};
use crate::encode::{Encode, put_chunk};
use crate::kind;

/// A SHUTDOWN COMPLETE chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownComplete {
    /// T bit: the verification tag is the receiver's own, sent back.
    pub tag_reflected: bool,
}

impl ShutdownComplete {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Self {
        ShutdownComplete { tag_reflected: raw.flags & T_BIT != 0 }
    }
}

impl Encode for ShutdownComplete {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::SHUTDOWN_COMPLETE, if self.tag_reflected { T_BIT } else { 0 }, |_| ());
    }
}
