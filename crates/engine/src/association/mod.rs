//! One association: its state, and the calls its endpoint makes.
//!
//! Each family of chunks or decisions is a file of free functions over [`Association`]; data flows one way:
//! `receive` → `sack_in` / `data_in` / `control_in` → `timers` → `transmit`.

mod acknowledger;
mod addresses;
mod control;
pub(crate) mod handshake;
pub(crate) mod path_table;
mod policies;
pub(crate) mod receive;
mod receiver;
mod seldom;
mod sender;
mod status;
mod stream_reset;
mod timers;
mod transmit;

pub(crate) use handshake::Birth;
pub(crate) use handshake::state::State;
pub use handshake::state::{Phase, Stage};
use path_table::PathTable;
pub(crate) use policies::scratch::Bench;
use receiver::Receiver;
pub use sender::undelivered::Undelivered;
pub use status::Agreed;
pub use stream_reset::request::ReconfigError;

use crate::config::AssocConfig;
use crate::event::{CloseReason, Event};
use crate::message::{Message, SendOptions};
use crate::path::Path;
use crate::stats::{AssocStats, PathStats, Tally};
use crate::transmit::Transmit;
use crate::tx::groups::Groups;
use crate::tx::scoreboard::Scoreboard;
use crate::tx::send_queue::SendQueue;
use acknowledger::Acknowledger;
use addresses::asconf::Asconf;
pub use addresses::own::AddressError;
use anabranch_base::{Instant, PathId};
use anabranch_policy::registry::PolicySet;
use bytes::Bytes;
use control::ControlOut;
use handshake::Handshake;
pub use handshake::authentication::AuthKeyError;
use handshake::authentication::Authentication;
use policies::views::Views;
use seldom::Seldom;
use sender::peer_window::PeerWindow;
use sender::sack::gap_memory::GapMemory;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a message or a chunk of one takes of the send buffer at least, in the mean of all that are in it, bytes: without
/// it a peer that shuts its window would make a user of small messages hold a hundred times the buffer.
const LEAST_PIECE: u64 = 256;

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full; [`Event::Writable`] follows.
    #[error("the send buffer is full")]
    WouldBlock,
    /// The peer accepts no stream with this number.
    #[error("the peer accepts {0} streams only")]
    InvalidStream(u16),
    /// A message has at least one byte (RFC 9260 §6.2).
    #[error("a message needs at least one byte")]
    Empty,
    /// Larger than the send buffer can ever hold, or than a packet where fragmentation is off.
    #[error("the message is larger than can be sent")]
    TooLarge,
    /// The association is closing or closed.
    #[error("the association is closed")]
    Closed,
}

/// What the peer said it can do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerFeatures {
    pub forward_tsn: bool,
    pub asconf: bool,
    /// It reads how many packets a SACK answers.
    pub packet_count: bool,
    /// Both read time stamps beside SACKs.
    pub time_stamps: bool,
    pub reconfig: bool,
    /// I-DATA in place of DATA.
    pub interleaving: bool,
    pub nr_sack: bool,
    /// It takes packets without a checksum.
    pub zero_checksum: bool,
    /// It tells of marked packets, and we mark ours as ones that may be.
    pub ecn: bool,
    pub packet_drop: bool,
    /// Packets that arrived damaged were reported so often that steadily sent reports would last until then.
    pub reported_until: Instant,
    pub adaptation: Option<u32>,
}

/// Reasons to wake up, for logs and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerReason {
    /// T1-init, T1-cookie, T2-shutdown or T5; a peer that is given up by time.
    Control,
    /// T4: ASCONF.
    Asconf,
    /// Re-configuration of streams.
    Reconfig,
    /// Delayed SACK.
    Sack,
    /// T3-rtx of a path.
    Retransmission(PathId),
    /// A probe before T3, or reordering that lasted too long.
    Loss(PathId),
    /// HEARTBEAT due or unanswered.
    Heartbeat(PathId),
    /// A path has been silent.
    Suspect(PathId),
    /// A probe of the path's largest packet is due or unanswered.
    PathMtu(PathId),
    /// The scheduler, the quality estimator or pacing asked to be woken.
    Policy,
    /// FORWARD-TSN again.
    ForwardTsn,
    /// One chunk to see whether the peer's window is still closed.
    WindowProbe,
}

