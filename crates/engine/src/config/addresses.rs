//! Our addresses, as the peer learns them.

use crate::path::LocalId;
use std::net::IpAddr;

/// An address of ours that INIT and INIT ACK tell the peer, and the interface that sends from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedAddress {
    /// The interface or socket.
    pub local: LocalId,
    /// Its address as the peer can reach it.
    pub ip: IpAddr,
}

/// What INIT and INIT ACK say of addresses.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Addresses {
    /// Our addresses, to be listed in INIT and INIT ACK (RFC 9260 §5.1.2); the one that the packet leaves from may
    /// be among them. Empty lists none, which is right behind a NAT and the default over UDP (RFC 6951 §5.7).
    pub listed: Vec<ListedAddress>,
    /// Types of addresses that INIT says we can send to (RFC 9260 §3.3.2.1.5): 5 is IPv4, 6 is IPv6. None says nothing.
    pub types: Vec<u16>,
}
