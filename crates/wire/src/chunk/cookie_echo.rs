//! COOKIE ECHO (RFC 9260 §3.3.11).

use super::RawChunk;
use crate::encode::{Encode, put_chunk};
use crate::kind;

/// A COOKIE ECHO chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieEcho<'a> {
    /// The State Cookie, as INIT ACK had it. A sender may have counted its padding in.
    pub cookie: &'a [u8],
}

impl<'a> CookieEcho<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Self {
        CookieEcho { cookie: raw.value }
    }
}

impl Encode for CookieEcho<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::COOKIE_ECHO, 0, |o| o.extend_from_slice(self.cookie));
    }
}
