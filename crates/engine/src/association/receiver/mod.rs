//! DATA from the peer: which TSNs came, what is held for the user, and what the window announces.

pub(in crate::association) mod data_in;
mod deferred_reset;
mod given_up;
mod i_data_in;
pub(in crate::association) mod parity_in;
mod restored;
mod window;

use crate::lazy_box::LazyBox;
use crate::message::{Message, Part};
use crate::rx::reassembly::Reassembly;
use crate::rx::tsn_tracker::{Received, TsnTracker};
use anabranch_base::Tsn;
use anabranch_wire::{Data, ForwardTsn, GapBlock, IData, IForwardTsn};
use bytes::Bytes;
use deferred_reset::DeferredReset;
pub(in crate::association) use deferred_reset::FinishedReset;
use given_up::GivenUp;
pub(in crate::association) use restored::MOST_NAMED;
use restored::Restored;

/// May a DATA chunk be taken?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::association) enum Admission {
    Duplicate,
    OutOfWindow,
    /// It was restored from parity before, and counts as received from now on.
    Restored,
    /// The buffer has no room. `stuck`: nothing is there to read, and this was the very next piece.
    NoRoom {
        stuck: bool,
    },
    /// Noted as received, with its extended TSN. `next`: it follows the last one.
    Taken {
        tsn: u64,
        next: bool,
    },
}

/// What became of a DATA chunk that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::association) enum Outcome {
    Held,
    /// Its fragments contradict one another.
    Broken,
    /// The buffer is full of one incomplete message: no reading will ever make room.
    Stuck,
}

/// Which received TSNs a report may take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::association) enum Report {
    /// SACK: all of them.
    Renegable,
    /// NR-SACK that covers all that was received.
    KeepsAll,
    /// NR-SACK that covers what the user has.
    KeepsDelivered,
}

/// The receiving half of an association.
pub(in crate::association) struct Receiver {
    tracker: TsnTracker,
    reassembly: Reassembly,
    /// Inbound streams.
    streams: u16,
    /// A reset of the peer's streams that waits for the last of their old data.
    deferred: Option<Box<DeferredReset>>,
    /// Size of the buffer, and what each chunk in it costs beside its payload, bytes.
    buffer: usize,
    overhead: usize,
    /// The window that the last SACK announced, bytes.
    announced: u64,
    /// The user knows that there is something to read.
    readable_known: bool,
    /// What was restored from parity and does not count as received yet.
    restored: LazyBox<Restored>,
    /// What was given up, while it may be corrected still.
    given_up: LazyBox<GivenUp>,
}

impl Receiver {
    /// Nothing is known of the peer yet.
    pub fn new(streams: u16, buffer: usize, overhead: usize) -> Receiver {
        Receiver {
            tracker: TsnTracker::new(Tsn(0)),
            reassembly: Reassembly::new(streams, overhead),
            streams,
            deferred: None,
            buffer,
            overhead,
            announced: buffer as u64,
            readable_known: false,
            restored: LazyBox::empty(),
            given_up: LazyBox::empty(),
        }
    }

    /// The handshake agreed on the peer's first TSN, its streams, and whether it may skip messages.
    pub fn begin(&mut self, initial: Tsn, streams: u16, skips: bool) {
        self.tracker = TsnTracker::new(initial);
        self.forget_given_up();
        self.reassembly = Reassembly::new(streams, self.overhead);
        self.streams = streams;
        self.reassembly.peer_gives_up(skips);
    }

    /// NR-SACKs speak of what the user has: it is noted from now on.
    pub fn note_delivered(&mut self) {
        self.reassembly.note_handed_on();
    }

    /// Inbound streams.
    pub fn streams(&self) -> u16 {
        self.streams
    }

    /// The peer may use more streams.
    pub fn set_streams(&mut self, streams: u16) {
        self.streams = streams;
        self.reassembly.set_streams(streams);
    }

    /// Highest TSN up to which everything was received.
    pub fn cum(&self) -> Tsn {
        self.tracker.cum()
    }

    /// Is something missing below a TSN that came?
    pub fn has_gap(&self) -> bool {
        self.tracker.has_gap()
    }

    /// Runs of missing TSNs below one that came.
    pub fn gaps(&self) -> usize {
        self.tracker.gaps()
    }

    /// Are there TSNs that came twice, and were not reported?
    pub fn has_duplicates(&self) -> bool {
        self.tracker.pending_duplicates()
    }

    /// TSNs that came twice, once.
    pub fn take_duplicates(&mut self, out: &mut Vec<Tsn>) {
        if self.tracker.pending_duplicates() {
            self.tracker.take_duplicates(out);
        }
    }

    /// Gathers what came above the cumulative TSN, at most so many blocks.
    pub fn report(&mut self, how: Report, gaps: &mut Vec<GapBlock>, kept: &mut Vec<GapBlock>, max: usize) {
        match how {
            Report::Renegable => self.tracker.fill_gaps(gaps, max),
            Report::KeepsAll => self.tracker.fill_gaps(kept, max),
            Report::KeepsDelivered => {
                for (tsn, n) in self.reassembly.take_handed_on() {
                    self.tracker.promise(tsn, n);
                }
                self.tracker.fill_kinds(gaps, kept, max);
            }
        }
    }

