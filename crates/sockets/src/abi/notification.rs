//! Notifications (RFC 6458 §6): what a program reads beside messages when it asked for it.

use super::address::STORAGE;
use super::message::SndRcvInfo;
use zerocopy::{FromZeros, IntoBytes};

/// Types (`enum sctp_sn_type`), in the order of `struct sctp_event_subscribe`.
#[allow(missing_docs, reason = "the names are the header's")]
pub mod kind {
    pub const DATA_IO_EVENT: u16 = 0x8000;
    pub const ASSOC_CHANGE: u16 = 0x8001;
    pub const PEER_ADDR_CHANGE: u16 = 0x8002;
    pub const SEND_FAILED: u16 = 0x8003;
    pub const REMOTE_ERROR: u16 = 0x8004;
    pub const SHUTDOWN_EVENT: u16 = 0x8005;
    pub const PARTIAL_DELIVERY_EVENT: u16 = 0x8006;
    pub const ADAPTATION_INDICATION: u16 = 0x8007;
    pub const AUTHENTICATION_EVENT: u16 = 0x8008;
    pub const SENDER_DRY_EVENT: u16 = 0x8009;
    pub const STREAM_RESET_EVENT: u16 = 0x800a;
    pub const ASSOC_RESET_EVENT: u16 = 0x800b;
    pub const STREAM_CHANGE_EVENT: u16 = 0x800c;
    pub const SEND_FAILED_EVENT: u16 = 0x800d;
    /// The first one that is not known.
    pub const END: u16 = 0x800e;
}

/// States of [`assoc_change`] (`enum sctp_sac_state`).
#[allow(missing_docs, reason = "the names are the header's")]
pub mod sac {
    pub const COMM_UP: u16 = 0;
    pub const COMM_LOST: u16 = 1;
    pub const RESTART: u16 = 2;
    pub const SHUTDOWN_COMP: u16 = 3;
    pub const CANT_STR_ASSOC: u16 = 4;
}

/// States of [`peer_address_change`] (`enum sctp_spc_state`).
#[allow(missing_docs, reason = "the names are the header's")]
pub mod spc {
    pub const ADDR_AVAILABLE: i32 = 0;
    pub const ADDR_UNREACHABLE: i32 = 1;
    pub const ADDR_REMOVED: i32 = 2;
    pub const ADDR_ADDED: i32 = 3;
    pub const ADDR_CONFIRMED: i32 = 5;
    pub const ADDR_POTENTIALLY_FAILED: i32 = 6;
}

fn header(kind: u16, flags: u16, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&flags.to_ne_bytes());
    out.extend_from_slice(&(len as u32).to_ne_bytes());
    out
}

/// `struct sctp_assoc_change`.
pub fn assoc_change(id: i32, state: u16, error: u16, outbound: u16, inbound: u16) -> Vec<u8> {
    let mut out = header(kind::ASSOC_CHANGE, 0, 20);
    for v in [state, error, outbound, inbound] {
        out.extend_from_slice(&v.to_ne_bytes());
    }
    out.extend_from_slice(&id.to_ne_bytes());
    out
}

/// `struct sctp_paddr_change`.
pub fn peer_address_change(id: i32, address: &[u8; STORAGE], state: i32, error: i32) -> Vec<u8> {
    let mut out = header(kind::PEER_ADDR_CHANGE, 0, 148);
    out.extend_from_slice(address);
    for v in [state, error, id] {
        out.extend_from_slice(&v.to_ne_bytes());
    }
    out
}

/// `struct sctp_shutdown_event`.
pub fn shutdown(id: i32) -> Vec<u8> {
    let mut out = header(kind::SHUTDOWN_EVENT, 0, 12);
    out.extend_from_slice(&id.to_ne_bytes());
    out
}

/// `struct sctp_remote_error`: a cause that the peer reported, without its code and length.
pub fn remote_error(id: i32, code: u16, value: &[u8]) -> Vec<u8> {
    let mut out = header(kind::REMOTE_ERROR, 0, 16 + value.len());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&id.to_ne_bytes());
    out.extend_from_slice(value);
    out
}

/// `struct sctp_adaptation_event`.
pub fn adaptation(id: i32, code: u32) -> Vec<u8> {
    let mut out = header(kind::ADAPTATION_INDICATION, 0, 16);
    out.extend_from_slice(&code.to_ne_bytes());
    out.extend_from_slice(&id.to_ne_bytes());
    out
}

/// Indications of [`authentication`].
#[allow(missing_docs, reason = "the names are the header's")]
pub mod auth {
    pub const NEW_KEY: u32 = 0;
    pub const FREE_KEY: u32 = 1;
    pub const NO_AUTH: u32 = 2;
}

/// `struct sctp_authkey_event`.
pub fn authentication(id: i32, key: u16, indication: u32) -> Vec<u8> {
    let mut out = header(kind::AUTHENTICATION_EVENT, 0, 20);
    out.extend_from_slice(&key.to_ne_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&indication.to_ne_bytes());
    out.extend_from_slice(&id.to_ne_bytes());
    out
}

