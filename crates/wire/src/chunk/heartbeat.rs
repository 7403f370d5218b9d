//! HEARTBEAT (RFC 9260 §3.3.5).

use super::RawChunk;
use crate::encode::{Encode, put_chunk, put_tlv};
use crate::error::WireError;
use crate::kind;
use crate::parameter::{Params, kind as parameter_kind};
use crate::tlv::without_final_padding;

/// A HEARTBEAT chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// Value of the Heartbeat Info parameter: the sender's own, opaque to its receiver.
    pub info: &'a [u8],
    /// All parameters as received, for the answer. Empty in one to send: then only `info` is written.
    pub params_raw: &'a [u8],
}

impl<'a> Heartbeat<'a> {
    /// A HEARTBEAT to send with `info`.
    pub const fn new(info: &'a [u8]) -> Self {
        Heartbeat { info, params_raw: &[] }
    }

    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        Ok(Heartbeat { info: find_info(raw)?, params_raw: raw.value })
    }
}

impl Encode for Heartbeat<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_heartbeat(out, kind::HEARTBEAT, self.info, self.params_raw);
    }
}

/// The value of the first Heartbeat Info of a HEARTBEAT or HEARTBEAT ACK.
pub(super) fn find_info<'a>(raw: &RawChunk<'a>) -> Result<&'a [u8], WireError> {
    for p in Params::new(raw.value).iter_raw() {
        let p = p?;
        if p.kind == parameter_kind::HEARTBEAT_INFO {
            return Ok(p.value);
        }
    }
    Err(WireError::NoHeartbeatInfo { kind: raw.kind })
}

pub(super) fn put_heartbeat(out: &mut Vec<u8>, kind: u8, info: &[u8], params_raw: &[u8]) {
    put_chunk(out, kind, 0, |o| {
        if params_raw.is_empty() {
            let start = o.len();
            put_tlv(o, parameter_kind::HEARTBEAT_INFO, |o| o.extend_from_slice(info));
            let unpadded = o.get(start..).map_or(0, |tlv| without_final_padding(tlv).len());
            o.truncate(start + unpadded);
        } else {
            o.extend_from_slice(params_raw);
        }
    });
}
