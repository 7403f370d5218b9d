//! Which TSNs have arrived, for acknowledgement and duplicate detection (RFC 9260 §6.2, §6.7; RFC 3758 §3.6).

use crate::work;
use anabranch_base::Tsn;
use anabranch_wire::GapBlock;
use std::collections::BTreeMap;

/// Most ranges kept above the cumulative TSN. A peer that sends only every second TSN meets it; any other TSN that
/// would open one more range is refused as if it had been lost, and the next missing TSN is always taken.
const MAX_RANGES: usize = 8_192;
/// A gap block counts from the cumulative TSN in 16 bits (RFC 9260 §3.3.4): nothing further away can be reported.
const MAX_AHEAD: u32 = 65_535;
/// Most duplicates remembered for the next SACK.
const MAX_DUPLICATES: usize = 32;

/// What a TSN is to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Not here before. The extended TSN counts on where 32 bits wrap; its low half is the TSN.
    New(u64),
    /// Here already, or skipped by the peer.
    Duplicate,
    /// Too far ahead to be acknowledged, or one hole too many: drop the chunk, the peer will repeat it.
    OutOfWindow,
}

/// The received TSNs: everything up to the cumulative TSN, and ranges above it.
///
/// Arrival in order is O(1) while there is no gap; otherwise O(log ranges).
#[derive(Debug)]
pub struct TsnTracker {
    /// Cumulative TSN, extended.
    cum: u64,
    /// Highest received TSN, extended; `cum` without ranges.
    highest: u64,
    /// First to last of each range above `cum + 1`, neither touching nor overlapping.
    ranges: BTreeMap<u64, u64>,
    /// What of them will not be taken back, likewise; may reach below `cum`.
    promised: BTreeMap<u64, u64>,
    duplicates: Vec<Tsn>,
}

impl TsnTracker {
    /// Nothing has arrived; the peer's first TSN will be `peer_initial`.
    pub fn new(peer_initial: Tsn) -> Self {
        // One whole lap below the first TSN, so that extended numbers never meet zero.
        let cum = (1 << 32) + u64::from(peer_initial.0) - 1;
        TsnTracker { cum, highest: cum, ranges: BTreeMap::new(), promised: BTreeMap::new(), duplicates: Vec::new() }
    }

    /// The cumulative TSN: it and all before it are here or were skipped.
    pub fn cum(&self) -> Tsn {
        Tsn(self.cum as u32)
    }
    /// The cumulative TSN, extended.
    pub fn cum_extended(&self) -> u64 {
        self.cum
    }
    /// The highest TSN received or skipped.
    pub fn highest(&self) -> Tsn {
        Tsn(self.highest as u32)
    }
    /// Something below the highest TSN is missing.
    pub fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// How many runs of TSNs are missing below the highest one.
    pub fn gaps(&self) -> usize {
        self.ranges.len()
    }

    /// What `tsn` would be, without taking it.
    pub fn check(&self, tsn: Tsn) -> Received {
        work::steps(1);
        let ahead = tsn.distance(self.cum());
        if !tsn.after(self.cum()) {
            return Received::Duplicate;
        }
        if ahead > MAX_AHEAD {
            return Received::OutOfWindow;
        }
        let at = self.cum + u64::from(ahead);
        if self.ranges.is_empty() {
            return Received::New(at);
        }
        let below = self.ranges.range(..=at).next_back().map(|(_, last)| *last);
        if below.is_some_and(|last| last >= at) {
            return Received::Duplicate;
        }
        let joins = ahead == 1 || below == Some(at - 1) || self.ranges.contains_key(&(at + 1));
        if !joins && self.ranges.len() >= MAX_RANGES { Received::OutOfWindow } else { Received::New(at) }
    }

    /// Takes `tsn`, whatever it is.
    #[cfg(test)]
    pub fn receive(&mut self, tsn: Tsn) -> Received {
        let verdict = self.check(tsn);
        match verdict {
            Received::New(at) => self.insert(at),
            Received::Duplicate => self.note_duplicate(tsn),
            Received::OutOfWindow => {}
        }
        verdict
    }

