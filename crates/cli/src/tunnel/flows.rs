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
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(f, _)| *f);
            gone.extend(oldest.and_then(|f| self.remove(f).map(|v| (f, v))));
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

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
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
}
