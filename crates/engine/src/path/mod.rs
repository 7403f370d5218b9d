//! One path: a pair of local interface and remote address with its own window, timers and estimators.

pub(crate) mod answers;
pub(crate) mod capacity;
mod delivered;
pub(crate) mod discovery;
pub(crate) mod flight;
pub(crate) mod heartbeats;
mod jumps;
mod least;
pub(crate) mod one_way;
pub(crate) mod pseudo_cumulative;
pub(crate) mod rate;
pub(crate) mod rtt;
mod shown;
mod suspicion;

use crate::association::path_table::train::Train;
use crate::stats::PathCounters;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::{FrameErrors, PathState};
use anabranch_policy::window::Window;
use answers::AnswerGaps;
use capacity::Capacity;
use discovery::Discovery;
use flight::Flight;
pub(crate) use heartbeats::{Earlier, PendingHeartbeat};
use one_way::OneWay;
use pseudo_cumulative::PseudoCumulative;
use rate::RateEstimator;
use rtt::RttEstimator;
use std::net::SocketAddr;

/// A local interface or socket, numbered by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LocalId(pub u16);

/// How often a path is probed while nothing else tells of it (RFC 9260 §8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HeartbeatSetting {
    /// As the association is configured.
    #[default]
    Configured,
    /// HB.interval of this path.
    Every(Duration),
    /// Never, once the path is confirmed.
    Off,
}

/// Limits of one path in place of the association's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathLimits {
    /// Path.Max.Retrans.
    pub max_retrans: Option<u16>,
    /// PF.Max.Retrans, errors above which data leaves the path (RFC 7829).
    pub potentially_failed: Option<u16>,
}

impl PathLimits {
    /// The state after an error, where the association's policy says `to`.
    pub(crate) fn judged(self, errors: u16, state: PathState, to: PathState) -> PathState {
        match (self.potentially_failed, to) {
            (Some(most), PathState::PotentiallyFailed) if errors <= most => state,
            (Some(most), PathState::Active | PathState::Suspected) if errors > most => PathState::PotentiallyFailed,
            _ => to,
        }
    }
}

/// Two HEARTBEATs back to back; the smaller round trip is the reference RTT (P1 §2.3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatPair {
    pub nonces: [u64; 2],
    pub sent_at: Instant,
    pub first: Option<Duration>,
}

/// The first answer of a path after T3 expired there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resumed {
    /// When what it answers had left.
    pub answered: Instant,
    /// T3 had expired several times.
    pub dark: bool,
}

/// How a path of ours became known to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The handshake ran over it.
    Handshake,
    /// We add it by ASCONF, and again whenever it fell silent (a new address behind the NAT).
    AddedByUs,
    /// The peer added it.
    AddedByPeer,
    /// INIT or INIT ACK listed its addresses.
    Listed,
}

/// Of a path, for [`crate::Quirks`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Era {
    /// For `cuc_by_tsn`.
    pub pseudo: PseudoCumulative,
    /// Lowest TSN in flight (`t3_by_tsn`).
    pub lowest_tsn: Option<u64>,
    /// TSN of the chunk that is timed (`one_timed`).
    pub timed: Option<u64>,
}

