//! What a SACK does, in the fixed order of ARCHITECTURE decision 7.
//!
//! Accounting and estimators, recovery exit; detection over live copies; losses before growth, in path order;
//! then credit, growth, coupling; timers. Work is proportional to what the SACK changed.

use super::tally::PathTally;
use crate::association::Association;
use crate::association::sender::sack::gap_memory::{GapsRead, MAX_WITHDRAWN, join, read_blocks, subtract};
use crate::event::CloseReason;
use crate::path::{Fate, Path};
use crate::tx::scoreboard::{ChunkState, LiveCopy};
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_policy::Asks;
use anabranch_policy::recovery::{Bursts, Pass};
use anabranch_policy::view::PathState;
use anabranch_wire::{Cause, NrSack, Sack};

/// What was in flight of a chunk that arrived.
struct Arrived {
    /// The first copy by time, which gets the credit; a chunk already marked credits no path (it was counted as lost).
    credited: Option<LiveCopy>,
    /// The newest copy that the answer can be meant for.
    latest: Option<LiveCopy>,
    copies: usize,
    on_one_path: bool,
}

impl Association {
    /// Processes a SACK, or the cumulative acknowledgement of a SHUTDOWN (`sack` none).
    pub(in crate::association) fn on_sack(&mut self, now: Instant, cum: Tsn, sack: Option<&Sack<'_>>) {
        self.on_acknowledgement(now, cum, sack, None);
    }

    /// A SACK that also says what will not be taken back: that need not be held any longer
    /// (draft-tuexen-tsvwg-sctp-multipath-29 §4.4.2).
    pub(in crate::association) fn on_nr_sack(&mut self, now: Instant, n: &NrSack<'_>) {
        self.on_acknowledgement(now, n.sack.cum_tsn, Some(&n.sack), Some(n));
        let kept = core::mem::take(&mut self.scratch.gap_ranges.kept);
        let mut added = core::mem::take(&mut self.scratch.gap_ranges.added);
        subtract(&kept, &self.sender.gaps.kept, &mut added);
        for &(from, to) in &added {
            (from..=to).for_each(|tsn| self.sender.board.keep(tsn));
        }
        if !added.is_empty() {
            self.after_abandon(now);
        }
        self.scratch.gap_ranges.added = added;
        self.scratch.gap_ranges.kept = core::mem::replace(&mut self.sender.gaps.kept, kept);
    }

    fn on_acknowledgement(&mut self, now: Instant, cum: Tsn, sack: Option<&Sack<'_>>, nr: Option<&NrSack<'_>>) {
        self.scratch.gap_ranges.kept.clear();
        let cum = self.sender.board.extend(cum);
        // Older than what we know: reordered on its way (§6.2.1 D i).
        if cum < self.sender.board.cumulative() {
            return;
        }
        let read = sack.map_or(GapsRead::Fine, |s| self.read_gaps(cum, s, nr));
        if self.is_unsent(cum) || read == GapsRead::Unsent {
            // A lie, and whoever acknowledges what it cannot have could be sending for a victim (§12.4, RFC 5062 §5.3).
            let why = CloseReason::ProtocolViolation("a SACK for data that was never sent");
            return self.abort_with(now, &[Cause::ProtocolViolation(b"TSN was never sent")], why);
        }
        if read == GapsRead::Nonsense {
            return;
        }
        self.stats.sacks_received += 1;
        if let Some(s) = sack {
            self.note_duplicates(now, s.duplicates());
        }
        if let Some(blocks) = sack.map(|s| s.gaps().len() as u64).filter(|n| *n > 0) {
            self.stats.rare.gap_blocks_received += blocks;
        }
        self.scratch.packets_reported = sack.map_or(1, |s| s.packets.max(1));
        self.end_passes();
        let advanced = cum > self.sender.board.cumulative();
        self.begin_tally();
        self.account_cumulative(now, cum);
        if advanced && !self.sender.settled.is_empty() {
            self.sender.settled.pass(cum);
        }
        if let Some(s) = sack {
            self.account_gaps(now);
            let progress = advanced || self.scratch.acks.iter().any(|t| t.touched);
            self.on_peer_window(now, s.a_rwnd, progress);
        }
        let progress = self.scratch.acks.iter().any(|t| t.touched);
        let before = self.sender.highest_since_advance.filter(|_| !advanced);
        self.sender.highest_since_advance = before.max(self.scratch.highest_acked);
        self.finish_tally(now);
        self.notify_acked(now);
        self.notify_sampled(now);
        self.detect(now, advanced);
        self.judge_withdrawn(now);
        self.grow(now, advanced);
        self.couple(now);
        self.rearm_timers(now);
        if progress || advanced {
            self.paths.clear_peer_errors();
        }
        self.after_abandon(now);
        self.note_carried(now);
        self.sender.reported_at = Some(now);
    }

