//! One path, as its policies see it.

use super::Signals;
use crate::window::UNLIMITED;
use anabranch_base::{Duration, Instant, Modulation, PathId, Ppm, Rate, Technology};

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

/// Frames that the link layer of an interface has sent, and how many of them needed a repetition (Xu et al. 2014
/// §IV.A). Counts go on for as long as the interface is there, as a driver's do: who wants those of an interval takes
/// the difference from the report before, however often reports come. A count that has fallen began anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameErrors {
    /// Frames with at least one link-layer retransmission, or lost for good.
    pub erroneous: u64,
    /// Frames sent.
    pub total: u64,
    /// Bytes of a frame; zero where that is not known.
    pub frame: u32,
    /// What the newest frames were modulated with.
    pub modulation: Modulation,
    /// What kind of link it is.
    pub technology: Technology,
}

impl FrameErrors {
    /// These counts, of a link of which nothing else is known.
    pub fn counted(erroneous: u64, total: u64) -> Self {
        FrameErrors { erroneous, total, ..FrameErrors::default() }
    }

    /// What came since an earlier report; all of it when counts began anew.
    #[must_use]
    pub fn since(self, before: FrameErrors) -> Self {
        match (self.erroneous.checked_sub(before.erroneous), self.total.checked_sub(before.total)) {
            (Some(erroneous), Some(total)) => FrameErrors { erroneous, total, ..self },
            _ => self,
        }
    }
}

/// One path as its policies see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Index into [`AssocView::paths`](super::AssocView::paths).
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
    /// Packets with DATA that ever left.
    pub packets_sent: u64,
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
    /// The time that the newest round trip took there, by what is known of its way back.
    pub last_one_way: Duration,
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
    /// `capacity` is what a source needed that never filled the path, or the least that its train showed.
    pub capacity_may_be_more: bool,
    /// Lost packets among the last 128 (Petlund et al. 2009 §5.1), at most one half.
    pub loss: Ppm,
    /// Last T3 expiry.
    pub last_timeout: Option<Instant>,
    /// When a packet was last found to have arrived after one that had left later on the path.
    pub overtaken_at: Option<Instant>,
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
    /// How long a path that let packets overtake each other is expected to do so again.
    pub const REORDERS_FOR: Duration = Duration::from_secs(10);

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
            packets_sent: 0,
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
            last_one_way: Duration::ZERO,
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
            overtaken_at: None,
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
    /// Window per round trip, the rate the window allows. Without a sample one second is assumed. Of a window without
    /// limit it is the rate that was seen, once there is a sample.
    pub fn window_rate(&self) -> Rate {
        let seen = self.capacity.max(self.delivery_rate);
        if self.cwnd >= UNLIMITED && seen > Rate::ZERO {
            return seen;
        }
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
    /// Packets overtook each other on it not long ago.
    pub fn reorders(&self, now: Instant) -> bool {
        self.overtaken_at.is_some_and(|t| now.since(t) < Self::REORDERS_FOR)
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
    /// By how much packets that overtake each other come apart on their way, and by which the luckiest of many is quicker
    /// than most: four mean deviations. Zero on a path that is steady beside its smallest round trip.
    pub fn comes_apart_by(&self) -> Duration {
        let apart = self.deviation * 4;
        if apart > self.least { apart } else { Duration::ZERO }
    }
    /// `rtt` is longer than round trips vary without a queue.
    pub fn is_exceeded(&self, rtt: Duration) -> bool {
        let varies = (self.least / 4).max(self.deviation * 4).max(Duration::from_millis(10));
        !self.least.is_zero() && rtt > self.usual() + varies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_difference() {
        let at = |erroneous, total| FrameErrors { frame: 1_500, ..FrameErrors::counted(erroneous, total) };
        assert_eq!(at(12, 300).since(at(10, 200)), at(2, 100));
        assert_eq!(at(12, 300).since(FrameErrors::default()), at(12, 300));
        // The interface was away in between: all that it counts is new.
        assert_eq!((at(1, 5).since(at(10, 200)), at(10, 5).since(at(10, 200))), (at(1, 5), at(10, 5)));
    }
}
