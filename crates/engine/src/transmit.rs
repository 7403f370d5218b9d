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
    /// It is larger than its path is known to carry: IP may divide it (RFC 9260 §6.9). All others leave whole.
    pub may_divide: bool,
    /// A probe of the path's size: one that is too large for the interface is no mistake (RFC 8899).
    pub probe: bool,
    /// A queue may mark it in place of dropping it: ECT(0) in the IP header (RFC 3168 §5). All others leave without.
    pub may_be_marked: bool,
    /// The packet as slices; the checksum is the driver's (see [`PacketSlices::write_to`]).
    pub packet: PacketSlices,
}

impl Transmit {
    /// For a caller that writes every packet, see [`PacketSlices::to_be_written`].
    pub fn to_be_written() -> Transmit {
        Transmit { packet: PacketSlices::to_be_written(), ..Transmit::default() }
    }
}

impl Default for Transmit {
    fn default() -> Self {
        Transmit {
            local: LocalId(0),
            remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            path: None,
            may_divide: false,
            probe: false,
            may_be_marked: false,
            packet: PacketSlices::default(),
        }
    }
}
