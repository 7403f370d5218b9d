//! What a policy is shown: small `Copy` structs, filled by the engine before each question.
//!
//! Bytes of windows and flights are payload bytes of DATA chunks (RFC 9260 §7.2); a unit test writes
//! `PathView { srtt, ..PathView::idle(PathId(0)) }`.

use anabranch_base::{Duration, Instant, PathId, PathSet, Ppm, Rate, StreamId, Tsn};

/// Health of a path. Only [`PathState::Active`] carries new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PathState {
    /// No nonce has come back yet: one HEARTBEAT per RTO and nothing else (RFC 9260 §5.4).
    Unconfirmed,
    /// In use.
    #[default]
    Active,
    /// Silent longer than it should be: nothing but probes, windows and error count untouched.
    Suspected,
    /// Timed out, not yet given up (RFC 7829).
    PotentiallyFailed,
    /// Above Path.Max.Retrans errors (RFC 9260 §8.2).
    Inactive,
}

impl PathState {
    /// Takes new data.
    pub const fn usable(self) -> bool {
        matches!(self, PathState::Active)
    }
}

/// Which end of the look-ahead a path works on (Becke et al. 2013 §III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest TSN upwards.
    Ascending,
    /// From the highest TSN downwards.
    Descending,
}

/// What one hook tells the others about a path: the board of facts. Each field has exactly one writer and
/// holds a fact (a value, a counter, an instant), never a flag that a reader would have to clear.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Writer: path_quality. Residual capacity of the current period, bytes/s, negative when overused (Xu et al. 2014
    /// eq. 10).
    pub spare_rate: Option<i64>,
    /// Writer: path_quality. Rate the path has handled (Xu et al. 2014 eq. 6); zero when unknown.
    pub handling_rate: Rate,
    /// Writer: path_quality. Takes no part in distribution. Not a path failure.
    pub sidelined: bool,
    /// Writer: coupling. Current penalties (Xu et al. 2014 §V, fcount); may fall.
    pub penalties: u32,
    /// Writer: coupling. Penalties ever; readers take differences (Xu et al. 2014 §VI.A, Δfcount).
    pub penalty_events: u32,
    /// Writer: coupling. Last penalty; the path is blocked this period iff it is not before the period's start.
    pub penalised_at: Option<Instant>,
    /// Writer: path_scheduler. Direction of a confluent walk.
    pub direction: Option<Direction>,
    /// Writer: path_scheduler. Bytes bound to this path and not sent yet.
    pub bound_bytes: u64,
}

/// Frames a link layer sent in the last interval, and how many of them needed a repetition (Xu et al. 2014 §IV.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameErrors {
    /// Frames with at least one link-layer retransmission.
    pub erroneous: u32,
    /// Frames sent.
    pub total: u32,
}

