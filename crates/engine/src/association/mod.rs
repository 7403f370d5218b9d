//! One association: its state, and the calls its endpoint makes.
//!
//! Each family of chunks or decisions is a file of free functions over [`Association`]; data flows one way:
//! `receive` → `sack_in` / `data_in` / `control_in` → `timers` → `transmit`.

mod addresses;
pub(crate) mod announced;
mod asconf;
mod asconf_in;
mod authentication;
mod bench;
mod birth;
mod carried;
mod control_in;
mod control_out;
mod control_timer;
mod data_in;
mod ecn;
mod era;
mod expiry;
mod gap_memory;
mod give_up;
mod growth;
mod handshake;
mod heartbeat;
mod i_data_in;
mod invariants;
mod loss;
mod nonces;
mod own_addresses;
mod packet_drop;
mod path_mtu;
mod paths;
mod peer_window;
mod probes;
pub(crate) mod receive;
mod reconfig;
mod reconfig_again;
mod reconfig_in;
mod reconfig_refused;
pub(crate) mod restart;
mod resume;
mod rto;
mod sack_in;
mod sack_tail;
mod seldom;
mod shutdown;
mod silence;
mod state;
mod status;
mod timers;
pub(crate) mod train;
mod transmit;
mod transmit_copies;
mod transmit_data;
mod transmit_new;
mod undelivered;
mod views;

pub(crate) use bench::Bench;
pub(crate) use birth::Birth;
pub use reconfig::ReconfigError;
pub(crate) use state::State;
pub use state::{Phase, Stage};
pub use status::Agreed;
pub use undelivered::Undelivered;

use crate::auth::AuthParams;
use crate::config::AssocConfig;
use crate::event::{CloseReason, Event};
use crate::message::{Message, Part, SendOptions};
use crate::path::Path;
use crate::path::list::Paths;
use crate::rx::reassembly::Reassembly;
use crate::rx::tsn_tracker::TsnTracker;
use crate::stats::{AssocStats, PathStats, Tally};
use crate::transmit::Transmit;
use crate::tx::groups::Groups;
use crate::tx::scoreboard::Scoreboard;
use crate::tx::send_queue::SendQueue;
use anabranch_base::{Duration, Instant, PathId, Tsn};
use anabranch_policy::asks::{Asks, Counter};
use anabranch_policy::registry::{Hook, PolicySet};
use asconf::Asconf;
pub use authentication::AuthKeyError;
use authentication::Authentication;
use bytes::Bytes;
use control_out::{Control, What};
use gap_memory::GapMemory;
pub use own_addresses::AddressError;
use peer_window::PeerWindow;
use seldom::Seldom;
use std::collections::VecDeque;
use std::sync::Arc;
use views::Views;

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
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    pub(crate) local_tag: u32,
    pub(crate) peer_tag: u32,
    pub(crate) local_initial: Tsn,
    local_auth: AuthParams,
    /// The peer's clock beside ours.
    clocks: crate::path::one_way::Clocks,
    /// The user has sent something, or said that it will.
    sends: bool,
    /// Tie-Tags: they recognise the cookies of INITs that came while we lived (RFC 9260 §5.2.2).
    ties: (u32, u32),
    auth: Authentication,
    peer: PeerFeatures,
    outbound_streams: u16,
    inbound_streams: u16,
    policies: PolicySet,
    asks: Asks,
    /// The policies were built by the user and not from the profile.
    pub(crate) own_policies: bool,
    views: Views,
    /// Something happened to a path since the views were made. What is sent and acknowledged keeps them fresh itself.
    views_stale: bool,
    /// Something happened to another path than the one at hand: views are made anew before the next packet.
    views_doubtful: bool,
    mtu: u64,
    /// Bytes that the header of an I-DATA chunk takes more than that of DATA; 0 where DATA is used.
    data_extra: usize,
    /// The initial window of the first path, bytes.
    initial_cwnd: u64,
    /// Millionths of the send buffer that one byte fills, times 2^32: facts are gathered too often to divide.
    fill_scale: u64,
    pub(crate) paths: Paths,
    /// The path the handshake runs over.
    pub(crate) handshake_path: PathId,
    /// Counts changes of the addresses in `paths`.
    pub(crate) addresses_changed: u32,
    /// The user's choice for new data (§6.4).
    primary: PathId,
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
    gate: era::Gate,
    /// Where all repairs of this opportunity go (`repairs_together`).
    repairs_on: Option<PathId>,
    /// What the SACK at hand gave as lost (`one_recovery`).
    era_losses: era::Losses,
    /// When user data left or came last.
    user_data_at: Option<Instant>,
    load: crate::tx::load::Load,
    /// What the paths carry within the deadline.
    carried: crate::tx::carried::Carried,
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
    /// Consecutive errors over all paths (RFC 9260 §8.1).
    errors: u16,
    last_error: Option<Instant>,
    /// When the first of these errors in a row was noted.
    first_error: Option<Instant>,
    want_writable: bool,
    /// Bytes of the message that was not taken last, until one is.
    refused: u64,
    /// A path came or went, which coupling has not been asked about.
    paths_changed: bool,
    // Receiving.
    tracker: TsnTracker,
    reassembly: Reassembly,
    received_any: bool,
    packets_since_sack: u32,
    /// The SACK that is due leaves the packet at hand the first of two (`repeats_wait_too`).
    still_first: bool,
    /// The delay timer sends the next SACK, and it counts nothing, see [`crate::Quirks::timer_counts_none`].
    sack_count_lost: bool,
    sack_due: bool,
    /// When the first DATA came.
    first_data: Option<Instant>,
    sack_timer: Option<Instant>,
    sack_path: PathId,
    /// The next acknowledgement leaves there, whether that path is known to answer or not.
    answer_by: Option<PathId>,
    /// Of answers to repetitions every other one takes that way.
    answers_back: bool,
    /// Marked packets of which the sender has not said that it knows.
    marks: Option<ecn::Marks>,
    /// The packet at hand was marked on its way.
    pub(crate) packet_marked: bool,
    announced_rwnd: u64,
    readable_told: bool,
    // Control.
    control: VecDeque<Control>,
    /// Bytes left for answers to the packet at hand.
    answer_room: usize,
    control_timer: Option<Instant>,
    control_attempts: u16,
    control_sent_at: Instant,
    /// Stale Cookie errors of this handshake, and by how much longer the next cookie should live (§5.2.6).
    stale_cookies: u16,
    cookie_wish: Option<Duration>,
    /// Causes about the INIT ACK, to leave beside the COOKIE ECHO (§3.2.2).
    echo_report: Box<[u8]>,
    guard_timer: Option<Instant>,
    /// Cumulative TSN when the guard was set.
    guarded_from: u64,
    asconf: Asconf,
    reconfig: Seldom<reconfig::Reconfig>,
    nonces: nonces::Nonces,
    events: VecDeque<Event>,
    abandoned_told: u64,
    abandoned: Seldom<give_up::Abandoned>,
    given_up: Seldom<undelivered::GivenUp>,
    stats: Tally,
    scratch: bench::Lent,
}

