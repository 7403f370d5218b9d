//! What waits to be sent again, in the order of the policy.
//!
//! A chunk gets its rank when it was marked and when that ends, so that a packet costs what it carries however much is
//! marked. What was sent or acknowledged meanwhile is skipped when its turn comes.

use crate::work;
use anabranch_base::{Instant, PathId};
use anabranch_policy::retransmission_order::Rank;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Of the chunks that left last on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkedOn {
    pub chunks: u64,
    pub bytes: u64,
}

/// Takes no memory until something is marked for the first time.
#[derive(Debug, Default)]
pub(crate) struct Marked(Option<Box<Held>>);

#[derive(Debug, Default)]
struct Held {
    /// Rank and extended TSN of each, and of some that are not marked any more.
    order: BinaryHeap<Reverse<(u64, u64)>>,
    /// When ranks end, with rank and TSN, likewise.
    ends: BinaryHeap<Reverse<(Instant, u64, u64)>>,
    /// Those without a rank, likewise.
    unranked: Vec<u64>,
    sum: MarkedOn,
    /// By the path on which they left last.
    on: Vec<MarkedOn>,
}

/// What a chunk shows as its rank while it has none.
pub(crate) const UNRANKED: u64 = u64::MAX;

impl Marked {
    pub fn is_empty(&self) -> bool {
        self.sum().chunks == 0
    }
    pub fn sum(&self) -> MarkedOn {
        self.0.as_ref().map_or(MarkedOn::default(), |h| h.sum)
    }
    pub fn on(&self, path: PathId) -> MarkedOn {
        self.0.as_ref().and_then(|h| h.on.get(path.index()).copied()).unwrap_or_default()
    }

    /// Is a chunk with this rank, or none, to be found? For tests.
    pub fn lists(&self, rank: u64, tsn: u64) -> bool {
        let Some(h) = &self.0 else { return false };
        let ranked = rank != UNRANKED && h.order.iter().any(|Reverse(e)| *e == (rank, tsn));
        ranked || h.unranked.contains(&tsn)
    }

    /// A chunk of `len` bytes is marked.
    pub fn insert(&mut self, tsn: u64, path: Option<PathId>, len: u64) {
        let h = self.0.get_or_insert_default();
        work::steps(1);
        h.unranked.push(tsn);
        if let Some(p) = path {
            if h.on.len() <= p.index() {
                h.on.resize(p.index() + 1, MarkedOn::default());
            }
            h.on[p.index()].chunks += 1;
            h.on[p.index()].bytes += len;
        }
        h.sum.chunks += 1;
        h.sum.bytes += len;
    }

    /// It is marked no more.
    pub fn remove(&mut self, path: Option<PathId>, len: u64) {
        let Some(h) = self.0.as_deref_mut() else { return };
        work::steps(1);
        if let Some(on) = path.and_then(|p| h.on.get_mut(p.index())) {
            on.chunks -= 1;
            on.bytes -= len;
        }
        h.sum.chunks -= 1;
        h.sum.bytes -= len;
        if h.sum.chunks == 0 {
            h.order.clear();
            h.ends.clear();
            h.unranked.clear();
        }
    }

    /// Is there one that needs a rank?
    pub fn needs_rank(&self, now: Instant) -> bool {
        let due = |h: &Held| !h.unranked.is_empty() || h.ends.peek().is_some_and(|Reverse((at, ..))| *at <= now);
        self.0.as_deref().is_some_and(due)
    }

    /// One without a rank, or whose rank is over by `now`; it may be one that is marked no more.
    pub fn take_unranked(&mut self, now: Instant) -> Option<u64> {
        let h = self.0.as_deref_mut()?;
        work::steps(1);
        if let Some(tsn) = h.unranked.pop() {
            return Some(tsn);
        }
        h.ends.peek().filter(|Reverse((at, ..))| *at <= now)?;
        h.ends.pop().map(|Reverse((_, _, tsn))| tsn)
    }

    /// Its rank, which is `another` than before, and when that ends. `ranked` knows the chunks that have a rank.
    pub fn rank(&mut self, tsn: u64, rank: Rank, another: bool, ranked: impl Fn(u64, u64) -> bool) {
        let Some(h) = self.0.as_deref_mut() else { return };
        work::steps(1);
        let most = 2 * h.sum.chunks as usize + 64;
        if h.order.len() > most || h.ends.len() > most {
            work::steps(h.order.len() + h.ends.len());
            h.order.retain(|Reverse((rank, tsn))| ranked(*rank, *tsn));
            h.ends.retain(|Reverse((_, rank, tsn))| ranked(*rank, *tsn));
        }
        if another {
            h.order.push(Reverse((rank.place, tsn)));
        }
        if let Some(until) = rank.until {
            h.ends.push(Reverse((until, rank.place, tsn)));
        }
    }

    /// The first in order that is as `ranked` says.
    pub fn first(&mut self, ranked: impl Fn(u64, u64) -> bool) -> Option<u64> {
        let h = self.0.as_deref_mut()?;
        while let Some(&Reverse((rank, tsn))) = h.order.peek() {
            work::steps(1);
            if ranked(rank, tsn) {
                return Some(tsn);
            }
            h.order.pop();
        }
        None
    }

    /// Takes the first out of the order; it stays marked. It may stand there twice, if it was marked twice.
    pub fn take_first(&mut self) -> Option<(u64, u64)> {
        let h = self.0.as_deref_mut()?;
        let Reverse(first) = h.order.pop()?;
        while h.order.peek() == Some(&Reverse(first)) {
            work::steps(1);
            h.order.pop();
        }
        Some(first)
    }
    pub fn put_back(&mut self, rank_and_tsn: (u64, u64)) {
        let h = self.0.get_or_insert_default();
        work::steps(1);
        h.order.push(Reverse(rank_and_tsn));
    }
}