    /// No packet ever carried this TSN, which is at or above the cumulative one.
    pub(in crate::association) fn is_unsent(&self, tsn: u64) -> bool {
        tsn >= self.sender.board.sent_end() || self.sender.board.has_unsent_until(tsn)
    }

    /// Reads gap blocks into extended ranges.
    fn read_gaps(&mut self, cum: u64, s: &Sack<'_>, nr: Option<&NrSack<'_>>) -> GapsRead {
        let g = &mut self.scratch.gap_ranges;
        let (span, alone) = ((cum, self.sender.board.sent_end()), self.config.compatibility.gap_blocks_alone);
        let read = read_blocks(span, alone, s.gaps(), &mut g.next);
        let Some(nr) = nr.filter(|_| read == GapsRead::Fine) else { return read };
        let read = read_blocks(span, alone, nr.kept(), &mut g.kept);
        if read != GapsRead::Fine {
            g.kept.clear();
            return read;
        }
        // Both kinds together are what a SACK would say; one TSN may be in both.
        g.next.extend_from_slice(&g.kept);
        join(&mut g.next);
        GapsRead::Fine
    }

    fn begin_tally(&mut self) {
        let scratch = &mut *self.scratch;
        scratch.acks.clear();
        scratch.highest_acked = None;
        scratch.flight_before.clear();
        let waiting = self.sender.unsent_bytes();
        for p in self.paths.iter_mut() {
            if let Some(followed) = p.followed_mut() {
                followed.begin_sack();
            }
            scratch.flight_before.push(p.flight.packets());
            scratch.acks.push(PathTally {
                fully_used: p.is_fully_used(waiting),
                oldest_before: p.flight.oldest_seq(),
                expected: p.flight.expected_seq(),
                ..PathTally::default()
            });
        }
    }

    fn account_cumulative(&mut self, now: Instant, cum: u64) {
        while self.sender.board.cumulative() < cum {
            let tsn = self.sender.board.cumulative() + 1;
            self.note_repair(tsn);
            self.acknowledge(now, tsn, true);
            self.sender.board.pop_front();
        }
        self.paths.iter_unseen().for_each(|p| p.forget_given_up(cum));
    }

    fn account_gaps(&mut self, now: Instant) {
        self.find_expected();
        if self.sender.gaps.ranges.is_empty() && self.scratch.gap_ranges.next.is_empty() {
            return;
        }
        self.account_changed_gaps(now);
    }

    #[inline(never)]
    fn account_changed_gaps(&mut self, now: Instant) {
        let mut g = core::mem::take(&mut self.scratch.gap_ranges);
        subtract(&g.next, &self.sender.gaps.ranges, &mut g.added);
        subtract(&self.sender.gaps.ranges, &g.next, &mut g.gone);
        for &(from, to) in &g.added {
            for tsn in from..=to {
                self.acknowledge(now, tsn, false);
                self.sender.board.set_reneged(tsn, false);
            }
        }
        // No longer reported: reneged, or an older SACK that overtook. T3 decides (see `loss`).
        let cum = self.sender.board.cumulative();
        for &(from, to) in &g.gone {
            for tsn in from.max(cum + 1)..=to {
                self.sender.board.set_reneged(tsn, true);
                if self.sender.gaps.withdrawn.len() < MAX_WITHDRAWN {
                    self.sender.gaps.withdrawn.push((tsn, 0));
                }
            }
        }
        core::mem::swap(&mut self.sender.gaps.ranges, &mut g.next);
        self.scratch.gap_ranges = g;
        self.find_expected();
    }