    /// Remembers a duplicate for the next SACK.
    pub fn note_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    /// Takes what [`TsnTracker::check`] found to be new.
    pub fn insert(&mut self, at: u64) {
        self.highest = self.highest.max(at);
        if at == self.cum + 1 {
            self.cum = at;
            if !self.ranges.is_empty() {
                self.absorb();
            }
            return;
        }
        let last = self.ranges.remove(&(at + 1)).unwrap_or(at);
        match self.ranges.range_mut(..at).next_back() {
            Some((_, end)) if *end + 1 == at => *end = last,
            _ => {
                self.ranges.insert(at, last);
            }
        }
    }

    /// Moves the cumulative TSN over the ranges that it now reaches.
    fn absorb(&mut self) {
        while let Some(first) = self.ranges.first_entry() {
            if *first.key() > self.cum + 1 {
                break;
            }
            work::steps(1);
            self.cum = self.cum.max(first.remove());
        }
    }

    /// The peer gave up on everything to `new_cum` (RFC 3758 §3.6). Returns `new_cum` extended, or none when it is
    /// old news; a value half the number space ahead counts as old (RFC 9260 §1.6). The cumulative TSN moves on over
    /// what is already here.
    pub fn forward(&mut self, new_cum: Tsn) -> Option<u64> {
        if !new_cum.after(self.cum()) {
            return None;
        }
        // The number exactly opposite is before and after at once.
        let ahead = new_cum.distance(self.cum());
        if ahead > u32::MAX / 2 {
            return None;
        }
        let at = self.cum + u64::from(ahead);
        self.cum = at;
        self.absorb();
        self.highest = self.highest.max(self.cum);
        Some(at)
    }

    /// First to last of each run of TSNs up to `new_cum` that is neither here nor skipped, extended, rising; none where that
    /// is old news to [`TsnTracker::forward`].
    pub fn missing_up_to(&self, new_cum: Tsn) -> Option<impl Iterator<Item = (u64, u64)>> {
        let ahead = new_cum.distance(self.cum());
        if !new_cum.after(self.cum()) || ahead > u32::MAX / 2 {
            return None;
        }
        let (to, mut from) = (self.cum + u64::from(ahead), self.cum + 1);
        let mut ranges = self.ranges.range(..=to);
        let runs = core::iter::from_fn(move || {
            if from > to {
                return None;
            }
            work::steps(1);
            let (end, next) = ranges.next().map_or((to, to + 1), |(a, b)| (a - 1, b + 1));
            let run = (from, end);
            from = next;
            Some(run)
        });
        Some(runs.filter(|(first, last)| first <= last))
    }

    /// Appends at most `max` gap blocks, lowest first.
    #[inline]
    pub fn fill_gaps(&self, out: &mut Vec<GapBlock>, max: usize) {
        if !self.ranges.is_empty() {
            self.fill_some_gaps(out, max);
        }
    }

    fn fill_some_gaps(&self, out: &mut Vec<GapBlock>, max: usize) {
        // Offsets fit: a TSN is at most MAX_AHEAD above when it arrives, and the cumulative TSN only grows.
        let offset = |tsn: u64| u16::try_from(tsn - self.cum).unwrap_or(u16::MAX);
        work::steps(self.ranges.len().min(max));
        out.extend(self.ranges.iter().take(max).map(|(a, b)| GapBlock { start: offset(*a), end: offset(*b) }));
    }

    /// These `n` TSNs, received, will not be taken back (draft-tuexen-tsvwg-sctp-multipath-29 §4).
    pub fn promise(&mut self, first: Tsn, n: u32) {
        let n = u64::from(n);
        if self.ranges.is_empty() {
            self.promised.clear();
        }
        let ahead = u64::from(first.distance(self.cum()));
        if !first.plus(n as u32 - 1).after(self.cum()) || ahead > u64::from(MAX_AHEAD) {
            return;
        }
        let (first, last) = (self.cum + ahead, self.cum + ahead + n - 1);
        while let Some(old) = self.promised.first_entry().filter(|e| *e.get() <= self.cum) {
            old.remove();
        }
        if let Some((_, end)) = self.promised.range_mut(..first).next_back().filter(|(_, end)| **end + 1 == first) {
            *end = last;
        } else if self.promised.len() < MAX_RANGES {
            self.promised.insert(first, last);
        }
    }