/// An SCTP association over one or more paths.
pub struct Association {
    /// Shared by all associations that are configured alike.
    pub(crate) config: Arc<AssocConfig>,
    pub(crate) state: State,
    pub(crate) handshake: Handshake,
    /// The user has sent something, or said that it will.
    sends: bool,
    auth: Authentication,
    peer: PeerFeatures,
    outbound_streams: u16,
    policies: PolicySet,
    asks: policies::asks::Asks,
    /// The policies were built by the user and not from the profile.
    pub(crate) own_policies: bool,
    views: Views,
    /// Something happened to a path since the views were made. What is sent and acknowledged keeps them fresh itself.
    views_stale: bool,
    /// Something happened to another path than the one at hand: views are made anew before the next packet.
    views_doubtful: bool,
    /// Millionths of the send buffer that one byte fills, times 2^32: facts are gathered too often to divide.
    fill_scale: u64,
    pub(crate) paths: PathTable,
    // Sending.
    queue: SendQueue,
    groups: Groups,
    board: Scoreboard,
    peer_window: PeerWindow,
    gaps: GapMemory,
    copies_due: Seldom<VecDeque<(u64, PathId)>>,
    scheduler_wakeup: Option<Instant>,
    redundancy_wakeup: Option<Instant>,
    scheduler_blocked: bool,
    /// New data waits for the first HEARTBEAT ACK of every path, see [`crate::Quirks::confirm_first`].
    confirming: bool,
    /// What may leave before the next SACK (`one_repair_per_loss`).
    gate: sender::era::Gate,
    /// Where all repairs of this opportunity go (`repairs_together`).
    repairs_on: Option<PathId>,
    /// What the SACK at hand gave as lost (`one_recovery`).
    era_losses: sender::era::Losses,
    /// When user data left or came last.
    user_data_at: Option<Instant>,
    load: crate::tx::load::Load,
    /// What the paths carry within the deadline.
    carried: Seldom<crate::tx::carried::Carried>,
    /// Nothing came and no timer fired since the user sent something, see [`crate::Quirks::nagle`].
    user_sends: bool,
    /// Max.Burst applies, where [`crate::BurstRule`] makes it depend on repairs.
    burst_armed: bool,
    /// Highest TSN newly acknowledged as remembered for [`crate::Quirks::sticky_reports`].
    highest_reported: Option<u64>,
    /// The packet that was built last took what room there was for new data, on the paths or at the peer.
    window_spent: bool,
    /// A sending opportunity began that the scheduler has not been told of.
    fresh_opportunity: bool,
    /// Least time of the quality estimator's next tick.
    quality_floor: Instant,
    forward_timer: Option<Instant>,
    forward_due: bool,
    /// A message came that may be given up once it has a TSN.
    may_give_up: bool,
    /// When the lists were last searched for what is late.
    swept_marked: Option<Instant>,
    swept_ahead: Option<Instant>,
    /// Where the last FORWARD-TSN pointed, when it left, and on which path.
    forward_sent: Option<(u64, Instant, PathId)>,
    want_writable: bool,
    /// Bytes of the message that was not taken last, until one is.
    refused: u64,
    // Receiving.
    receiver: Receiver,
    acknowledger: Acknowledger,
    /// The packet at hand was marked on its way.
    pub(crate) packet_marked: bool,
    // Control.
    control: ControlOut,
    asconf: Asconf,
    reconfig: Seldom<stream_reset::request::Reconfig>,
    events: VecDeque<Event>,
    abandoned_told: u64,
    abandoned: Seldom<sender::give_up::Abandoned>,
    given_up: Seldom<sender::undelivered::GivenUp>,
    stats: Tally,
    scratch: policies::scratch::Lent,
}

impl Association {
    /// Where the association is in its life.
    pub fn phase(&self) -> Phase {
        self.state.phase()
    }

    /// The same by the names of the standard.
    pub fn stage(&self) -> Stage {
        self.state.stage()
    }

