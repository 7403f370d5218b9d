//! A packet on its way out.

use crate::path::LocalId;
use anabranch_base::PathId;
use anabranch_wire::PacketSlices;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// One packet to send. The caller keeps one and hands it in again and again: its buffers are reused.
pub struct Transmit {
    /// Local interface or socket to send from.
    pub local: LocalId,
    /// Peer's address and UDP port.
    pub remote: SocketAddr,
    /// Path, when it belongs to an association.
    pub path: Option<PathId>,
    /// The packet as slices; the checksum is the driver's (see [`PacketSlices::write_to`]).
    pub packet: PacketSlices,
}

impl Default for Transmit {
    fn default() -> Self {
        Transmit {
            local: LocalId(0),
            remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            path: None,
            packet: PacketSlices::default(),
        }
    }
}
