//! `connect` and `sctp_connectx` (RFC 6458 §4.1.6, §9.9), and associations that `sendmsg` begins (§3.2).

use super::association::{Association, AssociationId};
use super::port::covers;
use super::{Bound, Errno, SocketId, Stack, Style};
use anabranch_base::Instant;
use anabranch_engine::{ConnectError, ListedAddress, LocalId};
use std::net::{IpAddr, SocketAddr};

impl Stack {
    /// Begins an association with a peer that has these addresses. [`Stack::connecting`] tells what becomes of it.
    ///
    /// # Errors
    /// There is one already, no address of ours reaches the peer, or the socket cannot have one.
    pub fn connect(&mut self, now: Instant, id: SocketId, peer: &[SocketAddr]) -> Result<AssociationId, Errno> {
        let s = self.get(id)?;
        if s.style == Style::OneToOne {
            if s.backlog.is_some() {
                return Err(Errno::NOT_SUPPORTED);
            }
            match s.peer.and_then(|a| self.associations.get(&a)) {
                Some(a) if a.closed.is_some() => {}
                Some(a) if a.connected => return Err(Errno::IS_CONNECTED),
                Some(_) => return Err(Errno::ALREADY),
                None => {}
            }
        }
        let first = *peer.first().ok_or(Errno::INVALID)?;
        if first.port() == 0 || peer.iter().any(|a| a.port() != first.port()) {
            return Err(Errno::INVALID);
        }
        if !s.v6 && peer.iter().any(SocketAddr::is_ipv6) {
            return Err(Errno::FAMILY);
        }
        let port = self.ensure_bound(now, id)?;
        let bound = self.get(id)?.bound.clone().ok_or(Errno::INVALID)?;
        let sources = self.sources(&bound, first.ip());
        let source = *sources.first().ok_or(Errno::ADDRESS_NOT_AVAILABLE)?;
        let engine = self.begin(now, id, &bound, source, first)?;
        let association = Association::new(port, engine, Some(id), first);
        let number = self.new_association(association);
        self.name_more_paths(now, number, &sources, peer);
        let s = self.get_mut(id)?;
        if s.style == Style::OneToOne {
            s.peer = Some(number);
        }
        self.settle(now);
        Ok(number)
    }

    fn begin(
        &mut self,
        now: Instant,
        id: SocketId,
        bound: &Bound,
        source: IpAddr,
        first: SocketAddr,
    ) -> Result<anabranch_engine::AssocId, Errno> {
        let mut config = self.get(id)?.options.association(&self.settings, first.is_ipv6());
        config.addresses.listed = self.listed(bound, Some(first.ip()));
        let local = self.locals.number(source);
        let udp_port = self.get(id)?.options.extensions.udp_port.or(self.settings.udp_port);
        let remote = SocketAddr::new(first.ip(), udp_port.unwrap_or(0));
        let p = self.ports.get_mut(&bound.port).ok_or(Errno::INVALID)?;
        p.endpoint.connect(now, config, local, remote, first.port()).map_err(|e| match e {
            ConnectError::Exists(_) => Errno::IS_CONNECTED,
            _ => Errno::INVALID,
        })
    }

    /// Addresses of ours that reach a peer, the one to begin with first.
    pub(super) fn sources(&self, bound: &Bound, peer: IpAddr) -> Vec<IpAddr> {
        let named = bound.addresses.iter().copied().filter(|a| !a.is_unspecified() && a.is_ipv4() == peer.is_ipv4());
        let mut all: Vec<IpAddr> = named.collect();
        if all.is_empty() && covers(&bound.addresses, peer) {
            all = self.locals.towards(peer);
        }
        all
    }

    /// What INIT lists: nothing where there is one address, which the packet has anyhow (RFC 9260 §5.1.2).
    pub(super) fn listed(&mut self, bound: &Bound, peer: Option<IpAddr>) -> Vec<ListedAddress> {
        let all: Vec<IpAddr> = match peer {
            Some(peer) => self.sources(bound, peer),
            None if self.outward.is_some() && bound.addresses.iter().any(IpAddr::is_unspecified) => {
                self.locals.named().filter(|a| covers(&bound.addresses, *a)).collect()
            }
            None => bound.addresses.iter().copied().filter(|a| !a.is_unspecified()).collect(),
        };
        if all.len() < 2 {
            return Vec::new();
        }
        all.into_iter().map(|ip| ListedAddress { local: self.locals.number(ip), ip }).collect()
    }

    /// Further addresses of the peer, and further ones of ours, are paths too once they answer.
    fn name_more_paths(&mut self, now: Instant, id: AssociationId, sources: &[IpAddr], peer: &[SocketAddr]) {
        let locals: Vec<(LocalId, IpAddr)> = sources.iter().map(|ip| (self.locals.number(*ip), *ip)).collect();
        let Some(mut a) = self.engine_mut(id) else { return };
        let known: Vec<(u16, IpAddr)> = a.paths().map(|(_, s)| (s.local, s.remote.ip())).collect();
        let port = a.paths().next().map_or(0, |(_, s)| s.remote.port());
        for to in peer {
            for (local, _) in locals.iter().filter(|(_, ip)| ip.is_ipv4() == to.is_ipv4()).take(1) {
                if !known.contains(&(local.0, to.ip())) {
                    a.add_path(now, *local, SocketAddr::new(to.ip(), port));
                }
            }
        }
    }

    /// What became of [`Stack::connect`].
    ///
    /// # Errors
    /// Under way, or the reason why there is none.
    pub fn connecting(&mut self, id: SocketId, association: AssociationId) -> Result<(), Errno> {
        match self.associations.get(&association) {
            Some(a) if a.connected => Ok(()),
            Some(a) if a.closed.is_none() => Err(Errno::IN_PROGRESS),
            _ => {
                let s = self.get_mut(id)?;
                let kept = s.not_connected.iter().position(|(a, _)| *a == association);
                let kept = kept.and_then(|i| s.not_connected.remove(i)).map(|(_, e)| e);
                Err(s.error.take().or(kept).unwrap_or(Errno::CONNECTION_REFUSED))
            }
        }
    }
}
