//! Losses: verdicts over live copies, T3, messages given up.

use crate::association::Association;
use crate::association::path_table::list::Shown;
use crate::association::policies::facts::Facts;
use crate::event::PathReason;
use crate::path::flight::{CopyRef, Flight};
use crate::path::{Fate, PathTimer};
use crate::repair::TransmissionCause;
use crate::tx::scoreboard::ChunkState;
use anabranch_base::{Instant, PathId, PathSet};
use anabranch_policy::Asks;
use anabranch_policy::loss_cause::{Cause, LossEvent, LossKind, LostPackets};
use anabranch_policy::loss_threshold::Verdict;
use anabranch_policy::loss_timer::Probe;
use anabranch_policy::path_quality::Notice;
use anabranch_policy::recovery::Pass;
use anabranch_policy::view::{CopyView, SackView};

/// Which copies of a path may be missing.
#[derive(Clone, Copy, Debug)]
pub(in crate::association) enum Suspects {
    /// Those sent before this serial.
    SentBefore(u64),
    /// Those of the TSNs between what the newest SACK reports.
    Holes,
}

impl Association {
    /// Judges copies of `path`, then lets window and coupling react once.
    pub(in crate::association) fn judge_path(
        &mut self,
        now: Instant,
        path: PathId,
        suspects: Suspects,
        sack: &SackView<'_>,
    ) {
        let mut list = core::mem::take(&mut self.scratch.copies);
        list.clear();
        if let Some(p) = self.paths.get_for(path.index(), Shown::Nothing) {
            p.timers.stop(PathTimer::Reordering);
            match suspects {
                Suspects::SentBefore(seq) => p.flight.copies_before(seq, &mut list),
                Suspects::Holes => self.copies_in_holes(path, &mut list),
            }
        }
        if list.is_empty() {
            self.scratch.copies = list;
            return;
        }
        let facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
        let (mut lost, mut highest) = (0, 0);
        for c in &list {
            match self.judge(path, c, sack, &facts) {
                Verdict::Waiting => {}
                Verdict::Lost => {
                    lost += self.copy_lost(now, path, c, TransmissionCause::Reports);
                    highest = highest.max(c.tsn);
                }
                Verdict::LostAt(t) => {
                    if let Some(p) = self.paths.get_for(path.index(), Shown::Nothing) {
                        p.timers.expect_reordering_until(t);
                    }
                }
            }
        }
        list.clear();
        self.scratch.copies = list;
        if lost > 0 {
            if sack.cumulative_advanced {
                // A window about to be cut grows first by what the same SACK acknowledged (§7.2.4).
                self.grow_path(now, path, true);
            }
            self.react_to(now, path, LossKind::FastRetransmit, lost, highest);
        }
    }

    /// The copies on `path` of chunks between the gap blocks of the newest SACK.
    fn copies_in_holes(&self, path: PathId, out: &mut Vec<CopyRef>) {
        let mut tsn = self.sender.board.cumulative() + 1;
        for (from, to) in self.sender.gaps.ranges() {
            while tsn < from {
                let copies = self.sender.board.get(tsn).into_iter().flat_map(|c| c.copies.iter());
                out.extend(copies.filter(|l| l.path == path).map(|l| CopyRef { tx_seq: l.tx_seq, tsn }));
                tsn += 1;
            }
            tsn = tsn.max(to + 1);
        }
    }

    fn judge(&mut self, path: PathId, c: &CopyRef, sack: &SackView<'_>, facts: &Facts) -> Verdict {
        let Some(chunk) = self.sender.board.get(c.tsn) else { return Verdict::Waiting };
        // A TSN is fast-retransmitted once (§7.2.4); only time-based detection may repeat.
        if chunk.fast_retransmitted && !self.policies.loss_threshold.repeats() {
            return Verdict::Waiting;
        }
        let Some(copy) = chunk.copies.iter().find(|l| l.path == path && l.tx_seq == c.tx_seq).copied() else {
            return Verdict::Waiting;
        };
        let late = chunk.deadline.is_some_and(|d| d < facts.now) && self.peer.forward_tsn;
        let cx = self.views.see(&mut self.paths, &self.policies, facts);
        let mut view =
            CopyView { chunk: chunk.view(), path, tx_seq: copy.tx_seq, sent_at: copy.sent_at, misses: copy.misses };
        view.misses = view.misses.saturating_add(self.policies.loss_count.reports(&cx, sack, &view));
        if view.misses == 0 {
            return Verdict::Waiting;
        }
        if let Some(l) = self.sender.board.get_mut(c.tsn).and_then(|c| c.copies.find(path, view.tx_seq)) {
            l.misses = view.misses;
        }
        if late && self.config.compatibility.give_up_late_holes {
            // Waiting for more reports would only keep the peer waiting. It is a loss for the window (RFC 3758 §3.5 F5).
            return Verdict::Lost;
        }
        self.policies.loss_threshold.judge(&cx, sack, &view)
    }

