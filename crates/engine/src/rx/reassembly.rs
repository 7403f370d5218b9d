//! Messages out of DATA chunks: fragments joined, ordered streams put in order (RFC 9260 §6.5, §6.6, §6.9), skipped
//! ones given up (RFC 3758 §3.6).
//!
//! A chunk that is a whole message and next in its stream, or unordered, goes straight to the ready queue. Others
//! wait in two maps: runs of fragments by TSN, and complete messages of the future by stream and SSN.

mod given_up;
mod interleaved;
mod partial;
mod violation;

use crate::lazy_box::LazyBox;
use crate::message::{Message, Part, Payload};
use crate::work;
use anabranch_base::{Mid, Ssn, StreamId, Tsn};
use anabranch_wire::DataHeader;
use bytes::{Bytes, BytesMut};
use interleaved::Interleaved;
use partial::Partial;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
pub use violation::Violation;

/// Charged for each chunk inside on top of its payload by default, bytes: about what its handle, its map entry and the
/// allocator take. Without it one-byte chunks would cost the peer one byte of window and us a hundred of memory.
pub const CHUNK_CHARGE: usize = 192;
/// Bytes that messages share.
const CRUMBS: usize = 16_384;
/// From here on an SSN ahead of the expected one is behind it (RFC 9260 §1.6).
const HALF_SSN_SPACE: u16 = 1 << 15;

/// What all fragments of a message share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    stream: StreamId,
    /// None when unordered: the receiver ignores the number then (RFC 9260 §6.6).
    ssn: Option<Ssn>,
}

impl Shared {
    fn of(h: &DataHeader) -> Self {
        Shared { stream: h.stream, ssn: (!h.flags.unordered).then_some(h.ssn) }
    }
}

/// Fragments of one message with consecutive TSNs.
#[derive(Debug)]
struct Run {
    pieces: VecDeque<Bytes>,
    shared: Shared,
    /// Of the earliest fragment here.
    ppid: u32,
    /// The first fragment of the message is here.
    begins: bool,
    /// The last one is.
    ends: bool,
}

impl Run {
    /// TSN after the last one, when the first is `first`.
    fn after(&self, first: u64) -> u64 {
        first + self.pieces.len() as u64
    }
    fn charge(&self, overhead: usize) -> usize {
        self.pieces.iter().map(|p| p.len() + overhead).sum()
    }
    /// Puts the fragments that follow behind these. Always moves the shorter list: any order of arrival costs
    /// O(n log n) moves in sum.
    fn append(&mut self, mut later: Run) {
        self.ends = later.ends;
        work::steps(later.pieces.len().min(self.pieces.len()));
        if later.pieces.len() <= self.pieces.len() {
            self.pieces.append(&mut later.pieces);
            return;
        }
        while let Some(piece) = self.pieces.pop_back() {
            later.pieces.push_front(piece);
        }
        self.pieces = later.pieces;
    }
}

/// A message in one chunk.
#[inline(always)]
fn whole(h: &DataHeader, payload: Bytes) -> Message {
    let Shared { stream, ssn } = Shared::of(h);
    let payload = Payload::single(payload);
    Message { stream, ssn, mid: None, tsn: h.tsn, ppid: h.ppid, payload, part: Part::Whole }
}

fn charge_of(m: &Message, overhead: usize) -> usize {
    m.payload.pieces().map(|p| p.len() + overhead).sum()
}

