//! What the peer gave up and never came, while check bits for it may still be on their way.
//!
//! A sender that repeats nothing says so as soon as it notices a loss, which is before the check bits come that would correct
//! the packet. An unordered message of one chunk depends on no other: it is still delivered, once at most, and not where
//! streams began anew meanwhile.

use super::Receiver;
use crate::lazy_box::{Empty, LazyBox};
use anabranch_base::{Mid, Tsn};
use anabranch_wire::DataHeader;
use bytes::Bytes;
use std::collections::VecDeque;

/// Runs of TSNs that are remembered, the newest.
const MOST: usize = 256;
/// So far behind the cumulative TSN at most.
const REACH: u32 = 65_535;

/// First to last of each run, extended, rising.
#[derive(Debug, Default)]
pub(super) struct GivenUp(VecDeque<(u64, u64)>);

impl Empty for GivenUp {
    const EMPTY: &'static Self = &GivenUp(VecDeque::new());
}

impl GivenUp {
    fn add(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((first, last));
    }

    /// The run that has this one.
    fn find(&self, at: u64) -> Option<usize> {
        let i = self.0.partition_point(|(_, last)| *last < at);
        self.0.get(i).filter(|(first, _)| *first <= at).map(|_| i)
    }

    fn remove(&mut self, i: usize, at: u64) {
        let Some((first, last)) = self.0.remove(i) else { return };
        if at < last {
            self.0.insert(i, (at + 1, last));
        }
        if first < at {
            self.0.insert(i, (first, at - 1));
        }
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }
}

impl Receiver {
    /// The peer is about to skip what is up to a TSN: notes what of it the user does not have.
    #[inline(never)]
    pub fn note_given_up(&mut self, new_cum: Tsn) {
        let Some(runs) = self.tracker.missing_up_to(new_cum) else { return };
        for (mut first, last) in runs {
            for had in self.restored.within(first..=last) {
                self.given_up.add(first, had - 1);
                first = had + 1;
            }
            self.given_up.add(first, last);
        }
    }

    /// Streams began anew: what was given up before is of the past.
    pub(super) fn forget_given_up(&mut self) {
        self.given_up = LazyBox::empty();
    }

    /// Holds what was given up and is corrected now, if it depends on nothing else. Was it taken?
    pub fn take_given_up(&mut self, h: &DataHeader, mid: Option<Mid>, owner: &Bytes) -> bool {
        let back = self.tracker.cum().distance(h.tsn);
        let alone = h.flags.unordered && h.flags.begin && h.flags.end && self.deferred.is_none();
        let room = self.reassembly.held_bytes() + owner.len() + self.overhead <= self.buffer;
        if !alone || !room || h.stream.0 >= self.streams || owner.is_empty() || back > REACH || self.given_up.is_empty()
        {
            return false;
        }
        let at = self.tracker.cum_extended() - u64::from(back);
        let Some(i) = self.given_up.find(at) else { return false };
        self.given_up.remove(i, at);
        self.reassembly.insert_alone(h, mid, owner.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::{Ssn, StreamId};
    use anabranch_wire::DataFlags;

    fn header(tsn: u32, unordered: bool, end: bool) -> DataHeader {
        let flags = DataFlags { unordered, begin: true, end, ..DataFlags::default() };
        DataHeader { tsn: Tsn(tsn), stream: StreamId(0), ssn: Ssn(0), ppid: 0, flags }
    }

    fn skip(r: &mut Receiver, to: u32) {
        r.note_given_up(Tsn(to));
        r.tracker.forward(Tsn(to));
        r.pass_restored();
    }

    fn take(r: &mut Receiver, tsn: u32) -> bool {
        r.take_given_up(&header(tsn, true, true), None, &Bytes::from_static(b"corrected"))
    }

    /// Whatever came, was restored or was skipped, in any order and across the end of the numbers: each TSN is read once.
    #[test]
    fn nothing_is_read_twice() {
        for begin in [100, u32::MAX - 20] {
            let mut r = Receiver::new(1, 100_000, 0);
            r.begin(Tsn(begin), 1, true);
            let at = |n: u32| begin.wrapping_add(n);
            for n in [2, 3, 7, 30] {
                r.admit(Tsn(at(n)), 1);
            }
            let (d, owner) = (header(at(5), true, true), Bytes::from_static(b"restored"));
            let number = r.number_of_missing(Tsn(at(5))).unwrap();
            r.restore(number, &anabranch_wire::Data { header: d, payload: &owner }, &owner, 1_000);
            assert!(!take(&mut r, at(1)), "not given up");
            skip(&mut r, at(20));
            let taken: Vec<u32> = (0..40).chain(0..40).filter(|n| take(&mut r, at(*n))).collect();
            let expected: Vec<u32> = (0..=20).filter(|n| ![2, 3, 5, 7].contains(n)).collect();
            assert_eq!(taken, expected);
            skip(&mut r, at(25));
            assert!(take(&mut r, at(23)) && !take(&mut r, at(23)) && !take(&mut r, at(10)));
        }
    }

    /// What waits for others, has no stream, no payload or no room, and what is of streams before they began anew.
    #[test]
    fn what_depends_on_anything_else_stays_given_up() {
        let mut r = Receiver::new(1, 1_000, 0);
        r.begin(Tsn(100), 1, true);
        skip(&mut r, 110);
        let some = Bytes::from_static(b"corrected");
        assert!(
            !r.take_given_up(&header(101, false, true), None, &some)
                && !r.take_given_up(&header(101, true, false), None, &some)
        );
        let other = DataHeader { stream: StreamId(1), ..header(101, true, true) };
        assert!(
            !r.take_given_up(&other, None, &some) && !r.take_given_up(&header(101, true, true), None, &Bytes::new())
        );
        assert!(!r.take_given_up(&header(101, true, true), None, &Bytes::from(vec![0; 1_001])));
        assert!(take(&mut r, 101));
        assert!(r.reset_streams(1, Tsn(100), &[]));
        assert!(!take(&mut r, 102), "of a stream that began anew");
    }

    #[test]
    fn what_a_peer_makes_us_remember_has_an_end() {
        let mut r = Receiver::new(1, 1 << 20, 0);
        r.begin(Tsn(100), 1, true);
        for n in 0..10_000u32 {
            r.admit(Tsn(101 + 3 * n), 1);
            skip(&mut r, 102 + 3 * n);
            take(&mut r, 100 + 3 * n);
        }
        assert!(r.given_up.0.len() <= MOST);
        skip(&mut r, 100 + (1 << 30));
        assert!(take(&mut r, 99 + (1 << 30)) && !take(&mut r, 1 << 29), "too far back");
        for n in 0..5_000 {
            take(&mut r, 50 + (1 << 30) - 2 * n);
        }
        assert!(r.given_up.0.len() <= MOST);
    }
}
