//! How the paths of an association recover together in ns-2.35: `one_recovery`, `one_repair_per_loss`,
//! `marked_are_outstanding` and `burst` of [`crate::Quirks`].

use crate::association::Association;
use crate::tx::scoreboard::ChunkState;
use anabranch_base::{Instant, PathId};
use anabranch_policy::loss_cause::LossKind;
use anabranch_policy::timer::Arm;

/// What a SACK gave as lost: the path of the first, and bytes of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::association) struct Losses {
    first: Option<PathId>,
    bytes: u64,
}

impl Losses {
    pub(in crate::association) fn note(&mut self, path: PathId, bytes: u64) {
        self.first = self.first.or(Some(path));
        self.bytes += bytes;
    }
}

/// Reports that make a loss.
const REPORTS: u8 = 3;

/// What may leave before the next SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::association) enum Gate {
    /// What the windows allow.
    Open,
    /// One packet of repairs.
    OneRepair { new_data: bool },
    /// No repairs.
    Repaired { new_data: bool },
}

impl Gate {
    /// What was on its way has to leave again by another path, and no SACK will come of it.
    pub(in crate::association) fn reopen(&mut self) {
        if let Gate::Repaired { new_data } = *self {
            *self = Gate::OneRepair { new_data };
        }
    }

    /// A packet of repairs leaves.
    #[inline]
    pub(in crate::association) fn repaired(&mut self) {
        if let Gate::OneRepair { new_data } = *self {
            *self = Gate::Repaired { new_data };
        }
    }
}

impl Association {
    /// No SACK will open the gate where nothing is in flight: what was may have been given up.
    #[inline]
    pub(in crate::association) fn shuts_repairs(&self) -> bool {
        matches!(self.sender.gate, Gate::Repaired { .. }) && self.sender.board.outstanding_bytes() > 0
    }

    #[inline]
    pub(in crate::association) fn shuts_new_data(&self) -> bool {
        let shut = matches!(self.sender.gate, Gate::OneRepair { new_data: false } | Gate::Repaired { new_data: false });
        shut && !self.nothing_in_flight()
    }

    /// Does the SACK at hand, which only fills holes, report all others too?
    pub(in crate::association) fn all_holes_count(&self, advanced: bool) -> bool {
        let highest = self.scratch.highest_acked;
        self.config.quirks.one_recovery && advanced && highest.is_some_and(|h| h <= self.recover_tsn())
    }

    /// The highest TSN sent when the last recovery of all paths began.
    fn recover_tsn(&self) -> u64 {
        self.paths.iter().next().map_or(0, |p| p.congestion.recover_tsn)
    }

    /// The end of a SACK's verdicts: what waits to be sent again is reported too, and of all that waits the first with a
    /// TSN beyond the last recovery cuts the window of its path.
    pub(in crate::association) fn recover_as_one(&mut self, now: Instant, advanced: bool) {
        self.report_waiting(advanced);
        let Losses { first: Some(first), bytes } = core::mem::take(&mut self.sender.era_losses) else { return };
        let recover = self.recover_tsn();
        let board = &self.sender.board;
        let beyond = board.marked().map(|(t, c)| (t, c.last_path)).filter(|(t, _)| *t > recover);
        let (highest, path) = beyond.min().map_or((0, first), |(t, path)| (t, path.unwrap_or(first)));
        // Of all paths that lost something only one reacts.
        self.refresh_views();
        if advanced {
            // Windows grow before one of them is cut.
            self.grow(now, true);
        }
        self.react_to(now, path, LossKind::FastRetransmit, bytes, highest);
    }

    /// Three reports of what timed out and was not sent again yet make it a loss by reports.
    fn report_waiting(&mut self, advanced: bool) {
        let waits = self.sender.board.has_marked() && self.sender.gaps.len() > 0;
        if !waits && self.sender.gaps.waiting.is_empty() {
            return;
        }
        let newly = self.scratch.highest_acked.unwrap_or(0);
        let reported = self.sender.gaps.ranges().last().map_or(0, |(_, to)| to);
        let highest = if self.all_holes_count(advanced) { newly.max(reported) } else { newly };
        let mut reports = core::mem::take(&mut self.sender.gaps.waiting);
        reports.retain(|(tsn, _)| self.sender.board.get(*tsn).is_some_and(|c| c.state == ChunkState::Marked));
        for (tsn, _) in self.sender.board.marked() {
            let reported = u8::from(tsn < highest);
            match reports.binary_search_by_key(&tsn, |(t, _)| *t) {
                Ok(i) => reports[i].1 = (reports[i].1 + reported).min(REPORTS),
                Err(i) => reports.insert(i, (tsn, reported)),
            }
        }
        for (tsn, _) in reports.iter().filter(|(_, n)| *n >= REPORTS) {
            let Some(c) = self.sender.board.get_mut(*tsn).filter(|c| !c.fast_retransmitted) else { continue };
            c.fast_retransmitted = true;
            let (path, len) = (c.last_path, c.len());
            self.sender.era_losses.note(path.unwrap_or(PathId(0)), len);
        }
        self.sender.gaps.waiting = reports;
    }

    /// What is left of Max.Burst is left for all paths. It is over with the packet that the window would have allowed.
    pub(in crate::association) fn share_burst(&mut self, left: u16) {
        self.paths.iter_mut().for_each(|p| p.congestion.burst_left = left);
        let room = self.paths.get(self.paths.primary().index()).is_some_and(|p| p.flight.bytes() < p.congestion.cwnd);
        self.sender.burst_armed &= left > 0 || !room;
    }

    /// An episode has begun, of this path or of all.
    pub(in crate::association) fn note_recovery(&mut self, path: PathId) {
        let all = self.config.quirks.one_recovery;
        let mut end = self.sender.board.sent_end() - 1;
        let marked = |tsn| self.sender.board.get(tsn).is_some_and(|c| c.state == ChunkState::Marked);
        while all && end > self.sender.board.cumulative() && marked(end) {
            end -= 1;
        }
        for p in self.paths.iter_mut().filter(|p| all || p.id == path) {
            let c = &mut p.congestion;
            c.recover_tsn = if all { c.recover_tsn.max(end) } else { end };
            c.recovery_exit = c.recovery_exit.or(Some(end));
        }
        if all {
            // The views of the other paths show it too.
            self.refresh_views();
        }
    }

    /// Does what was given as lost keep its place in the windows until it was sent again?
    #[inline]
    pub(in crate::association) fn holds_place(&self) -> bool {
        self.sender.board.has_marked() && self.policies.recovery.holds_place()
    }

    /// A chunk is sent again on another path: T3 of the old one starts anew if it was the earliest there and others are in
    /// flight. Answers the old one.
    pub(in crate::association) fn left_its_path(&mut self, now: Instant, tsn: u64, to: PathId) -> Option<PathId> {
        let old = self.sender.board.get(tsn)?.last_path.filter(|old| *old != to)?;
        let p = self.paths.get(old.index())?;
        let first = p.congestion.era.as_ref()?.lowest_tsn.is_some_and(|l| tsn <= l);
        if first && p.flight.bytes() > 0 {
            self.refresh_view(old);
            let facts = self.facts(now);
            let at =
                self.policies.timer.arm(&facts.view(&self.views), self.views.paths.get(old.index())?, Arm::Started);
            self.paths[old.index()].timers.t3 = Some(at);
        }
        first.then_some(old)
    }
}
