//! Counters, for people and for tests.

use crate::lazy_box::{Empty, LazyBox};
use crate::path::discovery::DiscoveryState;
use crate::repair::Repairs;
use crate::tx::carried::UsableRate;
use anabranch_base::{Duration, Rate};
use anabranch_policy::abandon::Reason;
use anabranch_policy::view::{FrameErrors, PathState};
use std::net::SocketAddr;

/// Counters of one path since it began.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PathCounters {
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes of them, SCTP headers included.
    pub bytes_sent: u64,
    /// DATA payload bytes sent, repetitions included.
    pub data_sent: u64,
    /// DATA payload bytes of repetitions.
    pub data_retransmitted: u64,
    /// Chunks given as lost by reports.
    pub lost_by_report: u64,
    /// Chunks given as lost by T3.
    pub lost_by_timeout: u64,
    /// T3 expiries.
    pub timeouts: u64,
    /// Recovery episodes (window cuts).
    pub recoveries: u64,
    /// Window cuts because a queue marked a packet (ECN).
    pub cuts_by_mark: u64,
    /// Packets with DATA that came marked.
    pub marked_received: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// HEARTBEATs sent.
    pub heartbeats_sent: u64,
    /// HEARTBEATs answered.
    pub heartbeats_answered: u64,
}

/// A path now.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathStats {
    /// Local interface number given by the driver.
    pub local: u16,
    /// Peer's address and, over UDP, port.
    pub remote: SocketAddr,
    /// State of the path.
    pub state: PathState,
    /// Confirmed and kept warm, but its interface uses another pair.
    pub standby: bool,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed RTT; zero without a sample.
    pub srtt: Duration,
    /// RTT variation.
    pub rttvar: Duration,
    /// Smallest RTT of the last ten seconds.
    pub min_rtt: Duration,
    /// Newest RTT sample.
    pub last_rtt: Duration,
    /// Current timeout.
    pub rto: Duration,
    /// Largest SCTP packet that leaves whole, bytes.
    pub packet_size: usize,
    /// What path MTU discovery is doing, where it was asked for.
    pub discovery: Option<DiscoveryState>,
    /// Acknowledged bytes per second.
    pub delivery_rate: Rate,
    /// What the path can carry, as far as is known; zero before there is any evidence.
    pub capacity: Rate,
    /// Smallest time that the way there takes, of the last ten seconds; zero without a sample.
    pub one_way: Duration,
    /// Mean deviation of the newest round trips from their mean.
    pub jitter: Duration,
    /// What the link layer of its interface reported last, where it reports ([`Association::link_report`]).
    ///
    /// [`Association::link_report`]: crate::Association::link_report
    pub frame_errors: Option<FrameErrors>,
    /// Errors in a row.
    pub errors: u16,
    /// Counters of the path.
    pub counters: PathCounters,
}

/// Messages given up by one policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbandonedCount {
    /// After a part left: such messages may have arrived all the same.
    pub sent: u64,
    /// Before any part left.
    pub unsent: u64,
}

/// Messages given up, by the policy that did (RFC 7496 §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbandonedStats {
    /// Their deadline passed.
    pub lifetime: AbandonedCount,
    /// Sent again as often as they were worth.
    pub retransmissions: AbandonedCount,
    /// Dropped for something more important.
    pub priority: AbandonedCount,
}

impl AbandonedStats {
    pub(crate) const NONE: AbandonedStats = {
        let none = AbandonedCount { sent: 0, unsent: 0 };
        AbandonedStats { lifetime: none, retransmissions: none, priority: none }
    };

    pub(crate) fn count(&mut self, why: Reason, sent: bool) {
        let c = match why {
            Reason::Lifetime => &mut self.lifetime,
            Reason::Retransmissions => &mut self.retransmissions,
            Reason::Priority => &mut self.priority,
        };
        if sent { c.sent += 1 } else { c.unsent += 1 }
    }
}

