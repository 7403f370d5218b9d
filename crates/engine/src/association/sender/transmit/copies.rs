//! Packets with DATA that repeat what is in flight already: copies the scheduler wants, probes, redundancy.

use crate::association::Association;
use crate::association::policies::facts::Facts;
use crate::repair::TransmissionCause;
use crate::transmit::Transmit;
use crate::tx::scoreboard::ChunkState;
use anabranch_base::Instant;
use anabranch_policy::Asks;
use anabranch_policy::redundancy::Extra;
use std::collections::VecDeque;

impl Association {
    /// The second and further packets of `Decision::Copies`.
    #[inline]
    pub(in crate::association) fn transmit_due_copy(&mut self, now: Instant, out: &mut Transmit) -> bool {
        !self.sender.copies_due.is_empty() && self.transmit_copy(now, out)
    }

    #[inline(never)]
    fn transmit_copy(&mut self, now: Instant, out: &mut Transmit) -> bool {
        while let Some((tsn, path, why)) = self.sender.copies_due.used().and_then(VecDeque::pop_front) {
            let open = self.paths.get(path.index()).is_some_and(|p| p.has_window(now)) && self.paths.usable().has(path);
            let live =
                self.sender.board.get(tsn).is_some_and(|c| c.state == ChunkState::Outstanding && !c.copies.is_full());
            if open && live {
                self.scratch.packet.clear();
                self.scratch.packet.push(tsn);
                self.sender.further = why;
                self.emit_data(now, path, out);
                return true;
            }
        }
        false
    }

    /// Redundancy into window that the scheduler left free.
    pub(in crate::association) fn transmit_extra(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.sender.redundancy_wakeup = None;
        self.policies.ask(Asks::EXTRA)
            && self.sender.board.outstanding_bytes() > 0
            && self.transmit_wanted_extra(now, out)
    }

    #[inline(never)]
    fn transmit_wanted_extra(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
        let cx = self.views.see(&mut self.paths, &self.policies, &facts);
        if !self.policies.redundancy.worth_asking(&cx) {
            self.sender.redundancy_wakeup = self.redundancy_asks_for(now);
            return false;
        }
        for id in facts.eligible.iter() {
            let extra = {
                let cx = self.views.see(&mut self.paths, &self.policies, &facts);
                let Some(v) = cx.path(id) else { continue };
                let mut outstanding =
                    self.sender.board.iter().filter(|(_, c)| c.state == ChunkState::Outstanding).map(|(_, c)| c.view());
                self.policies.redundancy.extra(&cx, v, &mut outstanding)
            };
            let (tsn, moved) = match extra {
                None => continue,
                Some(Extra::Copy { tsn }) => (self.sender.board.extend(tsn), None),
                Some(Extra::Move { tsn, blame }) => (self.sender.board.extend(tsn), Some(blame)),
            };
            let allowed = self.sender.board.get(tsn).is_some_and(|c| {
                c.state == ChunkState::Outstanding && !c.copies.is_full() && !c.copies.iter().any(|l| l.path == id)
            });
            if !allowed {
                self.stats.decisions_refused += 1;
                continue;
            }
            if let Some(blame) = moved {
                self.take_off_paths(now, tsn, blame);
                self.sender.further = TransmissionCause::Moved;
            }
            self.ask_late_paths(now, tsn);
            self.scratch.packet.clear();
            self.scratch.packet.push(tsn);
            self.emit_data(now, id, out);
            return true;
        }
        self.sender.redundancy_wakeup = self.redundancy_asks_for(now);
        false
    }

    /// When the redundancy wants to be asked again, within RTO.Max.
    fn redundancy_asks_for(&self, now: Instant) -> Option<Instant> {
        let at = self.policies.redundancy.wakeup().filter(|t| *t > now);
        at.map(|t| t.min(now + self.config.timers.rto_max))
    }
}
