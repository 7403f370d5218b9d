//! A bounded table of flows: the one unused for longest makes room.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A flow that carried nothing for so long may go.
pub const IDLE: Duration = Duration::from_secs(120);

/// Flows by number.
#[derive(Debug)]
pub struct Flows<T> {
    entries: BTreeMap<u32, (T, Instant)>,
    max: usize,
}

impl<T> Flows<T> {
    /// Holds at most `max`.
    pub fn new(max: usize) -> Self {
        Flows { entries: BTreeMap::new(), max }
    }

    /// A flow that carries something now.
    pub fn touch(&mut self, flow: u32, now: Instant) -> Option<&T> {
        let (value, used) = self.entries.get_mut(&flow)?;
        *used = now;
        Some(value)
    }

    /// Adds a flow; returns those that made room or were idle.
    pub fn insert(&mut self, flow: u32, value: T, now: Instant) -> Vec<(u32, T)> {
        let mut gone = self.expire(now);
        if !self.entries.contains_key(&flow) && self.entries.len() >= self.max {
            let oldest = self.oldest();
            gone.extend(oldest.and_then(|(f, _)| self.remove(f).map(|v| (f, v))));
        }
        self.entries.insert(flow, (value, now));
        gone
    }

    /// Takes a flow out.
    pub fn remove(&mut self, flow: u32) -> Option<T> {
        self.entries.remove(&flow).map(|(v, _)| v)
    }

    /// Takes out those that have been idle for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<(u32, T)> {
        let old = |used: &Instant| now.saturating_duration_since(*used) > IDLE;
        let idle: Vec<u32> = self.entries.iter().filter(|(_, (_, used))| old(used)).map(|(f, _)| *f).collect();
        idle.into_iter().filter_map(|f| self.remove(f).map(|v| (f, v))).collect()
    }

    /// When the one unused for longest was used.
    pub fn oldest(&self) -> Option<(u32, Instant)> {
        self.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(flow, (_, used))| (*flow, *used))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Flows of several peers, all of which share one limit: the peer with the most makes room.
#[derive(Debug)]
pub struct Shared<T> {
    peers: BTreeMap<u32, Flows<T>>,
    per_peer: usize,
    total: usize,
    next: u32,
}

impl<T> Shared<T> {
    /// Holds at most `total`, and of one peer at most `per_peer`.
    pub fn new(per_peer: usize, total: usize) -> Self {
        Shared { peers: BTreeMap::new(), per_peer, total, next: 0 }
    }

    /// A further peer, by number.
    pub fn join(&mut self) -> u32 {
        let peer = self.next;
        self.next = self.next.wrapping_add(1);
        self.peers.insert(peer, Flows::new(self.per_peer));
        peer
    }

    /// A peer has gone, and its flows with it.
    pub fn leave(&mut self, peer: u32) -> Option<Flows<T>> {
        self.peers.remove(&peer)
    }

    /// A flow that carries something now.
    pub fn touch(&mut self, peer: u32, flow: u32, now: Instant) -> Option<&T> {
        self.peers.get_mut(&peer)?.touch(flow, now)
    }

    /// Makes room for one more flow of `peer`: those that go.
    pub fn make_room(&mut self, peer: u32, now: Instant) -> Vec<T> {
        let mut gone = self.expire(now);
        let own = self.peers.get(&peer).map_or(0, Flows::len);
        let all: usize = self.peers.values().map(Flows::len).sum();
        let from = if own >= self.per_peer {
            Some(peer)
        } else if all >= self.total {
            // Who asks goes before others that have as many.
            self.peers.iter().max_by_key(|(p, f)| (f.len(), **p == peer)).map(|(p, _)| *p)
        } else {
            None
        };
        if let Some(flows) = from.and_then(|p| self.peers.get_mut(&p))
            && let Some((flow, _)) = flows.oldest()
        {
            gone.extend(flows.remove(flow));
        }
        gone
    }

    /// Adds a flow for which there is room.
    pub fn insert(&mut self, peer: u32, flow: u32, value: T, now: Instant) -> Vec<(u32, T)> {
        self.peers.get_mut(&peer).map(|flows| flows.insert(flow, value, now)).unwrap_or_default()
    }

    /// Takes out those that have been idle for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<T> {
        self.peers.values_mut().flat_map(|f| f.expire(now)).map(|(_, flow)| flow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_forgetful() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut f = Flows::new(2);
        assert!(f.insert(1, 'a', at(0)).is_empty());
        assert!(f.insert(2, 'b', at(1)).is_empty());
        assert_eq!(f.touch(1, at(2)), Some(&'a'));
        assert_eq!(f.insert(3, 'c', at(3)), [(2, 'b')], "the one unused for longest");
        assert_eq!(f.touch(2, at(3)), None);
        assert_eq!(f.len(), 2);
        assert_eq!(f.insert(4, 'd', at(200)), [(1, 'a'), (3, 'c')], "idle ones");
        assert!(f.insert(4, 'e', at(201)).is_empty(), "replaced");
        assert_eq!(f.len(), 1);
    }

    #[test]
    fn peers_share_and_the_greedy_one_makes_room() {
        let now = Instant::now();
        let mut s = Shared::new(4, 6);
        let open = |s: &mut Shared<(u32, u32)>, peer, flow| {
            let gone = s.make_room(peer, now);
            assert!(s.insert(peer, flow, (peer, flow), now).is_empty());
            gone
        };
        let (greedy, modest, late) = (s.join(), s.join(), s.join());
        for flow in 0..4 {
            assert_eq!(open(&mut s, greedy, flow), []);
        }
        assert_eq!(open(&mut s, greedy, 4), [(greedy, 0)], "its own share");
        assert_eq!(open(&mut s, modest, 0), []);
        assert_eq!(open(&mut s, modest, 1), []);
        assert_eq!(open(&mut s, late, 0), [(greedy, 1)], "the total");
        assert_eq!(open(&mut s, late, 1), [(greedy, 2)]);
        assert_eq!(open(&mut s, late, 2), [(late, 0)], "two each: its own");
        assert!(s.touch(modest, 0, now).is_some());
        assert_eq!(s.leave(greedy).map(|f| f.len()), Some(2));
        assert_eq!(open(&mut s, late, 3), []);
    }
}
