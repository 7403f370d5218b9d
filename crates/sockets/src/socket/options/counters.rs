//! What was counted: SCTP_GET_ASSOC_STATS, and what PR-SCTP gave up (RFC 7496 §4.3, §4.4).

use super::super::{Errno, SocketId, Stack};
use crate::abi::message::flag;
use crate::abi::option::{AssocStatistics, PrStatus};
use crate::abi::read;
use anabranch_base::StreamId;
use anabranch_engine::AbandonedCount;
use zerocopy::{FromZeros, IntoBytes};

/// SCTP_PR_SCTP_ALL.
const ALL_POLICIES: u16 = 0x80;

impl Stack {
    pub(super) fn statistics(&self, id: SocketId, which: i32, room: usize) -> Result<Vec<u8>, Errno> {
        if room < size_of::<i32>() {
            return Err(Errno::INVALID);
        }
        let a = self.one(id, which)?;
        let e = self.engine(a).ok_or(Errno::INVALID)?;
        let (all, mut s) = (e.stats(), AssocStatistics::new_zeroed());
        s.id = a.0.into();
        if let Some((_, p)) = e.paths().max_by_key(|(_, p)| p.rto) {
            s.address = self.shown(id, a, p.remote)?;
            s.max_rto = p.rto.as_millis().into();
        }
        let packets = |of: fn(&anabranch_engine::PathCounters) -> u64| e.paths().map(|(_, p)| of(&p.counters)).sum();
        let (sent, received): (u64, u64) = (packets(|c| c.packets_sent), packets(|c| c.packets_received));
        (s.packets_sent, s.packets_received) = (sent.into(), received.into());
        (s.sacks_sent, s.sacks_received) = (all.sacks_sent.into(), all.sacks_received.into());
        s.retransmitted = all.retransmissions.into();
        (s.out_of_sequence, s.duplicates) = (all.out_of_sequence.into(), all.duplicates_received.into());
        s.gap_blocks = all.gap_blocks_received.into();
        let [ordered, unordered] = all.chunks_sent;
        (s.ordered_sent, s.unordered_sent) = (ordered.into(), unordered.into());
        let [ordered, unordered] = all.chunks_received;
        (s.ordered_received, s.unordered_received) = (ordered.into(), unordered.into());
        (s.control_sent, s.control_received) = (all.control_sent.into(), all.control_received.into());
        Ok(s.as_bytes().get(..room.min(size_of::<AssocStatistics>())).unwrap_or_default().to_vec())
    }

    /// Messages given up, of the association or of one stream.
    pub(super) fn abandoned(&self, id: SocketId, given: &[u8], of_stream: bool) -> Result<Vec<u8>, Errno> {
        let mut p = read::<PrStatus>(given, 8).ok_or(Errno::INVALID)?;
        let a = self.one(id, p.id.get())?;
        let e = self.engine(a).ok_or(Errno::INVALID)?;
        if of_stream && p.stream.get() >= e.streams().0 {
            return Err(Errno::INVALID);
        }
        let all = if of_stream { e.abandoned_on(StreamId(p.stream.get())) } else { e.stats().abandoned };
        let sum = |list: [AbandonedCount; 3]| {
            let add = |a: AbandonedCount, c: &AbandonedCount| AbandonedCount {
                sent: a.sent + c.sent,
                unsent: a.unsent + c.unsent,
            };
            list.iter().fold(AbandonedCount::default(), add)
        };
        let c = match p.policy.get() {
            flag::PR_TTL => all.lifetime,
            flag::PR_RTX => all.retransmissions,
            flag::PR_PRIO => all.priority,
            ALL_POLICIES => sum([all.lifetime, all.retransmissions, all.priority]),
            _ => return Err(Errno::INVALID),
        };
        (p.unsent, p.sent) = (c.unsent.into(), c.sent.into());
        Ok(p.as_bytes().to_vec())
    }
}
