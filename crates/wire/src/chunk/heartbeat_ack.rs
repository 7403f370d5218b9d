//! HEARTBEAT ACK (RFC 9260 §3.3.6).

use super::RawChunk;
use super::heartbeat::{Heartbeat, find_info, put_heartbeat};
use crate::encode::Encode;
use crate::error::WireError;
use crate::kind;

/// A HEARTBEAT ACK chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatAck<'a> {
    /// Value of the Heartbeat Info parameter, as the HEARTBEAT had it.
    pub info: &'a [u8],
    /// All parameters as received. Where it is empty in one to send, only `info` is written.
    pub params_raw: &'a [u8],
}

impl<'a> HeartbeatAck<'a> {
    /// The answer to `heartbeat`: every parameter unchanged.
    pub const fn to(heartbeat: &Heartbeat<'a>) -> Self {
        HeartbeatAck { info: heartbeat.info, params_raw: heartbeat.params_raw }
    }

    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        Ok(HeartbeatAck { info: find_info(raw)?, params_raw: raw.value })
    }
}

impl Encode for HeartbeatAck<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_heartbeat(out, kind::HEARTBEAT_ACK, self.info, self.params_raw);
    }
}
