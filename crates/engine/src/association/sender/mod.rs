//! Everything about the DATA that we send: waiting, in flight, acknowledged, lost, given up.

pub(in crate::association) mod carried;
pub(in crate::association) mod give_up;
pub(in crate::association) mod intake;
pub(in crate::association) mod invariants;
pub(in crate::association) mod loss;
pub(in crate::association) mod peer_window;
pub(in crate::association) mod repaired;
pub(in crate::association) mod sack;
pub(in crate::association) mod transmit;
pub(in crate::association) mod undelivered;

use crate::association::TimerReason;
use crate::association::path_table::PathTable;
use crate::association::policies::set::Policies;
use crate::config::AssocConfig;
use crate::lazy_box::LazyBox;
use crate::repair::{LossLog, LostCopy, SentChunk, TransmissionCause};
use crate::stats::AbandonedStats;
use crate::tx::carried::UsableRate;
use crate::tx::groups::Groups;
use crate::tx::scoreboard::ChunkState;
use crate::tx::scoreboard::Copies;
use crate::tx::scoreboard::Scoreboard;
use crate::tx::send_queue::SendQueue;
use anabranch_base::{Instant, PathId, Ppm, Rate, StreamId, Tsn};
use anabranch_policy::Asks;
use anabranch_policy::view::{ChunkView, QueueView};
use peer_window::PeerWindow;
use repaired::Settled;
use sack::gap_memory::GapMemory;
use std::collections::VecDeque;

/// The sending half of an association.
pub(in crate::association) struct Sender {
    queue: SendQueue,
    groups: Groups,
    board: Scoreboard,
    peer_window: PeerWindow,
    gaps: LazyBox<GapMemory>,
    copies_due: LazyBox<VecDeque<(u64, PathId, TransmissionCause)>>,
    /// Why a chunk that is in flight leaves again in the packet under construction.
    further: TransmissionCause,
    /// What was taken for lost, for a user who asked for it.
    losses: Option<Box<LossLog>>,
    scheduler_wakeup: Option<Instant>,
    /// Since when the scheduler has had something that waits, without a break.
    waiting_since: Option<Instant>,
    /// Nothing waited at some time since this was asked last.
    emptied: bool,
    /// When what waits was looked at last for what is late.
    swept_queue: Option<Instant>,
    /// Bytes that a FORWARD-TSN takes from one point to another.
    forward_needs: Option<((u64, u64), usize)>,
    redundancy_wakeup: Option<Instant>,
    scheduler_blocked: bool,
    load: LazyBox<crate::tx::load::Load>,
    /// What the paths carry within the deadline.
    carried: LazyBox<crate::tx::carried::Carried>,
    /// Nothing came and no timer fired since the user sent something, see [`crate::Nagle`].
    user_sends: bool,
    /// Max.Burst applies, where the recovery policy makes it depend on repairs.
    burst_armed: bool,
    /// Highest TSN acknowledged since the cumulative one advanced last.
    highest_since_advance: Option<u64>,
    /// When the last SACK came, by whichever path.
    reported_at: Option<Instant>,
    /// The packet that was built last took what room there was for new data, on the paths or at the peer.
    window_spent: bool,
    /// A sending opportunity began that the scheduler does not know of.
    fresh_opportunity: bool,
    forward_timer: Option<Instant>,
    forward_due: bool,
    /// Where the last FORWARD-TSN pointed, when it left, and on which path.
    forward_sent: Option<(u64, Instant, PathId)>,
    /// A message came that may be given up once it has a TSN.
    may_give_up: bool,
    /// When the lists were last searched for what is late.
    swept_marked: Option<Instant>,
    swept_ahead: Option<Instant>,
    want_writable: bool,
    /// Bytes of the message that was not taken last, until one is.
    refused: u64,
    abandoned: LazyBox<give_up::Abandoned>,
    given_up: LazyBox<undelivered::GivenUp>,
    abandoned_reported: u64,
    /// The user has sent something, or said that it will.
    sends: bool,
    outbound_streams: u16,
    /// Bytes of the send buffer.
    buffer: u64,
    /// Millionths of the send buffer that one byte fills, times 2^32: facts are gathered too often to divide.
    fill_scale: u64,
    /// Bytes by which the peer's window shrinks for each chunk beside its payload.
    peer_chunk_overhead: u64,
    /// When user data left or came last.
    user_data_at: Option<Instant>,
    /// What the peer restored and is to count as received.
    settled: LazyBox<Settled>,
}

