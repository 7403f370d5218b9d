//! Addresses of the simulated network as the engine sees them: 10.0.0.0/8 by number, without UDP ports.

use anabranch_sim::network::Address;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const FIRST: u32 = 0x0a00_0001;

/// The IP address of a simulated address.
pub(crate) fn ip(a: Address) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(FIRST.wrapping_add(a.0)))
}

/// A simulated address as that of a peer on raw IP: port 0.
pub(super) fn socket(a: Address) -> SocketAddr {
    SocketAddr::new(ip(a), 0)
}

/// The simulated address of an IP address.
pub(super) fn simulated(a: SocketAddr) -> Option<Address> {
    match a.ip() {
        IpAddr::V4(v4) => u32::from(v4).checked_sub(FIRST).map(Address),
        IpAddr::V6(_) => None,
    }
}