    /// What CUC expects on each path, where it follows TSNs.
    #[inline]
    fn find_expected(&mut self) {
        if self.policies.expects_lowest_tsn() {
            self.search_expected();
        }
    }

    #[inline(never)]
    fn search_expected(&mut self) {
        for p in self.paths.iter_unseen() {
            let (board, id) = (&self.sender.board, p.id());
            if let Some(followed) = p.followed_mut() {
                followed.expect(|from, again| board.lowest_on(id, from, again));
            }
        }
    }

    /// A pass that the SACK before gave has had its chance, where it is only good until the next one.
    fn end_passes(&mut self) {
        if self.paths.iter().any(|p| p.congestion.has_pass())
            && matches!(self.policies.recovery.pass(true), Pass::BeforeNextSack | Pass::OnItsPath)
        {
            self.paths.iter_unseen().for_each(|p| p.congestion.end_pass());
        }
    }

    /// What was sent again is acknowledged: from here on Max.Burst applies, where that is the rule.
    fn note_repair(&mut self, tsn: u64) {
        if !self.policies.ask(Asks::REPAIRED) || self.sender.burst_armed {
            return;
        }
        let any = self.policies.recovery.bursts() == Bursts::OnceRepaired;
        let repaired = |c: &crate::tx::scoreboard::Chunk| c.fast_retransmitted || any && c.transmissions > 1;
        if self.sender.board.get(tsn).is_some_and(repaired) {
            self.sender.burst_armed = true;
            self.sender.begin_opportunity(self.config.sending.max_burst, &self.policies, &mut self.paths);
        }
    }

    /// A chunk arrived.
    fn acknowledge(&mut self, now: Instant, tsn: u64, cumulatively: bool) {
        let answered = match self.sender.board.get(tsn).map(|c| c.state) {
            Some(ChunkState::Outstanding | ChunkState::Marked) => self.acknowledge_awaited(now, tsn, cumulatively),
            Some(ChunkState::Abandoned) => self.acknowledge_given_up(now, tsn, cumulatively),
            _ => None,
        };
        if let Some((path, heard)) = answered {
            self.path_heard(now, path, heard);
        }
    }