/// One path as its policies see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Index into [`AssocView::paths`].
    pub id: PathId,
    /// Number of the local interface.
    pub local: u16,
    /// The peer's address; none in a test that does not care.
    pub remote: Option<core::net::IpAddr>,
    /// State of the path.
    pub state: PathState,
    /// Largest DATA payload of one packet, bytes (RFC 9260 §7.3's PMDCS less headers).
    pub mtu: u64,
    /// Congestion window, bytes. Engine state: policies return changes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// `partial_bytes_acked` of RFC 9260 §7.2.2.
    pub partial_bytes_acked: u64,
    /// In fast recovery.
    pub in_recovery: bool,
    /// Bytes in flight, every live copy counted on its own path.
    pub in_flight: u64,
    /// Packets with DATA in flight.
    pub packets_in_flight: u32,
    /// Smoothed RTT; zero without a sample.
    pub srtt: Duration,
    /// RTT variation.
    pub rttvar: Duration,
    /// Mean deviation of all round trips from the smoothed one, slower than `rttvar`.
    pub rtt_deviation: Duration,
    /// Smallest RTT of the last ten seconds; zero without a sample.
    pub min_rtt: Duration,
    /// Newest RTT sample.
    pub last_rtt: Duration,
    /// Smallest RTT of the last one to two round trips before `sampled_at`; zero without a sample.
    pub recent_rtt: Duration,
    /// Mean of the newest sixteen RTT samples or so, of which there may be many in a round trip.
    pub mean_rtt: Duration,
    /// Mean deviation of the newest samples from `mean_rtt`.
    pub jitter: Duration,
    /// Mean over some seconds of round trips that no queue of ours is part of; zero without a sample.
    pub unloaded_rtt: Duration,
    /// Mean deviation of those.
    pub unloaded_deviation: Duration,
    /// When `last_rtt` was sampled.
    pub sampled_at: Option<Instant>,
    /// When the path answered again after it had stood: the round trip sampled then was longer by about the time for which
    /// nothing came.
    pub stalled_at: Option<Instant>,
    /// Smallest time that the data direction takes, of the last ten seconds; zero without a sample. Half of the round
    /// trips that the path makes by itself, or what a round trip leaves of which the way back is known.
    pub one_way: Duration,
    /// Smallest such time of the last one to two round trips before `sampled_at`.
    pub recent_one_way: Duration,
    /// Smaller RTT of the newest heartbeat pair (Xu et al. 2014 eq. 5); zero without one.
    pub reference_rtt: Duration,
    /// Back-off exponent of the retransmission timer.
    pub backoff: u8,
    /// T3 expiries since the last acknowledgement.
    pub consecutive_timeouts: u16,
    /// Error count of RFC 9260 §8.2.
    pub errors: u16,
    /// Rate at which the sender emits (Xu et al. 2014 §IV.B, algorithm 1).
    pub send_rate: Rate,
    /// Acknowledged bytes per second, over about one RTT.
    pub delivery_rate: Rate,
    /// What the path can carry, from samples of the delivery rate and from what leaves its queue; zero without a sample.
    /// A source that offers less does not talk it down, a queue that empties slower does.
    pub capacity: Rate,
    /// `capacity` is what a source needed that never filled the path.
    pub capacity_may_be_more: bool,
    /// Lost packets among the last 128 (Petlund et al. 2009 §5.1), at most one half.
    pub loss: Ppm,
    /// Last T3 expiry.
    pub last_timeout: Option<Instant>,
    /// First transmission among the live copies, by send order on this path.
    pub oldest_sent: Option<Instant>,
    /// When the packet after the oldest in flight left: a peer acknowledges every second packet at once.
    pub second_sent: Option<Instant>,
    /// The first packet on the then empty path after which nothing was heard of it, whatever became of its chunks: they
    /// may have come by another path. Where copies did, it need not have been empty.
    pub unanswered_since: Option<Instant>,
    /// When the HEARTBEAT left that is not answered yet.
    pub asked_at: Option<Instant>,
    /// Last time something sent on this path alone was acknowledged.
    pub last_heard: Option<Instant>,
    /// Last time a chunk was acknowledged of which this path and another carried copies: one of them delivers.
    pub last_shared: Option<Instant>,
    /// Smoothed time between pieces of unambiguous news while something is in flight; zero before there was any.
    pub answer_gap: Duration,
    /// Its mean deviation.
    pub answer_gap_var: Duration,
    /// Report of the link layer, when there is one.
    pub frame_errors: Option<FrameErrors>,
    /// The board.
    pub signals: Signals,
}

