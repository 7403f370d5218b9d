//! Every chunk that has a TSN and is not cumulatively acknowledged.
//!
//! One scoreboard for all paths. A chunk lists its live copies (path, packet serial, time, misses); it is marked
//! for retransmission when the last of them is gone (ARCHITECTURE decision 3). TSNs are extended to 64 bits inside.

pub(crate) use super::chunk::{Chunk, ChunkState, Copies, LiveCopy};
use super::marked::{Marked, MarkedOn, UNRANKED};
use super::sorted::Sorted;
use crate::repair::TransmissionCause;
use crate::tx::send_queue::Fragment;
use crate::work;
use anabranch_base::{Instant, PathId, Ssn, StreamId, Tsn};
use anabranch_policy::retransmission_order::Rank;
use anabranch_policy::view::{ChunkView, QueueView};
use anabranch_wire::{DataFlags, DataHeader};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

mod check;
mod passing;

use passing::Passing;

#[derive(Debug)]
pub(crate) struct Scoreboard {
    /// Extended TSN of the front chunk: cumulative acknowledgement + 1.
    base: u64,
    chunks: VecDeque<Chunk>,
    /// The look-ahead, in TSN order.
    ahead: Sorted,
    ahead_bytes: u64,
    marked: Marked,
    /// Payload of chunks in state Outstanding, each once.
    outstanding_bytes: u64,
    /// How many they are.
    outstanding_chunks: u64,
    /// One above the highest TSN ever sent.
    sent_end: u64,
    reneged: usize,
    /// The last of the given-up chunks right behind the cumulative acknowledgement.
    advanced: u64,
    /// What is known of the message behind them.
    passing: Passing,
    /// Messages that are cut and not whole, with the TSN of their newest piece; where DATA is used, and nothing stands
    /// between the pieces, none.
    open: BTreeMap<u64, u64>,
}

impl Scoreboard {
    pub fn new(initial: Tsn) -> Self {
        let base = (1u64 << 32) + u64::from(initial.0);
        Scoreboard {
            base,
            chunks: VecDeque::new(),
            ahead: Sorted::default(),
            ahead_bytes: 0,
            marked: Marked::default(),
            outstanding_bytes: 0,
            outstanding_chunks: 0,
            sent_end: base,
            reneged: 0,
            advanced: base - 1,
            passing: Passing::default(),
            open: BTreeMap::new(),
        }
    }

