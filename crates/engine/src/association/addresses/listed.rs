//! Addresses that INIT and INIT ACK list: which pairs become paths, and how they are probed (RFC 9260 §5.1.2, §5.4;
//! ARCHITECTURE decision 2).
//!
//! With one local interface every address of the peer is a path. With several, each interface is given one pair, the
//! first that confirms; its other pairs are confirmed and kept warm, and used when it has no better one.

use crate::association::Association;
use crate::event::Event;
use crate::path::{LocalId, Origin};
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::PathState;
use std::net::{IpAddr, SocketAddr};

impl Association {
    /// Takes the peer's addresses as paths from each of our interfaces that the peer knows and whose family fits;
    /// those of another family cannot be used and are no error (§5.1.2).
    pub(in crate::association) fn learn_addresses(&mut self, listed: &[IpAddr]) {
        let Some(first) = self.paths.get(self.handshake.path().index()) else { return };
        let (first_local, source) = (first.local(), first.remote());
        let mut remotes = vec![source];
        remotes.extend(listed.iter().map(|ip| with_ip(source, *ip)).filter(|r| r.ip() != source.ip()));
        let mut locals = vec![(first_local, source.ip())];
        for a in &self.config.addresses.listed {
            if !locals.iter().any(|(l, _)| *l == a.local) {
                locals.push((a.local, a.ip));
            }
        }
        let several = locals.len() > 1;
        for p in self.paths.iter_mut() {
            // Paths that the user named need not be asked for when the list tells of their interface.
            if self.config.addresses.listed.iter().any(|a| a.local == p.local()) {
                p.access.become_known();
            }
        }
        // Pairs that share nothing come first: when there is no room for all, they are the ones worth having.
        for shift in 0..remotes.len() {
            for (i, (local, ip)) in locals.iter().enumerate() {
                let Some(remote) = remotes.get((i + shift) % remotes.len()) else { continue };
                if ip.is_ipv4() == remote.is_ipv4() {
                    self.learn_pair(*local, *remote, several);
                }
            }
        }
    }

    fn learn_pair(&mut self, local: LocalId, remote: SocketAddr, several: bool) {
        if self.paths.iter().any(|p| p.local() == local && p.remote() == remote) {
            return;
        }
        if self.paths.len() >= self.config.limits.max_paths.clamp(1, anabranch_base::PathSet::CAPACITY) {
            return;
        }
        let standby = several && self.paths.iter().any(|p| p.local() == local && !p.access.is_standby());
        let Some(id) = self.new_path(local, remote, Origin::Listed) else { return };
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.access.reserve(standby);
        }
        self.events.push_back(Event::PathAdded { path: id });
    }

    /// Starts the probes of what the handshake listed: HB.Max.Burst of them in each RTO (§5.4).
    pub(in crate::association) fn probe_listed(&mut self, now: Instant) {
        let waiting: Vec<PathId> = self.paths.iter().filter(|p| p.is_listed_unconfirmed()).map(|p| p.id()).collect();
        let burst = self.probe_burst();
        for (i, id) in waiting.into_iter().enumerate() {
            let wait = self.config.timers.rto_initial * (i / burst) as u64;
            if let Some(p) = self.paths.get_mut(id.index()) {
                p.timers.plan_heartbeat(Some(now + wait));
            }
        }
    }

    /// How long an unconfirmed address of the list waits after an unanswered probe: until the others had their turn,
    /// or, when it is given up for now, as long as any idle path.
    pub(in crate::association) fn probe_pause(&self, id: PathId) -> Duration {
        let Some(p) = self.paths.get(id.index()).filter(|p| p.is_listed_unconfirmed()) else { return Duration::ZERO };
        if p.health.errors() > p.health.limits().max_retrans(self.config.failure.max_path_retrans) {
            // That of RFC 9260 §16 where idle paths are not probed.
            let own = self.config.timers.heartbeat_interval;
            return if own.is_zero() { Duration::from_secs(30) } else { own };
        }
        let waiting = self.paths.iter().filter(|p| p.is_listed_unconfirmed()).count();
        let turns = waiting.div_ceil(self.probe_burst()).saturating_sub(1);
        self.config.timers.rto_initial * turns as u64
    }

    fn probe_burst(&self) -> usize {
        usize::from(self.config.timers.heartbeat_max_burst.max(1))
    }

    /// The first pair of an interface to be confirmed is the one it uses.
    pub(in crate::association) fn settle_standby(&mut self, id: PathId) {
        let Some(p) = self.paths.get(id.index()).filter(|p| p.access.is_standby()) else { return };
        let local = p.local();
        let rival =
            |p: &crate::path::Path| p.local() == local && !p.access.is_standby() && p.state() != PathState::Unconfirmed;
        if self.paths.iter().any(rival) {
            return;
        }
        for p in self.paths.iter_mut().filter(|p| p.local() == local) {
            p.access.reserve(p.id() != id);
        }
    }
}

fn with_ip(like: SocketAddr, ip: IpAddr) -> SocketAddr {
    // The peer's UDP port is the same on all its addresses until one of them shows another (RFC 6951 §5.4).
    SocketAddr::new(ip, like.port())
}
