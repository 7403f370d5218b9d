//! COOKIE ACK (RFC 9260 §3.3.12): a header, nothing else.

use crate::encode::{Encode, put_chunk};
use crate::kind;

/// A COOKIE ACK to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieAck;

impl Encode for CookieAck {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::COOKIE_ACK, 0, |_| ());
    }
}