    /// Notes a chunk with this TSN and so much payload as received, if it may be taken.
    #[inline]
    pub fn admit(&mut self, tsn: Tsn, payload: usize) -> Admission {
        let at = match self.tracker.check(tsn) {
            Received::Duplicate => {
                self.tracker.note_duplicate(tsn);
                return Admission::Duplicate;
            }
            Received::OutOfWindow => return Admission::OutOfWindow,
            Received::New(at) => at,
        };
        if self.count_restored(at) {
            return Admission::Restored;
        }
        let next = tsn == self.tracker.cum().next();
        // Parity is not held here.
        if payload > 0 && self.reassembly.held_bytes() + payload + self.overhead > self.room_for(tsn) {
            return Admission::NoRoom { stuck: next && self.reassembly.ready_len() == 0 };
        }
        self.tracker.insert(at);
        Admission::Taken { tsn: at, next }
    }

    /// Holds a chunk that was admitted. `owner` holds the payload, when it can be shared.
    #[inline]
    pub fn take(&mut self, tsn: u64, d: &Data<'_>, owner: Option<&Bytes>, packet: u64) -> Outcome {
        if self.deferred.is_some() || !self.reassembly.is_in_turn(&d.header) {
            return self.take_other(tsn, d, owner, packet);
        }
        match owner.filter(|o| o.len() == d.payload.len()) {
            Some(owner) => self.reassembly.insert_in_turn(tsn, &d.header, owner.clone()),
            None => {
                let payload = self.held_payload(tsn, d, owner);
                self.reassembly.insert_in_turn(tsn, &d.header, payload);
            }
        }
        Outcome::Held
    }

    /// The payload to be held: a slice of the datagram it came in holds all of that, so a chunk that is the smaller part
    /// of it is copied.
    #[inline]
    fn held_payload(&mut self, tsn: u64, d: &Data<'_>, owner: Option<&Bytes>) -> Bytes {
        match owner.filter(|o| 2 * d.payload.len() >= o.len()) {
            Some(owner) if d.payload.len() == owner.len() => owner.clone(),
            Some(owner) => owner.slice_ref(d.payload),
            None => self.reassembly.copy(&d.header, d.payload, tsn <= self.tracker.cum_extended()),
        }
    }

    /// What belongs to a larger message or does not come in turn.
    #[inline(never)]
    fn take_other(&mut self, tsn: u64, d: &Data<'_>, owner: Option<&Bytes>, packet: u64) -> Outcome {
        let payload = self.held_payload(tsn, d, owner);
        if self.deferred.is_some() && self.hold_for_reset(tsn, &d.header, &payload) {
            return Outcome::Held;
        }
        let held = self.reassembly.insert(tsn, &d.header, payload);
        let held = held.and_then(|()| self.reassembly.check_cum(self.tracker.cum_extended()));
        self.outcome(held.is_ok(), packet)
    }

    /// The counterpart for I-DATA (RFC 8260 §2.1).
    pub fn take_interleaved(&mut self, tsn: u64, d: &IData<'_>, owner: Option<&Bytes>, packet: u64) -> Outcome {
        let payload = match owner.filter(|o| 2 * d.payload.len() >= o.len()) {
            Some(owner) => owner.slice_ref(d.payload),
            None => Bytes::copy_from_slice(d.payload),
        };
        if self.deferred.is_some() && self.hold_interleaved_for_reset(tsn, &d.header, &payload) {
            return Outcome::Held;
        }
        let held = self.reassembly.insert_interleaved(&d.header, payload);
        self.outcome(held.is_ok(), packet)
    }

    fn outcome(&self, held: bool, packet: u64) -> Outcome {
        match held {
            false => Outcome::Broken,
            true if self.is_stuck(packet) => Outcome::Stuck,
            true => Outcome::Held,
        }
    }

    /// The peer gave up what is up to a TSN (RFC 3758 §3.6).
    pub fn skip(&mut self, f: &ForwardTsn<'_>) -> Outcome {
        if let Some(to) = self.tracker.forward(f.new_cum) {
            self.reassembly.forward(to, &mut f.streams());
            // It may have moved over the end of what has no end.
            if self.reassembly.check_cum(self.tracker.cum_extended()).is_err() {
                return Outcome::Broken;
            }
        }
        Outcome::Held
    }

    /// The counterpart for messages that interleave (RFC 8260 §2.3.1).
    pub fn skip_interleaved(&mut self, f: &IForwardTsn<'_>) {
        if self.tracker.forward(f.new_cum).is_some() {
            self.reassembly.forward_interleaved(&mut f.entries());
        }
    }

