//! Addresses as parameters (RFC 9260 §3.3.2.1.1, §3.3.2.1.2), also inside ASCONF requests.

use super::kind;
use crate::encode::put_tlv;
use crate::error::Item;
use crate::tlv;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn ipv4(value: &[u8]) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(value).ok().map(Ipv4Addr::from)
}

pub(super) fn ipv6(value: &[u8]) -> Option<Ipv6Addr> {
    <[u8; 16]>::try_from(value).ok().map(Ipv6Addr::from)
}

/// The address of a complete address parameter, with nothing behind it.
pub(super) fn nested(mut bytes: &[u8]) -> Option<IpAddr> {
    let tlv = tlv::take(Item::Parameter, &mut bytes)?.ok()?;
    if !bytes.is_empty() {
        return None;
    }
    match tlv.kind {
        kind::IPV4 => ipv4(tlv.value).map(IpAddr::V4),
        kind::IPV6 => ipv6(tlv.value).map(IpAddr::V6),
        _ => None,
    }
}

pub(super) fn put(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(a) => put_tlv(out, kind::IPV4, |o| o.extend_from_slice(&a.octets())),
        IpAddr::V6(a) => put_tlv(out, kind::IPV6, |o| o.extend_from_slice(&a.octets())),
    }
}
