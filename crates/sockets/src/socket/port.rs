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
    pub endpoint: Endpoint,
    pub ids: BTreeMap<AssocId, AssociationId>,
    /// Sockets bound to it, with their addresses.
    pub sockets: Vec<(SocketId, Vec<IpAddr>)>,
    /// Addresses that living associations gave up, or that were added to them alone: what comes there is theirs and no
    /// stranger's, whom an ABORT would answer.
    pub further: Vec<IpAddr>,
    /// The one whose associations peers begin.
    pub listener: Option<SocketId>,
    /// Keeps the port from other processes.
    claim: Option<Box<dyn std::any::Any + Send>>,
}

impl Port {
    /// Does it take packets to this address? Its associations outlive the sockets.
    pub fn hears(&self, to: IpAddr) -> bool {
        self.sockets.is_empty() || self.sockets.iter().any(|(_, list)| covers(list, to)) || self.further.contains(&to)
    }
}

/// A wildcard covers every address of its family, and the one of IPv6 all.
pub(super) fn covers(bound: &[IpAddr], ip: IpAddr) -> bool {
    bound.iter().any(|b| *b == ip || (b.is_unspecified() && (b.is_ipv6() || ip.is_ipv4())))
}

impl Stack {
    /// The endpoint that answers for all ports without a socket.
    pub(super) fn strangers(&mut self, now: Instant) -> Port {
        self.port_with(now, 0, true)
    }

    pub(super) fn new_port(&mut self, now: Instant, number: u16) -> Port {
        self.port_with(now, number, false)
    }

    fn port_with(&mut self, now: Instant, number: u16, any: bool) -> Port {
        let mut config = EndpointConfig::new(number, Options::new(&self.settings).association(&self.settings, false));
        config.unsummed_strangers = self.settings.zero_checksum_for_strangers;
        config.cookie_life = self.settings.cookie_life;
        config.any_port = any;
        Port {
            endpoint: Endpoint::new(config, (self.entropy)(), now),
            ids: BTreeMap::new(),
            sockets: Vec::new(),
            further: Vec::new(),
            listener: None,
            claim: None,
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
            let mut new = self.new_port(now, port);
            if let Some(claim) = self.outward.as_mut().and_then(|o| o.claim.as_mut()) {
                new.claim = Some(claim(port).ok_or(Errno::ADDRESS_IN_USE)?);
            }
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

    /// Ports without sockets and associations are gone. One that is over counts until its socket knows: the engine's
    /// number of it would be given again by a new port of the same number.
    pub(super) fn release_ports(&mut self) {
        let used = |p: &Port| !p.sockets.is_empty() || !p.ids.is_empty() || p.endpoint.associations().next().is_some();
        self.ports.retain(|_, p| used(p));
    }
}
