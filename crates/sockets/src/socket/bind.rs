//! `bind`, `sctp_bindx`, `listen` and names (RFC 6458 §4.1.2, §4.1.3, §9.1).

use super::{Errno, SocketId, Stack, Style};
use crate::abi::address::any;
use anabranch_base::Instant;
use std::net::{IpAddr, SocketAddr};

impl Stack {
    /// Binds a socket to one address; port 0 is any that is free.
    ///
    /// # Errors
    /// The socket is bound already, or the port is taken.
    pub fn bind(&mut self, now: Instant, id: SocketId, address: SocketAddr) -> Result<(), Errno> {
        if self.get(id)?.bound.is_some() {
            return Err(Errno::INVALID);
        }
        self.check_family(id, address)?;
        self.claim(now, id, address.port(), vec![address.ip()])
    }

    fn check_family(&self, id: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let ok = self.get(id)?.v6 || address.is_ipv4();
        if ok { Ok(()) } else { Err(Errno::FAMILY) }
    }

    /// Adds addresses to those a socket is bound to. All have one port, which may be 0 but for the first call.
    ///
    /// # Errors
    /// Ports that differ, an address of a wrong family, a port that is taken.
    pub fn bind_more(&mut self, now: Instant, id: SocketId, addresses: &[SocketAddr]) -> Result<(), Errno> {
        let first = addresses.first().ok_or(Errno::INVALID)?;
        for a in addresses {
            self.check_family(id, *a)?;
        }
        let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        let Some(bound) = &mut self.get_mut(id)?.bound else {
            if addresses.iter().any(|a| a.port() != first.port()) {
                return Err(Errno::INVALID);
            }
            return self.claim(now, id, first.port(), ips);
        };
        if addresses.iter().any(|a| a.port() != 0 && a.port() != bound.port) {
            return Err(Errno::INVALID);
        }
        let new: Vec<IpAddr> = ips.into_iter().filter(|ip| !bound.addresses.contains(ip)).collect();
        bound.addresses.extend(&new);
        let port = bound.port;
        self.sync_bound(id)?;
        if let Some(p) = self.ports.get_mut(&port)
            && p.sockets.iter().all(|(s, _)| *s != id)
        {
            // An accepted socket holds no port of its own.
            p.further.extend(&new);
        }
        for a in self.get(id)?.associations.clone() {
            new.iter().for_each(|ip| self.join(now, a, *ip));
        }
        Ok(())
    }

    /// A further address of ours joins a living association, where the peer lets it (RFC 5061).
    fn join(&mut self, now: Instant, a: super::AssociationId, ip: IpAddr) {
        let local = self.locals.number(ip);
        let Some(mut e) = self.engine_mut(a) else { return };
        if e.phase() != anabranch_engine::Phase::Established {
            return;
        }
        let mut peers: Vec<SocketAddr> = e.paths().map(|(_, p)| p.remote).collect();
        peers.retain(|p| p.is_ipv4() == ip.is_ipv4());
        peers.dedup();
        for to in peers {
            // By its name, as the program gave it: a Linux peer finds an association by nothing else.
            let _ = e.add_address(now, local, ip, to);
        }
    }

    /// Takes addresses off a socket; one has to stay.
    ///
    /// # Errors
    /// Not bound there, or none would be left.
    pub fn unbind(&mut self, now: Instant, id: SocketId, addresses: &[SocketAddr]) -> Result<(), Errno> {
        let bound = self.get_mut(id)?.bound.as_mut().ok_or(Errno::INVALID)?;
        let left: Vec<IpAddr> =
            bound.addresses.iter().copied().filter(|ip| addresses.iter().all(|a| a.ip() != *ip)).collect();
        if left.is_empty() {
            return Err(Errno::INVALID);
        }
        if left.len() == bound.addresses.len() {
            return Err(Errno::ADDRESS_NOT_AVAILABLE);
        }
        bound.addresses = left;
        let port = bound.port;
        self.sync_bound(id)?;
        if !self.get(id)?.associations.is_empty()
            && let Some(p) = self.ports.get_mut(&port)
        {
            let new = addresses.iter().map(SocketAddr::ip).filter(|ip| !p.further.contains(ip)).collect::<Vec<_>>();
            p.further.extend(new);
        }
        for a in self.get(id)?.associations.clone() {
            for gone in addresses {
                let local = self.locals.number(gone.ip());
                let Some(mut e) = self.engine_mut(a) else { continue };
                // The handshake does not list an address that was the only one.
                if e.paths().any(|(_, p)| p.local == local.0) {
                    e.name_address(local, gone.ip());
                }
                // Where the peer cannot be informed the address stays, as in the kernel.
                let _ = e.delete_address(now, gone.ip());
            }
        }
        Ok(())
    }