    /// The peer's SCTP port.
    pub fn peer_port(&self) -> u16 {
        self.handshake.peer_port()
    }

    /// Hands a message over. Units of the deadline are those of `now`.
    ///
    /// # Errors
    /// See [`SendError`]; nothing is taken on an error.
    pub fn send(&mut self, now: Instant, options: SendOptions, payload: Bytes) -> Result<(), SendError> {
        if !self.state.takes_user_data() {
            return Err(SendError::Closed);
        }
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        if self.state.is_connected() && options.stream.0 >= self.outbound_streams {
            return Err(SendError::InvalidStream(self.outbound_streams));
        }
        if payload.len() > self.config.send_buffer
            || (!self.config.fragmentation && payload.len() as u64 > self.paths.mtu())
        {
            return Err(SendError::TooLarge);
        }
        let excess = self.held_for_sending(payload.len() as u64).saturating_sub(self.config.send_buffer as u64);
        if excess > 0 && !self.make_room(&options, excess) {
            self.want_writable = true;
            self.refused = payload.len() as u64;
            return Err(SendError::WouldBlock);
        }
        self.refused = 0;
        self.means_to_send(now);
        self.stats.messages_sent += 1;
        self.stats.bytes_sent += payload.len() as u64;
        self.may_give_up |= options.deadline.is_some() || options.max_retransmissions.is_some();
        self.groups.queued(options.group, payload.len() as u64);
        if let Some(deadline) = options.deadline {
            self.carried.lives(deadline.since(now));
            self.load.add(now, options.class, payload.len() as u64);
        }
        self.queue.push(now, options, payload);
        self.user_sends = true;
        if self.config.quirks.burst == crate::BurstRule::Always {
            self.opportunity();
        } else {
            self.scheduler_blocked = false;
        }
        Ok(())
    }

    /// Gives a stream its priority (0 is the best) or weight, for the stream schedulers `priority` and `weighted_fair`
    /// (RFC 8260 §4.3.3); none takes it away.
    pub fn set_stream_value(&mut self, stream: anabranch_base::StreamId, value: Option<u16>) {
        self.queue.set_value(stream, value);
    }

    /// What fills the send buffer, with `bytes` of a message more: payload, or what small pieces cost where that is
    /// more.
    fn held_for_sending(&self, bytes: u64) -> u64 {
        let pieces = self.queue.waiting() + self.board.chunks();
        (self.queue.bytes() + self.board.held_bytes() + bytes).max(LEAST_PIECE * pieces)
    }

    /// The next complete message, in delivery order.
    #[inline]
    pub fn recv(&mut self) -> Option<Message> {
        let (message, len, ends) = self.receiver.pop()?;
        self.stats.messages_received += u64::from(ends);
        self.stats.bytes_received += len as u64;
        self.maybe_update_window();
        Some(message)
    }

    /// Is there a message to [`recv`](Self::recv)?
    pub fn is_readable(&self) -> bool {
        self.receiver.is_readable()
    }

