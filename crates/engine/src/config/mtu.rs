//! How large packets are.

use crate::path::discovery::PathMtuDiscovery;

/// The size of packets, and the search for a larger one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Mtu {
    /// Largest SCTP packet, common header included, bytes (ours: 1200, safe on every path without probing). With
    /// `discovery` where the search begins.
    pub packet_size: usize,
    /// Look on each path for packets larger than `packet_size` (RFC 8899): messages are then cut for the smallest of what
    /// the paths in use were found to carry. None never does. On from the start where the profile asks for it
    /// ([`Profile::finds_packet_size`](anabranch_policy::registry::Profile::finds_packet_size)).
    pub discovery: Option<PathMtuDiscovery>,
}

impl Mtu {
    /// What the search of a profile goes up to: fits an Ethernet frame with the headers of IPv6 and UDP, bytes.
    pub(super) const LARGEST_SOUGHT: usize = 1_452;
}

impl Default for Mtu {
    fn default() -> Self {
        Mtu { packet_size: 1_200, discovery: None }
    }
}
