//! Messages out of I-DATA chunks (RFC 8260 §2.2.3): fragments by stream, kind of message, MID and FSN, wherever their
//! TSNs are.

use super::{Reassembly, Violation};
use crate::lazy_box::Empty;
use crate::message::{Message, Part, Payload};
use crate::work;
use anabranch_base::{Mid, Ssn, StreamId, Tsn};
use anabranch_wire::{IDataHeader, Skipped};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Stream, unordered, MID.
type Key = (StreamId, bool, u32);

/// What waits in pieces, or for its turn.
#[derive(Debug, Default)]
pub(super) struct Interleaved {
    /// Next ordered message of each stream, as far as the highest stream seen.
    next: Vec<Mid>,
    messages: BTreeMap<Key, Assembly>,
}

impl Empty for Interleaved {
    const EMPTY: &'static Interleaved = &Interleaved { next: Vec::new(), messages: BTreeMap::new() };
}

/// A message that is not with the user yet, or not all of it.
#[derive(Debug, Default)]
struct Assembly {
    /// By FSN, each with its TSN.
    pieces: BTreeMap<u32, (Tsn, Bytes)>,
    ppid: u32,
    /// TSN of the first fragment.
    tsn: u32,
    /// FSN of the last fragment.
    end: Option<u32>,
    /// Fragments before this one are with the user.
    given: u32,
}

impl Assembly {
    fn is_whole(&self) -> bool {
        self.end.is_some_and(|end| self.pieces.len() as u64 == u64::from(end) + 1)
    }

    /// Can there be such a fragment beside those that are here?
    fn fits(&self, fsn: u32, begin: bool, end: bool) -> bool {
        let beyond = self.end.is_some_and(|e| end || fsn > e);
        let before_others = end && self.pieces.last_key_value().is_some_and(|(last, _)| *last > fsn);
        begin == (fsn == 0) && fsn >= self.given && !self.pieces.contains_key(&fsn) && !beyond && !before_others
    }

    fn charge(&self, overhead: usize) -> usize {
        self.pieces.values().map(|(_, p)| p.len() + overhead).sum()
    }

    /// The fragments that follow what the user has, without a hole; are they the last?
    fn take_front(&mut self) -> (Vec<(Tsn, Bytes)>, bool) {
        let mut out = Vec::new();
        while let Some(piece) = self.pieces.remove(&self.given) {
            out.push(piece);
            if self.end == Some(self.given) {
                return (out, true);
            }
            self.given += 1;
        }
        (out, false)
    }
}

/// MIDs that are not after this one (RFC 8260 §2.1), the earlier ones first.
fn upto(mid: Mid) -> impl Iterator<Item = core::ops::RangeInclusive<u32>> {
    let first = mid.0.wrapping_sub(u32::MAX / 2);
    let whole = first <= mid.0;
    let before = (!whole).then_some(first..=u32::MAX);
    before.into_iter().chain([if whole { first } else { 0 }..=mid.0])
}

fn message(
    (stream, unordered, mid): Key,
    (ppid, tsn): (u32, u32),
    pieces: impl IntoIterator<Item = Bytes>,
    part: Part,
) -> Message {
    let ssn = (!unordered).then_some(Ssn(mid as u16));
    Message { stream, ssn, mid: Some(Mid(mid)), tsn: Tsn(tsn), ppid, payload: Payload::from_pieces(pieces), part }
}

impl Reassembly {
    fn next_mid(&mut self, stream: StreamId) -> &mut Mid {
        let (i, next) = (usize::from(stream.0), &mut self.interleaved.next);
        if i >= next.len() {
            next.resize(i + 1, Mid(0));
        }
        &mut next[i]
    }

    /// Takes an I-DATA chunk whose TSN is new and whose stream exists.
    ///
    /// # Errors
    /// A [`Violation`] for which the association must be aborted.
    pub fn insert_interleaved(&mut self, h: &IDataHeader, payload: Bytes) -> Result<(), Violation> {
        if h.stream.0 >= self.inbound_streams {
            return Err(Violation::NoSuchStream { stream: h.stream });
        }
        let key = (h.stream, h.flags.unordered, h.mid.0);
        let next = *self.next_mid(h.stream);
        if !h.flags.unordered && h.mid.before(next) {
            // Given up, yet it came; without that it was delivered before.
            return if self.forwarded { Ok(()) } else { Err(Violation::MidReused { stream: h.stream, mid: h.mid }) };
        }
        let fsn = if h.flags.begin { 0 } else { h.fsn };
        let overhead = self.overhead;
        let assembly = self.interleaved.messages.entry(key).or_default();
        if !assembly.fits(fsn, h.flags.begin, h.flags.end) {
            return Err(Violation::WrongFragment { tsn: h.tsn });
        }
        self.held += payload.len() + overhead;
        assembly.pieces.insert(fsn, (h.tsn, payload));
        if h.flags.begin {
            (assembly.ppid, assembly.tsn) = (h.ppid, h.tsn.0);
        }
        if h.flags.end {
            assembly.end = Some(fsn);
        }
        if assembly.given > 0 {
            self.hand_on(key);
        } else if assembly.is_whole() && (h.flags.unordered || h.mid == next) {
            self.hand_over(key);
        }
        Ok(())
    }

