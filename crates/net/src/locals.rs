//! The engine's numbers of local sides: each is a socket and, where that is a wildcard, a source address.

use crate::config::Local;
use anabranch_engine::LocalId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Source addresses told apart on one wildcard socket. A machine with more answers from the socket's default.
const MAX_SOURCES: usize = 64;

/// Index of a socket in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub usize);

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
    pub trouble: Option<String>,
    /// The interface is there.
    pub up: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Locals {
    sides: Vec<LocalSide>,
    of_slot: Vec<SlotSides>,
    by_request: BTreeMap<(Local, bool), LocalId>,
}

#[derive(Debug)]
struct SlotSides {
    default: LocalId,
    /// Packets are told apart by the address they came to.
    split: bool,
    by_source: BTreeMap<IpAddr, LocalId>,
}

impl Locals {
    /// Registers a socket. `split`: a wildcard that listens, whose answers must leave from the address they were
    /// asked at. None when the numbers are used up.
    pub fn add(&mut self, name: String, address: SocketAddr, split: bool, up: bool) -> Option<(Slot, LocalId)> {
        let slot = Slot(self.of_slot.len());
        let id = self.push(LocalSide { name, slot, source: None, address, trouble: None, up })?;
        self.of_slot.push(SlotSides { default: id, split, by_source: BTreeMap::new() });
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

    /// The side that a packet to `destination` on a socket belongs to.
    pub fn arrival(&mut self, slot: Slot, destination: Option<IpAddr>) -> Option<LocalId> {
        let sides = self.of_slot.get(slot.0)?;
        let default = sides.default;
        let destination = match destination {
            Some(d) if sides.split && !d.is_multicast() && !d.is_unspecified() => d,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(s: &str) -> Option<IpAddr> {
        Some(s.parse().unwrap())
    }

    #[test]
    fn wildcards_are_split_by_destination() {
        let mut l = Locals::default();
        let (slot, default) = l.add("*".into(), "0.0.0.0:9899".parse().unwrap(), true, true).unwrap();
        let a = l.arrival(slot, ip("10.0.0.1")).unwrap();
        let b = l.arrival(slot, ip("10.0.0.2")).unwrap();
        assert!(a != b && a != default);
        assert_eq!(l.arrival(slot, ip("10.0.0.1")), Some(a));
        assert_eq!(l.arrival(slot, None), Some(default));
        assert_eq!(l.arrival(slot, ip("224.0.0.1")), Some(default));
        assert_eq!(l.get(a).unwrap().address, "10.0.0.1:9899".parse().unwrap());
        assert_eq!(l.get(a).unwrap().source, ip("10.0.0.1"));
        let (other, fixed) = l.add("lo".into(), "127.0.0.1:1".parse().unwrap(), false, true).unwrap();
        assert_eq!(l.arrival(other, ip("127.0.0.1")), Some(fixed));
        assert_eq!(l.arrival(Slot(7), None), None);
    }

    #[test]
    fn strangers_cannot_use_up_the_numbers() {
        let mut l = Locals::default();
        let (slot, default) = l.add("*".into(), "0.0.0.0:9899".parse().unwrap(), true, true).unwrap();
        for i in 0..200 {
            l.arrival(slot, Some(IpAddr::from([127, 0, 1, i])));
        }
        assert_eq!(l.arrival(slot, ip("127.9.9.9")), Some(default));
        assert!(l.sides.len() <= MAX_SOURCES + 1);
    }
}