    /// The first part of an incomplete message goes to the user, to make room; false where that is not possible.
    pub fn deliver_part(&mut self, interleaved: bool) -> bool {
        match interleaved {
            true => self.reassembly.deliver_parts_interleaved(),
            false => self.reassembly.deliver_part(self.tracker.cum_extended()),
        }
    }

    /// The next message, in delivery order.
    #[inline]
    pub fn pop(&mut self) -> Option<(Message, usize, bool)> {
        let Some((len, part)) = self.reassembly.first_ready() else {
            self.readable_known = false;
            self.reassembly.give_back_crumbs();
            return None;
        };
        self.reassembly.pop().map(|m| (m, len, matches!(part, Part::Whole | Part::Last)))
    }

    /// Is there a message to read?
    pub fn is_readable(&self) -> bool {
        self.reassembly.ready_len() > 0
    }

    /// There is something to read of which the user does not know.
    pub fn is_newly_readable(&self) -> bool {
        self.is_readable() && !self.readable_known
    }

    /// The user knows that there is something to read.
    pub fn set_readable_known(&mut self) {
        self.readable_known = true;
    }

    /// What fills the buffer: payload, and what it costs to hold it in small pieces, bytes.
    pub fn held_bytes(&self) -> usize {
        self.reassembly.held_bytes()
    }

    /// Messages of an association before this one that wait to be read go first.
    pub fn keep_ready(&mut self, before: &mut Receiver) {
        self.reassembly.keep_ready(&mut before.reassembly);
    }

    /// The peer begins its TSNs anew, and all of its streams.
    pub fn begin_anew(&mut self, next: Tsn, skips: bool) {
        self.tracker = TsnTracker::new(next);
        self.restored = LazyBox::empty();
        self.forget_given_up();
        let mut fresh = Reassembly::new(self.streams, self.overhead);
        fresh.peer_gives_up(skips);
        let mut before = core::mem::replace(&mut self.reassembly, fresh);
        before.reset_streams(&[]);
        self.reassembly.keep_ready(&mut before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::{Ssn, StreamId};
    use anabranch_wire::{DataFlags, DataHeader};

    fn receiver(buffer: usize) -> Receiver {
        let mut r = Receiver::new(2, buffer, 0);
        r.begin(Tsn(100), 2, false);
        r
    }

    fn header(tsn: u32, ssn: u16, begin: bool, end: bool) -> DataHeader {
        let flags = DataFlags { begin, end, ..DataFlags::default() };
        DataHeader { tsn: Tsn(tsn), stream: StreamId(0), ssn: Ssn(ssn), ppid: 0, flags }
    }

    fn send(r: &mut Receiver, h: DataHeader, payload: &[u8]) -> (Admission, Option<Outcome>) {
        let a = r.admit(h.tsn, payload.len());
        let Admission::Taken { tsn, .. } = a else { return (a, None) };
        (a, Some(r.take(tsn, &Data { header: h, payload }, None, 1_000)))
    }

    #[test]
    fn messages_come_out_in_the_order_of_their_stream() {
        let mut r = receiver(10_000);
        send(&mut r, header(101, 1, true, true), b"second");
        assert!(r.has_gap() && !r.is_readable());
        assert_eq!(send(&mut r, header(101, 1, true, true), b"second").0, Admission::Duplicate);
        send(&mut r, header(100, 0, true, true), b"first");
        assert_eq!((r.cum(), r.has_gap(), r.is_newly_readable()), (Tsn(101), false, true));
        let read: Vec<Bytes> = core::iter::from_fn(|| r.pop().map(|(m, ..)| m.payload.into_bytes())).collect();
        assert_eq!(read, [&b"first"[..], b"second"]);
    }

    #[test]
    fn a_full_buffer_takes_what_closes_a_hole_and_nothing_new() {
        let mut r = receiver(3_000);
        for tsn in [101, 102, 103] {
            send(&mut r, header(tsn, (tsn - 100) as u16, true, true), &[0; 1_000]);
        }
        assert_eq!(send(&mut r, header(104, 4, true, true), &[0; 500]).0, Admission::NoRoom { stuck: false });
        assert!(matches!(send(&mut r, header(100, 0, true, true), &[0; 500]).0, Admission::Taken { next: true, .. }));
        assert_eq!(r.window(1_000), 0);
    }

    #[test]
    fn a_message_larger_than_the_buffer_is_stuck_until_a_part_is_delivered() {
        let mut r = receiver(3_000);
        let mut outcome = None;
        for n in 0..6 {
            outcome = send(&mut r, header(100 + n, 0, n == 0, false), &[0; 700]).1;
            if outcome == Some(Outcome::Stuck) {
                break;
            }
        }
        assert_eq!(outcome, Some(Outcome::Stuck));
        assert!(r.deliver_part(false) && r.is_readable());
    }

    #[test]
    fn fragments_that_contradict_one_another_are_broken() {
        let mut r = receiver(3_000);
        assert_eq!(send(&mut r, header(100, 0, true, false), b"a").1, Some(Outcome::Held));
        assert_eq!(send(&mut r, header(101, 0, true, false), b"b").1, Some(Outcome::Broken));
    }
}