impl PathView {
    /// A fresh active path, as a starting point for tests.
    pub fn idle(id: PathId) -> Self {
        PathView {
            id,
            local: u16::from(id.0),
            remote: None,
            state: PathState::Active,
            mtu: 1_172,
            cwnd: 4_404,
            ssthresh: u64::MAX,
            partial_bytes_acked: 0,
            in_recovery: false,
            in_flight: 0,
            packets_in_flight: 0,
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            rtt_deviation: Duration::ZERO,
            min_rtt: Duration::ZERO,
            last_rtt: Duration::ZERO,
            recent_rtt: Duration::ZERO,
            mean_rtt: Duration::ZERO,
            jitter: Duration::ZERO,
            unloaded_rtt: Duration::ZERO,
            unloaded_deviation: Duration::ZERO,
            sampled_at: None,
            stalled_at: None,
            one_way: Duration::ZERO,
            recent_one_way: Duration::ZERO,
            reference_rtt: Duration::ZERO,
            backoff: 0,
            consecutive_timeouts: 0,
            errors: 0,
            send_rate: Rate::ZERO,
            delivery_rate: Rate::ZERO,
            capacity: Rate::ZERO,
            capacity_may_be_more: false,
            loss: Ppm(0),
            last_timeout: None,
            oldest_sent: None,
            second_sent: None,
            unanswered_since: None,
            asked_at: None,
            last_heard: None,
            last_shared: None,
            answer_gap: Duration::ZERO,
            answer_gap_var: Duration::ZERO,
            frame_errors: None,
            signals: Signals::default(),
        }
    }
    /// Less than a window is in flight, so one more packet may leave (RFC 9260 §6.1 B).
    pub fn has_room(&self) -> bool {
        self.in_flight < self.cwnd
    }
    /// Window per round trip, the rate the window allows. Without a sample one second is assumed.
    pub fn window_rate(&self) -> Rate {
        let rtt = if self.srtt.is_zero() { Duration::from_secs(1) } else { self.srtt };
        Rate::of(self.cwnd, rtt)
    }
    /// Round trips of the path without a queue of ours.
    pub fn without_queue(&self) -> UnqueuedRtt {
        UnqueuedRtt { least: self.min_rtt, mean: self.unloaded_rtt, deviation: self.unloaded_deviation }
    }
    /// A queue has built up on the path: `rtt` exceeds those without one.
    pub fn is_queued(&self, rtt: Duration) -> bool {
        self.without_queue().is_exceeded(rtt)
    }
    /// In slow start (RFC 9260 §7.2.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd <= self.ssthresh
    }
}

/// How long a path takes without a queue.
#[derive(Clone, Copy, Debug)]
pub struct UnqueuedRtt {
    /// Smallest round trip; zero without a sample.
    pub least: Duration,
    /// Mean over some seconds; zero without a sample.
    pub mean: Duration,
    /// Mean deviation of those.
    pub deviation: Duration,
}

impl UnqueuedRtt {
    /// Usual round trip without a queue: the longer of the smallest and the mean one.
    pub fn usual(&self) -> Duration {
        self.least.max(self.mean)
    }
    /// `rtt` is longer than round trips vary without a queue.
    pub fn is_exceeded(&self, rtt: Duration) -> bool {
        let varies = (self.least / 4).max(self.deviation * 4).max(Duration::from_millis(10));
        !self.least.is_zero() && rtt > self.usual() + varies
    }
}

/// A distribution period, set by path_quality (Xu et al. 2014 §VI.B).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Period {
    /// Counts periods.
    pub serial: u64,
    /// When the current one began.
    pub start: Instant,
    /// How long it lasts.
    pub length: Duration,
}

/// The association as its policies see it.
#[derive(Clone, Copy)]
pub struct AssocView<'a> {
    /// Current time.
    pub now: Instant,
    /// All paths, indexed by id.
    pub paths: &'a [PathView],
    /// Paths on which the engine would accept new data now: usable, window, burst and peer window open.
    /// A wrapper narrows it; a policy may still look at all of `paths`.
    pub eligible: PathSet,
    /// The user's choice for new data where one path carries all (RFC 9260 §6.4).
    pub primary: PathId,
    /// Peer's window less what is outstanding, bytes.
    pub peer_rwnd: u64,
    /// Bytes outstanding on all paths, each chunk once.
    pub outstanding: u64,
    /// Bytes not yet transmitted, look-ahead included.
    pub unsent: u64,
    /// Initial window of a path, bytes.
    pub initial_cwnd: u64,
    /// Current distribution period.
    pub period: Period,
    /// Association-wide window, published by coupling (Xu et al. 2014 §V, fwnd).
    pub aggregate_window: Option<u64>,
    /// Fill of the send buffer.
    pub send_buffer_fill: Ppm,
    /// When DATA last left, on whatever path.
    pub data_sent_at: Option<Instant>,
    /// What the user hands over with a deadline, bytes a second by class, 2 and above together; zero while unknown.
    pub class_rates: [Rate; 3],
    /// T3 expiries per path, oldest first; kept by the engine so that a policy can be exchanged.
    pub timeouts: &'a [TimeoutLog],
}