impl Association {
    pub(crate) fn local_auth(&self) -> &AuthParams {
        &self.local_auth
    }

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
        self.peer_port
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
        if payload.len() > self.config.send_buffer || (!self.config.fragmentation && payload.len() as u64 > self.mtu) {
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
        let Some((len, part)) = self.reassembly.first_ready() else {
            self.readable_told = false;
            self.reassembly.give_back_crumbs();
            return None;
        };
        self.stats.messages_received += u64::from(matches!(part, Part::Whole | Part::Last));
        self.stats.bytes_received += len as u64;
        let m = self.reassembly.pop();
        self.maybe_update_window();
        m
    }

    /// Is there a message to [`recv`](Self::recv)?
    pub fn is_readable(&self) -> bool {
        self.reassembly.ready_len() > 0
    }

    /// Everything that was handed over has been acknowledged or given up.
    pub fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.board.is_empty()
    }

    /// What fills the receive buffer: payload, and what it costs to hold it in small pieces, bytes.
    pub fn held_for_reading(&self) -> u64 {
        self.reassembly.held_bytes() as u64
    }

    /// Gaps in the sequence of received TSNs: runs of missing ones below one that came.
    pub fn gaps(&self) -> usize {
        self.tracker.gaps()
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
            ..self.stats.stats()
        }
    }

    /// What the policies count, by their hooks and by name.
    pub fn policy_counters(&self) -> impl Iterator<Item = (Hook, Counter)> + '_ {
        self.policies.counters()
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
        if self.reassembly.ready_len() > 0 && !self.readable_told {
            self.readable_told = true;
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
            || (self.reassembly.ready_len() > 0 && !self.readable_told)
            || self.is_writable_again()
    }

    fn is_writable_again(&self) -> bool {
        self.want_writable && self.takes_more()
    }

    /// A SACK waits for the next chance to leave.
    pub(crate) fn owes_sack(&self) -> bool {
        self.sack_due
    }

    /// Over, told, and nothing left to transmit.
    pub(crate) fn is_finished(&self) -> bool {
        self.state.phase() == Phase::Closed
            && self.control.is_empty()
            && self.events.is_empty()
            && self.reassembly.ready_len() == 0
    }

    pub(crate) fn close(&mut self, why: CloseReason) {
        if self.state.phase() == Phase::Closed {
            return;
        }
        self.state = State::Closed;
        self.control_timer = None;
        self.guard_timer = None;
        self.sack_timer = None;
        self.sack_due = false;
        // Only what says goodbye may still leave.
        self.control.retain(|c| matches!(c.what, What::Abort(_) | What::AbortReflected(_) | What::ShutdownComplete));
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
        Arc::make_mut(&mut self.config).receive_buffer = bytes.max(1_500);
        self.maybe_update_window();
    }

    /// Tells the peer when reading opened the window by a quarter of the buffer (RFC 9260 §6.2, silly window).
    fn maybe_update_window(&mut self) {
        let now_open = self.window_to_announce();
        let quarter = self.config.receive_buffer as u64 / 4;
        let tells = self.received_any && !self.config.quirks.no_window_updates;
        if tells && self.state.is_connected() && now_open >= self.announced_rwnd + quarter {
            self.sack_due = true;
        }
    }

    /// True when [`Association::poll_transmit`] may have something.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        transmit::poll(self, now, out)
    }
}
