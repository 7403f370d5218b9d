//! ASCONF-ACK (RFC 5061 §4.1.2).

use super::RawChunk;
use crate::bits::split;
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;
use crate::parameter::Params;
use crate::tlv::without_final_padding;

/// An ASCONF-ACK chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsconfAck<'a> {
    /// Serial number of the ASCONF answered.
    pub serial: u32,
    /// The answers; a request without one succeeded.
    pub params: Params<'a>,
}

impl<'a> AsconfAck<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let (serial, rest) = split::<4>(raw.value).ok_or(raw.misshapen())?;
        Ok(AsconfAck { serial: u32::from_be_bytes(*serial), params: Params::new(rest) })
    }
}

impl Encode for AsconfAck<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        AsconfAckOut { serial: self.serial, params: self.params.raw() }.encode(out);
    }
}

/// An ASCONF-ACK to send.
#[derive(Clone, Copy, Debug)]
pub struct AsconfAckOut<'a> {
    /// Serial number of the ASCONF answered.
    pub serial: u32,
    /// Answers, encoded one behind the other.
    pub params: &'a [u8],
}

impl Encode for AsconfAckOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::ASCONF_ACK, 0, |o| {
            put32(o, self.serial);
            o.extend_from_slice(without_final_padding(self.params));
        });
    }
}
