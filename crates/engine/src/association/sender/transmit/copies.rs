//! Packets with DATA that repeat what is in flight already: copies the scheduler wants, probes, redundancy; and parity.

use crate::association::Association;
use crate::association::policies::facts::Facts;
use crate::association::sender::transmit::parity::InFlight;
use crate::repair::TransmissionCause;
use crate::transmit::Transmit;
use crate::tx::scoreboard::{Chunk, ChunkState};
use anabranch_base::{Instant, PathId};
use anabranch_policy::Asks;
use anabranch_policy::redundancy::Extra;
use anabranch_wire::{COMMON_HEADER_LEN, Parity};
use bytes::Bytes;
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
    pub(in crate::association) fn transmit_extra(&mut self, now: Instant, declined: bool, out: &mut Transmit) -> bool {
        self.sender.redundancy_wakeup = None;
        self.policies.ask(Asks::EXTRA)
            && (!self.policies.ask(Asks::PARITY) || self.policies.ask(Asks::COPIES) || self.may_send_parity())
            && self.sender.board.outstanding_bytes() > 0
            && self.transmit_wanted_extra(now, declined, out)
    }

    #[inline(never)]
    fn transmit_wanted_extra(&mut self, now: Instant, declined: bool, out: &mut Transmit) -> bool {
        let parity_agreed = self.peer.makes_parity;
        let facts = Facts { declined, parity_agreed, ..Facts::of(now, &self.paths, &self.sender, &self.policies) };
        let cx = self.views.see(&mut self.paths, &self.policies, &facts);
        if !self.policies.redundancy.worth_asking(&cx) {
            self.sender.redundancy_wakeup = self.redundancy_asks_for(now);
            return false;
        }
        // After an expiry of T3 one packet is in flight on a path (§7.2.3). A copy in its place, time after time, would keep
        // what is marked back for ever, where that waits for a path on which such a copy is under way.
        let marked = self.sender.board.has_marked();
        for id in facts.eligible.iter() {
            if marked && self.paths[id.index()].expiry.is_silent() {
                continue;
            }
            let extra = {
                let cx = self.views.see(&mut self.paths, &self.policies, &facts);
                let Some(v) = cx.path(id) else { continue };
                // Of what needs no repetition, none.
                let open = |c: &Chunk| c.state == ChunkState::Outstanding && !c.parity && !c.repaired;
                let mut outstanding = self.sender.board.iter().filter(|(_, c)| open(c)).map(|(_, c)| c.view());
                self.policies.redundancy.extra(&cx, v, &mut outstanding)
            };
            let tsn = match extra {
                None => continue,
                Some(Extra::Parity) => match self.write_parity(now, id, facts.peer_rwnd) {
                    Some(tsn) => tsn,
                    None => continue,
                },
                Some(Extra::Copy { tsn } | Extra::Move { tsn, .. }) => {
                    let tsn = self.sender.board.extend(tsn);
                    let allowed = self.sender.board.get(tsn).is_some_and(|c| {
                        let open = c.state == ChunkState::Outstanding && !c.parity && !c.repaired;
                        open && !c.copies.is_full() && !c.copies.iter().any(|l| l.path == id)
                    });
                    if !allowed {
                        self.stats.rare.decisions_refused += 1;
                        continue;
                    }
                    tsn
                }
            };
            if let Some(Extra::Move { blame, .. }) = extra {
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

    /// The peer reads what is made here, and there is a place for its TSN.
    fn may_send_parity(&self) -> bool {
        self.peer.makes_parity
            && self.peer.forward_tsn
            && self.is_between_messages()
            && (self.stream_reset.is_idle() || !self.stream_reset.suspends_data())
    }

    /// The next TSN is not between the pieces of a message (RFC 9260 §6.9), and what leaves with it overtakes nothing, where
    /// the scheduler does not let TSNs overtake each other anyway.
    fn is_between_messages(&self) -> bool {
        let in_turn = self.sender.board.ahead().is_empty() || self.policies.path_scheduler.permutes();
        in_turn && !self.sender.queue.is_cutting()
    }

    /// A chunk with what the policy writes; none when it writes nothing, or what does not fit.
    fn write_parity(&mut self, now: Instant, path: PathId, peer_rwnd: u64) -> Option<u64> {
        if !self.may_send_parity() {
            // Who answers with copies as well does not know that.
            self.stats.rare.decisions_refused += u64::from(!self.policies.ask(Asks::COPIES));
            return None;
        }
        let head = COMMON_HEADER_LEN + Parity::HEADER_LEN;
        let room = self.paths.packet_size(path).saturating_sub(head) & !3;
        let sources = InFlight { board: &self.sender.board, interleaving: self.peer.interleaving };
        let number = self.sender.board.end();
        let record = self.policies.redundancy.write(number, room, &sources)?;
        if record.is_empty() || record.len() > room || record.len() as u64 > peer_rwnd {
            self.stats.rare.decisions_refused += 1;
            return None;
        }
        Some(self.sender.board.append_parity(Bytes::from(record), now))
    }
}