impl Sender {
    /// Nothing was sent; our first TSN is `initial`.
    pub fn new(config: &AssocConfig, initial: Tsn) -> Sender {
        Sender {
            queue: SendQueue::default(),
            groups: Groups::default(),
            board: Scoreboard::new(initial),
            peer_window: PeerWindow::default(),
            gaps: LazyBox::empty(),
            copies_due: LazyBox::empty(),
            further: TransmissionCause::Copy,
            losses: None,
            scheduler_wakeup: None,
            waiting_since: None,
            emptied: false,
            swept_queue: None,
            forward_needs: None,
            redundancy_wakeup: None,
            scheduler_blocked: false,
            load: LazyBox::empty(),
            carried: LazyBox::empty(),
            user_sends: false,
            burst_armed: false,
            highest_since_advance: None,
            reported_at: None,
            window_spent: false,
            fresh_opportunity: false,
            forward_timer: None,
            forward_due: false,
            forward_sent: None,
            may_give_up: false,
            swept_marked: None,
            swept_ahead: None,
            want_writable: false,
            refused: 0,
            abandoned: LazyBox::empty(),
            given_up: LazyBox::empty(),
            abandoned_reported: 0,
            sends: false,
            outbound_streams: config.limits.outbound_streams,
            buffer: config.limits.send_buffer as u64,
            fill_scale: (1_000_000 << 32) / (config.limits.send_buffer as u64).max(1),
            peer_chunk_overhead: config.limits.peer_chunk_overhead,
            user_data_at: None,
            settled: LazyBox::empty(),
        }
    }

    /// The handshake agreed on streams, the peer's window, and whether messages interleave.
    pub fn begin(&mut self, streams: u16, a_rwnd: u32, interleaving: bool) {
        self.outbound_streams = streams;
        self.peer_window.starts_at(a_rwnd);
        self.queue.interleave(interleaving);
    }

    /// Outbound streams.
    pub fn streams(&self) -> u16 {
        self.outbound_streams
    }

    /// The peer takes so many streams more.
    pub fn add_streams(&mut self, more: u16) {
        self.outbound_streams = self.outbound_streams.saturating_add(more);
    }

