//! INIT ACK (RFC 9260 §3.3.3): INIT's fixed part, and parameters with the State Cookie among them.

use super::RawChunk;
use super::init::{InitFields, InitOut};
use crate::encode::Encode;
use crate::error::WireError;
use crate::parameter::Params;

/// An INIT ACK chunk. To send one, see [`InitOut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitAck<'a> {
    /// The mandatory fields.
    pub fields: InitFields,
    /// The parameters behind them.
    pub params: Params<'a>,
}

impl<'a> InitAck<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        InitFields::decode(raw).map(|(fields, params)| InitAck { fields, params })
    }
}

impl Encode for InitAck<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        InitOut { ack: true, fields: self.fields, params: self.params.raw() }.encode(out);
    }
}