    /// Takes a lost copy off its path; marks the chunk when it was the last, to be sent for the reason `why`. Answers its
    /// payload bytes.
    pub(in crate::association) fn copy_lost(
        &mut self,
        now: Instant,
        path: PathId,
        c: &CopyRef,
        why: TransmissionCause,
    ) -> u64 {
        let fast = why == TransmissionCause::Reports;
        let Some(chunk) = self.sender.board.get_mut(c.tsn) else { return 0 };
        let Some(copy) = chunk.copies.remove(path, c.tx_seq) else { return 0 };
        let before = self.scratch.lost.filter(|l| l.0 == path).map(|l| l.1);
        self.scratch.lost = Some((path, LostPackets::and(before, c.tx_seq)));
        if let Some(log) = &mut self.sender.losses {
            log.note(chunk.header.tsn, copy.sent_at, path);
        }
        let len = chunk.len();
        chunk.fast_retransmitted |= fast;
        chunk.timed_out = !fast;
        // Something that left later on the path had arrived.
        let overtaken = fast && copy.misses > 0;
        chunk.reported_on = overtaken.then_some(path);
        let last = chunk.copies.len() == 0;
        let again = chunk.transmissions > 1;
        if again {
            self.paths.iter_unseen().for_each(|p| p.progress.acquit(c.tsn));
        }
        if let Some(p) = self.paths.get_mut(path.index()) {
            if overtaken && !again {
                p.progress.condemn(c.tsn, c.tx_seq);
            }
            p.take_off(c.tx_seq, len, Fate::Lost);
            if fast { p.counters.lost_by_report += 1 } else { p.counters.lost_by_timeout += 1 }
        }
        let needed = !chunk.parity && !chunk.repaired;
        if last && needed {
            self.sender.board.mark(c.tsn, now, why);
        } else if last {
            self.lose_for_good(c.tsn, now, why);
        }
        len
    }

    /// [`react_to`](Self::react_to) where no TSN matters: whatever was lost may begin an episode.
    pub(in crate::association) fn react(&mut self, now: Instant, path: PathId, kind: LossKind, bytes: u64) {
        self.react_to(now, path, kind, bytes, u64::MAX);
    }

    /// Cause, window, coupling: once per path and event (decision 7). `highest` is the highest TSN lost.
    pub(in crate::association) fn react_to(
        &mut self,
        now: Instant,
        path: PathId,
        kind: LossKind,
        bytes: u64,
        highest: u64,
    ) {
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        let mtu = self.paths.mtu();
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        let loss = p.congestion.place_loss(highest);
        let new_episode = kind == LossKind::Timeout || self.policies.recovery.begins(&loss);
        let packets = self.scratch.lost.take().filter(|l| l.0 == path).map(|l| l.1);
        let e = LossEvent { path, kind, bytes, packets, new_episode };
        let cause = self.policies.loss_cause.classify(&cx, &e);
        if let Some(log) = &mut self.sender.losses {
            log.name(path, cause);
        }
        let to = p.congestion.judge_loss(&cx, path, &e, cause);
        if let Some(followed) = p.followed_mut().filter(|_| new_episode) {
            followed.stop_timing();
        }
        // A timeout restarts the window whatever its cause (RFC 9260 §7.2.3).
        let begins = cause != Cause::Radio || kind == LossKind::Timeout || self.policies.recovery.radio_begins();
        if new_episode && begins && cause != Cause::Reordering {
            p.congestion.cut(&to, mtu);
            p.counters.recoveries += 1;
        }
        match kind {
            LossKind::FastRetransmit => {
                if new_episode && begins {
                    p.congestion.begin_episode(p.flight.next_seq().checked_sub(1));
                    p.congestion.note_sent_end(self.sender.board.sent_end() - 1);
                    p.congestion.end_pass();
                }
                if self.policies.recovery.pass(new_episode) != Pass::No {
                    p.congestion.give_pass();
                }
            }
            LossKind::Timeout => {
                if self.policies.recovery.timeout_ends() {
                    p.congestion.end_episode();
                }
                p.congestion.give_pass();
            }
        }
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        self.policies.coupling.on_loss(&cx, &e, cause);
        self.policies.path_quality.observe(&cx, Notice::Lost { path });
    }