/// The receive buffer of an association: everything between the packet and the user.
#[derive(Debug)]
pub struct Reassembly {
    inbound_streams: u16,
    /// Charged for each chunk beside its payload, bytes.
    overhead: usize,
    /// Next SSN of each stream, as far as the highest stream seen.
    next: Vec<Ssn>,
    /// Complete ordered messages that wait for an earlier one.
    waiting: BTreeMap<(StreamId, u16), Message>,
    /// Incomplete messages by extended TSN of their first fragment here; never empty, never overlapping. Two that
    /// touch are of different messages, or the association is over.
    runs: BTreeMap<u64, Run>,
    ready: VecDeque<Message>,
    /// Room left for small messages that are ready at once.
    crumbs: BytesMut,
    held: usize,
    /// Last TSN of the message completed last: what follows must begin one.
    last_end: u64,
    /// Fragments behind this TSN that do not begin a message belong to one that was given up.
    given_up: u64,
    /// The peer has skipped something, so that late SSNs may be honest.
    forwarded: bool,
    /// The peer may give messages up (RFC 3758), and may have stopped in the middle of one.
    gives_up: bool,
    /// Stream and SSN of messages without an end that are not yet passed. Each is charged as a chunk without payload.
    endless: BTreeSet<(StreamId, u16)>,
    /// The message that the user has a part of.
    partial: Option<Partial>,
    /// Messages in I-DATA; empty where DATA is used.
    interleaved: LazyBox<Interleaved>,
    /// First TSN and number of chunks of what became ready since it was last asked for; none where that is not wanted.
    handed_on: Option<Vec<(Tsn, u32)>>,
}

impl Reassembly {
    /// Empty, for the negotiated number of streams from the peer; `overhead` bytes are charged for each chunk.
    pub fn new(inbound_streams: u16, overhead: usize) -> Self {
        Reassembly {
            inbound_streams,
            overhead,
            next: Vec::new(),
            waiting: BTreeMap::new(),
            runs: BTreeMap::new(),
            ready: VecDeque::new(),
            crumbs: BytesMut::new(),
            held: 0,
            last_end: 0,
            given_up: 0,
            forwarded: false,
            gives_up: false,
            endless: BTreeSet::new(),
            partial: None,
            interleaved: LazyBox::empty(),
            handed_on: None,
        }
    }

    /// What becomes ready is noted from now on, for [`Reassembly::take_handed_on`].
    pub fn note_handed_on(&mut self) {
        self.handed_on.get_or_insert_default();
    }

