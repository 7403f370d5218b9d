//! What a SACK acknowledged on each path, and what that says of the path.

use crate::association::Association;
use crate::tx::scoreboard::LiveCopy;
use anabranch_base::Instant;

/// What a SACK acknowledged on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTally {
    pub bytes: u64,
    /// Those of them that came by this path for certain: what was sent again here may have come by the path that it was
    /// sent on before.
    pub own_bytes: u64,
    /// Those that were acknowledged cumulatively, without parity.
    pub cumulative: u64,
    /// Those that were parity, or given up before: no window that grows by credit grows by them.
    pub uncredited: u64,
    pub packets: u32,
    /// Newest copy of a chunk sent exactly once: RTT and rate samples.
    pub newest: Option<LiveCopy>,
    /// Largest packet serial that this SACK proves to have arrived.
    pub proven: Option<u64>,
    /// Smallest one it newly acknowledges.
    pub lowest: Option<u64>,
    pub oldest_sent: Option<Instant>,
    pub oldest_before: Option<u64>,
    /// Smallest serial in flight before it, or the next one: whose acknowledgement is the path's next progress (CUC).
    pub expected: u64,
    /// The chunk that is timed was among it, sent then.
    pub timed_sent: Option<Instant>,
    pub fully_used: bool,
    pub touched: bool,
    /// Its window grew already.
    pub grown: bool,
    /// Gap blocks acknowledged something.
    pub gapped: bool,
}

impl Association {
    /// RTT, delivery rate, end of recovery.
    pub(in crate::association) fn finish_tally(&mut self, now: Instant) {
        // The path that the SACK came back over, and how long that way takes.
        let by = self.scratch.sack_came_by;
        // Rates are those of arrivals, whichever way it took to tell.
        let arrived = match (by, self.scratch.stamp) {
            (Some(by), Some(stamp)) => self.paths.stamped(now, by, stamp),
            _ => now,
        };
        let back = by.map(|p| (p, self.paths.get(p.index()).and_then(|p| p.one_way.back_now())));
        let resumes = self.policies.timer.resumes();
        for (p, t) in self.paths.iter_mut().zip(&self.scratch.acks) {
            if t.bytes > 0 {
                p.rate.on_delivered(arrived, t.own_bytes);
            }
            let own = back.is_some_and(|(on, _)| on == p.id());
            let alone = self.policies.times_one() || self.policies.times_repeated();
            let timed = if alone { t.timed_sent } else { t.newest.map(|n| n.sent_at) };
            if let Some(sent_at) = timed {
                let rtt = now.since(sent_at);
                if resumes {
                    p.rtt.is_over_a_spike(now, rtt);
                }
                p.rtt.sample(now, rtt);
                if own {
                    p.one_way.own_round_trip(now, rtt);
                }
                // Without stamps the way back takes what it takes at its best.
                let back = if own { p.one_way.back_now() } else { back.and_then(|(_, takes)| takes) };
                p.one_way.sample(now, rtt, back.unwrap_or(rtt / 2));
                p.expiry.end_backoff();
            }
            if let Some(n) = t.newest {
                let sample = p.rate.on_newest(arrived, n.sent_at, p.progress.at_send(), p.rtt.srtt());
                p.note_delivered(now, arrived, now.since(n.sent_at), t.bytes, t.packets.max(1), sample);
            } else if t.bytes > 0 {
                p.note_delivered(now, arrived, p.rtt.last(), t.bytes, 1, None);
            }
            p.progress.prove(t.proven);
            if t.touched {
                p.expiry.end_row();
            }
            let progress = p.congestion.progress(|| p.flight.oldest_seq(), self.sender.board.cumulative());
            if progress.is_some_and(|so_far| self.policies.recovery.over(&so_far)) {
                p.congestion.end_episode();
            }
        }
    }
}