/// `struct sctp_pdapi_event`, whose only indication is that the rest of a message will not come.
pub fn partial_delivery_aborted(id: i32, stream: u16, number: u32) -> Vec<u8> {
    let mut out = header(kind::PARTIAL_DELIVERY_EVENT, 0, 24);
    out.extend_from_slice(&0u32.to_ne_bytes());
    out.extend_from_slice(&id.to_ne_bytes());
    out.extend_from_slice(&u32::from(stream).to_ne_bytes());
    out.extend_from_slice(&number.to_ne_bytes());
    out
}

/// What a notification of a failed message says of it.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// Some of it was sent.
    pub sent: bool,
    /// Cause of the error, 0 for none.
    pub error: u32,
    /// Number of the stream.
    pub stream: u16,
    /// `snd_flags`.
    pub flags: u16,
    /// Payload protocol identifier, in network order.
    pub ppid: u32,
    /// `snd_context`.
    pub context: u32,
    /// The message.
    pub data: Vec<u8>,
}

/// `struct sctp_send_failed_event`, or where `old` its predecessor `sctp_send_failed`.
pub fn send_failed(id: i32, f: &Failed, old: bool) -> Vec<u8> {
    let (kind, fixed) = if old { (kind::SEND_FAILED, 48) } else { (kind::SEND_FAILED_EVENT, 32) };
    let mut out = header(kind, u16::from(f.sent), fixed + f.data.len());
    out.extend_from_slice(&f.error.to_ne_bytes());
    let (id, context) = (id.to_ne_bytes(), f.context.to_ne_bytes());
    if old {
        let mut i = SndRcvInfo::new_zeroed();
        (i.stream, i.flags, i.ppid) = (f.stream.into(), f.flags.into(), f.ppid.into());
        (i.context, i.id) = (f.context.into(), i32::from_ne_bytes(id).into());
        out.extend_from_slice(i.as_bytes());
    } else {
        out.extend_from_slice(&f.stream.to_ne_bytes());
        out.extend_from_slice(&f.flags.to_ne_bytes());
        out.extend_from_slice(&f.ppid.to_ne_bytes());
        out.extend_from_slice(&context);
        out.extend_from_slice(&id);
    }
    out.extend_from_slice(&id);
    out.extend_from_slice(&f.data);
    out
}

/// `struct sctp_sender_dry_event`.
pub fn sender_dry(id: i32) -> Vec<u8> {
    let mut out = header(kind::SENDER_DRY_EVENT, 0, 12);
    out.extend_from_slice(&id.to_ne_bytes());
    out
}

/// Flags of [`stream_reset`].
#[allow(missing_docs, reason = "the names are the header's")]
pub mod strreset {
    pub const INCOMING: u16 = 1;
    pub const OUTGOING: u16 = 2;
    pub const DENIED: u16 = 4;
    pub const FAILED: u16 = 8;
}

/// `struct sctp_stream_reset_event`; no stream is all.
pub fn stream_reset(id: i32, flags: u16, streams: &[u16]) -> Vec<u8> {
    let mut out = header(kind::STREAM_RESET_EVENT, flags, 12 + 2 * streams.len());
    out.extend_from_slice(&id.to_ne_bytes());
    streams.iter().for_each(|s| out.extend_from_slice(&s.to_ne_bytes()));
    out
}

/// `struct sctp_assoc_reset_event`, without the TSNs.
pub fn association_reset(id: i32) -> Vec<u8> {
    let mut out = header(kind::ASSOC_RESET_EVENT, 0, 20);
    out.extend_from_slice(&id.to_ne_bytes());
    out.resize(20, 0);
    out
}

/// `struct sctp_stream_change_event`: how many there are now.
pub fn stream_change(id: i32, inbound: u16, outbound: u16) -> Vec<u8> {
    let mut out = header(kind::STREAM_CHANGE_EVENT, 0, 16);
    out.extend_from_slice(&id.to_ne_bytes());
    out.extend_from_slice(&inbound.to_ne_bytes());
    out.extend_from_slice(&outbound.to_ne_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_as_long_as_it_says_and_as_the_header_has_it() {
        let all = [
            (assoc_change(1, sac::COMM_UP, 0, 10, 10), 20),
            (peer_address_change(1, &[0; STORAGE], spc::ADDR_CONFIRMED, 0), 148),
            (shutdown(1), 12),
            (partial_delivery_aborted(1, 2, 3), 24),
            (remote_error(1, 6, &[7; 8]), 24),
            (adaptation(1, 2), 16),
            (authentication(1, 2, auth::FREE_KEY), 20),
            (send_failed(1, &Failed { data: vec![7; 5], ..Failed::default() }, true), 53),
            (send_failed(1, &Failed { data: vec![7; 5], ..Failed::default() }, false), 37),
            (sender_dry(1), 12),
            (stream_reset(1, strreset::INCOMING, &[1, 2]), 16),
            (association_reset(1), 20),
            (stream_change(1, 2, 3), 16),
        ];
        for (bytes, len) in all {
            assert_eq!(bytes.len(), len);
            assert_eq!(u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize, len);
        }
    }
}
