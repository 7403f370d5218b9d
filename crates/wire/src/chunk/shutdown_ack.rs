//! SHUTDOWN ACK (RFC 9260 §3.3.9): a header, nothing else.

use crate::encode::{Encode, put_chunk};
use crate::kind;

/// A SHUTDOWN ACK to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownAck;

impl Encode for ShutdownAck {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::SHUTDOWN_ACK, 0, |_| ());
    }
}