    /// T3-rtx of a path (§6.3.3).
    pub(in crate::association) fn on_t3(&mut self, now: Instant, path: PathId) {
        let Some(v) = self.views.path(&mut self.paths, &self.policies, path).copied() else { return };
        let backoff = self.policies.timer.expired(&v);
        let probing_window = self.probing_in_vain(path);
        // Of what was sent again already the first copy counts, unless the peer has answered something since.
        let unanswered = self.paths.get(path.index()).and_then(|p| p.health.unanswered_since());
        let unanswered = unanswered.filter(|t| self.sender.reported_at.is_none_or(|r| r < *t));
        let sent = unanswered.into_iter().chain(v.oldest_sent).min().unwrap_or(now);
        if let Some(p) = self.paths.get_mut(path.index()) {
            p.timers.stop(PathTimer::T3);
            p.expiry.expire(now, backoff);
            p.counters.timeouts += 1;
            p.progress.forget_proven();
        }
        self.views.note_timeout(path, now);
        self.note_expired(path);
        if !self.sender.copies_due.is_empty() {
            // What is sent again by T3 needs no probe beside it.
            self.sender.copies_due.retain(|(_, p, _)| *p != path);
        }
        let lost = match self.policies.timer.overdue(&v) {
            Some(overdue) => self.give_up_overdue(now, path, overdue),
            None => self.empty_path(now, path, TransmissionCause::Timer),
        };
        self.look_for_black_holes(now);
        self.mark_reneged(now);
        self.react(now, path, LossKind::Timeout, lost);
        if !probing_window {
            self.path_error(now, path, PathReason::Timeout);
            self.association_error(now, sent);
        }
        self.adjust_coupling(now);
    }

    /// Takes copies off a path, in the order in which they left, as long as `which` says so. Answers the bytes.
    pub(in crate::association) fn lose_copies(
        &mut self,
        now: Instant,
        path: PathId,
        why: TransmissionCause,
        which: impl Fn(&Flight, &CopyRef) -> bool,
    ) -> u64 {
        let mut list = core::mem::take(&mut self.scratch.copies);
        list.clear();
        if let Some(p) = self.paths.get(path.index()) {
            list.extend(p.flight.copies().take_while(|c| which(&p.flight, c)));
        }
        let lost = list.iter().map(|c| self.copy_lost(now, path, c, why)).sum();
        list.clear();
        self.scratch.copies = list;
        lost
    }

    /// Takes every copy off a path; chunks without another copy are marked. Answers the bytes.
    pub(in crate::association) fn empty_path(&mut self, now: Instant, path: PathId, why: TransmissionCause) -> u64 {
        let lost = self.lose_copies(now, path, why, |_, _| true);
        if let Some(p) = self.paths.get_mut(path.index()) {
            p.timers.stop_for_data();
            p.expiry.end_probe();
        }
        self.watch_withdrawn(now);
        lost
    }

    /// After a path's T3 stopped: acknowledgements that were withdrawn wait for a timer, or for none any more.
    #[inline]
    pub(in crate::association) fn watch_withdrawn(&mut self, now: Instant) {
        if self.sender.board.reneged() > 0 && self.paths.iter().all(|p| !p.timers.runs(PathTimer::T3)) {
            self.mark_reneged(now);
        }
    }

    /// A withdrawn acknowledgement is one report that the chunk is missing, and each later SACK that acknowledges
    /// something above it is another (§6.2.1 D iv).
    pub(in crate::association) fn judge_withdrawn(&mut self, now: Instant) {
        if self.sender.gaps.withdrawn.is_empty() {
            return;
        }
        let mut list = core::mem::take(&mut self.sender.gaps.withdrawn);
        let highest = self.scratch.highest_acked;
        let mut lost: Vec<(PathId, u64)> = Vec::new();
        list.retain_mut(|(tsn, reports)| {
            let Some(c) = self.sender.board.get(*tsn).filter(|c| c.reneged) else { return false };
            *reports += u8::from(*reports == 0 || highest.is_some_and(|h| h > *tsn));
            if *reports < 3 {
                return true;
            }
            lost.extend(c.last_path.map(|p| (p, c.len())));
            self.sender.board.mark(*tsn, now, TransmissionCause::Reports);
            false
        });
        self.sender.gaps.withdrawn = list;
        for (path, bytes) in lost {
            self.react(now, path, LossKind::FastRetransmit, bytes);
        }
    }

