//! One path: its sockets, its senders and its two links.

use super::clients::{ClientId, Clients};
use super::socket;
use crate::config::PathConfig;
use crate::error::EmulatorError;
use crate::stats::{PathStats, SampledPath};
use anabranch_base::{Duration, Instant};
use anabranch_sim::damage::flip;
use anabranch_sim::{Delivery, Direction, Link, LinkConfig, LinkCounters};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// What travels through a link.
#[derive(Clone)]
pub(super) struct Datagram {
    pub(super) client: ClientId,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Path {
    name: String,
    pub(super) listener: Arc<UdpSocket>,
    address: SocketAddr,
    pub(super) clients: Clients,
    up: Link<Datagram>,
    down: Link<Datagram>,
    rebinds: Rebinds,
    refused: u64,
    orphaned: u64,
}

impl Path {
    pub(super) fn open(config: &PathConfig, seed: u64) -> Result<Self, EmulatorError> {
        let listen_error = |source| EmulatorError::Listen { path: config.name.clone(), address: config.listen, source };
        let listener = socket::listen(config.listen).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        // Opened and closed again: an unusable target or source address shows at once, not in silence.
        socket::upstream(config.from, config.to).map_err(|source| EmulatorError::Upstream {
            path: config.name.clone(),
            target: config.to,
            source,
        })?;
        let link = |way: &str, link: &LinkConfig| {
            let mut link = Link::new(&format!("{}.{way}", config.name), seed, link.clone());
            link.set_flip(|datagram: &mut Datagram, bits| flip(&mut datagram.bytes, bits));
            link
        };
        Ok(Path {
            listener: Arc::new(listener),
            address,
            clients: Clients::new(config.from, config.to),
            up: link("up", &config.up),
            down: link("down", &config.down),
            rebinds: Rebinds::new(config.rebinds.clone(), config.rebinds_every),
            refused: 0,
            orphaned: 0,
            name: config.name.clone(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn link_mut(&mut self, direction: Direction) -> &mut Link<Datagram> {
        match direction {
            Direction::Forward => &mut self.up,
            Direction::Backward => &mut self.down,
        }
    }

    /// The sender at `address`, and whether it is new. Counts those refused.
    pub(super) fn enter(&mut self, now: Instant, address: SocketAddr) -> Option<(ClientId, bool)> {
        let entered = self.clients.enter(now, address);
        self.refused += u64::from(entered.is_none());
        entered
    }

    /// Hands a datagram that has come through a link to the system. `Ok(false)` when its sender has been forgotten.
    pub(super) fn send(&mut self, direction: Direction, delivery: &Delivery<Datagram>) -> io::Result<bool> {
        let Some(client) = self.clients.get(delivery.payload.client) else {
            self.orphaned += 1;
            return Ok(false);
        };
        let bytes = &delivery.payload.bytes;
        let send = || match direction {
            Direction::Forward => client.upstream.send(bytes),
            Direction::Backward => self.listener.send_to(bytes, client.address),
        };
        match send() {
            // A pending ICMP error of an earlier datagram (its port was closed) is reported instead of this one's
            // result; a network would not report it, so the datagram is sent again.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => send().map(|_| true),
            other => other.map(|_| true),
        }
    }

    /// Carries out the rebinds due; says whether any was.
    pub(super) fn rebind_due(&mut self, now: Instant) -> bool {
        let mut any = false;
        while self.rebinds.take_due(now) {
            any = true;
        }
        if any {
            self.rebind();
        }
        any
    }

    pub(super) fn rebind(&mut self) {
        if let Err(error) = self.clients.rebind() {
            tracing::warn!(%error, path = self.name, "no new ports; the old ones stay");
        }
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        [self.up.next_event(), self.down.next_event(), self.rebinds.next_at()].into_iter().flatten().min()
    }

    /// Bytes of payload in both links.
    pub(super) fn held(&self) -> u64 {
        let held = |c: LinkCounters| {
            (c.offered.bytes + c.duplicated.bytes).saturating_sub(c.delivered.bytes + c.dropped().bytes)
        };
        held(self.up.counters()) + held(self.down.counters())
    }

    /// Brings the links' schedules and counters to `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        self.up.advance(now);
        self.down.advance(now);
    }

    pub(super) fn stats(&self) -> PathStats {
        PathStats {
            name: self.name.clone(),
            listen: self.address,
            up: self.up.counters(),
            down: self.down.counters(),
            up_backlog: self.up.backlog(),
            down_backlog: self.down.backlog(),
            up_is_up: self.up.is_up(),
            down_is_up: self.down.is_up(),
            clients: self.clients.iter().count(),
            refused: self.refused,
            orphaned: self.orphaned,
            upstream: self.clients.iter().filter_map(|c| c.upstream.local_addr().ok()).collect(),
        }
    }

    pub(super) fn sample(&self) -> SampledPath {
        SampledPath { up: self.up.counters(), down: self.down.counters(), up_backlog: self.up.backlog() }
    }
}

/// Times at which the relay changes its ports.
struct Rebinds {
    times: Vec<Duration>,
    every: Option<Duration>,
    round_start: Instant,
    next: usize,
}

impl Rebinds {
    fn new(mut times: Vec<Duration>, every: Option<Duration>) -> Self {
        times.sort();
        if let Some(every) = every {
            times.retain(|t| *t < every);
        }
        Rebinds { times, every, round_start: Instant::ZERO, next: 0 }
    }

    fn next_at(&self) -> Option<Instant> {
        self.times.get(self.next).map(|t| self.round_start + *t)
    }

    fn take_due(&mut self, now: Instant) -> bool {
        if self.next_at().is_none_or(|at| at > now) {
            return false;
        }
        self.next += 1;
        if let (Some(every), true) = (self.every, self.next >= self.times.len()) {
            self.next = 0;
            self.round_start += every;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebinds_come_round() {
        let ms = Duration::from_millis;
        let mut rebinds = Rebinds::new(vec![ms(7), ms(3), ms(20)], Some(ms(10)));
        let mut times = Vec::new();
        while let Some(at) = rebinds.next_at().filter(|at| *at <= Instant::from_millis(23)) {
            assert!(!rebinds.take_due(at - Duration::from_nanos(1)));
            assert!(rebinds.take_due(at));
            times.push(at.as_nanos() / 1_000_000);
        }
        assert_eq!(times, [3, 7, 13, 17, 23]);
    }
}