pub(crate) struct Path {
    pub id: PathId,
    pub local: LocalId,
    pub remote: SocketAddr,
    pub origin: Origin,
    pub state: PathState,
    /// The peer knows this address: by the handshake or by an acknowledged ASCONF.
    pub known_to_peer: bool,
    /// One of its addresses was taken away and has not come back.
    pub removed: bool,
    /// Kept warm, and used only when its interface has no other (DESIGN decision 2).
    pub standby: bool,
    /// Its host says that it knows nothing of us: the peer listed an address that is not its own.
    pub disowned: bool,
    /// The driver said that the interface is down.
    pub interface_down: bool,
    /// Largest SCTP packet the path was found to carry, bytes; at most the association's.
    pub packet_size: usize,
    /// Looks for the largest packet, where that was asked for.
    pub discovery: Option<Box<Discovery>>,
    /// The user knows that it carries small packets only.
    pub small_packets: bool,
    pub cwnd: u64,
    pub ssthresh: u64,
    pub partial_bytes_acked: u64,
    /// Growth that coupling granted only in part, in millionths of a byte.
    pub growth_carry: u64,
    pub window: Box<dyn Window>,
    pub flight: Flight,
    pub rtt: RttEstimator,
    pub one_way: OneWay,
    pub rate: RateEstimator,
    pub capacity: Capacity,
    pub reference_rtt: Duration,
    /// Fast recovery ends when nothing sent at or before this serial is in flight.
    pub recovery_exit: Option<u64>,
    /// Highest TSN sent when the last recovery episode began.
    pub recover_tsn: u64,
    /// What only rules of older implementations ask for; none where none of them is on.
    pub era: Option<Box<Era>>,
    /// One packet may ignore the window (RFC 9260 §7.2.4 step 3, §6.3.3 E3).
    pub free_pass: bool,
    pub backoff: u8,
    pub consecutive_timeouts: u16,
    pub errors: u16,
    pub last_timeout: Option<Instant>,
    /// What its newest expiries were about, while a duplicate of that can only mean that one was needless.
    pub expired_tsns: Vec<u64>,
    /// It answered after an expiry, and what that overtook has not been looked at yet.
    pub resumed: Option<Resumed>,
    pub last_heard: Option<Instant>,
    /// Last time a chunk was acknowledged of which this path and another carried copies.
    pub last_shared: Option<Instant>,
    pub answers: AnswerGaps,
    /// Newest arrival of any packet.
    pub last_received: Option<Instant>,
    /// Its last HEARTBEAT was not answered; what arrives by it shows that only the way back is dead.
    pub answers_lost: bool,
    /// When repetitions last made us ask whether it is.
    pub doubted_at: Option<Instant>,
    /// The first packet with DATA on an empty path of which nothing has been heard yet, or had not when it left.
    pub unanswered_since: Option<Instant>,
    /// The first packet with DATA after the newest news.
    pub sent_since_heard: Option<Instant>,
    /// Left with data outstanding: since when it delivers nothing. None again when all that has left elsewhere.
    pub stalled_since: Option<Instant>,
    pub t3: Option<Instant>,
    pub loss_timer: Option<Instant>,
    /// Packets that the last expiry of T3 left in flight: one more may leave beside them until something is answered.
    pub spared: u32,
    /// When a packet may leave beyond the window, while an expiry is not answered; and whether one may now.
    pub probe_timer: Option<Instant>,
    pub probes: bool,
    pub reorder_timer: Option<Instant>,
    pub newest_acked_seq: Option<u64>,
    /// Newest serial acknowledged, and the rate snapshot of its departure.
    pub newest_removed: Option<u64>,
    pub newest_at_send: rate::DeliveredAtSend,
    /// When the path becomes suspected; while it is, when T3 would have expired.
    pub suspect_timer: Option<Instant>,
    pub heartbeat_timer: Option<Instant>,
    pub heartbeat_setting: HeartbeatSetting,
    /// Path.Max.Retrans and PF.Max.Retrans of its own.
    pub limits: PathLimits,
    pub heartbeat: Option<PendingHeartbeat>,
    /// LazyBox needed.
    pub earlier: Option<Box<Earlier>>,
    /// LazyBox asked for.
    pub pair: Option<Box<HeartbeatPair>>,
    /// Likewise.
    pub train: Option<Box<Train>>,
    pub burst_left: u16,
    /// Payload bytes that left in the current sending opportunity.
    pub released: u64,
    /// Newest report of the link layer, from the driver.
    pub frame_errors: Option<FrameErrors>,
    pub next_paced: Instant,
    /// When the last SACK left that answered data by this path.
    pub sack_sent: Option<Instant>,
    /// Something waits for `next_paced`.
    pub pace_pending: bool,
    pub last_data_sent: Option<Instant>,
    /// Serial whose acknowledgement is the path's next progress (CUC): nothing that was taken back lowers it.
    pub expected: u64,
    /// Until when the window's decay while idle is accounted for.
    pub decayed_until: Instant,
    pub counters: PathCounters,
}

/// Where the window of a path begins, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstWindow {
    pub cwnd: u64,
    pub ssthresh: u64,
}

/// The initial window of RFC 9260 §7.2.1, in bytes, for packets that carry `mtu` bytes of payload; or the one that was
/// configured.
pub(crate) fn initial_window(configured: Option<u64>, mtu: u64, remote: SocketAddr) -> u64 {
    if let Some(bytes) = configured {
        return bytes.max(mtu);
    }
    let fixed = if remote.is_ipv4() { 4_404 } else { 4_344 };
    (4 * mtu).min((2 * mtu).max(fixed))
}

