//! What a SACK does, in the fixed order of DESIGN decision 7.
//!
//! Accounting and estimators, recovery exit; detection over live copies; losses before growth, in path order;
//! then credit, growth, coupling; timers. Work is proportional to what the SACK changed.

use super::Association;
use super::loss::Suspects;
use crate::event::CloseReason;
use crate::tx::scoreboard::{ChunkState, LiveCopy};
use anabranch_base::{Duration, Instant, PathId, Tsn};
use anabranch_policy::path_quality::Notice;
use anabranch_policy::timer::Arm;
use anabranch_policy::view::SackView;
use anabranch_wire::{Cause, Sack};

/// The gap blocks of the last SACK, as extended TSN ranges: only differences are walked.
#[derive(Debug, Default)]
pub(crate) struct GapMemory {
    ranges: Vec<(u64, u64)>,
    next: Vec<(u64, u64)>,
    added: Vec<(u64, u64)>,
    gone: Vec<(u64, u64)>,
    /// What the peer withdrew, with reports since; only so many are counted, T3 takes care of the rest.
    pub withdrawn: Vec<(u64, u8)>,
}

/// Most withdrawn TSNs whose reports are counted.
const MAX_WITHDRAWN: usize = 64;

impl GapMemory {
    /// Ranges remembered.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }
    /// First and last TSN of each, rising.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }
}

/// What gap blocks amount to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GapsRead {
    Fine,
    /// Out of order, overlapping, or at the cumulative TSN.
    Nonsense,
    /// They acknowledge what no packet has carried.
    Unsent,
}

/// What a SACK acknowledged on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTally {
    pub bytes: u64,
    pub packets: u32,
    /// Newest copy of a chunk sent exactly once: RTT and rate samples.
    pub newest: Option<LiveCopy>,
    /// Largest packet serial that this SACK proves to have arrived.
    pub proven: Option<u64>,
    /// Smallest one it newly acknowledges.
    pub lowest: Option<u64>,
    pub oldest_sent: Option<Instant>,
    pub oldest_before: Option<u64>,
    pub fully_used: bool,
    pub touched: bool,
    /// Its window grew already.
    pub grown: bool,
}

/// Ranges of `a` that are not in `b`; both sorted and disjoint.
fn subtract(a: &[(u64, u64)], b: &[(u64, u64)], out: &mut Vec<(u64, u64)>) {
    out.clear();
    let mut j = 0;
    for &(mut from, to) in a {
        while j < b.len() && b[j].1 < from {
            j += 1;
        }
        let mut k = j;
        while k < b.len() && b[k].0 <= to {
            if b[k].0 > from {
                out.push((from, b[k].0 - 1));
            }
            from = b[k].1 + 1;
            k += 1;
        }
        if from <= to {
            out.push((from, to));
        }
    }
}

impl Association {
    /// Processes a SACK, or the cumulative acknowledgement of a SHUTDOWN (`sack` none).
    pub(super) fn on_sack(&mut self, now: Instant, cum: Tsn, sack: Option<&Sack<'_>>) {
        let cum = self.board.extend(cum);
        // Older than what we know: reordered on its way (§6.2.1 D i).
        if cum < self.board.cumulative() {
            return;
        }
        let read = sack.map_or(GapsRead::Fine, |s| self.read_gaps(cum, s));
        if self.is_unsent(cum) || read == GapsRead::Unsent {
            // A lie, and whoever acknowledges what it cannot have could be sending for a victim (§12.4, RFC 5062 §5.3).
            let why = CloseReason::ProtocolViolation("a SACK for data that was never sent");
            return self.abort_with(now, &[Cause::ProtocolViolation(b"TSN was never sent")], why);
        }
        if read == GapsRead::Nonsense {
            return;
        }
        self.stats.sacks_received += 1;
        self.scratch.packets_reported = sack.map_or(1, |s| s.packets.max(1));
        let advanced = cum > self.board.cumulative();
        self.begin_tally();
        self.account_cumulative(now, cum);
        if let Some(s) = sack {
            self.account_gaps(now);
            let progress = advanced || self.scratch.acks.iter().any(|t| t.touched);
            self.on_peer_window(now, s.a_rwnd, progress);
        }
        let progress = self.scratch.acks.iter().any(|t| t.touched);
        self.finish_tally(now);
        self.refresh_views();
        self.notify_acked(now);
        self.detect(now, advanced);
        self.judge_withdrawn(now);
        self.grow(now, advanced);
        self.couple(now);
        self.rearm_timers(now);
        if progress || advanced {
            self.errors = 0;
        }
        self.after_abandon(now);
    }

    /// No packet ever carried this TSN, which is at or above the cumulative one.
    fn is_unsent(&self, tsn: u64) -> bool {
        tsn >= self.board.sent_end() || self.board.has_unsent_until(tsn)
    }