    /// One that was waited for. Its copies leave their paths; only a chunk sent exactly once is evidence (decision 3).
    /// Answers which path that is news of, and since when.
    fn acknowledge_awaited(&mut self, now: Instant, tsn: u64, cumulatively: bool) -> Option<(PathId, Instant)> {
        let c = self.sender.board.get(tsn)?;
        let (len, sent, last_path, state) = (c.len(), usize::from(c.transmissions), c.last_path, c.state);
        let (once, several, parity) = (sent == 1, c.on_several_paths, c.parity);
        if once
            && self.policies.ask(Asks::ANSWERS)
            && let (Some(path), Some(left)) = (c.last_path, c.last_sent)
        {
            self.policies.redundancy.answered(path, now.since(left));
        }
        if state == ChunkState::Outstanding {
            // The late arrival of what was given as lost says nothing about what left after that.
            self.scratch.highest_acked = self.scratch.highest_acked.max(Some(tsn));
        }
        if let Some(followed) = last_path.and_then(|p| self.paths.get_mut(p.index())?.followed_mut()) {
            followed.acknowledge(tsn, cumulatively);
        }
        let mut answered = None;
        let Arrived { credited, latest, copies, on_one_path } = self.take_off_flight(now, tsn, len);
        if let (Some(copy), Some(t)) = (credited, credited.and_then(|c| self.scratch.acks.get_mut(c.path.index()))) {
            t.bytes += len;
            t.own_bytes += if once || !several { len } else { 0 };
            t.oldest_sent = Some(t.oldest_sent.map_or(copy.sent_at, |o| o.min(copy.sent_at)));
            t.touched = true;
            t.gapped |= !cumulatively;
            t.cumulative += if cumulatively && !parity { len } else { 0 };
            t.uncredited += if parity { len } else { 0 };
            let followed = self.paths.get_mut(copy.path.index()).and_then(|p| p.followed_mut());
            if followed.is_some_and(|f| f.end_timing(tsn)) {
                t.timed_sent = Some(copy.sent_at).filter(|_| once);
            }
            if self.policies.times_repeated() {
                t.timed_sent = t.timed_sent.max(Some(copy.sent_at));
            }
            // Sent again on the same path only (a tail probe): no sample, but its first packet's serial is passed.
            if once || sent == copies && on_one_path {
                t.proven = t.proven.max(Some(copy.tx_seq));
                t.lowest = Some(t.lowest.map_or(copy.tx_seq, |l| l.min(copy.tx_seq)));
            }
            if once && t.newest.is_none_or(|n| copy.tx_seq >= n.tx_seq) {
                if t.newest.is_none_or(|n| copy.tx_seq > n.tx_seq) {
                    t.packets += 1;
                }
                t.newest = Some(copy);
            }
            if let Some(latest) = latest {
                self.note_resumed(now, latest.path, latest.sent_at, once);
            }
            if copies == 1
                && let Some(p) = self.paths.get_mut(copy.path.index())
            {
                // What was sent before by another path may have come by that one: no path answers before its time, and
                // none that failed on such a word (RFC 7829 §3.2, rule 9).
                let failed = matches!(p.state(), PathState::PotentiallyFailed | PathState::Inactive);
                if once || now.since(copy.sent_at) >= p.rtt.min_rtt() && !(several && failed) {
                    let owed_since = p.flight.oldest_sent().map_or(copy.sent_at, |o| o.min(copy.sent_at));
                    let heard = heard_at(now, p, copy.sent_at, self.scratch.sack_came_by, self.sender.reported_at);
                    p.health.measure_gap(heard, owed_since);
                    answered = Some((copy.path, heard));
                }
            }
        } else if state == ChunkState::Marked
            && let Some(t) = last_path.and_then(|p| self.scratch.acks.get_mut(p.index()))
        {
            t.touched = true;
            // It was late, not lost, and came by no other way (RFC 7829 §3.2, rule 10).
            if let Some(p) = last_path.filter(|_| !several).and_then(|p| self.paths.get(p.index()))
                && p.health.errors() > 0
                && p.state() != PathState::Suspected
            {
                answered = Some((p.id(), now));
            }
        }
        answered
    }

    /// One that had been given up. Its path carried it, which is measured there; that a chunk is given up earns no
    /// credit (RFC 3758 §3.5 A2), and that it arrived earns none either. What a FORWARD-TSN passed may not have arrived, and
    /// what the peer restored did not.
    fn acknowledge_given_up(&mut self, now: Instant, tsn: u64, cumulatively: bool) -> Option<(PathId, Instant)> {
        let passed = cumulatively && self.sender.forward_sent.is_some_and(|(to, ..)| to >= tsn);
        let c = self.sender.board.get_mut(tsn).filter(|c| c.transmissions == 1 && !c.repaired && !passed)?;
        let (reported_on, left_on) = (c.reported_on.take(), c.last_path);
        if let Some(p) = reported_on.and_then(|p| self.paths.get_mut(p.index())) {
            p.progress.arrive_late(now);
        }
        let i = left_on?.index();
        let p = self.paths.get_mut(i)?;
        let (g, t) = (p.given_up_arrived(tsn)?, self.scratch.acks.get_mut(i)?);
        p.progress.arrive_in_turn(now, g.copy.tx_seq);
        t.bytes += g.len;
        t.own_bytes += g.len;
        t.uncredited += g.len;
        t.touched = true;
        t.gapped |= !cumulatively;
        t.oldest_sent = Some(t.oldest_sent.map_or(g.copy.sent_at, |o| o.min(g.copy.sent_at)));
        t.proven = t.proven.max(Some(g.copy.tx_seq));
        t.lowest = Some(t.lowest.map_or(g.copy.tx_seq, |l| l.min(g.copy.tx_seq)));
        if t.newest.is_none_or(|n| g.copy.tx_seq > n.tx_seq) {
            t.packets += 1;
            t.newest = Some(g.copy);
        }
        let owed_since = p.flight.oldest_sent().map_or(g.copy.sent_at, |o| o.min(g.copy.sent_at));
        let heard = heard_at(now, p, g.copy.sent_at, self.scratch.sack_came_by, self.sender.reported_at);
        p.health.measure_gap(heard, owed_since);
        Some((g.copy.path, heard))
    }

