//! An SCTP port and its endpoint.

use super::association::AssociationId;
use super::options::Options;
use super::{Bound, Errno, SocketId, Stack};
use anabranch_base::Instant;
use anabranch_engine::{AssocId, Endpoint, EndpointConfig};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// First port of the dynamic range (RFC 6335 §6).
const DYNAMIC: u16 = 49_152;

pub(super) struct Port {
    pub number: u16,
    pub endpoint: Endpoint,
    pub ids: BTreeMap<AssocId, AssociationId>,
    /// Sockets bound to it, with their addresses.
    pub sockets: Vec<(SocketId, Vec<IpAddr>)>,
    /// The one whose associations peers begin.
    pub listener: Option<SocketId>,
}

impl Port {
    /// Does it take packets to this address? Its associations outlive the sockets.
    pub fn hears(&self, to: IpAddr) -> bool {
        self.sockets.is_empty() || self.sockets.iter().any(|(_, list)| covers(list, to))
    }
}

/// A wildcard covers every address of its family, and the one of IPv6 all.
pub(super) fn covers(bound: &[IpAddr], ip: IpAddr) -> bool {
    bound.iter().any(|b| *b == ip || (b.is_unspecified() && (b.is_ipv6() || ip.is_ipv4())))
}

impl Stack {
    pub(super) fn new_port(&mut self, now: Instant, number: u16) -> Port {
        let mut config = EndpointConfig::new(number, Options::new(&self.settings).association(&self.settings, false));
        config.unsummed_strangers = self.settings.zero_checksum_for_strangers;
        config.cookie_life = self.settings.cookie_life;
        Port {
            number,
            endpoint: Endpoint::new(config, (self.entropy)(), now),
            ids: BTreeMap::new(),
            sockets: Vec::new(),
            listener: None,
        }
    }

    /// Binds a socket, which is not bound yet, to a port; 0 is any that is free.
    pub(super) fn claim(&mut self, now: Instant, id: SocketId, port: u16, addresses: Vec<IpAddr>) -> Result<(), Errno> {
        let port = if port == 0 { self.free_port().ok_or(Errno::ADDRESS_IN_USE)? } else { port };
        if let Some(p) = self.ports.get(&port) {
            let reuse = self.get(id)?.options.reuse;
            let wild = |l: &[IpAddr]| l.iter().any(IpAddr::is_unspecified);
            let clash = |l: &Vec<IpAddr>| wild(l) || wild(&addresses) || l.iter().any(|a| addresses.contains(a));
            if !reuse && p.sockets.iter().any(|(_, l)| clash(l)) {
                return Err(Errno::ADDRESS_IN_USE);
            }
        } else {
            let new = self.new_port(now, port);
            self.ports.insert(port, new);
        }
        if let Some(p) = self.ports.get_mut(&port) {
            p.sockets.push((id, addresses.clone()));
        }
        self.get_mut(id)?.bound = Some(Bound { port, addresses });
        Ok(())
    }

    fn free_port(&mut self) -> Option<u16> {
        let span = u32::from(u16::MAX - DYNAMIC) + 1;
        let start = (self.entropy)().u32() % span;
        (0..span).map(|i| DYNAMIC + ((start + i) % span) as u16).find(|p| !self.ports.contains_key(p))
    }

    /// Takes a socket off its port. The port goes with its last association.
    pub(super) fn unclaim(&mut self, id: SocketId) {
        for p in self.ports.values_mut() {
            p.sockets.retain(|(s, _)| *s != id);
            if p.listener == Some(id) {
                p.listener = None;
                p.endpoint.set_accept(None);
            }
        }
    }

    /// Ports without sockets, associations and timers are gone.
    pub(super) fn release_ports(&mut self) {
        self.ports.retain(|_, p| !p.sockets.is_empty() || p.endpoint.associations().next().is_some());
    }
}
