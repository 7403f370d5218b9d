//! The engine's numbers of local sides: each is a socket and, where that is a wildcard, a source address.

use crate::config::{Local, Transport};
use anabranch_engine::{ListedAddress, LocalId};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Source addresses distinguished on one wildcard socket. A machine with more answers from the socket's default.
const MAX_SOURCES: usize = 64;

/// Index of a socket in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub usize);

/// Why nothing leaves.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub what: String,
    /// To this address alone; none is to any.
    pub remote: Option<SocketAddr>,
}

impl Trouble {
    /// Does it concern what is sent to `remote`?
    pub fn concerns(&self, remote: SocketAddr) -> bool {
        self.remote.is_none_or(|r| r == remote)
    }
}

/// A local side.
#[derive(Clone, Debug)]
pub(crate) struct LocalSide {
    /// For people.
    pub name: String,
    pub slot: Slot,
    /// To be set in each packet; none leaves it to the socket.
    pub source: Option<IpAddr>,
    /// Address and port of packets that leave here, for captures and statistics.
    pub address: SocketAddr,
    /// The last thing the kernel said about sending here.
    pub trouble: Option<Trouble>,
    /// The interface is there.
    pub up: bool,
}

/// What a socket is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// One address.
    Address,
    /// None: the routing table chooses the source.
    Nothing,
    /// None, and it listens: answers leave from the address they were asked at.
    Everything,
}

#[derive(Debug)]
pub(crate) struct Locals {
    transport: Transport,
    sides: Vec<LocalSide>,
    of_slot: Vec<SlotSides>,
    by_request: BTreeMap<(Local, bool), LocalId>,
}

#[derive(Debug)]
struct SlotSides {
    default: LocalId,
    bound: Bound,
    by_source: BTreeMap<IpAddr, LocalId>,
}

impl Locals {
    pub fn new(transport: Transport) -> Self {
        Locals { transport, sides: Vec::new(), of_slot: Vec::new(), by_request: BTreeMap::new() }
    }

    /// Registers a socket. None when the numbers are used up.
    pub fn add(&mut self, name: String, address: SocketAddr, bound: Bound, up: bool) -> Option<(Slot, LocalId)> {
        let slot = Slot(self.of_slot.len());
        let id = self.push(LocalSide { name, slot, source: None, address, trouble: None, up })?;
        self.of_slot.push(SlotSides { default: id, bound, by_source: BTreeMap::new() });
        Some((slot, id))
    }

    fn push(&mut self, side: LocalSide) -> Option<LocalId> {
        let id = LocalId(u16::try_from(self.sides.len()).ok()?);
        self.sides.push(side);
        Some(id)
    }

    /// The side that a client asked for before.
    pub fn requested(&self, local: &Local, v4: bool) -> Option<LocalId> {
        self.by_request.get(&(local.clone(), v4)).copied()
    }

    /// Notes what a client asked for.
    pub fn remember(&mut self, local: Local, v4: bool, id: LocalId) {
        self.by_request.insert((local, v4), id);
    }

    pub fn get(&self, id: LocalId) -> Option<&LocalSide> {
        self.sides.get(usize::from(id.0))
    }

    pub fn get_mut(&mut self, id: LocalId) -> Option<&mut LocalSide> {
        self.sides.get_mut(usize::from(id.0))
    }

    /// Addresses of these sides that may be listed to a peer: those they are bound to and that a peer elsewhere can
    /// reach.
    pub fn listed(&self, of: impl IntoIterator<Item = LocalId>) -> Vec<ListedAddress> {
        let mut all: Vec<ListedAddress> = Vec::new();
        for local in of {
            let Some(side) = self.get(local) else { continue };
            let bound = self.of_slot.get(side.slot.0).is_some_and(|s| s.bound == Bound::Address);
            let ip = side.address.ip();
            let near = matches!(ip, IpAddr::V6(a) if a.is_unicast_link_local());
            if (bound || side.source.is_some()) && !near && all.iter().all(|a| a.ip != ip) {
                all.push(ListedAddress { local, ip });
            }
        }
        all
    }

    /// The sides that a socket of a server has, one for each address that it is there for.
    pub fn of_server(&mut self, slot: Slot, machine: &[IpAddr]) -> Vec<LocalId> {
        let Some(sides) = self.of_slot.get(slot.0) else { return Vec::new() };
        let default = sides.default;
        if sides.bound == Bound::Address {
            return vec![default];
        }
        let v4 = self.get(default).is_some_and(|s| s.address.is_ipv4());
        let fits = machine.iter().filter(|a| a.is_ipv4() == v4 && !a.is_loopback());
        fits.filter_map(|a| self.arrival(slot, Some(*a))).filter(|id| *id != default).collect()
    }

    /// Raw sockets get copies: is there one bound to this address, beside which those bound to none stand back?
    fn is_anothers(&self, bound: Bound, destination: Option<IpAddr>) -> bool {
        let has = |s: &SlotSides| {
            s.bound == Bound::Address && self.get(s.default).map(|side| side.address.ip()) == destination
        };
        self.transport == Transport::RawIp && bound != Bound::Address && self.of_slot.iter().any(has)
    }