    fn sync_bound(&mut self, id: SocketId) -> Result<(), Errno> {
        let Some(bound) = self.get(id)?.bound.clone() else { return Ok(()) };
        if let Some(p) = self.ports.get_mut(&bound.port) {
            for (_, list) in p.sockets.iter_mut().filter(|(s, _)| *s == id) {
                list.clone_from(&bound.addresses);
            }
        }
        self.refresh_listener(id)
    }

    /// A socket that is not bound gets any port on all addresses.
    pub(super) fn ensure_bound(&mut self, now: Instant, id: SocketId) -> Result<u16, Errno> {
        let s = self.get(id)?;
        if s.bound.is_none() {
            let wildcard = any(s.v6);
            self.claim(now, id, 0, vec![wildcard])?;
        }
        Ok(self.get(id)?.bound.as_ref().map_or(0, |b| b.port))
    }

    /// Lets peers begin associations; backlog 0 ends that.
    ///
    /// # Errors
    /// A one-to-one socket that has an association.
    pub fn listen(&mut self, now: Instant, id: SocketId, backlog: i32) -> Result<(), Errno> {
        if self.get(id)?.style == Style::OneToOne && self.get(id)?.peer.is_some() {
            return Err(Errno::INVALID);
        }
        let port = self.ensure_bound(now, id)?;
        if backlog == 0 && self.get(id)?.style == Style::OneToMany {
            self.get_mut(id)?.backlog = None;
            if let Some(p) = self.ports.get_mut(&port).filter(|p| p.listener == Some(id)) {
                p.listener = None;
                p.endpoint.set_accept(None);
            }
            return Ok(());
        }
        let taken = |p: &super::port::Port| p.listener.is_some_and(|l| l != id);
        if self.ports.get(&port).is_some_and(taken) {
            return Err(Errno::ADDRESS_IN_USE);
        }
        self.get_mut(id)?.backlog = Some(usize::try_from(backlog).unwrap_or(1).max(1));
        self.refresh_listener(id)
    }

    /// The endpoint accepts with what the options of its listening socket are now.
    pub(super) fn refresh_listener(&mut self, id: SocketId) -> Result<(), Errno> {
        let s = self.get(id)?;
        let (Some(_), Some(bound)) = (s.backlog, s.bound.clone()) else { return Ok(()) };
        let listed = self.listed(&bound, None);
        let s = self.get(id)?;
        let mut config = s.options.association(&self.settings, bound.addresses.iter().any(IpAddr::is_ipv6));
        config.addresses.listed = listed;
        if let Some(p) = self.ports.get_mut(&bound.port) {
            p.listener = Some(id);
            p.endpoint.set_accept(Some(config));
        }
        Ok(())
    }

    /// The first address a socket is bound to.
    ///
    /// # Errors
    /// No such socket.
    pub fn name(&self, id: SocketId) -> Result<SocketAddr, Errno> {
        let s = self.get(id)?;
        let unbound = SocketAddr::new(any(s.v6), 0);
        let first = |b: &super::Bound| b.addresses.first().map(|ip| SocketAddr::new(*ip, b.port));
        Ok(s.bound.as_ref().and_then(first).unwrap_or(unbound))
    }
}