    /// Everything that was handed over has been acknowledged or given up.
    pub fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.board.is_empty()
    }

    /// Nothing has a TSN that is not acknowledged.
    pub fn has_nothing_outstanding(&self) -> bool {
        self.board.is_empty()
    }

    /// A message is being cut into chunks.
    pub fn is_cutting(&self) -> bool {
        self.queue.is_cutting()
    }

    /// What waits for a TSN or has one and has not left, bytes.
    pub fn unsent_bytes(&self) -> u64 {
        self.queue.bytes() + self.board.ahead_bytes()
    }

    /// In flight or given as lost, bytes.
    pub fn outstanding_bytes(&self) -> u64 {
        self.board.outstanding_bytes()
    }

    /// Bytes of the send buffer.
    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    /// How much of the send buffer is in use.
    pub fn fill(&self) -> Ppm {
        let held = self.unsent_bytes() + self.outstanding_bytes();
        let fill = (u128::from(held) * u128::from(self.fill_scale)) >> 32;
        Ppm(fill.min(1_000_000) as u32)
    }

    /// Chunks that were given a TSN and are not acknowledged.
    pub fn outstanding_chunks(&self) -> u64 {
        self.board.chunks()
    }

    /// Given as lost on this path and not sent again, bytes.
    pub fn marked_bytes_on(&self, path: PathId) -> u64 {
        self.board.marked_on(path).bytes
    }

    /// Is something given as lost on this path that was not sent again?
    pub fn has_marked_on(&self, path: PathId) -> bool {
        self.board.marked_on(path).chunks > 0
    }

    /// Where a chunk is in flight.
    pub fn copies_of(&self, tsn: u64) -> Option<Copies> {
        self.board.get(tsn).map(|c| c.copies)
    }

    /// Acknowledged and held nevertheless, because the peer may take the acknowledgement back, bytes.
    pub fn held_for_reneging(&self) -> u64 {
        self.board.held_for_reneging()
    }

    /// Chunks with a TSN that have not left.
    pub fn ahead(&self) -> &[ChunkView] {
        self.board.ahead()
    }

    /// The look-ahead as schedulers see it.
    pub fn ahead_view(&self) -> QueueView<'_> {
        self.board.ahead_view()
    }

    /// Up to where the peer has acknowledged everything, extended.
    pub fn cumulative(&self) -> u64 {
        self.board.cumulative()
    }

    /// The next TSN, extended.
    pub fn next_tsn(&self) -> u64 {
        self.board.end()
    }

    /// A TSN of the peer's, extended.
    pub fn extend(&self, tsn: Tsn) -> u64 {
        self.board.extend(tsn)
    }

    /// Is a message given up of which the peer does not know yet?
    pub fn owes_skip(&self) -> bool {
        self.board.iter().any(|(_, c)| c.state == ChunkState::Abandoned)
    }

    /// Is there DATA to send or to send again, or a point to skip to?
    pub fn has_work(&self) -> bool {
        !self.board.ahead().is_empty() || !self.queue.is_empty() || self.has_repairs()
    }

    /// Is something to be sent again, copied or skipped?
    pub fn has_repairs(&self) -> bool {
        self.board.has_marked() || !self.copies_due.is_empty() || self.forward_due || self.settled.is_due()
    }

    /// Does DATA wait for an opportunity to leave, new or lost?
    pub fn has_waiting_data(&self) -> bool {
        !self.queue.is_empty() || !self.board.ahead().is_empty() || self.board.has_marked()
    }

    /// Does something of this stream wait for a TSN?
    pub fn holds(&self, stream: StreamId) -> bool {
        self.queue.holds(stream)
    }

    /// Another stream scheduler decides from now on.
    pub fn rearrange(&mut self) {
        self.queue.rearrange();
    }

    /// Streams wait for their reset, all of them or these; answers whether nothing of them is left to send.
    pub fn pause(&mut self, streams: &[StreamId]) -> bool {
        self.queue.pause(streams);
        self.queue.is_drained()
    }

    /// Paused streams go on; `anew`: with their first number.
    pub fn resume(&mut self, anew: bool) {
        self.queue.resume(anew);
    }

    /// All streams begin anew, and TSNs at `ours` when that is given and nothing is outstanding; answers whether they do.
    pub fn begin_anew(&mut self, ours: Option<Tsn>) -> bool {
        self.queue.reset_all();
        let Some(ours) = ours.filter(|_| self.board.is_empty()) else { return false };
        self.board = Scoreboard::new(ours);
        self.gaps = LazyBox::empty();
        self.copies_due = LazyBox::empty();
        self.settled = LazyBox::empty();
        self.highest_since_advance = None;
        (self.forward_sent, self.forward_timer, self.forward_due) = (None, None, false);
        true
    }

    /// All that it waits for.
    pub fn deadlines(&self) -> [(Option<Instant>, TimerReason); 5] {
        [
            (self.forward_timer, TimerReason::ForwardTsn),
            (self.scheduler_wakeup, TimerReason::Policy),
            (self.peer_window.deadline(), TimerReason::WindowProbe),
            (self.redundancy_wakeup, TimerReason::Policy),
            (self.settled.deadline(), TimerReason::ForwardTsn),
        ]
    }

    /// What is due is noted.
    pub fn on_timers(&mut self, now: Instant) {
        let due = |t: Option<Instant>| t.is_some_and(|t| t <= now);
        if due(self.forward_timer) {
            self.forward_timer = None;
            self.forward_due = true;
        }
        if due(self.settled.deadline()) {
            self.settled.expire();
        }
        if due(self.peer_window.deadline()) {
            self.peer_window.allow_probe();
        }
        if due(self.scheduler_wakeup) {
            self.scheduler_wakeup = None;
        }
        if due(self.redundancy_wakeup) {
            self.redundancy_wakeup = None;
        }
    }

    /// An event gives data a new opportunity to leave, at most `max_burst` packets on each path unless that is 0 (RFC 9260
    /// §6.1 D) or waits for repairs.
    pub fn begin_opportunity(&mut self, max_burst: u16, policies: &Policies, paths: &mut PathTable) {
        let applies = max_burst > 0 && (!policies.ask(Asks::REPAIRED) || self.burst_armed);
        paths.allow_burst(if applies { max_burst } else { u16::MAX });
        self.scheduler_blocked = false;
        self.fresh_opportunity = true;
    }

    /// Something came or a timer fired since the user sent something (Nagle).
    pub fn end_user_send(&mut self) {
        self.user_sends = false;
    }

    /// A packet is about to be built.
    pub fn begin_packet(&mut self) {
        self.window_spent = false;
        self.further = TransmissionCause::Copy;
    }

    /// What was taken for lost is noted from now on, or no longer.
    pub fn note_losses(&mut self, wanted: bool) {
        self.losses = wanted.then(Box::default);
    }

    /// What was taken for lost since the last call.
    pub fn take_losses(&mut self) -> Vec<LostCopy> {
        self.losses.as_mut().map(|l| l.take()).unwrap_or_default()
    }

    /// What is known of a chunk that is not acknowledged.
    pub fn sent_chunk(&self, tsn: Tsn) -> Option<SentChunk> {
        let c = self.board.get(self.board.extend(tsn))?;
        Some(SentChunk { cause: c.cause, transmissions: c.transmissions, class: c.class })
    }

    /// Did the packet that was built last take what room there was for new data? Once.
    pub fn take_window_spent(&mut self) -> bool {
        core::mem::take(&mut self.window_spent)
    }

    /// Are the lists due to be searched for what is late?
    pub fn is_sweep_due(&self, now: Instant) -> bool {
        self.swept_ahead.is_none_or(|t| now.since(t) >= give_up::SWEEP)
    }

    /// The user sends, or will; answers whether that is news.
    pub fn note_sends(&mut self) -> bool {
        !core::mem::replace(&mut self.sends, true)
    }

    /// Has the user sent something, or said that it will?
    pub fn sends(&self) -> bool {
        self.sends
    }

    /// User data left or came.
    pub fn note_user_data(&mut self, now: Instant) {
        self.user_data_at = Some(now);
    }

    /// When user data left or came last.
    pub fn user_data_at(&self) -> Option<Instant> {
        self.user_data_at
    }

    /// All that there was to send has left.
    pub fn end_waiting(&mut self) {
        self.waiting_since = None;
        self.emptied = true;
    }

    /// Has all that there was to send left at some time since the last call?
    pub fn take_emptied(&mut self) -> bool {
        core::mem::take(&mut self.emptied)
    }

    /// What each class of messages brings.
    pub fn class_rates(&self) -> [Rate; 3] {
        self.load.rates()
    }

    /// What the paths carry within the deadlines of messages; zero until something is known.
    pub fn usable_rate(&self) -> UsableRate {
        self.carried.published()
    }

    /// Messages that were given up, by policy.
    pub fn abandoned(&self) -> AbandonedStats {
        self.abandoned.total
    }

    /// Messages given up since this was asked last, of `all` so far.
    pub fn newly_abandoned(&mut self, all: u64) -> Option<u64> {
        let before = core::mem::replace(&mut self.abandoned_reported, all);
        (all > before).then(|| all - before)
    }

    /// Were more given up than the user knows of?
    pub fn has_newly_abandoned(&self, all: u64) -> bool {
        all > self.abandoned_reported
    }

    /// The peer restarted: what the user knows of messages handed over stays.
    pub fn keep_account(&mut self, before: &mut Sender) {
        self.abandoned_reported = before.abandoned_reported;
        self.abandoned = core::mem::take(&mut before.abandoned);
        (self.want_writable, self.refused) = (before.want_writable, before.refused);
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
