//! Packets on the way, in the order of their arrival.

use anabranch_base::Instant;
use std::collections::VecDeque;

/// A packet on the way.
#[derive(Debug)]
pub(super) struct Travelling<P> {
    /// When it arrives.
    pub at: Instant,
    /// When it was given to the link.
    pub entered: Instant,
    /// Its size in bytes, without overhead.
    pub size: u32,
    /// Is this a second copy?
    pub duplicate: bool,
    /// Will it be lost instead of arriving? Only on a steady link, which decides before it has left.
    pub lost: bool,
    pub payload: P,
}

/// Almost always first in, first out: only jitter that reorders, or a packet that skips the delay, comes between.
#[derive(Debug)]
pub(super) struct Arrivals<P>(VecDeque<Travelling<P>>);

impl<P> Arrivals<P> {
    pub fn new() -> Self {
        Arrivals(VecDeque::new())
    }

    /// Puts a packet where its time places it, behind others of the same time.
    ///
    /// Inlined, so that a packet is written where it belongs and not copied there.
    #[inline(always)]
    pub fn push(&mut self, packet: Travelling<P>) {
        if self.0.back().is_none_or(|last| last.at <= packet.at) {
            self.0.push_back(packet);
        } else {
            self.insert(packet);
        }
    }

    /// [`push`](Self::push) for a packet that is known to arrive last; what came before it need not be looked at.
    #[inline(always)]
    pub fn push_last(&mut self, packet: Travelling<P>) {
        debug_assert!(self.0.back().is_none_or(|last| last.at <= packet.at), "out of order");
        self.0.push_back(packet);
    }

    #[cold]
    fn insert(&mut self, packet: Travelling<P>) {
        let place = self.0.partition_point(|p| p.at <= packet.at);
        self.0.insert(place, packet);
    }

    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        Some(self.0.front()?.at)
    }

    #[inline]
    pub fn pop_due(&mut self, now: Instant) -> Option<Travelling<P>> {
        if self.next_at()? > now {
            return None;
        }
        let packet = self.0.pop_front();
        if self.0.is_empty() {
            self.0.clear(); // The next one goes where this one was, which is in the cache.
        }
        packet
    }

    #[inline]
    pub fn get(&self, place: usize) -> Option<&Travelling<P>> {
        self.0.get(place)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Travelling<P>> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes away what lies from `place` on.
    pub fn split_off(&mut self, place: usize) -> Vec<Travelling<P>> {
        self.0.split_off(place).into()
    }

    /// None arrives after `latest`.
    pub fn hurry(&mut self, latest: Instant) {
        self.0.iter_mut().rev().take_while(|p| p.at > latest).for_each(|p| p.at = latest);
    }

    /// Removes what will not arrive.
    pub fn forget_lost(&mut self) {
        self.0.retain(|p| !p.lost);
    }

    /// When the last one arrives.
    pub fn last_at(&self) -> Option<Instant> {
        Some(self.0.back()?.at)
    }
}