/// T3 expiries of one path, newest last, at most [`TimeoutLog::KEPT`].
#[derive(Clone, Debug, Default)]
pub struct TimeoutLog {
    at: std::collections::VecDeque<Instant>,
}

impl TimeoutLog {
    /// How many are kept.
    pub const KEPT: usize = 64;

    /// Notes an expiry.
    pub fn push(&mut self, at: Instant) {
        if self.at.len() == Self::KEPT {
            self.at.pop_front();
        }
        self.at.push_back(at);
    }
    /// How many came after `t`.
    pub fn since(&self, t: Instant) -> usize {
        self.at.iter().rev().take_while(|&&x| x > t).count()
    }
}

impl<'a> AssocView<'a> {
    /// The view of path `p`.
    pub fn path(&self, p: PathId) -> Option<&'a PathView> {
        self.paths.get(p.index())
    }
    /// Active paths.
    pub fn active(&self) -> impl Iterator<Item = &'a PathView> + Clone + use<'a> {
        self.paths.iter().filter(|p| p.state.usable())
    }
    /// Eligible paths.
    pub fn open(&self) -> impl Iterator<Item = &'a PathView> + Clone + use<'a> {
        let eligible = self.eligible;
        self.paths.iter().filter(move |p| eligible.has(p.id))
    }
    /// This view with fewer eligible paths.
    #[must_use]
    pub fn narrowed(&self, eligible: PathSet) -> AssocView<'a> {
        AssocView { eligible: eligible.and(self.eligible), ..*self }
    }
    /// T3 expiries of `p` after `t`.
    pub fn timeouts_since(&self, p: PathId, t: Instant) -> usize {
        self.timeouts.get(p.index()).map_or(0, |l| l.since(t))
    }
    /// Sum of the windows of active paths, bytes.
    pub fn window_sum(&self) -> u64 {
        self.active().map(|p| p.cwnd).sum()
    }
}

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

/// What a SACK says, before losses are detected.
#[derive(Clone, Copy)]
pub struct SackView<'a> {
    /// Per path: largest packet serial newly acknowledged by unambiguous evidence.
    pub newest_seq: &'a [Option<u64>],
    /// Per path: smallest packet serial newly acknowledged.
    pub oldest_seq: &'a [Option<u64>],
    /// Highest TSN newly acknowledged (RFC 9260's HTNA).
    pub highest_newly_acked: Option<Tsn>,
    /// Highest TSN newly acknowledged by this SACK or another one since the cumulative TSN advanced last.
    pub highest_since_advance: Option<Tsn>,
    /// Paths of which gap blocks newly acknowledged something.
    pub gapped: PathSet,
    /// Did the cumulative TSN advance?
    pub cumulative_advanced: bool,
    /// Packets in flight per path before this SACK was accounted.
    pub flight_before: &'a [u32],
    /// DATA packets the peer counted since its last SACK (DAC); 1 without DAC.
    pub packets_reported: u8,
}

/// The head of one stream with something to send.
#[derive(Clone, Copy, Debug)]
pub struct StreamView {
    /// Number of the stream.
    pub id: StreamId,
    /// Priority (0 is the best) or weight that the user gave it (RFC 8260 §4.3.3).
    pub value: Option<u16>,
    /// Class of its first message.
    pub class: u8,
    /// Bytes left of its first message.
    pub head_len: u64,
    /// Deadline of its first message.
    pub head_deadline: Option<Instant>,
    /// When its first message was handed over.
    pub head_queued: Instant,
    /// Order of arrival of its first message over all streams.
    pub head_order: u64,
}
