//! One chunk of the scoreboard, and its transmissions that still count.

use super::marked::UNRANKED;
use crate::repair::TransmissionCause;
use anabranch_base::{Instant, Mid, PathId};
use anabranch_policy::view::ChunkView;
use anabranch_wire::{DataFlags, DataHeader, IDataHeader};
use bytes::Bytes;

/// A live transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveCopy {
    pub path: PathId,
    pub tx_seq: u64,
    pub sent_at: Instant,
    pub misses: u8,
}

/// Most copies of one chunk that may live at once.
pub(crate) const MAX_COPIES: usize = 4;

impl LiveCopy {
    /// What stands where there is none.
    const NONE: LiveCopy = LiveCopy { path: PathId(0), tx_seq: 0, sent_at: Instant::ZERO, misses: 0 };
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    list: [LiveCopy; MAX_COPIES],
    len: u8,
}

impl Default for Copies {
    fn default() -> Self {
        Copies { list: [LiveCopy::NONE; MAX_COPIES], len: 0 }
    }
}

impl Copies {
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }
    pub fn is_full(&self) -> bool {
        self.len() == MAX_COPIES
    }
    /// The only one, where there is just one.
    pub fn single(&self) -> Option<LiveCopy> {
        (self.len == 1).then_some(self.list[0])
    }
    pub fn push(&mut self, c: LiveCopy) {
        if let Some(slot) = self.list.get_mut(usize::from(self.len)) {
            *slot = c;
            self.len += 1;
        }
    }
    pub fn iter(&self) -> impl Iterator<Item = &LiveCopy> {
        self.list.iter().take(self.len())
    }
    pub fn find(&mut self, path: PathId, tx_seq: u64) -> Option<&mut LiveCopy> {
        let len = self.len();
        self.list.iter_mut().take(len).find(|c| c.path == path && c.tx_seq == tx_seq)
    }
    /// Removes one; keeps the order of the rest.
    pub fn remove(&mut self, path: PathId, tx_seq: u64) -> Option<LiveCopy> {
        let i = self.iter().position(|c| c.path == path && c.tx_seq == tx_seq)?;
        let out = self.list[i];
        self.list[i..].rotate_left(1);
        self.len -= 1;
        Some(out)
    }
    pub fn take_all(&mut self) -> Copies {
        core::mem::take(self)
    }
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// In the look-ahead, never sent.
    Waiting,
    /// At least one live copy.
    Outstanding,
    /// No live copy: to be sent again.
    Marked,
    /// In a gap block of the peer.
    Acked,
    /// Given up.
    Abandoned,
}

#[derive(Debug)]
pub(crate) struct Chunk {
    pub state: ChunkState,
    pub header: DataHeader,
    /// Where I-DATA is used: message and place in it.
    pub mid: Mid,
    pub fsn: u32,
    pub payload: Bytes,
    pub message: u64,
    /// How many TSNs before it the piece before it of its message has, and behind it the next one; 0 is none.
    pub before: u32,
    pub after: u32,
    pub class: u8,
    pub deadline: Option<Instant>,
    pub group: Option<u32>,
    pub max_retransmissions: Option<u16>,
    pub queued_at: Instant,
    pub marked_at: Option<Instant>,
    /// While it is marked: its place among those, or [`UNRANKED`].
    pub rank: u64,
    pub last_path: Option<PathId>,
    pub last_sent: Option<Instant>,
    pub transmissions: u16,
    /// Why it left last; while it is marked, why it will.
    pub cause: TransmissionCause,
    pub fast_retransmitted: bool,
    /// Its transmissions took different paths.
    pub on_several_paths: bool,
    /// The newest loss was noticed by a timer.
    pub timed_out: bool,
    /// The newest loss was noticed by reports, and of a copy on this path.
    pub reported_on: Option<PathId>,
    /// Path bound at loss, when the retransmission policy binds early.
    pub bound: Option<PathId>,
    /// Was in a gap block and is not any more.
    pub reneged: bool,
    /// Given up although the whole message had arrived, for FORWARD-TSN to pass it: nothing of it is skipped.
    pub arrived: bool,
    /// Acknowledged for good before the cumulative TSN has reached it (NR-SACK): nothing of it is held.
    pub kept: bool,
    /// A sum of others, not DATA: never sent again.
    pub parity: bool,
    /// The peer restored it from parity: what becomes of its copies is of interest, and it is not sent again.
    pub repaired: bool,
    pub copies: Copies,
}

impl Chunk {
    /// One that has not left, a message of its own that is worth something for ever.
    // Inlined, it is written in its place.
    #[inline(always)]
    pub fn waiting(header: DataHeader, payload: Bytes, queued_at: Instant) -> Chunk {
        Chunk {
            state: ChunkState::Waiting,
            header,
            mid: Mid(0),
            fsn: 0,
            payload,
            message: 0,
            before: 0,
            after: 0,
            class: u8::MAX,
            deadline: None,
            group: None,
            max_retransmissions: None,
            queued_at,
            marked_at: None,
            rank: UNRANKED,
            last_path: None,
            last_sent: None,
            transmissions: 0,
            cause: TransmissionCause::First,
            fast_retransmitted: false,
            on_several_paths: false,
            timed_out: false,
            reported_on: None,
            bound: None,
            reneged: false,
            arrived: false,
            kept: false,
            parity: false,
            repaired: false,
            copies: Copies::default(),
        }
    }
    pub fn len(&self) -> u64 {
        self.payload.len() as u64
    }
    /// Its header as I-DATA.
    pub fn interleaved(&self, flags: DataFlags) -> IDataHeader {
        let h = &self.header;
        IDataHeader { tsn: h.tsn, stream: h.stream, mid: self.mid, ppid: h.ppid, fsn: self.fsn, flags }
    }
    #[inline]
    pub fn view(&self) -> ChunkView {
        ChunkView {
            tsn: self.header.tsn,
            stream: self.header.stream,
            message: self.message,
            len: self.len(),
            class: self.class,
            deadline: self.deadline,
            group_broken: false,
            group_unsent: 0,
            max_retransmissions: self.max_retransmissions,
            queued_at: self.queued_at,
            marked_at: self.marked_at,
            last_path: self.last_path,
            last_sent: self.last_sent,
            transmissions: self.transmissions,
            live_copies: self.copies.len() as u8,
            live_on: self.copies.iter().map(|c| c.path).collect(),
            fast_retransmitted: self.fast_retransmitted,
            timed_out: self.timed_out,
        }
    }
}
