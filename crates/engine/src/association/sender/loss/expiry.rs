//! What an expiry of T3 gives up on its path, and whether it was needless to send that again.

use crate::association::Association;
use crate::association::path_table::list::Shown;
use crate::path::PathTimer;
use crate::repair::TransmissionCause;
use crate::tx::scoreboard::{Chunk, ChunkState};
use anabranch_base::{Duration, Instant, PathId, Tsn};
use anabranch_policy::loss_cause::LossKind;
use anabranch_policy::timer::{Arm, Needless};

/// Reports of duplicates that one SACK is read for.
const MAX_DUPLICATES: usize = 16;

impl Association {
    pub(in crate::association) fn note_expired(&mut self, path: PathId) {
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        // The one that was timed: others may have left a moment ago.
        let oldest = p.flight.first_copy().map(|c| c.tsn);
        let Some(tsn) = oldest.filter(|tsn| self.sender.board.get(*tsn).is_some_and(|c| c.transmissions == 1)) else {
            return;
        };
        p.expiry.note_tsn(tsn);
    }

    /// The peer reports that it got these more than once: where an expiry repeated them, that was needless, and where reports
    /// had condemned them, they came late.
    pub(in crate::association) fn note_duplicates(&mut self, now: Instant, duplicates: impl Iterator<Item = Tsn>) {
        for tsn in duplicates.take(MAX_DUPLICATES) {
            let tsn = self.sender.board.extend(tsn);
            let waits = |c: &Chunk| matches!(c.state, ChunkState::Outstanding | ChunkState::Marked);
            let answered = tsn <= self.sender.board.cumulative() || !self.sender.board.get(tsn).is_some_and(waits);
            let needless = if answered { Needless::AnsweredLate } else { Needless::Unanswered };
            for i in 0..self.paths.len() {
                let mtu = self.paths.mtu();
                let Some(p) = self.paths.get_mut(i) else { continue };
                p.progress.arrive_twice(now, tsn);
                if p.expiry.repeated_needlessly(tsn) {
                    let v = p.view(mtu, self.views.signals(PathId(i as u8)));
                    self.policies.timer.was_needless(&v, needless);
                    self.policies.loss_timer.was_needless(&v, needless);
                }
            }
        }
    }

    /// Takes off the path what left so long ago, without an expiry of T3, which counts from what remains.
    pub(in crate::association) fn mark_overdue(&mut self, now: Instant, path: PathId, age: Duration) {
        self.note_expired(path);
        let lost = self.lose_copies(now, path, TransmissionCause::Timer, |flight, c| flight.age(c, now) >= age);
        if lost > 0 {
            self.react(now, path, LossKind::FastRetransmit, lost);
            self.adjust_coupling(now);
        }
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        let (Some(v), Some(p)) = (cx.path(path), self.paths.get_for(path.index(), Shown::Nothing)) else { return };
        let old_deadline = p.timers.deadline(PathTimer::T3);
        match p.flight.oldest_sent() {
            None => p.timers.stop(PathTimer::T3),
            Some(oldest_sent) if lost > 0 => {
                p.timers.start_t3(self.policies.t3(&cx, v, Arm::Progress { oldest_sent, old_deadline }));
            }
            Some(_) => {}
        }
        p.timers.plan_tail_probe(self.policies.tail_probe(&cx, v));
        self.watch_withdrawn(now);
    }

    /// Takes off the path the oldest packet and whatever left so long ago; the rest stays in flight, and one packet may
    /// leave beside it.
    pub(in crate::association) fn give_up_overdue(&mut self, now: Instant, path: PathId, overdue: Duration) -> u64 {
        let rto = self.views.rto(&self.paths, &self.policies, path);
        let lost = self.lose_copies(now, path, TransmissionCause::Timer, |flight, c| {
            flight.oldest_seq() == Some(c.tx_seq) || flight.age(c, now) >= overdue
        });
        let Some(p) = self.paths.get_mut(path.index()) else { return lost };
        if !p.expiry.spare(p.flight.packets()) {
            return lost + self.empty_path(now, path, TransmissionCause::Timer);
        }
        p.timers.stop(PathTimer::TailProbe);
        p.timers.start_t3(now + rto);
        lost
    }
}