    /// Reads gap blocks into extended ranges.
    fn read_gaps(&mut self, cum: u64, s: &Sack<'_>) -> GapsRead {
        let g = &mut self.gaps;
        g.next.clear();
        for b in s.gaps() {
            let (from, to) = (cum + u64::from(b.start), cum + u64::from(b.end));
            let ordered = g.next.last().is_none_or(|&(_, last)| from > last);
            if b.start == 0 || to < from || !ordered {
                return GapsRead::Nonsense;
            }
            if to >= self.board.sent_end() {
                return GapsRead::Unsent;
            }
            g.next.push((from, to));
        }
        GapsRead::Fine
    }

    fn begin_tally(&mut self) {
        self.scratch.acks.clear();
        self.scratch.highest_acked = None;
        self.scratch.flight_before.clear();
        for p in &self.paths {
            self.scratch.flight_before.push(p.flight.packets());
            self.scratch.acks.push(PathTally {
                fully_used: p.flight.bytes() >= p.cwnd,
                oldest_before: p.flight.oldest_seq(),
                ..PathTally::default()
            });
        }
    }

    fn account_cumulative(&mut self, now: Instant, cum: u64) {
        while self.board.cumulative() < cum {
            let tsn = self.board.cumulative() + 1;
            self.acknowledge(now, tsn);
            self.board.pop_front();
        }
    }

    fn account_gaps(&mut self, now: Instant) {
        let mut g = core::mem::take(&mut self.gaps);
        subtract(&g.next, &g.ranges, &mut g.added);
        subtract(&g.ranges, &g.next, &mut g.gone);
        for &(from, to) in &g.added {
            for tsn in from..=to {
                self.acknowledge(now, tsn);
                self.board.set_reneged(tsn, false);
            }
        }
        // No longer reported: reneged, or an older SACK that overtook. T3 decides (see `loss`).
        let cum = self.board.cumulative();
        for &(from, to) in &g.gone {
            for tsn in from.max(cum + 1)..=to {
                self.board.set_reneged(tsn, true);
                if g.withdrawn.len() < MAX_WITHDRAWN {
                    g.withdrawn.push((tsn, 0));
                }
            }
        }
        core::mem::swap(&mut g.ranges, &mut g.next);
        self.gaps = g;
    }

    /// A chunk arrived. Its copies leave their paths; only a chunk sent exactly once is evidence (decision 3).
    fn acknowledge(&mut self, now: Instant, tsn: u64) {
        let Some(c) = self.board.get(tsn) else { return };
        if !matches!(c.state, ChunkState::Outstanding | ChunkState::Marked) {
            return;
        }
        let (len, sent, last_path, state) = (c.len(), usize::from(c.transmissions), c.last_path, c.state);
        let once = sent == 1;
        if state == ChunkState::Outstanding {
            // The late arrival of what was given as lost says nothing about what left after that.
            self.scratch.highest_acked = self.scratch.highest_acked.max(Some(tsn));
        }
        let copies = self.board.settle(tsn, ChunkState::Acked);
        for copy in copies.iter() {
            if let Some(p) = self.paths.get_mut(copy.path.index()) {
                p.flight_remove(copy.tx_seq, len, false);
            }
        }
        let single = copies.len() == 1;
        // The first copy by time gets the credit; a chunk already marked credits nobody (it was counted as lost).
        let credited = copies.iter().min_by_key(|c| c.sent_at).copied();
        if let (Some(copy), Some(t)) = (credited, credited.and_then(|c| self.scratch.acks.get_mut(c.path.index()))) {
            t.bytes += len;
            t.oldest_sent = Some(t.oldest_sent.map_or(copy.sent_at, |o| o.min(copy.sent_at)));
            t.touched = true;
            // Sent again on the same path only (a tail probe): no sample, but its first packet's serial is passed.
            let same_path = sent == copies.len() && copies.iter().all(|c| c.path == copy.path);
            if once || same_path {
                t.proven = t.proven.max(Some(copy.tx_seq));
                t.lowest = Some(t.lowest.map_or(copy.tx_seq, |l| l.min(copy.tx_seq)));
            }
            if once && t.newest.is_none_or(|n| copy.tx_seq >= n.tx_seq) {
                if t.newest.is_none_or(|n| copy.tx_seq > n.tx_seq) {
                    t.packets += 1;
                }
                t.newest = Some(copy);
            }
            if single {
                self.path_answered(now, copy.path);
            }
        } else if state == ChunkState::Marked
            && let Some(t) = last_path.and_then(|p| self.scratch.acks.get_mut(p.index()))
        {
            t.touched = true;
        }
    }

    /// RTT, delivery rate, end of recovery.
    fn finish_tally(&mut self, now: Instant) {
        for (p, t) in self.paths.iter_mut().zip(&self.scratch.acks) {
            if t.bytes > 0 {
                p.rate.on_delivered(now, t.bytes);
            }
            if let Some(n) = t.newest {
                p.rtt.sample(now, now.since(n.sent_at));
                p.rate.on_newest(now, n.sent_at, &p.newest_at_send, p.rtt.srtt());
                p.backoff = 0;
            }
            p.newest_acked_seq = p.newest_acked_seq.max(t.proven);
            if t.touched {
                p.consecutive_timeouts = 0;
            }
            if let Some(exit) = p.recovery_exit
                && p.flight.oldest_seq().is_none_or(|s| s > exit)
            {
                p.recovery_exit = None;
            }
        }
    }