    /// The side that a packet to `destination` on a socket belongs to; `None` when it is for none of them.
    pub fn arrival(&mut self, slot: Slot, destination: Option<IpAddr>) -> Option<LocalId> {
        let sides = self.of_slot.get(slot.0)?;
        let default = sides.default;
        if self.is_anothers(sides.bound, destination) {
            return None;
        }
        let destination = match destination {
            // RFC 9260 §8.4 item 1. UDP sockets get none unless they ask for them.
            Some(d) if self.transport == Transport::RawIp && (d.is_multicast() || is_broadcast(d)) => return None,
            Some(d) if sides.bound == Bound::Everything && !d.is_multicast() && !d.is_unspecified() => d,
            _ => return Some(default),
        };
        if let Some(&id) = sides.by_source.get(&destination) {
            return Some(id);
        }
        if sides.by_source.len() >= MAX_SOURCES {
            return Some(default);
        }
        let port = self.get(default)?.address.port();
        let side = LocalSide {
            name: destination.to_string(),
            slot,
            source: Some(destination),
            address: SocketAddr::new(destination, port),
            trouble: None,
            up: true,
        };
        let Some(id) = self.push(side) else { return Some(default) };
        if let Some(sides) = self.of_slot.get_mut(slot.0) {
            sides.by_source.insert(destination, id);
        }
        Some(id)
    }
}

fn is_broadcast(a: IpAddr) -> bool {
    matches!(a, IpAddr::V4(a) if a.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(s: &str) -> Option<IpAddr> {
        Some(s.parse().unwrap())
    }

    #[test]
    fn wildcards_are_split_by_destination() {
        let mut l = Locals::new(Transport::Udp);
        let (slot, default) = l.add("*".into(), "0.0.0.0:9899".parse().unwrap(), Bound::Everything, true).unwrap();
        let a = l.arrival(slot, ip("10.0.0.1")).unwrap();
        let b = l.arrival(slot, ip("10.0.0.2")).unwrap();
        assert!(a != b && a != default);
        assert_eq!(l.arrival(slot, ip("10.0.0.1")), Some(a));
        assert_eq!(l.arrival(slot, None), Some(default));
        assert_eq!(l.arrival(slot, ip("224.0.0.1")), Some(default));
        assert_eq!(l.get(a).unwrap().address, "10.0.0.1:9899".parse().unwrap());
        assert_eq!(l.get(a).unwrap().source, ip("10.0.0.1"));
        let (other, fixed) = l.add("lo".into(), "127.0.0.1:1".parse().unwrap(), Bound::Address, true).unwrap();
        assert_eq!(l.arrival(other, ip("127.0.0.1")), Some(fixed));
        assert_eq!(l.arrival(Slot(7), None), None);
    }

    #[test]
    fn strangers_cannot_use_up_the_numbers() {
        let mut l = Locals::new(Transport::Udp);
        let (slot, default) = l.add("*".into(), "0.0.0.0:9899".parse().unwrap(), Bound::Everything, true).unwrap();
        for i in 0..200 {
            l.arrival(slot, Some(IpAddr::from([127, 0, 1, i])));
        }
        assert_eq!(l.arrival(slot, ip("127.9.9.9")), Some(default));
        assert!(l.sides.len() <= MAX_SOURCES + 1);
    }

    #[test]
    fn what_is_bound_and_can_be_reached_is_listed_to_peers() {
        let mut l = Locals::new(Transport::Udp);
        let (any, default) = l.add("*".into(), "0.0.0.0:9899".parse().unwrap(), Bound::Everything, true).unwrap();
        let (one, fixed) = l.add("eth0".into(), "[2001:db8::1]:9".parse().unwrap(), Bound::Address, true).unwrap();
        let (_, near) = l.add("eth0".into(), "[fe80::1]:9".parse().unwrap(), Bound::Address, true).unwrap();
        let (_, client) = l.add("*".into(), "10.0.0.1:9".parse().unwrap(), Bound::Nothing, true).unwrap();
        let machine = ["127.0.0.1", "10.0.0.1", "2001:db8::1", "10.0.0.2"].map(|a| a.parse().unwrap());
        let mut all = l.of_server(any, &machine);
        all.extend(l.of_server(one, &machine));
        assert!(!all.contains(&default) && all.contains(&fixed));
        all.extend([near, client, fixed]);
        let listed: Vec<_> = l.listed(all).iter().map(|a| a.ip.to_string()).collect();
        assert_eq!(listed, ["10.0.0.1", "10.0.0.2", "2001:db8::1"]);
    }

    #[test]
    fn a_raw_packet_belongs_to_one_socket() {
        let sockets = |transport| {
            let mut l = Locals::new(transport);
            let (any, id) = l.add("*".into(), "10.0.0.9:0".parse().unwrap(), Bound::Nothing, true).unwrap();
            let (one, _) = l.add("eth0".into(), "10.0.0.1:0".parse().unwrap(), Bound::Address, true).unwrap();
            (l, any, one, id)
        };
        let (mut l, any, one, id) = sockets(Transport::RawIp);
        assert_eq!(l.arrival(any, ip("10.0.0.1")), None);
        assert!(l.arrival(one, ip("10.0.0.1")).is_some());
        assert_eq!(l.arrival(any, ip("10.0.0.9")), Some(id), "no other socket is bound to its address");
        assert_eq!(l.arrival(any, ip("224.0.0.1")), None);
        assert_eq!(l.arrival(any, ip("255.255.255.255")), None);
        let (mut l, any, _, id) = sockets(Transport::Udp);
        assert_eq!(l.arrival(any, ip("10.0.0.1")), Some(id), "UDP sockets get no copies");
    }
}