    /// What has become ready since the last call.
    pub fn take_handed_on(&mut self) -> impl Iterator<Item = (Tsn, u32)> + '_ {
        self.handed_on.iter_mut().flat_map(|list| list.drain(..))
    }

    /// A message in DATA, whose TSNs follow each other.
    fn hand(&mut self, m: Message) {
        if let Some(list) = self.handed_on.as_mut().filter(|_| m.part != Part::Abandoned) {
            list.push((m.tsn, m.payload.pieces().count() as u32));
        }
        self.ready.push_back(m);
    }

    /// So many streams exist from now on, never fewer than before (RFC 6525 §5.2.5).
    pub fn set_streams(&mut self, inbound_streams: u16) {
        self.inbound_streams = self.inbound_streams.max(inbound_streams);
    }

    /// These streams, or all when none is named, begin again with number 0 (RFC 6525 §5.2.2 E3). Nothing of before is
    /// still to come, so what waits for its turn need not wait.
    pub fn reset_streams(&mut self, streams: &[StreamId]) {
        let mut sorted = streams.to_vec();
        sorted.sort_unstable();
        let chosen = |s: StreamId| sorted.is_empty() || sorted.binary_search(&s).is_ok();
        self.reset_part(&chosen);
        for (key, m) in core::mem::take(&mut self.waiting) {
            work::steps(1);
            if chosen(key.0) { self.hand(m) } else { drop(self.waiting.insert(key, m)) }
        }
        let before = self.endless.len();
        self.endless.retain(|(s, _)| !chosen(*s));
        self.held -= (before - self.endless.len()) * self.overhead;
        self.reset_interleaved(&chosen);
        for (i, next) in self.next.iter_mut().enumerate() {
            if chosen(StreamId(i as u16)) {
                *next = Ssn(0);
            }
        }
    }

    fn release_run(&mut self, first: u64) -> Option<Run> {
        let run = self.runs.remove(&first)?;
        self.held -= run.charge(self.overhead);
        Some(run)
    }

    /// Counts a chunk that is held elsewhere.
    pub fn charge(&mut self, payload: usize) {
        self.held += payload + self.overhead;
    }
    /// It is held there no more.
    pub fn discharge(&mut self, payload: usize) {
        self.held -= payload + self.overhead;
    }

    /// Takes a chunk whose TSN is new and whose stream exists.
    ///
    /// # Errors
    /// A [`Violation`] for which the association must be aborted.
    pub fn insert(&mut self, extended_tsn: u64, h: &DataHeader, payload: Bytes) -> Result<(), Violation> {
        work::steps(1);
        if h.stream.0 >= self.inbound_streams {
            return Err(Violation::NoSuchStream { stream: h.stream });
        }
        if let Some(outcome) = self.continue_part(extended_tsn, h, &payload) {
            return outcome;
        }
        if !self.runs.is_empty() && self.has_no_end(extended_tsn, h) {
            return Ok(());
        }
        if !(h.flags.begin && h.flags.end) {
            return self.insert_fragment(extended_tsn, h, payload);
        }
        if !self.runs.is_empty() {
            self.neighbours(extended_tsn, h)?;
        }
        self.held += payload.len() + self.overhead;
        self.complete(extended_tsn, whole(h, payload))
    }

    /// Is this the usual case: a whole message that waits for nothing, with none incomplete beside it?
    #[inline(always)]
    pub fn is_in_turn(&self, h: &DataHeader) -> bool {
        let alone = self.runs.is_empty() && self.partial.is_none() && self.handed_on.is_none();
        let next = || self.next.get(usize::from(h.stream.0)) == Some(&h.ssn);
        let turn = if h.flags.unordered { h.stream.0 < self.inbound_streams } else { next() };
        h.flags.begin && h.flags.end && alone && turn
    }

    /// [`Reassembly::insert`] for that case. Inlined, the payload is made in its place: from hand to hand it would wait
    /// for its own stores each time.
    #[inline(always)]
    pub fn insert_in_turn(&mut self, extended_tsn: u64, h: &DataHeader, payload: Bytes) {
        self.held += payload.len() + self.overhead;
        self.last_end = extended_tsn;
        self.ready.push_back(whole(h, payload));
        if !h.flags.unordered {
            *self.next_of(h.stream) = h.ssn.next();
            self.drain(h.stream);
        }
    }

    /// A whole unordered message that came after all, when its TSN had been skipped: nothing else knows of it.
    pub fn insert_alone(&mut self, h: &DataHeader, mid: Option<Mid>, payload: Bytes) {
        self.held += payload.len() + self.overhead;
        self.ready.push_back(Message { mid, ..whole(h, payload) });
    }

    /// Takes over what another association left to be read, before anything of its own. Of a message that came in
    /// parts no more will come.
    pub fn keep_ready(&mut self, before: &mut Reassembly) {
        before.abandon_part(u64::MAX);
        self.held += before.ready.iter().map(|m| charge_of(m, self.overhead)).sum::<usize>();
        self.ready.append(&mut before.ready);
    }

    /// A copy of a payload. Messages that follow each other to the user share memory: they are read in this order, so
    /// little of it is ever held for one of them. `in_turn`: nothing before it is missing. What has to wait for
    /// something has memory of its own, for its neighbours may be gone long before it.
    pub fn copy(&mut self, h: &DataHeader, payload: &[u8], in_turn: bool) -> Bytes {
        let whole = h.flags.begin && h.flags.end;
        let follows = if whole { !self.ready.is_empty() } else { in_turn };
        if !follows || !self.is_next(h) || payload.len() > CRUMBS / 4 {
            return Bytes::copy_from_slice(payload);
        }
        if self.crumbs.capacity() < payload.len() {
            self.crumbs = BytesMut::with_capacity(CRUMBS);
        }
        self.crumbs.extend_from_slice(payload);
        self.crumbs.split().freeze()
    }

    /// Is this of the message that its stream waits for, or of an unordered one?
    fn is_next(&self, h: &DataHeader) -> bool {
        let next = || self.next.get(usize::from(h.stream.0)).copied().unwrap_or(Ssn(0));
        h.flags.unordered || h.ssn == next()
    }

    /// The next complete message in delivery order.
    #[inline]
    pub fn pop(&mut self) -> Option<Message> {
        self.held -= self.ready.front().map_or(0, |m| charge_of(m, self.overhead));
        self.ready.pop_front()
    }

    /// Bytes and part of what [`Reassembly::pop`] would give now.
    #[inline]
    pub fn first_ready(&self) -> Option<(usize, Part)> {
        self.ready.front().map(|m| (m.payload.len(), m.part))
    }

    /// All has been read: the memory for small messages need not be held.
    pub fn give_back_crumbs(&mut self) {
        if self.crumbs.capacity() > 0 {
            self.crumbs = BytesMut::new();
        }
    }

    /// Messages that [`Reassembly::pop`] would give now.
    pub fn ready_len(&self) -> usize {
        self.ready.len()
    }
    /// Bytes inside, ready or not: payload and overhead of each chunk.
    pub fn held_bytes(&self) -> usize {
        self.held
    }

    /// To be called when the cumulative TSN has moved. A fragment next to a message that is already delivered would
    /// otherwise be held for ever, for the chunk it waits for has been here. O(1) without incomplete messages.
    ///
    /// # Errors
    /// [`Violation::NoBegin`] or [`Violation::BeginInside`].
    pub fn check_cum(&mut self, cum_extended: u64) -> Result<(), Violation> {
        self.check_part(cum_extended)?;
        // Only the first run can start at or below the cumulative TSN, or it has itself a hole behind it.
        while let Some((&first, run)) = self.runs.first_key_value().filter(|(first, _)| **first <= cum_extended) {
            let after = run.after(first);
            let wrong = if !run.begins {
                Violation::NoBegin { tsn: Tsn(first as u32) }
            } else if after <= cum_extended {
                Violation::BeginInside { tsn: Tsn(after as u32) }
            } else {
                return Ok(());
            };
            if !self.gives_up {
                return Err(wrong);
            }
            let shared = run.shared;
            self.release_run(first);
            self.pass(shared);
        }
        Ok(())
    }

    /// Where the run ends that starts at or before `tsn`.
    fn left(&self, tsn: u64) -> Option<(u64, u64)> {
        self.runs.range(..=tsn).next_back().map(|(first, run)| (*first, run.after(*first)))
    }

    /// Do the fragments on both sides agree with this chunk?
    fn neighbours(&self, tsn: u64, h: &DataHeader) -> Result<(), Violation> {
        let shared = Shared::of(h);
        if let Some((_, run)) = self.runs.range(..tsn).next_back().filter(|(first, run)| run.after(**first) == tsn) {
            match (run.ends, h.flags.begin) {
                (false, true) => return Err(Violation::BeginInside { tsn: h.tsn }),
                (true, false) => return Err(Violation::NoBegin { tsn: h.tsn }),
                (false, false) if run.shared != shared => return Err(Violation::Mismatch { tsn: h.tsn }),
                _ => {}
            }
        }
        if let Some(run) = self.runs.get(&(tsn + 1)) {
            match (h.flags.end, run.begins) {
                (false, true) => return Err(Violation::BeginInside { tsn: h.tsn }),
                (true, false) => return Err(Violation::NoBegin { tsn: h.tsn }),
                (false, false) if run.shared != shared => return Err(Violation::Mismatch { tsn: h.tsn }),
                _ => {}
            }
        }
        Ok(())
    }

    fn insert_fragment(&mut self, tsn: u64, h: &DataHeader, payload: Bytes) -> Result<(), Violation> {
        self.neighbours(tsn, h)?;
        let left = self.left(tsn);
        if left.is_some_and(|(_, after)| after > tsn) {
            // A duplicate, which the caller excludes.
            return Ok(());
        }
        let left = left.filter(|(_, after)| *after == tsn && !h.flags.begin).map(|(first, _)| first);
        if left.is_none() && !h.flags.begin {
            if tsn - 1 == self.last_end {
                return Err(Violation::NoBegin { tsn: h.tsn });
            }
            if tsn - 1 <= self.given_up {
                self.given_up = self.given_up.max(tsn);
                if !h.flags.end {
                    self.drop_run(tsn + 1);
                }
                return Ok(());
            }
        }
        self.held += payload.len() + self.overhead;
        let mut run = Run {
            pieces: VecDeque::with_capacity(1),
            shared: Shared::of(h),
            ppid: h.ppid,
            begins: h.flags.begin,
            ends: h.flags.end,
        };
        run.pieces.push_back(payload);
        if !h.flags.end
            && let Some(later) = self.runs.remove(&(tsn + 1))
        {
            run.append(later);
        }
        let first = left.unwrap_or(tsn);
        let joined = match self.runs.entry(first) {
            Entry::Occupied(e) => {
                let joined = e.into_mut();
                joined.append(run);
                joined
            }
            Entry::Vacant(e) => e.insert(run),
        };
        if joined.begins
            && joined.ends
            && let Some(run) = self.runs.remove(&first)
        {
            let last = run.after(first) - 1;
            let Shared { stream, ssn } = run.shared;
            let payload = Payload::from_pieces(run.pieces);
            let tsn = Tsn(first as u32);
            let m = Message { stream, ssn, mid: None, tsn, ppid: run.ppid, payload, part: Part::Whole };
            return self.complete(last, m);
        }
        Ok(())
    }

    fn next_of(&mut self, stream: StreamId) -> &mut Ssn {
        let i = usize::from(stream.0);
        if i >= self.next.len() {
            self.next.resize(i + 1, Ssn(0));
        }
        &mut self.next[i]
    }

    /// A message is whole, its charge already counted.
    fn complete(&mut self, last: u64, m: Message) -> Result<(), Violation> {
        self.last_end = last;
        let stream = m.stream;
        let Some(ssn) = m.ssn else {
            self.hand(m);
            return Ok(());
        };
        let next = self.next_of(stream);
        let ahead = ssn.distance(*next);
        if ahead == 0 {
            *next = ssn.next();
            self.hand(m);
            self.drain(stream);
            return Ok(());
        }
        if ahead >= HALF_SSN_SPACE {
            if !self.forwarded {
                return Err(Violation::SsnReused { stream, ssn });
            }
            // Given up, yet it came; what follows it may have been delivered, so order forbids it.
            self.held -= charge_of(&m, self.overhead);
            return Ok(());
        }
        if self.endless.contains(&(stream, ssn.0)) {
            self.held -= charge_of(&m, self.overhead);
            return Ok(());
        }
        match self.waiting.entry((stream, ssn.0)) {
            Entry::Occupied(_) => Err(Violation::SsnReused { stream, ssn }),
            Entry::Vacant(e) => {
                e.insert(m);
                Ok(())
            }
        }
    }

    /// Makes ready what waited for the message just passed.
    #[inline]
    fn drain(&mut self, stream: StreamId) {
        if !self.waiting.is_empty() || !self.endless.is_empty() {
            self.drain_waiting(stream);
        }
    }

    #[inline(never)]
    fn drain_waiting(&mut self, stream: StreamId) {
        while !self.waiting.is_empty() || !self.endless.is_empty() {
            let ssn = *self.next_of(stream);
            work::steps(1);
            if !self.forget_endless(stream, ssn.0) {
                let Some(m) = self.waiting.remove(&(stream, ssn.0)) else { return };
                self.hand(m);
            }
            *self.next_of(stream) = ssn.next();
        }
    }
}

#[cfg(test)]
#[path = "reassembly_tests.rs"]
mod tests;
