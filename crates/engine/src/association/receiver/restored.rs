//! What was restored from parity: the user has it, and the peer is to find out first that it was lost.
//!
//! A SACK goes on calling it missing, so that the peer's counting of losses is what it would be without parity
//! (ARCHITECTURE decision 11); a chunk beside the SACK says that it need not come again. It counts as received once it
//! comes nevertheless, or once the peer says that it knows.

use super::{Outcome, Receiver};
use crate::lazy_box::Empty;
use crate::rx::tsn_tracker::Received;
use anabranch_base::Tsn;
use anabranch_wire::{Data, IData};
use bytes::Bytes;
use std::collections::BTreeSet;

/// So many at once; what is lost beyond has to come again.
const MOST: usize = 256;
/// So many of them are named beside a SACK.
pub(in crate::association) const MOST_NAMED: usize = 32;

/// Extended TSNs.
#[derive(Debug, Default)]
pub(super) struct Restored(BTreeSet<u64>);

impl Empty for Restored {
    const EMPTY: &'static Self = &Restored(BTreeSet::new());
}

impl Restored {
    /// Those among these.
    pub fn within(&self, tsns: core::ops::RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        self.0.range(tsns).copied()
    }
}

impl Receiver {
    /// Is anything restored that does not count as received?
    #[inline]
    pub fn has_restored(&self) -> bool {
        !self.restored.is_empty() && !self.restored.0.is_empty()
    }

    /// The lowest of them.
    pub fn restored(&self) -> impl Iterator<Item = Tsn> + '_ {
        self.restored.0.iter().take(MOST_NAMED).map(|t| Tsn(*t as u32))
    }

    /// It came, or the peer knows: it counts as received. False when it was not restored.
    #[inline]
    pub(super) fn count_restored(&mut self, at: u64) -> bool {
        let was = self.has_restored() && self.restored.0.remove(&at);
        if was {
            self.tracker.insert(at);
        }
        was
    }

    /// The peer knows what became of it.
    pub fn settle_restored(&mut self, tsn: Tsn) -> bool {
        matches!(self.tracker.check(tsn), Received::New(at) if self.count_restored(at))
    }

    /// Everything up to the cumulative TSN is here or was skipped; answers that, extended.
    pub fn pass_restored(&mut self) -> u64 {
        let cum = self.tracker.cum_extended();
        if self.has_restored() {
            self.restored.0 = self.restored.0.split_off(&(cum + 1));
        }
        cum
    }

    /// The number of a TSN that has not come, extended.
    pub fn number_of_missing(&self, tsn: Tsn) -> Option<u64> {
        match self.tracker.check(tsn) {
            Received::New(at) => Some(at),
            _ => None,
        }
    }

    /// May a chunk with this number and so much payload be taken, that did not come?
    fn takes_restored(&self, number: u64, stream: u16, payload: usize) -> bool {
        let tsn = Tsn(number as u32);
        self.tracker.check(tsn) == Received::New(number)
            && !self.restored.0.contains(&number)
            && self.restored.0.len() < MOST
            && stream < self.streams
            && self.reassembly.held_bytes() + payload + self.overhead <= self.room_for(tsn)
    }

    /// Holds a DATA chunk that was restored; none when it is of no use.
    pub fn restore(&mut self, number: u64, d: &Data<'_>, owner: &Bytes, packet: u64) -> Option<Outcome> {
        if !self.takes_restored(number, d.header.stream.0, d.payload.len()) {
            return None;
        }
        self.restored.0.insert(number);
        Some(self.take(number, d, Some(owner), packet))
    }

    /// The counterpart for I-DATA.
    pub fn restore_interleaved(&mut self, number: u64, d: &IData<'_>, owner: &Bytes, packet: u64) -> Option<Outcome> {
        if !self.takes_restored(number, d.header.stream.0, d.payload.len()) {
            return None;
        }
        self.restored.0.insert(number);
        Some(self.take_interleaved(number, d, Some(owner), packet))
    }

    /// After TSNs counted as received without a chunk: fragments whose neighbours will never come.
    pub fn check_cum(&mut self) -> Outcome {
        match self.reassembly.check_cum(self.tracker.cum_extended()) {
            Ok(()) => Outcome::Held,
            Err(_) => Outcome::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::receiver::Admission;
    use anabranch_base::{Ssn, StreamId};
    use anabranch_wire::{DataFlags, DataHeader};

    fn receiver() -> Receiver {
        let mut r = Receiver::new(1, 10_000, 0);
        r.begin(Tsn(100), 1, true);
        r
    }

    fn restore(r: &mut Receiver, tsn: u32) -> Option<Outcome> {
        let flags = DataFlags { begin: true, end: true, ..DataFlags::default() };
        let header = DataHeader { tsn: Tsn(tsn), stream: StreamId(0), ssn: Ssn((tsn - 100) as u16), ppid: 0, flags };
        let owner = Bytes::from_static(b"restored");
        r.restore((1 << 32) + u64::from(tsn), &Data { header, payload: &owner }, &owner, 1_000)
    }

    #[test]
    fn it_is_read_at_once_and_counts_as_received_later() {
        let mut r = receiver();
        assert_eq!(restore(&mut r, 100), Some(Outcome::Held));
        assert!(r.is_readable() && r.cum() == Tsn(99));
        assert_eq!(restore(&mut r, 100), None, "twice");
        assert_eq!(restore(&mut r, 101), Some(Outcome::Held));
        assert_eq!(r.restored().collect::<Vec<_>>(), [Tsn(100), Tsn(101)]);
        assert_eq!(r.admit(Tsn(101), 8), Admission::Restored);
        assert_eq!((r.cum(), r.has_gap()), (Tsn(99), true));
        assert!(r.settle_restored(Tsn(100)) && !r.settle_restored(Tsn(100)) && !r.settle_restored(Tsn(102)));
        assert_eq!((r.cum(), r.has_restored()), (Tsn(101), false));
        assert_eq!(restore(&mut r, 101), None, "received");
    }

    #[test]
    fn memory_and_streams_have_their_ends() {
        let mut r = receiver();
        let taken = (100..1_000).filter(|t| restore(&mut r, *t).is_some()).count();
        assert_eq!((taken, r.restored().count()), (MOST, MOST_NAMED));
        r.tracker.forward(Tsn(350));
        r.pass_restored();
        assert_eq!(r.restored().next(), Some(Tsn(351)));
    }
}