    /// Appends at most `max` gap blocks, lowest first: to `renegable` what may still be taken back, to `kept` the rest.
    pub fn fill_kinds(&self, renegable: &mut Vec<GapBlock>, kept: &mut Vec<GapBlock>, max: usize) {
        let offset = |tsn: u64| u16::try_from(tsn - self.cum).unwrap_or(u16::MAX);
        let full = |r: &Vec<GapBlock>, k: &Vec<GapBlock>| r.len() + k.len() >= max;
        for (&first, &last) in &self.ranges {
            let mut at = first;
            work::steps(1);
            for (&from, &to) in self.promised.range(first..=last) {
                if from > at && !full(renegable, kept) {
                    renegable.push(GapBlock { start: offset(at), end: offset(from - 1) });
                }
                if full(renegable, kept) {
                    return;
                }
                // Two that touch are one block.
                match kept.last_mut().filter(|b| u64::from(b.end) + 1 == from - self.cum) {
                    Some(b) => b.end = offset(to),
                    None => kept.push(GapBlock { start: offset(from), end: offset(to) }),
                }
                at = to + 1;
            }
            if full(renegable, kept) {
                return;
            }
            if at <= last {
                renegable.push(GapBlock { start: offset(at), end: offset(last) });
            }
        }
    }

    /// Duplicates wait to be reported.
    pub fn pending_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }
    /// Moves the remembered duplicates to the end of `out`, in order of arrival, each as often as it came.
    pub fn take_duplicates(&mut self, out: &mut Vec<Tsn>) {
        out.append(&mut self.duplicates);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn gaps(t: &TsnTracker, max: usize) -> Vec<(u16, u16)> {
        let mut out = Vec::new();
        t.fill_gaps(&mut out, max);
        out.iter().map(|g| (g.start, g.end)).collect()
    }

    #[test]
    fn gaps_open_merge_and_close_across_the_wrap() {
        let mut t = TsnTracker::new(Tsn(u32::MAX - 1));
        assert_eq!((t.cum(), t.highest()), (Tsn(u32::MAX - 2), Tsn(u32::MAX - 2)));
        let first = t.cum_extended() + 1;
        assert_eq!(t.receive(Tsn(u32::MAX - 1)), Received::New(first));
        assert_eq!(t.receive(Tsn(1)), Received::New(first + 3));
        assert_eq!(t.receive(Tsn(4)), Received::New(first + 6));
        assert_eq!(gaps(&t, 9), [(3, 3), (6, 6)]);
        assert_eq!(gaps(&t, 1), [(3, 3)]);
        t.receive(Tsn(2));
        t.receive(Tsn(3));
        assert_eq!(gaps(&t, 9), [(3, 6)]);
        assert_eq!(t.receive(Tsn(3)), Received::Duplicate);
        t.receive(Tsn(u32::MAX));
        assert_eq!((t.cum(), t.has_gap()), (Tsn(u32::MAX), true));
        t.receive(Tsn(0));
        assert_eq!((t.cum(), t.highest(), t.has_gap()), (Tsn(4), Tsn(4), false));
        assert_eq!(t.cum_extended(), first + 6);
    }

    #[test]
    fn duplicates_are_listed_each_time_but_bounded() {
        let mut t = TsnTracker::new(Tsn(10));
        t.receive(Tsn(10));
        assert!(!t.pending_duplicates());
        for _ in 0..100 {
            assert_eq!(t.receive(Tsn(10)), Received::Duplicate);
        }
        let mut d = Vec::new();
        t.take_duplicates(&mut d);
        assert_eq!(d, [Tsn(10); MAX_DUPLICATES]);
        assert!(!t.pending_duplicates());
    }

    #[test]
    fn the_window_ends_where_gap_blocks_do() {
        let mut t = TsnTracker::new(Tsn(1));
        assert_eq!(t.receive(Tsn(65_536)), Received::OutOfWindow);
        assert!(matches!(t.receive(Tsn(65_535)), Received::New(_)));
        assert_eq!(gaps(&t, 9), [(65_535, 65_535)]);
        assert_eq!(t.check(Tsn(0)), Received::Duplicate);
        assert_eq!(t.check(Tsn(0x8000_0001)), Received::Duplicate);
        assert_eq!(t.check(Tsn(0x7fff_ffff)), Received::OutOfWindow);
    }

    #[test]
    fn every_second_tsn_cannot_grow_memory_nor_stop_progress() {
        let mut t = TsnTracker::new(Tsn(1));
        let taken = (3..60_000).step_by(2).filter(|n| matches!(t.receive(Tsn(*n)), Received::New(_))).count();
        assert_eq!((taken, t.ranges.len()), (MAX_RANGES, MAX_RANGES));
        assert_eq!(t.receive(Tsn(40_001)), Received::OutOfWindow);
        // The next missing one is still taken, and what joins a range.
        assert!(matches!(t.receive(Tsn(1)), Received::New(_)));
        assert_eq!(t.cum(), Tsn(1));
        assert!(matches!(t.receive(Tsn(6)), Received::New(_)));
        assert!(matches!(t.receive(Tsn(40_001)), Received::New(_)));
        assert_eq!(t.receive(Tsn(40_003)), Received::OutOfWindow);
    }

    #[test]
    fn forward_skips_and_then_runs_on() {
        // The example of RFC 3758 §3.6.
        let mut t = TsnTracker::new(Tsn(102));
        for n in [102, 104, 105, 107] {
            t.receive(Tsn(n));
        }
        let skipped = t.cum_extended() + 1;
        assert_eq!(t.forward(Tsn(103)), Some(skipped));
        assert_eq!((t.cum(), t.highest()), (Tsn(105), Tsn(107)));
        assert_eq!(t.forward(Tsn(103)), None);
        assert_eq!(t.forward(Tsn(105)), None);
        assert_eq!(t.receive(Tsn(103)), Received::Duplicate);
        assert_eq!(gaps(&t, 9), [(2, 2)]);
        // Into, and beyond, what is here.
        assert!(t.forward(Tsn(107)).is_some());
        assert_eq!((t.cum(), t.has_gap()), (Tsn(107), false));
        assert!(t.forward(Tsn(300_000)).is_some());
        assert_eq!((t.cum(), t.highest()), (Tsn(300_000), Tsn(300_000)));
        assert_eq!(t.forward(Tsn(300_000).plus(1 << 31)), None);
        assert!(t.forward(Tsn(300_000).plus((1 << 31) - 1)).is_some());
    }

    /// The plain model: a set of extended TSNs above a cumulative one.
    struct Model {
        cum: u64,
        above: BTreeSet<u64>,
    }

    impl Model {
        fn settle(&mut self) {
            while self.above.remove(&(self.cum + 1)) {
                self.cum += 1;
            }
            self.above = self.above.split_off(&(self.cum + 1));
        }
        fn blocks(&self) -> Vec<(u16, u16)> {
            let mut out: Vec<(u16, u16)> = Vec::new();
            for n in self.above.iter().map(|n| (n - self.cum) as u16) {
                match out.last_mut() {
                    Some((_, end)) if *end + 1 == n => *end = n,
                    _ => out.push((n, n)),
                }
            }
            out
        }
    }

    proptest! {
        #[test]
        fn equals_a_set(
            start: u32,
            near_wrap: bool,
            ops in prop::collection::vec((0u8..20, -20i64..60), 1..300),
        ) {
            let start = if near_wrap { u32::MAX - start % 80 } else { start };
            let mut t = TsnTracker::new(Tsn(start));
            let mut m = Model { cum: t.cum_extended(), above: BTreeSet::new() };
            for (kind, offset) in ops {
                let at = m.cum.checked_add_signed(offset).unwrap();
                let tsn = Tsn(at as u32);
                if kind == 0 {
                    let expected = (at > m.cum).then_some(at);
                    prop_assert_eq!(t.forward(tsn), expected);
                    if expected.is_some() {
                        m.above = m.above.split_off(&(at + 1));
                        m.cum = at;
                    }
                } else {
                    let new = at > m.cum && !m.above.contains(&at);
                    let expected = if new { Received::New(at) } else { Received::Duplicate };
                    prop_assert_eq!(t.check(tsn), expected);
                    prop_assert_eq!(t.receive(tsn), expected);
                    if new {
                        m.above.insert(at);
                    }
                }
                m.settle();
                prop_assert_eq!(t.cum_extended(), m.cum);
                prop_assert_eq!(t.cum(), Tsn(m.cum as u32));
                prop_assert_eq!(gaps(&t, usize::MAX), m.blocks());
                prop_assert_eq!(t.has_gap(), !m.above.is_empty());
                let highest = m.above.last().copied().unwrap_or(m.cum);
                prop_assert_eq!(t.highest(), Tsn(highest as u32));
            }
        }
    }
}
