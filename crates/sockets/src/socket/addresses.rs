//! Addresses of the host, numbered for the engine.

use anabranch_engine::LocalId;
use std::net::IpAddr;

/// See the module's description.
#[derive(Default)]
pub(super) struct Locals {
    numbered: Vec<IpAddr>,
    host: Vec<IpAddr>,
    /// Which of ours a packet to somewhere leaves from; none where all addresses of the host serve.
    route: Option<Route>,
}

/// Asks the routing table for the source address towards a peer.
pub type Route = fn(IpAddr) -> Option<IpAddr>;

impl Locals {
    /// The number of an address of ours.
    pub fn number(&mut self, ip: IpAddr) -> LocalId {
        let at = self.numbered.iter().position(|a| *a == ip).unwrap_or_else(|| {
            self.numbered.push(ip);
            self.numbered.len() - 1
        });
        LocalId(at as u16)
    }

    /// The address of a number.
    pub fn address(&self, local: LocalId) -> Option<IpAddr> {
        self.numbered.get(usize::from(local.0)).copied()
    }

    pub fn add_host(&mut self, ip: IpAddr) {
        if !self.host.contains(&ip) {
            self.host.push(ip);
        }
    }

    /// Addresses of the host that were named, without loopback.
    pub fn named(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.host.iter().copied().filter(|a| !a.is_loopback())
    }

    /// From now on the routing table says which address comes first.
    pub fn set_route(&mut self, route: Route) {
        self.route = Some(route);
    }

    /// Addresses of the host of one family; loopback only towards loopback. The one that the routing table chooses comes
    /// first, and is the only one where none was named.
    pub fn towards(&self, remote: IpAddr) -> Vec<IpAddr> {
        let fits = |a: &IpAddr| a.is_ipv4() == remote.is_ipv4() && a.is_loopback() == remote.is_loopback();
        let mut all: Vec<IpAddr> = self.host.iter().copied().filter(fits).collect();
        if let Some(first) = self.route.and_then(|route| route(remote)) {
            match all.iter().position(|a| *a == first) {
                Some(at) => all.swap(0, at),
                None if all.is_empty() || remote.is_loopback() => all = vec![first],
                None => {}
            }
        }
        all
    }
}