    /// Chunks that the peer acknowledged and then withdrew are sent again, once nothing else moves.
    pub(in crate::association) fn mark_reneged(&mut self, now: Instant) {
        if self.sender.board.reneged() == 0 {
            return;
        }
        let list: Vec<u64> = self.sender.board.iter().filter(|(_, c)| c.reneged).map(|(t, _)| t).collect();
        for t in list {
            self.sender.board.mark(t, now, TransmissionCause::Timer);
        }
    }

    /// A chunk is moved to another path by redundancy: its copies leave, the old path may be blamed.
    pub(in crate::association) fn take_off_paths(&mut self, now: Instant, tsn: u64, blame: bool) {
        let Some(c) = self.sender.board.get_mut(tsn) else { return };
        let len = c.len();
        let copies = c.copies.take_all();
        for l in copies.iter() {
            if let Some(p) = self.paths.get_mut(l.path.index()) {
                p.take_off(l.tx_seq, len, Fate::Unknown);
            }
            if blame {
                self.react(now, l.path, LossKind::FastRetransmit, len);
            }
        }
    }

    /// Reordering lasted too long: judge again without a new SACK.
    pub(in crate::association) fn on_reorder_timer(&mut self, now: Instant, path: PathId) {
        let by_order = !self.policies.ask(Asks::ALL_COPIES);
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        p.timers.stop(PathTimer::Reordering);
        let suspects = if by_order { p.progress.proven().map(Suspects::SentBefore) } else { Some(Suspects::Holes) };
        let Some(suspects) = suspects else { return };
        let flight: Vec<u32> = self.paths.iter().map(|p| p.flight.packets()).collect();
        let newest = vec![None; self.paths.len()];
        let sack = SackView {
            newest_seq: &newest,
            oldest_seq: &newest,
            highest_newly_acked: None,
            highest_since_advance: None,
            gapped: PathSet::EMPTY,
            cumulative_advanced: false,
            flight_before: &flight,
            packets_reported: 0,
        };
        self.judge_path(now, path, suspects, &sack);
        self.adjust_coupling(now);
    }

    /// A probe before T3.
    pub(in crate::association) fn on_loss_timer(&mut self, now: Instant, path: PathId) {
        let facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
        let probe = {
            let cx = self.views.see(&mut self.paths, &self.policies, &facts);
            let (Some(v), Some(p)) = (cx.path(path), self.paths.get_for(path.index(), Shown::Nothing)) else { return };
            p.timers.stop(PathTimer::TailProbe);
            let board = &self.sender.board;
            let mut newest = p.flight.copies().rev().filter_map(|c| {
                let chunk = board.get(c.tsn)?;
                let live = chunk.copies.iter().any(|l| l.path == path && l.tx_seq == c.tx_seq);
                live.then(|| chunk.view())
            });
            self.policies.loss_timer.expired(&cx, v, &mut newest)
        };
        match probe {
            Probe::None => {}
            Probe::Newest => self.queue_probe(path),
            Probe::MarkNewest(n) => {
                let list: Vec<CopyRef> = self.paths[path.index()].flight.copies().rev().take(usize::from(n)).collect();
                let lost = list.iter().map(|c| self.copy_lost(now, path, c, TransmissionCause::Reports)).sum();
                if lost > 0 {
                    self.react(now, path, LossKind::FastRetransmit, lost);
                    self.adjust_coupling(now);
                }
            }
            Probe::MarkOverdue(age) => self.mark_overdue(now, path, age),
        }
    }

    /// The newest outstanding chunk of the path leaves once more on it (RFC 8985 §7.3).
    fn queue_probe(&mut self, path: PathId) {
        let newest = self.paths.get(path.index()).and_then(|p| {
            p.flight
                .copies()
                .rev()
                .find(|c| self.sender.board.get(c.tsn).is_some_and(|k| k.state == ChunkState::Outstanding && !k.parity))
        });
        let (Some(c), Some(p)) = (newest, self.paths.get_mut(path.index())) else { return };
        // A full window, which may all be lost, must not hold back what would show it (RFC 9002 §7.5).
        if !p.congestion.has_room(p.flight.bytes()) {
            p.expiry.allow_probe();
        }
        self.sender.copies_due.push_back((c.tsn, path, TransmissionCause::Probe));
    }
}