    /// The quality estimator hears what was acknowledged.
    fn notify_acked(&mut self, now: Instant) {
        if !self.policies.path_quality.enabled() {
            return;
        }
        let facts = self.facts(now);
        let cx = facts.view(&self.views);
        for (i, t) in self.scratch.acks.iter().enumerate().filter(|(_, t)| t.bytes > 0) {
            let sent_at = t.oldest_sent.unwrap_or(now);
            let n = Notice::Acked { path: PathId(i as u8), bytes: t.bytes, sent_at };
            self.policies.path_quality.observe(&cx, n);
        }
    }

    /// Misses and verdicts, path by path, losses included.
    fn detect(&mut self, now: Instant, advanced: bool) {
        self.scratch.newest.clear();
        self.scratch.oldest.clear();
        for t in &self.scratch.acks {
            self.scratch.newest.push(t.proven);
            self.scratch.oldest.push(t.lowest);
        }
        let highest = self.scratch.highest_acked.map(|t| Tsn(t as u32));
        for i in 0..self.paths.len() {
            let path = PathId(i as u8);
            let newly = self.scratch.newest.get(i).copied().flatten();
            let by_order = self.policies.loss_count.by_send_order();
            let recovering = self.paths.get(i).is_some_and(|p| p.recovery_exit.is_some());
            // In fast recovery an advancing cumulative TSN counts every reported hole (§7.2.4).
            let bound = if recovering && advanced { self.highest_reported(path).or(newly) } else { newly };
            let suspects = if by_order { bound.map(Suspects::SentBefore) } else { Some(Suspects::Holes) };
            if let Some(suspects) = suspects {
                let newest = core::mem::take(&mut self.scratch.newest);
                let oldest = core::mem::take(&mut self.scratch.oldest);
                let flight = core::mem::take(&mut self.scratch.flight_before);
                let sack = SackView {
                    newest_seq: &newest,
                    oldest_seq: &oldest,
                    highest_newly_acked: highest,
                    cumulative_advanced: advanced,
                    flight_before: &flight,
                    packets_reported: self.scratch.packets_reported,
                };
                self.judge_path(now, path, suspects, &sack);
                self.scratch.newest = newest;
                self.scratch.oldest = oldest;
                self.scratch.flight_before = flight;
            }
        }
    }

    /// The newest serial on `path` that any acknowledgement ever proved.
    fn highest_reported(&self, path: PathId) -> Option<u64> {
        self.paths.get(path.index()).and_then(|p| p.newest_acked_seq)
    }

    /// T3 and its companions after an acknowledgement (§6.3.2).
    fn rearm_timers(&mut self, now: Instant) {
        let facts = self.facts(now);
        for i in 0..self.paths.len() {
            let oldest_before = self.scratch.acks.get(i).and_then(|t| t.oldest_before);
            let cx = facts.view(&self.views);
            let (Some(p), Some(v)) = (self.paths.get_mut(i), self.views.paths.get(i)) else { continue };
            match (p.flight.oldest_seq(), p.flight.oldest_sent()) {
                (Some(seq), Some(oldest_sent)) if Some(seq) != oldest_before => {
                    let why = Arm::Progress { oldest_sent, old_deadline: p.t3 };
                    p.t3 = Some(self.policies.timer.arm(&cx, v, why).max(now + Duration::from_micros(1)));
                }
                (Some(_), _) => {}
                _ if self.board.reneged() > 0 && p.id == PathId(0) => {
                    if p.t3.is_none() {
                        p.t3 = Some(self.policies.timer.arm(&cx, v, Arm::Started));
                    }
                }
                _ => p.t3 = None,
            }
            p.loss_timer = self.policies.loss_timer.deadline(&cx, v);
            p.suspect_timer = self.policies.path_state.suspect_at(&cx, v);
        }
    }
}

impl crate::path::Path {
    /// Takes a copy off the flight and remembers the departure snapshot of the newest for the rate sample.
    pub(super) fn flight_remove(&mut self, tx_seq: u64, len: u64, lost: bool) {
        if !lost
            && let Some(p) = self.flight.packet(tx_seq)
            && (self.newest_removed.is_none_or(|n| tx_seq > n))
        {
            self.newest_at_send = p.at_send;
            self.newest_removed = Some(tx_seq);
        }
        self.flight.remove_copy(tx_seq, len, lost);
    }
}

#[cfg(test)]
mod tests {
    use super::subtract;

    #[test]
    fn ranges_subtract() {
        let mut out = vec![];
        subtract(&[(5, 10), (20, 30)], &[(7, 8), (25, 40)], &mut out);
        assert_eq!(out, [(5, 6), (9, 10), (20, 24)]);
        subtract(&[(5, 10)], &[(1, 4), (5, 10)], &mut out);
        assert!(out.is_empty());
        subtract(&[(5, 10), (12, 13)], &[(1, 6), (12, 12)], &mut out);
        assert_eq!(out, [(7, 10), (13, 13)]);
        subtract(&[(1, 2)], &[], &mut out);
        assert_eq!(out, [(1, 2)]);
    }
}
