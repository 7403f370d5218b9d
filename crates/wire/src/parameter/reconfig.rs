//! Requests and responses of stream re-configuration (RFC 6525 §4).

use super::{Parameter, even, kind};
use crate::bits::{be16, be32, split};
use crate::encode::{put_tlv, put16, put32};
use anabranch_base::Tsn;

/// Results of a Re-configuration Response (RFC 6525 §4.4).
pub mod result {
    /// Success, and there was nothing to do.
    pub const NOTHING_TO_DO: u32 = 0;
    /// Success: the request was performed.
    pub const PERFORMED: u32 = 1;
    /// The request was refused.
    pub const DENIED: u32 = 2;
    /// Error: a stream number that does not exist.
    pub const WRONG_SSN: u32 = 3;
    /// Error: a request is under way already.
    pub const ALREADY_IN_PROGRESS: u32 = 4;
    /// Error: a request number that is not the next one.
    pub const BAD_SEQUENCE: u32 = 5;
    /// Not yet: the same request is to come again.
    pub const IN_PROGRESS: u32 = 6;
}

pub(super) fn read(kind: u16, value: &[u8]) -> Option<Parameter<'_>> {
    let (request, rest) = split::<4>(value)?;
    let request = u32::from_be_bytes(*request);
    Some(match kind {
        kind::OUTGOING_RESET => Parameter::OutgoingReset {
            request,
            response: be32(rest, 0)?,
            last_tsn: Tsn(be32(rest, 4)?),
            streams: even(rest.get(8..)?)?,
        },
        kind::INCOMING_RESET => Parameter::IncomingReset { request, streams: even(rest)? },
        kind::TSN_RESET if rest.is_empty() => Parameter::TsnReset { request },
        kind::RECONFIG_RESPONSE => {
            let tsns = match rest.len() {
                4 => None,
                12 => Some((Tsn(be32(rest, 4)?), Tsn(be32(rest, 8)?))),
                _ => return None,
            };
            Parameter::ReconfigResponse { response: request, result: be32(rest, 0)?, tsns }
        }
        kind::ADD_OUTGOING if rest.len() == 4 => Parameter::AddOutgoing { request, streams: be16(rest, 0)? },
        kind::ADD_INCOMING if rest.len() == 4 => Parameter::AddIncoming { request, streams: be16(rest, 0)? },
        _ => return None,
    })
}

pub(super) fn put(parameter: &Parameter<'_>, out: &mut Vec<u8>) {
    match *parameter {
        Parameter::OutgoingReset { request, response, last_tsn, streams } => put_tlv(out, kind::OUTGOING_RESET, |o| {
            [request, response, last_tsn.0].into_iter().for_each(|v| put32(o, v));
            o.extend_from_slice(streams);
        }),
        Parameter::IncomingReset { request, streams } => put_tlv(out, kind::INCOMING_RESET, |o| {
            put32(o, request);
            o.extend_from_slice(streams);
        }),
        Parameter::TsnReset { request } => put_tlv(out, kind::TSN_RESET, |o| put32(o, request)),
        Parameter::ReconfigResponse { response, result, tsns } => put_tlv(out, kind::RECONFIG_RESPONSE, |o| {
            put32(o, response);
            put32(o, result);
            if let Some((sender, receiver)) = tsns {
                put32(o, sender.0);
                put32(o, receiver.0);
            }
        }),
        Parameter::AddOutgoing { request, streams } => put_add(out, kind::ADD_OUTGOING, request, streams),
        Parameter::AddIncoming { request, streams } => put_add(out, kind::ADD_INCOMING, request, streams),
        _ => (),
    }
}

fn put_add(out: &mut Vec<u8>, kind: u16, request: u32, streams: u16) {
    put_tlv(out, kind, |o| {
        put32(o, request);
        put16(o, streams);
        put16(o, 0);
    });
}
