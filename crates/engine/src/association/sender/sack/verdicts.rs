//! The second half of what a SACK does: verdicts over what it overtook (ARCHITECTURE decision 7).

use crate::association::Association;
use crate::association::path_table::list::Shown;
use crate::association::sender::loss::detection::Suspects;
use crate::path::{Path, PathTimer};
use anabranch_base::{Instant, PathId, PathSet, Tsn};
use anabranch_policy::Asks;
use anabranch_policy::loss_cause::{Left, Sample};
use anabranch_policy::path_quality::Notice;
use anabranch_policy::view::SackView;

impl Association {
    /// The quality estimator hears what was acknowledged.
    pub(in crate::association) fn notify_acked(&mut self, now: Instant) {
        if !self.policies.ask(Asks::QUALITY) {
            return;
        }
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        for (i, t) in self.scratch.acks.iter().enumerate().filter(|(_, t)| t.bytes > 0) {
            let sent_at = t.oldest_sent.unwrap_or(now);
            let n = Notice::Acked { path: PathId(i as u8), bytes: t.bytes, sent_at };
            self.policies.path_quality.observe(&cx, n);
        }
    }

    /// Who tells causes of losses apart hears of round trips before anything is judged by them.
    #[inline]
    pub(in crate::association) fn notify_sampled(&mut self, now: Instant) {
        if !self.policies.ask(Asks::SAMPLES) {
            return;
        }
        // A SACK comes back over the path that the packet which made it leave took (RFC 9260 §6.4).
        let (by, several) = (self.scratch.sack_came_by, self.scratch.acks.iter().map(|t| t.packets).sum::<u32>() > 1);
        for (i, t) in self.scratch.acks.iter().enumerate() {
            if let Some(n) = t.newest {
                let (path, seq, rtt) = (PathId(i as u8), n.tx_seq, now.since(n.sent_at));
                let left = match by.is_none_or(|by| by == path) {
                    true if t.gapped => Left::Gap,
                    true if several => Left::Second,
                    _ => Left::Alone,
                };
                self.policies.loss_cause.sample(now, &Sample { path, seq, rtt, packets: t.packets, left });
            }
        }
    }

    /// Misses and verdicts, path by path, losses included.
    pub(in crate::association) fn detect(&mut self, now: Instant, advanced: bool) {
        if !self.nothing_to_judge(advanced) {
            self.judge_all(now, advanced);
        }
    }

    #[inline(never)]
    fn judge_all(&mut self, now: Instant, advanced: bool) {
        let s = &mut *self.scratch;
        s.newest.clear();
        s.oldest.clear();
        s.newest.extend(s.acks.iter().map(|t| t.proven));
        s.oldest.extend(s.acks.iter().map(|t| t.lowest));
        let gapped: PathSet = (0..).zip(&s.acks).filter(|(_, t)| t.gapped).map(|(i, _)| PathId(i)).collect();
        let highest = self.scratch.highest_acked.map(|t| Tsn(t as u32));
        let since_advance = self.sender.highest_since_advance.map(|t| Tsn(t as u32));
        for i in 0..self.paths.len() {
            let path = PathId(i as u8);
            let suspects = if !self.policies.ask(Asks::ALL_COPIES) {
                self.overtaken(i, advanced).map(Suspects::SentBefore)
            } else {
                Some(Suspects::Holes)
            };
            if let Some(suspects) = suspects {
                let newest = core::mem::take(&mut self.scratch.newest);
                let oldest = core::mem::take(&mut self.scratch.oldest);
                let flight = core::mem::take(&mut self.scratch.flight_before);
                let sack = SackView {
                    newest_seq: &newest,
                    oldest_seq: &oldest,
                    highest_newly_acked: highest,
                    highest_since_advance: since_advance,
                    gapped,
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

    /// No copy was overtaken by what the SACK at hand acknowledges: the usual case, which needs no verdicts.
    fn nothing_to_judge(&mut self, advanced: bool) -> bool {
        let by_order = !self.policies.ask(Asks::ALL_COPIES);
        let holes = !self.sender.gaps.is_empty() && !by_order;
        let suspect = |i: usize, p: &Path| {
            self.overtaken(i, advanced).is_some_and(|seq| p.flight.first_copy().is_some_and(|c| c.tx_seq < seq))
        };
        if holes || self.paths.iter().enumerate().any(|(i, p)| suspect(i, p)) {
            return false;
        }
        for i in 0..self.paths.len() {
            if !by_order || self.overtaken(i, advanced).is_some() {
                self.paths.get_for(i, Shown::Nothing).into_iter().for_each(|p| p.timers.stop(PathTimer::Reordering));
            }
        }
        true
    }

    /// Copies sent on a path before this serial may be missing.
    fn overtaken(&self, path: usize, advanced: bool) -> Option<u64> {
        let newly = self.scratch.acks.get(path).and_then(|t| t.proven);
        match self.paths.get(path) {
            // In fast recovery an advancing cumulative TSN counts every reported hole (§7.2.4).
            Some(p) if advanced && p.congestion.in_recovery() => p.progress.proven().or(newly),
            _ => newly,
        }
    }
}
