//! Notifications (RFC 6458 §6): what a program reads beside messages when it asked for it.

use super::address::STORAGE;

/// Types (`enum sctp_sn_type`), in the order of `struct sctp_event_subscribe`.
#[allow(missing_docs, reason = "the names are the header's")]
pub mod kind {
    pub const DATA_IO_EVENT: u16 = 0x8000;
    pub const ASSOC_CHANGE: u16 = 0x8001;
    pub const PEER_ADDR_CHANGE: u16 = 0x8002;
    pub const SHUTDOWN_EVENT: u16 = 0x8005;
    pub const PARTIAL_DELIVERY_EVENT: u16 = 0x8006;
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

/// `struct sctp_pdapi_event`, whose only indication is that the rest of a message will not come.
pub fn partial_delivery_aborted(id: i32, stream: u16) -> Vec<u8> {
    let mut out = header(kind::PARTIAL_DELIVERY_EVENT, 0, 24);
    out.extend_from_slice(&0u32.to_ne_bytes());
    out.extend_from_slice(&id.to_ne_bytes());
    out.extend_from_slice(&u32::from(stream).to_ne_bytes());
    out.extend_from_slice(&0u32.to_ne_bytes());
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
            (partial_delivery_aborted(1, 2), 24),
        ];
        for (bytes, len) in all {
            assert_eq!(bytes.len(), len);
            assert_eq!(u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize, len);
        }
    }
}