impl Path {
    pub fn new(
        id: PathId,
        local: LocalId,
        remote: SocketAddr,
        origin: Origin,
        start: FirstWindow,
        window: Box<dyn Window>,
    ) -> Self {
        Path {
            id,
            local,
            remote,
            origin,
            state: PathState::Unconfirmed,
            known_to_peer: origin != Origin::AddedByUs,
            removed: false,
            standby: false,
            disowned: false,
            interface_down: false,
            packet_size: usize::MAX,
            discovery: None,
            small_packets: false,
            cwnd: start.cwnd,
            ssthresh: start.ssthresh,
            partial_bytes_acked: 0,
            growth_carry: 0,
            window,
            flight: Flight::default(),
            rtt: RttEstimator::default(),
            one_way: OneWay::default(),
            rate: RateEstimator::default(),
            capacity: Capacity::default(),
            reference_rtt: Duration::ZERO,
            recovery_exit: None,
            recover_tsn: 0,
            era: None,
            free_pass: false,
            backoff: 0,
            consecutive_timeouts: 0,
            errors: 0,
            last_timeout: None,
            expired_tsns: Vec::new(),
            resumed: None,
            last_heard: None,
            last_shared: None,
            answers: AnswerGaps::default(),
            last_received: None,
            answers_lost: false,
            doubted_at: None,
            unanswered_since: None,
            sent_since_heard: None,
            stalled_since: None,
            t3: None,
            loss_timer: None,
            spared: 0,
            probe_timer: None,
            probes: false,
            reorder_timer: None,
            newest_acked_seq: None,
            newest_removed: None,
            newest_at_send: rate::DeliveredAtSend::default(),
            suspect_timer: None,
            heartbeat_timer: None,
            heartbeat_setting: HeartbeatSetting::default(),
            limits: PathLimits::default(),
            heartbeat: None,
            earlier: None,
            pair: None,
            train: None,
            burst_left: 0,
            released: 0,
            frame_errors: None,
            next_paced: Instant::ZERO,
            sack_sent: None,
            pace_pending: false,
            last_data_sent: None,
            expected: 0,
            decayed_until: Instant::ZERO,
            counters: PathCounters::default(),
        }
    }

    /// The policy's answer, unless the path is suspected already.
    pub fn suspect_at(&mut self, at: Option<Instant>) {
        if self.state != PathState::Suspected {
            self.suspect_timer = at;
        }
    }

    /// Since when packets have left of which nothing was heard. Where copies settle what is in flight, the path need not
    /// have been empty when the first of them left.
    pub fn unanswered(&self) -> Option<Instant> {
        let shared = self.last_shared > self.last_heard;
        let since = if shared { self.sent_since_heard } else { self.unanswered_since };
        since.filter(|s| self.is_silent_since(*s))
    }

    fn is_silent_since(&self, since: Instant) -> bool {
        self.last_heard.is_none_or(|h| h < since)
    }

    /// DATA is about to leave on this path.
    pub fn notice_sending(&mut self, now: Instant) {
        if !self.sent_since_heard.is_some_and(|s| self.is_silent_since(s)) {
            self.sent_since_heard = Some(now);
        }
        if self.flight.bytes() == 0 && !self.unanswered_since.is_some_and(|s| self.is_silent_since(s)) {
            self.unanswered_since = Some(now);
        }
    }

    /// A round trip over this path both ways.
    pub fn sample_own_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(now, rtt);
        self.one_way.own_round_trip(now, rtt);
        self.one_way.sample(now, rtt, self.one_way.back().unwrap_or(rtt / 2));
        if self.flight.bytes() == 0 {
            self.rtt.was_unloaded(now);
        }
    }

    /// To be probed by turns (RFC 9260 §5.4).
    pub fn is_listed_unconfirmed(&self) -> bool {
        self.origin == Origin::Listed && self.state == PathState::Unconfirmed && !self.interface_down && !self.disowned
    }

    /// Congestion state back to where it began (RFC 9260 §7.2.5: another route).
    pub fn reset_congestion(&mut self, start: FirstWindow, window: Box<dyn Window>) {
        self.cwnd = start.cwnd;
        self.ssthresh = start.ssthresh;
        self.partial_bytes_acked = 0;
        self.growth_carry = 0;
        self.window = window;
        self.rtt = RttEstimator::default();
        self.one_way = OneWay::default();
        self.rate.restart();
        self.capacity.restart();
        self.recovery_exit = None;
        self.backoff = 0;
    }

    /// Idle for longer than a round trip, which no RTO is below, with a window that is worth a look.
    pub fn may_decay(&self, now: Instant, mtu: u64) -> bool {
        let idle = self.flight.bytes() == 0 && self.last_data_sent.is_some_and(|t| now.since(t) >= self.rtt.srtt());
        idle && self.cwnd > 4 * mtu && self.window.decays_while_idle()
    }

    /// An idle path knows less and less about its network: half the window for each `rto` without DATA, down to four
    /// packets, and a threshold that remembers where it was (RFC 9260 §7.2.1).
    pub fn decay_while_idle(&mut self, now: Instant, rto: Duration, mtu: u64) {
        let Some(last) = self.last_data_sent else { return };
        let first = self.decayed_until <= last;
        let since = self.decayed_until.max(last);
        let rounds = now.since(since).as_nanos() / rto.as_nanos().max(1);
        if rounds == 0 {
            return;
        }
        self.decayed_until = since + rto * rounds;
        if first {
            self.ssthresh = self.window.idle_threshold(self.cwnd, self.ssthresh);
        }
        self.cwnd = (self.cwnd >> rounds.min(63)).max(4 * mtu);
        self.partial_bytes_acked = 0;
        self.growth_carry = 0;
    }
}