    /// Settles a chunk and takes its copies off their paths.
    fn take_off_flight(&mut self, now: Instant, tsn: u64, len: u64) -> Arrived {
        let chunk = self.sender.board.get(tsn);
        let (reported_on, sent) = chunk.map_or((None, 0), |c| (c.reported_on, usize::from(c.transmissions)));
        if let Some(copy) = chunk.and_then(|c| c.copies.single()) {
            self.sender.board.settle_whose_copies_are_known(tsn, ChunkState::Acked);
            let mut latest = None;
            if let Some(p) = self.paths.get_mut(copy.path.index()) {
                latest = Some(copy).filter(|c| can_be_meant(now, p, c));
                let meant = sent == 1 || took_a_round_trip(now, p, &copy);
                take_off(p, &copy, len, meant, true);
                if latest.is_some() && sent == 1 {
                    p.progress.arrive_in_turn(now, copy.tx_seq);
                }
            }
            // What left before the only live copy arrived, after reports had condemned it; a timer may have been too quick.
            let late = reported_on.filter(|_| latest.is_none() && sent == 2);
            if let Some(p) = late.and_then(|p| self.paths.get_mut(p.index())) {
                p.progress.arrive_late(now);
            }
            return Arrived { credited: Some(copy), latest, copies: 1, on_one_path: true };
        }
        let copies = self.sender.board.settle(tsn, ChunkState::Acked);
        // It was taken for lost and has not left again.
        let late = reported_on.filter(|_| copies.len() == 0 && sent == 1);
        if let Some(p) = late.and_then(|p| self.paths.get_mut(p.index())) {
            p.progress.arrive_late(now);
        }
        let credited = copies.iter().min_by_key(|c| c.sent_at).copied();
        let on_one_path = credited.is_some_and(|first| copies.iter().all(|c| c.path == first.path));
        for copy in copies.iter() {
            if let Some(p) = self.paths.get_mut(copy.path.index()) {
                let first = credited.is_some_and(|c| (c.path, c.tx_seq) == (copy.path, copy.tx_seq));
                let meant = first && took_a_round_trip(now, p, copy);
                take_off(p, copy, len, meant, on_one_path);
                if !on_one_path {
                    p.health.hear_shared(now);
                }
            }
        }
        let meant = |c: &&LiveCopy| self.paths.get(c.path.index()).is_some_and(|p| can_be_meant(now, p, c));
        let latest = copies.iter().filter(meant).max_by_key(|c| c.sent_at).copied();
        Arrived { credited, latest, copies: copies.len(), on_one_path }
    }
}

/// When the peer had from this path what left at `sent_at` and is acknowledged now. What came by another path may come
/// after an acknowledgement that was lost on this one: it proves no more than that the chunk arrived since the report
/// before, and not before its time.
#[inline]
fn heard_at(now: Instant, p: &Path, sent_at: Instant, by: Option<PathId>, reported: Option<Instant>) -> Instant {
    let srtt = p.rtt.srtt();
    if by == Some(p.id()) || srtt.is_zero() {
        return now;
    }
    reported.map_or(now, |r| now.min(r.max(sent_at + srtt)))
}

/// Takes a copy of an acknowledged chunk off its path: the one that is `meant`, as far as can be known, or another. Where the
/// chunk left on several paths the packet may still be lost.
#[inline]
fn take_off(p: &mut Path, c: &LiveCopy, len: u64, meant: bool, on_one_path: bool) {
    if meant {
        p.credit(c.tx_seq);
    }
    p.take_off(c.tx_seq, len, if meant && on_one_path { Fate::Arrived } else { Fate::Unknown });
}

/// A younger copy of a chunk that was sent several times is not what arrived: it would pass for a quick path.
#[inline]
fn took_a_round_trip(now: Instant, p: &Path, c: &LiveCopy) -> bool {
    now.since(c.sent_at) >= p.rtt.min_rtt()
}

/// It left on this path long enough ago to be what was acknowledged now. The answer may have come by a quicker path.
#[inline]
fn can_be_meant(now: Instant, p: &Path, c: &LiveCopy) -> bool {
    now.since(c.sent_at) >= p.rtt.min_rtt() / 2
}