/// Counters of one association.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AssocStats {
    /// Messages taken from the user.
    pub messages_sent: u64,
    /// Payload bytes of them.
    pub bytes_sent: u64,
    /// Messages given to the user.
    pub messages_received: u64,
    /// Payload bytes of them.
    pub bytes_received: u64,
    /// Messages given up before any part left.
    pub abandoned_unsent: u64,
    /// Messages given up after a part left: they may have arrived all the same, and where a round trip is nearly as long
    /// as they live most of them have.
    pub abandoned_sent: u64,
    /// Messages given up, by policy.
    pub abandoned: AbandonedStats,
    /// Chunks sent again.
    pub retransmissions: u64,
    /// Chunks that left more than once, copies and probes included, by cause.
    pub repairs: Repairs,
    /// DATA chunks received twice or more.
    pub duplicates_received: u64,
    /// DATA chunks dropped for lack of buffer.
    pub dropped_no_buffer: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// Gap blocks in them.
    pub gap_blocks_received: u64,
    /// DATA chunks received for the first time, ordered and unordered.
    pub chunks_received: [u64; 2],
    /// DATA chunks sent for the first time, ordered and unordered.
    pub chunks_sent: [u64; 2],
    /// DATA chunks that came before one of a lower TSN.
    pub out_of_sequence: u64,
    /// Chunks received that carry no user data.
    pub control_received: u64,
    /// Chunks sent that carry no user data.
    pub control_sent: u64,
    /// Parity has a use: the peer reads the kind that is made here; where none is made, both ends take parity.
    pub parity_agreed: bool,
    /// Parity chunks sent, none of them twice.
    pub parity_sent: u64,
    /// Bytes of them.
    pub parity_bytes_sent: u64,
    /// Parity chunks received.
    pub parity_received: u64,
    /// Chunks that did not come and were restored from parity.
    pub repaired: u64,
    /// Those of them that came later nevertheless.
    pub repaired_needlessly: u64,
    /// Chunks of ours that the peer restored, and that were lost on their way.
    pub repaired_by_peer: u64,
    /// Decisions of policies that the engine would not carry out.
    pub decisions_refused: u64,
    /// Payload bytes not yet sent.
    pub unsent: u64,
    /// Payload bytes outstanding.
    pub outstanding: u64,
    /// What the paths can carry within the deadline.
    pub usable_rate: UsableRate,
}

/// What an association counts itself of its [`AssocStats`], which say what each means.
#[derive(Default)]
pub(crate) struct Tally {
    pub messages_sent: u64,
    pub bytes_sent: u64,
    pub messages_received: u64,
    pub bytes_received: u64,
    pub abandoned_unsent: u64,
    pub abandoned_sent: u64,
    pub sacks_sent: u64,
    pub sacks_received: u64,
    pub chunks_received: [u64; 2],
    pub chunks_sent: [u64; 2],
    pub control_received: u64,
    pub control_sent: u64,
    pub rare: LazyBox<RareCounters>,
}

/// What many associations never have to count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareCounters {
    pub retransmissions: u64,
    pub repairs: Repairs,
    pub duplicates_received: u64,
    pub dropped_no_buffer: u64,
    pub gap_blocks_received: u64,
    pub out_of_sequence: u64,
    pub parity_sent: u64,
    pub parity_bytes_sent: u64,
    pub parity_received: u64,
    pub repaired: u64,
    pub repaired_needlessly: u64,
    pub repaired_by_peer: u64,
    pub decisions_refused: u64,
}

impl Empty for RareCounters {
    const EMPTY: &'static RareCounters = &RareCounters {
        retransmissions: 0,
        repairs: Repairs::NONE,
        duplicates_received: 0,
        dropped_no_buffer: 0,
        gap_blocks_received: 0,
        out_of_sequence: 0,
        parity_sent: 0,
        parity_bytes_sent: 0,
        parity_received: 0,
        repaired: 0,
        repaired_needlessly: 0,
        repaired_by_peer: 0,
        decisions_refused: 0,
    };
}

impl Tally {
    pub fn stats(&self) -> AssocStats {
        AssocStats {
            messages_sent: self.messages_sent,
            bytes_sent: self.bytes_sent,
            messages_received: self.messages_received,
            bytes_received: self.bytes_received,
            abandoned_unsent: self.abandoned_unsent,
            abandoned_sent: self.abandoned_sent,
            retransmissions: self.rare.retransmissions,
            repairs: self.rare.repairs,
            duplicates_received: self.rare.duplicates_received,
            dropped_no_buffer: self.rare.dropped_no_buffer,
            sacks_sent: self.sacks_sent,
            sacks_received: self.sacks_received,
            gap_blocks_received: self.rare.gap_blocks_received,
            chunks_received: self.chunks_received,
            chunks_sent: self.chunks_sent,
            out_of_sequence: self.rare.out_of_sequence,
            control_received: self.control_received,
            control_sent: self.control_sent,
            parity_sent: self.rare.parity_sent,
            parity_bytes_sent: self.rare.parity_bytes_sent,
            parity_received: self.rare.parity_received,
            repaired: self.rare.repaired,
            repaired_needlessly: self.rare.repaired_needlessly,
            repaired_by_peer: self.rare.repaired_by_peer,
            decisions_refused: self.rare.decisions_refused,
            ..AssocStats::default()
        }
    }
}