    /// Extends a TSN near the window.
    pub fn extend(&self, tsn: Tsn) -> u64 {
        let d = tsn.0.wrapping_sub(self.base as u32) as i32;
        self.base.wrapping_add_signed(i64::from(d))
    }
    pub fn cumulative(&self) -> u64 {
        self.base - 1
    }
    /// One above the highest TSN given.
    pub fn end(&self) -> u64 {
        self.base + self.chunks.len() as u64
    }
    pub fn sent_end(&self) -> u64 {
        self.sent_end
    }
    pub fn ahead(&self) -> &[ChunkView] {
        self.ahead.list()
    }
    /// The look-ahead as schedulers see it.
    #[inline]
    pub fn ahead_view(&self) -> QueueView<'_> {
        QueueView { chunks: self.ahead.list(), lowest_class: self.ahead.lowest_class() }
    }
    /// How many of the look-ahead, from the front, are lower than a TSN that was sent.
    #[inline(never)]
    pub fn ahead_holes(&self) -> usize {
        if self.ahead().first().is_none_or(|c| self.extend(c.tsn) >= self.sent_end) {
            return 0;
        }
        self.ahead().partition_point(|c| self.extend(c.tsn) < self.sent_end)
    }
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead_bytes
    }
    /// Does anything wait to be sent again?
    #[inline]
    pub fn has_marked(&self) -> bool {
        !self.marked.is_empty()
    }
    /// What waits to be sent again and left last on `path`.
    pub fn marked_on(&self, path: PathId) -> MarkedOn {
        self.marked.on(path)
    }
    /// What waits to be sent again, in TSN order. Walks over what lies between.
    pub fn marked(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        let marked = self.iter().filter(|(_, c)| c.state == ChunkState::Marked);
        marked.take(self.marked.sum().chunks as usize)
    }
    /// The marked chunk that is first in the order of the policy, if it has ranked all.
    pub fn first_marked(&mut self) -> Option<u64> {
        let (base, chunks) = (self.base, &self.chunks);
        self.marked.first(|rank, tsn| is_ranked(base, chunks, rank, tsn))
    }
    /// Takes it out of the order, see [`Self::put_back_marked`]; it stays marked.
    pub fn take_first_marked(&mut self) -> Option<(u64, u64)> {
        self.marked.take_first()
    }
    pub fn put_back_marked(&mut self, rank_and_tsn: (u64, u64)) {
        self.marked.put_back(rank_and_tsn);
    }
    pub fn marked_needs_rank(&self, now: Instant) -> bool {
        self.marked.needs_rank(now)
    }
    /// A marked chunk that needs another rank at `now`.
    pub fn take_unranked(&mut self, now: Instant) -> Option<(u64, ChunkView)> {
        while let Some(tsn) = self.marked.take_unranked(now) {
            if let Some(c) = self.get(tsn).filter(|c| c.state == ChunkState::Marked) {
                return Some((tsn, c.view()));
            }
        }
        None
    }
    pub fn rank_marked(&mut self, tsn: u64, rank: Rank) {
        let Some(c) = self.get_mut(tsn) else { return };
        let before = core::mem::replace(&mut c.rank, rank.place);
        let (base, chunks) = (self.base, &self.chunks);
        self.marked.rank(tsn, rank, before != rank.place, |rank, tsn| is_ranked(base, chunks, rank, tsn));
    }
    pub fn outstanding_bytes(&self) -> u64 {
        self.outstanding_bytes
    }
    pub fn outstanding_chunks(&self) -> u64 {
        self.outstanding_chunks
    }
    pub fn marked_bytes(&self) -> u64 {
        self.marked.sum().bytes
    }
    /// Payload held for the peer: waiting, outstanding and marked.
    pub fn held_bytes(&self) -> u64 {
        self.ahead_bytes + self.outstanding_bytes + self.marked_bytes()
    }
    /// Chunks that have a TSN and are not behind the cumulative acknowledgement.
    pub fn chunks(&self) -> u64 {
        self.chunks.len() as u64
    }
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
    pub fn reneged(&self) -> usize {
        self.reneged
    }
    pub fn get(&self, tsn: u64) -> Option<&Chunk> {
        work::steps(1);
        self.chunks.get(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }
    pub fn get_mut(&mut self, tsn: u64) -> Option<&mut Chunk> {
        work::steps(1);
        self.chunks.get_mut(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }
    /// Lowest TSN from `from` on that left last on `path` and is not acknowledged, of those sent `again` or of those sent
    /// once.
    pub fn lowest_on(&self, path: PathId, from: u64, again: bool) -> Option<u64> {
        let first = from.max(self.base);
        let open = |c: &Chunk| matches!(c.state, ChunkState::Outstanding | ChunkState::Marked);
        (first..self.sent_end).find(|t| {
            self.get(*t).is_some_and(|c| open(c) && c.last_path == Some(path) && (c.transmissions > 1) == again)
        })
    }
    /// Chunks with their extended TSNs, in TSN order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Chunk)> {
        let base = self.base;
        self.chunks.iter().enumerate().map(move |(i, c)| {
            work::steps(1);
            (base + i as u64, c)
        })
    }

    /// Gives a piece the next TSN and puts it into the look-ahead.
    #[inline]
    pub fn append(&mut self, f: Fragment) {
        let tsn = Tsn(self.end() as u32);
        let before = self.link(f.message, f.begin);
        let o = f.options;
        let flags =
            DataFlags { immediate: o.immediate_ack && f.end, unordered: o.unordered, begin: f.begin, end: f.end };
        let header = DataHeader { tsn, stream: StreamId(o.stream.0), ssn: ssn_of(&f), ppid: o.ppid, flags };
        let chunk = Chunk {
            mid: f.mid,
            fsn: f.fsn,
            message: f.message,
            before,
            class: o.class,
            deadline: o.deadline,
            group: o.group,
            max_retransmissions: o.max_retransmissions,
            ..Chunk::waiting(header, f.payload, f.queued_at)
        };
        self.ahead_bytes += chunk.len();
        self.ahead.push(chunk.view());
        self.chunks.push_back(chunk);
    }

    /// Gives a sum of others the next TSN, which it answers. It is to leave at once: no look-ahead, no message.
    pub fn append_parity(&mut self, record: Bytes, now: Instant) -> u64 {
        let tsn = self.end();
        // No message has this number.
        self.link(u64::MAX, true);
        let flags = DataFlags { immediate: false, unordered: true, begin: true, end: true };
        let header = DataHeader { tsn: Tsn(tsn as u32), stream: StreamId(0), ssn: Ssn(0), ppid: 0, flags };
        self.chunks.push_back(Chunk { message: u64::MAX, parity: true, ..Chunk::waiting(header, record, now) });
        tsn
    }

    /// The next TSN is one of `message`: how far before it the piece before is, which learns of it.
    #[inline]
    fn link(&mut self, message: u64, begins: bool) -> u32 {
        let tsn = self.end();
        let newest = self.chunks.back_mut();
        if let Some(c) = newest {
            if c.message == message && !c.parity {
                c.after = 1;
                return 1;
            }
            if !c.header.flags.end {
                self.open.insert(c.message, tsn - 1);
            }
        }
        if begins || self.open.is_empty() {
            return 0;
        }
        let Some(before) = self.open.remove(&message) else { return 0 };
        let distance = (tsn - before) as u32;
        match self.get_mut(before) {
            Some(c) => c.after = distance,
            None => return 0,
        }
        distance
    }

    /// Gives a TSN to the end of a message whose rest will never be cut, and gives it up at once. Without it the next
    /// message would follow a fragment that is no last one, which the peer must take for a broken message
    /// (RFC 3758 §3.5 A3).
    pub fn append_given_up_end(&mut self, message_at: u64) {
        let tsn = self.end();
        let Some(message) = self.get(message_at).map(|c| c.message) else { return };
        let before = self.link(message, false);
        let Some(c) = self.get(message_at) else { return };
        let flags = DataFlags { begin: false, end: true, ..c.header.flags };
        let end = Chunk {
            state: ChunkState::Abandoned,
            header: DataHeader { tsn: Tsn(tsn as u32), flags, ..c.header },
            // Of a message that is skipped only its MID counts.
            fsn: u32::MAX >> 1,
            payload: Bytes::new(),
            before,
            after: 0,
            reneged: false,
            transmissions: 0,
            reported_on: None,
            arrived: false,
            kept: false,
            repaired: false,
            copies: Copies::default(),
            ..*c
        };
        self.chunks.push_back(end);
        self.sent_end = self.sent_end.max(tsn + 1);
    }

    /// A copy of `tsn` leaves. Works from Waiting, Marked and Outstanding (a further copy, which leaves for `further`).
    #[inline]
    pub fn on_sent(&mut self, tsn: u64, copy: LiveCopy, further: TransmissionCause) {
        let Some(i) = tsn.checked_sub(self.base).and_then(|i| usize::try_from(i).ok()) else { return };
        let Some(c) = self.chunks.get_mut(i) else { return };
        let len = c.payload.len() as u64;
        let (before, last_path) = (c.state, c.last_path);
        if before == ChunkState::Outstanding {
            c.cause = further;
        }
        c.state = ChunkState::Outstanding;
        c.copies.push(copy);
        c.transmissions = c.transmissions.saturating_add(1);
        c.on_several_paths |= c.last_path.is_some_and(|p| p != copy.path);
        c.last_path = Some(copy.path);
        c.last_sent = Some(copy.sent_at);
        c.marked_at = None;
        c.bound = None;
        let wire_tsn = c.header.tsn;
        match before {
            ChunkState::Waiting => {
                self.take_ahead(wire_tsn, len);
                self.outstanding_bytes += len;
                self.outstanding_chunks += 1;
            }
            ChunkState::Marked => {
                self.marked.remove(last_path, len);
                self.outstanding_bytes += len;
                self.outstanding_chunks += 1;
            }
            _ => {}
        }
        self.sent_end = self.sent_end.max(tsn + 1);
    }

    fn take_ahead(&mut self, tsn: Tsn, len: u64) {
        if self.ahead.remove(tsn) {
            self.ahead_bytes -= len;
        }
    }

    /// The last live copy is gone, or a gap-acknowledged chunk was reneged for good: send it again.
    pub fn mark(&mut self, tsn: u64, now: Instant, why: TransmissionCause) {
        let Some(c) = self.get_mut(tsn) else { return };
        if !matches!(c.state, ChunkState::Outstanding | ChunkState::Acked) {
            return;
        }
        let was_outstanding = c.state == ChunkState::Outstanding;
        let was_reneged = core::mem::take(&mut c.reneged);
        c.state = ChunkState::Marked;
        c.cause = why;
        (c.marked_at, c.rank) = (Some(now), UNRANKED);
        let (last_path, len) = (c.last_path, c.len());
        if was_outstanding {
            self.outstanding_bytes -= len;
            self.outstanding_chunks -= 1;
        }
        if was_reneged {
            self.reneged -= 1;
        }
        self.marked.insert(tsn, last_path, len);
    }

    /// Settles a chunk as `to` (Acked or Abandoned); answers its live copies, which the caller takes off the paths.
    pub fn settle(&mut self, tsn: u64, to: ChunkState) -> Copies {
        let copies = self.get(tsn).map_or(Copies::default(), |c| c.copies);
        self.settle_whose_copies_are_known(tsn, to);
        copies
    }

    /// Settles a chunk of which the caller knows the live copies.
    #[inline]
    pub fn settle_whose_copies_are_known(&mut self, tsn: u64, to: ChunkState) {
        let Some(c) = self.get_mut(tsn) else { return };
        let (before, len, wire_tsn, last_path) = (c.state, c.len(), c.header.tsn, c.last_path);
        let reneged = core::mem::take(&mut c.reneged);
        c.state = to;
        c.copies.clear();
        if to == ChunkState::Abandoned {
            c.payload = Bytes::new();
        }
        match before {
            ChunkState::Waiting => self.take_ahead(wire_tsn, len),
            ChunkState::Marked => self.marked.remove(last_path, len),
            ChunkState::Outstanding => {
                self.outstanding_bytes -= len;
                self.outstanding_chunks -= 1;
            }
            ChunkState::Acked | ChunkState::Abandoned => {}
        }
        if reneged {
            self.reneged -= 1;
        }
        // A chunk given up before it ever left still takes its TSN on the wire, by FORWARD-TSN.
        if to == ChunkState::Abandoned {
            self.sent_end = self.sent_end.max(tsn + 1);
        }
    }

    /// Notes that a gap-acknowledged chunk is no longer reported, or is again.
    pub fn set_reneged(&mut self, tsn: u64, reneged: bool) {
        let Some(c) = self.get_mut(tsn) else { return };
        if c.state == ChunkState::Acked && c.reneged != reneged && !(reneged && c.kept) {
            c.reneged = reneged;
            if reneged { self.reneged += 1 } else { self.reneged -= 1 }
        }
    }

    /// The peer will not take back the acknowledgement: the payload is not needed any more.
    pub fn keep(&mut self, tsn: u64) {
        let Some(c) = self.get_mut(tsn).filter(|c| c.state == ChunkState::Acked) else { return };
        c.kept = true;
        c.payload = Bytes::new();
        self.set_reneged(tsn, false);
    }

    /// Payload bytes of acknowledged chunks that are held because the peer may take the acknowledgement back.
    pub fn held_for_reneging(&self) -> u64 {
        self.chunks.iter().filter(|c| c.state == ChunkState::Acked).map(Chunk::len).sum()
    }

    /// Was one of the chunks up to `tsn` never sent? O(1) unless a scheduler sends out of order.
    pub fn has_unsent_until(&self, tsn: u64) -> bool {
        self.ahead().first().is_some_and(|c| self.extend(c.tsn) <= tsn)
    }

    /// Drops the front chunk, which must be settled.
    pub fn pop_front(&mut self) {
        let Some(c) = self.chunks.front() else { return };
        if c.reneged {
            self.reneged -= 1;
        }
        self.base += 1;
        drop(self.chunks.pop_front());
    }

    /// All chunks of a message, by extended TSN. Of DATA they are neighbours; between those of I-DATA others may stand.
    pub fn message_tsns(&self, tsn: u64) -> Vec<u64> {
        let mut out = vec![tsn];
        let mut at = tsn;
        while let Some(before) = self.get(at).map(|c| u64::from(c.before)).filter(|b| *b > 0 && at - b >= self.base) {
            at -= before;
            out.push(at);
        }
        out.reverse();
        at = tsn;
        while let Some(after) = self.get(at).map(|c| u64::from(c.after)).filter(|a| *a > 0) {
            at += after;
            out.push(at);
        }
        out
    }
}

/// Does the chunk wait to be sent again, with this rank?
fn is_ranked(base: u64, chunks: &VecDeque<Chunk>, rank: u64, tsn: u64) -> bool {
    let at = tsn.checked_sub(base).and_then(|i| usize::try_from(i).ok());
    let chunk = at.and_then(|i| chunks.get(i));
    chunk.is_some_and(|c| c.state == ChunkState::Marked && c.rank == rank)
}

fn ssn_of(f: &Fragment) -> Ssn {
    if f.options.unordered { Ssn(0) } else { f.ssn }
}