    /// Everything that was handed over has been acknowledged or given up.
    pub fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.board.is_empty()
    }

    /// What fills the receive buffer: payload, and what it costs to hold it in small pieces, bytes.
    pub fn held_for_reading(&self) -> u64 {
        self.receiver.held_bytes() as u64
    }

    /// Gaps in the sequence of received TSNs: runs of missing ones below one that came.
    pub fn gaps(&self) -> usize {
        self.receiver.gaps()
    }

    /// Payload that is acknowledged and held nevertheless, because the peer may take the acknowledgement back, bytes.
    pub fn held_for_reneging(&self) -> u64 {
        self.board.held_for_reneging()
    }

    /// Counters of the association.
    pub fn stats(&self) -> AssocStats {
        AssocStats {
            unsent: self.queue.bytes() + self.board.ahead_bytes(),
            outstanding: self.board.outstanding_bytes(),
            abandoned: self.abandoned.total,
            usable_rate: self.carried.told(),
            retransmission_stages: self.policies.retransmission.stages(),
            ..self.stats.stats()
        }
    }

    /// Paths in the order of their ids.
    pub fn paths(&self) -> impl Iterator<Item = (PathId, PathStats)> + '_ {
        self.paths.iter().map(|p| (p.id, self.path_stats(p)))
    }

    fn path_stats(&self, p: &Path) -> PathStats {
        PathStats {
            local: p.local.0,
            remote: p.remote,
            state: self.shown_state(p.state),
            standby: p.standby,
            cwnd: p.cwnd,
            ssthresh: p.ssthresh,
            in_flight: p.flight.bytes(),
            srtt: p.rtt.srtt(),
            rttvar: p.rtt.rttvar(),
            min_rtt: p.rtt.min_rtt(),
            last_rtt: p.rtt.last(),
            rto: self.rto(p.id),
            packet_size: self.packet_size(p.id),
            discovery: p.discovery.as_ref().map(|d| d.state()),
            delivery_rate: p.rate.delivery_rate(),
            capacity: p.capacity.rate(),
            one_way: p.one_way.least(),
            jitter: p.rtt.jitter(),
            errors: p.errors,
            counters: p.counters,
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        if let Some(e) = self.events.pop_front() {
            return Some(e);
        }
        if self.events.capacity() > 0 {
            self.events = VecDeque::new();
        }
        let abandoned = self.stats.abandoned_sent + self.stats.abandoned_unsent;
        if abandoned > self.abandoned_told {
            let messages = abandoned - self.abandoned_told;
            self.abandoned_told = abandoned;
            return Some(Event::Abandoned { messages });
        }
        if self.receiver.is_newly_readable() {
            self.receiver.set_readable_known();
            return Some(Event::Readable);
        }
        if self.is_writable_again() {
            self.want_writable = false;
            return Some(Event::Writable);
        }
        None
    }

    /// Will [`Association::poll_event`] have something?
    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
            || self.stats.abandoned_sent + self.stats.abandoned_unsent > self.abandoned_told
            || self.receiver.is_newly_readable()
            || self.is_writable_again()
    }

    fn is_writable_again(&self) -> bool {
        self.want_writable && self.takes_more()
    }

    /// A SACK waits for the next chance to leave.
    pub(crate) fn owes_sack(&self) -> bool {
        self.acknowledger.is_due()
    }

    /// Over, told, and nothing left to transmit.
    pub(crate) fn is_finished(&self) -> bool {
        self.state.phase() == Phase::Closed
            && self.control.is_empty()
            && self.events.is_empty()
            && !self.receiver.is_readable()
    }

    pub(crate) fn close(&mut self, why: CloseReason) {
        if self.state.phase() == Phase::Closed {
            return;
        }
        self.state = State::Closed;
        self.handshake.stop();
        self.acknowledger.stop();
        self.control.close();
        self.events.push_back(Event::Closed(why));
    }

    /// An event gives each path a fresh burst allowance (RFC 9260 §6.1 D).
    pub(crate) fn opportunity(&mut self) {
        let applies = self.config.quirks.burst == crate::BurstRule::Always || self.burst_armed;
        let burst = if self.config.max_burst == 0 || !applies { u16::MAX } else { self.config.max_burst };
        for p in self.paths.iter_mut() {
            p.burst_left = burst;
        }
        self.scheduler_blocked = false;
        self.fresh_opportunity = true;
        self.repairs_on = None;
    }

    /// From now on the receive buffer has so many bytes; a larger one is announced at once. What a smaller one has no
    /// room for any more is kept, and the window stays shut until it is read.
    pub fn set_receive_buffer(&mut self, bytes: usize) {
        let bytes = bytes.max(1_500);
        Arc::make_mut(&mut self.config).receive_buffer = bytes;
        self.receiver.set_buffer(bytes);
        self.maybe_update_window();
    }

    /// Tells the peer when reading opened the window by a quarter of the buffer (RFC 9260 §6.2, silly window).
    fn maybe_update_window(&mut self) {
        let tells = self.acknowledger.has_any_data() && !self.config.quirks.no_window_updates;
        if tells && self.state.is_connected() && self.receiver.has_opened(self.paths.mtu()) {
            self.acknowledger.request();
        }
    }

    /// True when [`Association::poll_transmit`] may have something.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        transmit::poll(self, now, out)
    }
}
