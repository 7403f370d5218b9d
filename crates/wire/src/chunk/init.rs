//! INIT (RFC 9260 §3.3.2), and the fixed part that it shares with INIT ACK.

use super::RawChunk;
use crate::bits::split;
use crate::encode::{Encode, put_chunk, put16, put32};
use crate::error::WireError;
use crate::kind;
use crate::parameter::Params;
use crate::tlv::without_final_padding;
use anabranch_base::Tsn;

/// The mandatory fields of INIT and INIT ACK. Their values are not judged here (RFC 9260 §3.3.2 does).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitFields {
    /// Initiate Tag: the verification tag that the sender wants to see.
    pub tag: u32,
    /// Advertised receiver window in bytes.
    pub a_rwnd: u32,
    /// Outbound streams that the sender wishes to have.
    pub outbound_streams: u16,
    /// Inbound streams that the sender accepts.
    pub inbound_streams: u16,
    /// The first TSN that the sender will use.
    pub initial_tsn: Tsn,
}

impl InitFields {
    pub(super) fn decode<'a>(raw: &RawChunk<'a>) -> Result<(Self, Params<'a>), WireError> {
        let (fixed, params) = split::<16>(raw.value).ok_or(raw.misshapen())?;
        let [t0, t1, t2, t3, a0, a1, a2, a3, o0, o1, i0, i1, n0, n1, n2, n3] = *fixed;
        let fields = InitFields {
            tag: u32::from_be_bytes([t0, t1, t2, t3]),
            a_rwnd: u32::from_be_bytes([a0, a1, a2, a3]),
            outbound_streams: u16::from_be_bytes([o0, o1]),
            inbound_streams: u16::from_be_bytes([i0, i1]),
            initial_tsn: Tsn(u32::from_be_bytes([n0, n1, n2, n3])),
        };
        Ok((fields, Params::new(params)))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put32(out, self.tag);
        put32(out, self.a_rwnd);
        put16(out, self.outbound_streams);
        put16(out, self.inbound_streams);
        put32(out, self.initial_tsn.0);
    }
}

/// An INIT chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init<'a> {
    /// The mandatory fields.
    pub fields: InitFields,
    /// The parameters behind them.
    pub params: Params<'a>,
}

impl<'a> Init<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        InitFields::decode(raw).map(|(fields, params)| Init { fields, params })
    }
}

impl Encode for Init<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        InitOut { ack: false, fields: self.fields, params: self.params.raw() }.encode(out);
    }
}

/// An INIT or INIT ACK to send.
#[derive(Clone, Copy, Debug)]
pub struct InitOut<'a> {
    /// INIT ACK instead of INIT.
    pub ack: bool,
    /// The mandatory fields.
    pub fields: InitFields,
    /// Parameters, encoded one behind the other.
    pub params: &'a [u8],
}

impl Encode for InitOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let kind = if self.ack { kind::INIT_ACK } else { kind::INIT };
        put_chunk(out, kind, 0, |o| {
            self.fields.encode(o);
            o.extend_from_slice(without_final_padding(self.params));
        });
    }
}
