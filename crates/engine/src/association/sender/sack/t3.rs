//! T3 and its companions after an acknowledgement (RFC 9260 §6.3.2).

use crate::association::Association;
use crate::association::path_table::list::Shown;
use crate::association::policies::facts::Facts;
use crate::path::PathTimer;
use crate::tx::scoreboard::ChunkState;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::Asks;
use anabranch_policy::timer::Arm;

impl Association {
    /// Finds the lowest TSN in flight on a path, or waiting to be sent there again; true when it is another one.
    #[inline(never)]
    pub(in crate::association) fn lowest_moved(&mut self, path: usize) -> bool {
        let Some(p) = self.paths.get(path) else { return false };
        let before = p.followed().and_then(|f| f.lowest());
        let here = |tsn: u64| {
            self.sender.board.get(tsn).is_some_and(|c| match c.state {
                ChunkState::Outstanding => c.copies.iter().any(|l| l.path == p.id()),
                ChunkState::Marked => c.last_path == Some(p.id()),
                _ => false,
            })
        };
        let first = before.unwrap_or(0).max(self.sender.board.cumulative() + 1);
        let marked = p.followed().is_some_and(|f| f.runs_on()) && self.sender.board.has_marked();
        let none = p.flight.bytes() == 0 && !marked;
        let now = if none { None } else { (first..self.sender.board.sent_end()).find(|t| here(*t)) };
        match self.paths.get_for(path, Shown::Nothing).and_then(|p| p.followed_mut()) {
            Some(followed) => followed.move_lowest(now),
            None => now.is_some(),
        }
    }

    /// T3 and its companions after an acknowledgement (§6.3.2).
    pub(in crate::association) fn rearm_timers(&mut self, now: Instant) {
        self.use_resumed_paths(now);
        self.look_for_black_holes(now);
        let by_tsn = self.policies.times_lowest_tsn();
        let asks = self.policies.asks();
        let mut facts = None;
        for i in 0..self.paths.len() {
            let moved = if by_tsn {
                self.lowest_moved(i)
            } else {
                let oldest = self.paths.get(i).and_then(|p| p.flight.oldest_seq());
                oldest != self.scratch.acks.get(i).and_then(|t| t.oldest_before)
            };
            // What was given as lost and has not been sent again yet, where T3 is for that too.
            let marked = by_tsn && self.sender.board.has_marked();
            let Some(p) = self.paths.get_for(i, Shown::Nothing) else { continue };
            let waits = marked && p.followed().is_some_and(|f| f.lowest().is_some());
            let empty = p.flight.oldest_seq().is_none() && !waits;
            let rare = asks.any(Asks::PROBE) || asks.any(Asks::SUSPECT);
            if empty && !rare && self.sender.board.reneged() == 0 {
                p.timers.stop(PathTimer::T3);
            }
            let runs = p.timers.runs(PathTimer::T3);
            if !rare && (empty && self.sender.board.reneged() == 0 || !empty && !moved && runs) {
                continue;
            }
            let cx = match facts {
                Some(facts) => facts,
                None => *facts.insert(Facts::of(now, &self.paths, &self.sender, &self.policies)),
            };
            let cx = self.views.see(&mut self.paths, &self.policies, &cx);
            let (Some(p), Some(v)) = (self.paths.get_for(i, Shown::Nothing), cx.path(PathId(i as u8))) else {
                continue;
            };
            match (p.flight.oldest_seq(), p.flight.oldest_sent()) {
                (Some(_), Some(oldest_sent)) if moved || !runs => {
                    let why = Arm::Progress { oldest_sent, old_deadline: p.timers.deadline(PathTimer::T3) };
                    p.timers.start_t3(self.policies.t3(&cx, v, why).max(now + Duration::from_micros(1)));
                }
                (Some(_), _) => {}
                _ if waits && moved => p.timers.start_t3(self.policies.t3(&cx, v, Arm::Started)),
                _ if waits => {}
                _ if self.sender.board.reneged() > 0 && p.id() == PathId(0) => {
                    if !runs {
                        p.timers.start_t3(self.policies.t3(&cx, v, Arm::Started));
                    }
                }
                _ => p.timers.stop(PathTimer::T3),
            }
            if asks.any(Asks::PROBE) {
                p.timers.plan_tail_probe(self.policies.tail_probe(&cx, v));
            }
            if asks.any(Asks::SUSPECT) {
                p.suspect_at(self.policies.path_state.look_at(&cx, v));
            }
        }
    }
}