    fn hand_pieces(&mut self, key: Key, first: (u32, u32), pieces: impl IntoIterator<Item = (Tsn, Bytes)>, part: Part) {
        let noted = &mut self.handed_on;
        let note = |(tsn, bytes)| {
            if let Some(list) = noted {
                list.push((tsn, 1));
            }
            bytes
        };
        self.ready.push_back(message(key, first, pieces.into_iter().map(note), part));
    }

    /// A whole message goes to the user, and with an ordered one those that waited for it.
    fn hand_over(&mut self, key: Key) {
        let Some(a) = self.interleaved.messages.remove(&key) else { return };
        self.hand_pieces(key, (a.ppid, a.tsn), a.pieces.into_values(), Part::Whole);
        if !key.1 {
            *self.next_mid(key.0) = Mid(key.2).next();
            self.hand_over_next(key.0);
        }
    }

    fn hand_over_next(&mut self, stream: StreamId) {
        loop {
            let mid = *self.next_mid(stream);
            let key = (stream, false, mid.0);
            let Some(a) = self.interleaved.messages.get_mut(&key).filter(|a| a.is_whole()) else { return };
            let pieces = core::mem::take(&mut a.pieces);
            let first = (a.ppid, a.tsn);
            self.interleaved.messages.remove(&key);
            self.hand_pieces(key, first, pieces.into_values(), Part::Whole);
            *self.next_mid(stream) = mid.next();
        }
    }

    /// More of a message that the user has a part of.
    fn hand_on(&mut self, key: Key) {
        let Some(a) = self.interleaved.messages.get_mut(&key) else { return };
        let (pieces, ends) = a.take_front();
        if pieces.is_empty() {
            return;
        }
        let part = if ends { Part::Last } else { Part::More };
        let first = (a.ppid, a.tsn);
        self.hand_pieces(key, first, pieces, part);
        if ends {
            self.interleaved.messages.remove(&key);
            if !key.1 {
                *self.next_mid(key.0) = Mid(key.2).next();
                self.hand_over_next(key.0);
            }
        }
    }

    /// There is no room: what is there of messages whose turn it is goes to the user (RFC 9260 §6.9). False when there
    /// is nothing.
    pub fn deliver_parts_interleaved(&mut self) -> bool {
        let turn = |i: &Interleaved, k: &Key| k.1 || i.next.get(usize::from(k.0.0)).is_none_or(|n| n.0 == k.2);
        let i = &self.interleaved;
        let keys: Vec<Key> =
            i.messages.iter().filter(|(k, a)| turn(i, k) && a.pieces.contains_key(&a.given)).map(|(k, _)| *k).collect();
        let before = self.ready.len();
        for key in keys {
            self.hand_on(key);
        }
        self.ready.len() > before
    }

    /// The peer gave up on these (RFC 8260 §2.3.1). What is whole and waited for them is for the user.
    pub fn forward_interleaved(&mut self, skipped: &mut dyn Iterator<Item = Skipped>) {
        self.forwarded = true;
        for s in skipped.filter(|s| s.stream.0 < self.inbound_streams).collect::<Vec<_>>() {
            let next = *self.next_mid(s.stream);
            if !s.unordered && s.mid.before(next) {
                continue;
            }
            for mids in upto(s.mid) {
                let key = |mid| (s.stream, s.unordered, mid);
                let span = key(*mids.start())..=key(*mids.end());
                while let Some(k) = self.interleaved.messages.range(span.clone()).next().map(|(k, _)| *k) {
                    work::steps(1);
                    self.release_or_drop(k);
                }
            }
            if !s.unordered {
                *self.next_mid(s.stream) = s.mid.next();
                self.hand_over_next(s.stream);
            }
        }
    }

    fn release_or_drop(&mut self, key: Key) {
        let Some(a) = self.interleaved.messages.remove(&key) else { return };
        if a.is_whole() {
            return self.hand_pieces(key, (a.ppid, a.tsn), a.pieces.into_values(), Part::Whole);
        }
        self.held -= a.charge(self.overhead);
        if a.given > 0 {
            self.held += self.overhead;
            self.hand_pieces(key, (a.ppid, a.tsn), [], Part::Abandoned);
        }
    }

    /// As for DATA: these streams, or all, begin again (RFC 8260 §2.3.2).
    pub(super) fn reset_interleaved(&mut self, chosen: &dyn Fn(StreamId) -> bool) {
        let keys: Vec<Key> = self.interleaved.messages.keys().filter(|k| chosen(k.0)).copied().collect();
        keys.into_iter().for_each(|k| self.release_or_drop(k));
        let next = self.interleaved.used().map_or(Default::default(), |i| i.next.iter_mut());
        for (i, next) in next.enumerate() {
            if chosen(StreamId(i as u16)) {
                *next = Mid(0);
            }
        }
    }
}
