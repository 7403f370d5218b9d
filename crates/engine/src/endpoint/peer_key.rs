//! Where a peer is, in a form that compares quickly: endpoints with many associations look for it at every INIT.

use crate::path::LocalId;
use std::net::SocketAddr;

/// Our interface, the peer's address and UDP port, its SCTP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerKey {
    address: u128,
    /// Of a link-local address.
    scope: u32,
    /// UDP port and SCTP port.
    ports: u32,
    local: u16,
}

impl PeerKey {
    pub fn new(local: LocalId, remote: SocketAddr, port: u16) -> PeerKey {
        // An IPv4 address and its mapped form are no different peers; drivers hand in one of them.
        let (address, scope) = match remote {
            SocketAddr::V4(a) => (a.ip().to_ipv6_mapped().to_bits(), 0),
            SocketAddr::V6(a) => (a.ip().to_bits(), a.scope_id()),
        };
        let ports = u32::from(remote.port()) << 16 | u32::from(port);
        PeerKey { address, scope, ports, local: local.0 }
    }

    /// All of it.
    pub fn words(&self) -> [u32; 7] {
        let a = self.address;
        [(a >> 96) as u32, (a >> 64) as u32, (a >> 32) as u32, a as u32, self.scope, self.ports, self.local.into()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let key = |local, remote: &str, port| PeerKey::new(LocalId(local), remote.parse().unwrap(), port);
        let all = [
            key(0, "192.0.2.1:9", 5),
            key(1, "192.0.2.1:9", 5),
            key(0, "192.0.2.2:9", 5),
            key(0, "192.0.2.1:10", 5),
            key(0, "192.0.2.1:9", 6),
            key(0, "[2001:db8::1]:9", 5),
            key(0, "[fe80::1%1]:9", 5),
            key(0, "[fe80::1%2]:9", 5),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all.iter().enumerate().all(|(j, b)| (i == j) == (a == b)), "{i}");
            assert!(all.iter().enumerate().all(|(j, b)| (i == j) == (a.words() == b.words())), "{i}");
        }
    }
}
