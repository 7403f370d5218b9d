//! Who sends through a relay: one socket towards the target for each source address.

use super::socket;
use anabranch_base::{Duration, Instant};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// Most senders of one path at a time.
pub(super) const CAPACITY: usize = 4_096;
/// A sender is forgotten after this long without a datagram either way.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// Names one sender for as long as it is known; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ClientId(u64);

pub(super) struct Client {
    pub(super) id: ClientId,
    pub(super) address: SocketAddr,
    pub(super) upstream: Arc<UdpSocket>,
    seen: Instant,
}

/// The senders of one path, in the order they came.
pub(super) struct Clients {
    list: Vec<Client>,
    numbered: u64,
    from: Option<IpAddr>,
    target: SocketAddr,
    capacity: usize,
    by_address: HashMap<SocketAddr, usize>,
    by_id: HashMap<ClientId, usize>,
    /// That there is no room was said.
    said: bool,
}

impl Clients {
    pub(super) fn new(from: Option<IpAddr>, target: SocketAddr) -> Self {
        Self::up_to(CAPACITY, from, target)
    }

    fn up_to(capacity: usize, from: Option<IpAddr>, target: SocketAddr) -> Self {
        let (by_address, by_id) = (HashMap::new(), HashMap::new());
        Clients { list: Vec::new(), numbered: 0, from, target, capacity, by_address, by_id, said: false }
    }

    /// The sender at `address`; a new one gets a socket. The flag says that it is new. `None` when
    /// there is no room or no socket.
    pub(super) fn enter(&mut self, now: Instant, address: SocketAddr) -> Option<(ClientId, bool)> {
        if let Some(client) = self.by_address.get(&address).and_then(|at| self.list.get_mut(*at)) {
            client.seen = now;
            return Some((client.id, false));
        }
        if self.list.len() >= self.capacity {
            self.forget_idle(now);
        }
        if self.list.len() >= self.capacity {
            self.no_room(address, &format!("a path takes {} senders at a time", self.capacity));
            return None;
        }
        let upstream = match socket::upstream(self.from, self.target) {
            Ok(socket) => Arc::new(socket),
            Err(error) => {
                self.no_room(address, &format!("no socket after {} senders: {error}", self.list.len()));
                return None;
            }
        };
        let id = ClientId(self.numbered);
        self.numbered += 1;
        self.by_address.insert(address, self.list.len());
        self.by_id.insert(id, self.list.len());
        self.list.push(Client { id, address, upstream, seen: now });
        Some((id, true))
    }

    /// Said once: the counter has the rest.
    fn no_room(&mut self, address: SocketAddr, why: &str) {
        if !std::mem::replace(&mut self.said, true) {
            tracing::warn!("datagrams from {address} are dropped: {why}; it and others are only counted from now on");
        }
    }

    pub(super) fn get(&self, id: ClientId) -> Option<&Client> {
        self.by_id.get(&id).and_then(|at| self.list.get(*at))
    }

    /// Notes that the target has answered this sender.
    pub(super) fn touch(&mut self, now: Instant, id: ClientId) {
        if let Some(client) = self.by_id.get(&id).and_then(|at| self.list.get_mut(*at)) {
            client.seen = now;
        }
    }

    /// Forgets senders that were idle for too long. Says whether any was.
    pub(super) fn forget_idle(&mut self, now: Instant) -> bool {
        let before = self.list.len();
        self.list.retain(|c| now.since(c.seen) < IDLE);
        if self.list.len() == before {
            return false;
        }
        self.by_address = self.list.iter().enumerate().map(|(at, c)| (c.address, at)).collect();
        self.by_id = self.list.iter().enumerate().map(|(at, c)| (c.id, at)).collect();
        true
    }

    /// Gives every sender a new socket, and so a new port towards the target.
    pub(super) fn rebind(&mut self) -> io::Result<()> {
        for client in &mut self.list {
            client.upstream = Arc::new(socket::upstream(self.from, self.target)?);
        }
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: u16 = 64;

    fn clients() -> Clients {
        Clients::up_to(FEW.into(), None, "127.0.0.1:9".parse().unwrap())
    }
    fn address(port: u16) -> SocketAddr {
        SocketAddr::new("127.0.0.1".parse().unwrap(), port)
    }

    #[test]
    fn one_socket_for_each_sender() {
        let mut clients = clients();
        let (a, new) = clients.enter(Instant::ZERO, address(1)).unwrap();
        assert!(new);
        assert_eq!(clients.enter(Instant::ZERO, address(1)), Some((a, false)));
        let (b, _) = clients.enter(Instant::ZERO, address(2)).unwrap();
        let port = |c: &Clients, id| c.get(id).unwrap().upstream.local_addr().unwrap().port();
        assert_ne!(port(&clients, a), port(&clients, b));
        let before = port(&clients, a);
        clients.rebind().unwrap();
        assert_ne!(port(&clients, a), before);
    }

    #[test]
    fn bounded_and_idle_ones_make_room() {
        let mut clients = clients();
        for port in 1..=FEW {
            assert!(clients.enter(Instant::from_millis(u64::from(port)), address(port)).is_some());
        }
        let late = Instant::ZERO + IDLE;
        assert_eq!(clients.enter(late, address(900)), None);
        // Sender 1 was last heard at 1 ms; sender 2 was answered since.
        let two = clients.enter(Instant::ZERO, address(2)).unwrap().0;
        clients.touch(late, two);
        let (id, new) = clients.enter(late + Duration::from_millis(1), address(900)).unwrap();
        assert!(new && clients.get(id).is_some() && clients.get(two).is_some());
        assert_eq!(clients.iter().count(), FEW.into());
        let found = |c: &Clients| c.iter().all(|one| c.get(one.id).is_some_and(|same| same.address == one.address));
        assert!(found(&clients));
        assert!(clients.forget_idle(late + IDLE));
        assert!(clients.iter().count() == 1 && found(&clients));
    }
}
