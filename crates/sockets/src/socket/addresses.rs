//! Addresses of the host, numbered for the engine.

use anabranch_engine::LocalId;
use std::net::IpAddr;

/// See the module's description.
#[derive(Default)]
pub(super) struct Locals {
    numbered: Vec<IpAddr>,
    host: Vec<IpAddr>,
}

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

    /// Addresses of the host of one family; loopback only towards loopback.
    pub fn towards(&self, remote: IpAddr) -> impl Iterator<Item = IpAddr> + '_ {
        self.host
            .iter()
            .copied()
            .filter(move |a| a.is_ipv4() == remote.is_ipv4() && a.is_loopback() == remote.is_loopback())
    }
}
