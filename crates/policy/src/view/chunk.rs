//! DATA chunks: one of them, those that wait, and one transmission of one.

use anabranch_base::{Instant, PathId, PathSet, StreamId, Tsn};

/// One DATA chunk: in the look-ahead, outstanding, or marked for retransmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkView {
    /// Its TSN (assigned when it enters the look-ahead).
    pub tsn: Tsn,
    /// Its stream.
    pub stream: StreamId,
    /// Counts messages of this association; fragments share it.
    pub message: u64,
    /// Payload bytes.
    pub len: u64,
    /// Importance: 0 first (Cheng et al. 2011 §III: I frames; also audio and tables), 1, 2 and everything else.
    pub class: u8,
    /// After this instant it is worthless.
    pub deadline: Option<Instant>,
    /// A message of its group (a video frame) was given up, so the group can no longer be whole.
    pub group_broken: bool,
    /// Bytes of its group that the user handed over and that have not left yet.
    pub group_unsent: u64,
    /// Retransmissions its message is worth (RFC 7496 §3.1); none sets no limit.
    pub max_retransmissions: Option<u16>,
    /// When the user handed it over.
    pub queued_at: Instant,
    /// When it was marked for retransmission.
    pub marked_at: Option<Instant>,
    /// Path of the newest transmission.
    pub last_path: Option<PathId>,
    /// Time of the newest transmission.
    pub last_sent: Option<Instant>,
    /// How often it was sent.
    pub transmissions: u16,
    /// Copies in flight.
    pub live_copies: u8,
    /// Paths on which they are.
    pub live_on: PathSet,
    /// Was fast-retransmitted (RFC 9260 §7.2.4: once).
    pub fast_retransmitted: bool,
    /// Its newest loss was noticed by a timer, not by reports.
    pub timed_out: bool,
}

impl ChunkView {
    /// Sent as often as its message is worth.
    pub fn retransmissions_used_up(&self) -> bool {
        self.max_retransmissions.is_some_and(|most| self.transmissions > most)
    }
    /// A chunk that waits for its first transmission, as a starting point for tests.
    ///
    /// ```
    /// use anabranch_base::{Instant, Tsn};
    /// use anabranch_policy::view::{ChunkView, QueueView};
    ///
    /// let key = ChunkView { class: 0, deadline: Some(Instant::from_millis(300)), ..ChunkView::waiting(Tsn(41)) };
    /// let chunks = [ChunkView::waiting(Tsn(40)), key];
    /// assert_eq!(QueueView::of(&chunks).most_important().map(|(index, _)| index), Some(1));
    /// ```
    pub fn waiting(tsn: Tsn) -> Self {
        ChunkView {
            tsn,
            stream: StreamId(0),
            message: u64::from(tsn.0),
            len: 1_144,
            class: 2,
            deadline: None,
            group_broken: false,
            group_unsent: 0,
            max_retransmissions: None,
            queued_at: Instant::ZERO,
            marked_at: None,
            last_path: None,
            last_sent: None,
            transmissions: 0,
            live_copies: 0,
            live_on: PathSet::EMPTY,
            fast_retransmitted: false,
            timed_out: false,
        }
    }
}

/// Chunks not yet transmitted, in TSN order: the scheduler's look-ahead.
#[derive(Clone, Copy)]
pub struct QueueView<'a> {
    /// The chunks.
    pub chunks: &'a [ChunkView],
    /// No chunk has a class below this one. A search for the most important chunk ends where it finds it.
    pub lowest_class: u8,
}

impl<'a> QueueView<'a> {
    /// A view of these chunks, of whose classes nothing is known.
    pub const fn of(chunks: &'a [ChunkView]) -> QueueView<'a> {
        QueueView { chunks, lowest_class: 0 }
    }

    /// The first chunk of the lowest class, which others depend on, and its index.
    pub fn most_important(&self) -> Option<(usize, &'a ChunkView)> {
        let mut best: Option<(usize, &ChunkView)> = None;
        for (i, c) in self.chunks.iter().enumerate() {
            if best.is_none_or(|(_, b)| c.class < b.class) {
                best = Some((i, c));
                if c.class <= self.lowest_class {
                    break;
                }
            }
        }
        best
    }
}

/// One live transmission of a chunk. Detection judges copies, not chunks.
#[derive(Clone, Copy, Debug)]
pub struct CopyView {
    /// The chunk.
    pub chunk: ChunkView,
    /// Path this copy was sent on.
    pub path: PathId,
    /// Serial of its packet on that path.
    pub tx_seq: u64,
    /// Time it was sent.
    pub sent_at: Instant,
    /// Reports that it is missing, this one included.
    pub misses: u8,
}

impl CopyView {
    /// The only transmission of chunk `tsn` of which nothing is known yet, as a starting point for tests.
    pub fn sent(tsn: Tsn, path: PathId, tx_seq: u64, sent_at: Instant) -> Self {
        let chunk = ChunkView {
            last_path: Some(path),
            last_sent: Some(sent_at),
            transmissions: 1,
            live_copies: 1,
            live_on: PathSet::only(path),
            ..ChunkView::waiting(tsn)
        };
        CopyView { chunk, path, tx_seq, sent_at, misses: 0 }
    }
}
