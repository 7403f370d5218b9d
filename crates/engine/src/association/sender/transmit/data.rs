//! Packets with DATA: retransmissions, and how any packet with DATA is booked and built.

use crate::association::Association;
use crate::association::path_table::list::Shown;
use crate::association::policies::facts::{Facts, carrying};
use crate::association::transmit::start_packet;
use crate::path::PathTimer;
use crate::path::rate::DeliveredAtSend;
use crate::repair::TransmissionCause;
use crate::transmit::Transmit;
use crate::tx::scoreboard::{Chunk, ChunkState, LiveCopy};
use anabranch_base::{Instant, PathId, PathSet};
use anabranch_policy::Asks;
use anabranch_policy::path_quality::Notice;
use anabranch_policy::path_scheduler::Settled;
use anabranch_policy::recovery::{Bursts, Pass};
use anabranch_policy::redundancy::SentPayload;
use anabranch_policy::retransmission::{Binding, Retransmit, Target};
use anabranch_policy::timer::Arm;
use anabranch_policy::view::ChunkView;
use anabranch_wire::{COMMON_HEADER_LEN, Parity, kind};

/// So many marked chunks that do not fit a packet are passed over for others that do.
const MOST_ASIDE: usize = 32;
/// A chunk that left so often and timed out each time may be one that the peer has no room for, whatever it announces.
const REFUSED: u16 = 3;
/// So many chunks in flight are looked at to fill what is left of a packet.
const MOST_OUTSTANDING: usize = 64;

impl Association {
    // ---- retransmissions

    #[inline]
    pub(in crate::association) fn transmit_retransmission(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let nothing = !self.sender.board.has_marked() && self.paths.iter().all(|p| p.health.stalled_since().is_none());
        if nothing || !self.transmit_marked(now, out) {
            return false;
        }
        true
    }

    #[inline(never)]
    fn transmit_marked(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let (tsn, chunk, marked) = loop {
            self.give_up_marked(now);
            self.paths.settle_takeovers(now, &self.sender, &mut self.events);
            let Some(marked) = self.first_marked(now) else { return false };
            let Some(marked) = self.sender.board.get(marked).map(|c| c.view()) else { return false };
            let tsn = self.missing_before(&marked).unwrap_or(self.sender.board.extend(marked.tsn));
            let Some(chunk) = self.sender.board.get(tsn).map(|c| c.view()) else { return false };
            if !self.give_up_chosen(now, &chunk) {
                break (tsn, chunk, marked);
            }
        };
        let Some(path) = self.retransmission_path(now, &marked) else { return false };
        self.scratch.packet.clear();
        let mut size = COMMON_HEADER_LEN + self.paths.chunk_len(chunk.len as usize);
        self.scratch.packet.push(tsn);
        self.bundle_marked(path, &mut size);
        self.bundle_outstanding(path, size);
        let new = chunk.transmissions == 0;
        self.stats.rare.retransmissions += self.scratch.packet.len() as u64 - u64::from(new);
        self.emit_data(now, path, out);
        if new {
            let facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
            self.settle_sent(&facts, Settled::Sent { tsn: chunk.tsn, path, len: chunk.len });
        }
        self.paths.settle_takeovers(now, &self.sender, &mut self.events);
        true
    }

    /// What has to leave before a marked chunk that the peer refuses: the next one it waits for, whether that ever left or
    /// not. A full buffer drops what is above it and takes only that; and after an expiry of T3 one packet is in flight,
    /// so that the higher one, repeated for ever, would keep the lower one back for ever.
    fn missing_before(&self, marked: &ChunkView) -> Option<u64> {
        let refused =
            self.sender.peer_has_no_room_for(marked.len) || marked.timed_out && marked.transmissions >= REFUSED;
        let next = self.sender.board.cumulative() + 1;
        let waits = |c: &Chunk| matches!(c.state, ChunkState::Waiting | ChunkState::Marked);
        (refused && self.sender.board.extend(marked.tsn) > next && self.sender.board.get(next).is_some_and(waits))
            .then_some(next)
    }

    /// The first of what is marked, in the order of the policy, which is asked about those that are new among them.
    fn first_marked(&mut self, now: Instant) -> Option<u64> {
        if self.sender.board.marked_needs_rank(now) {
            let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
            while let Some((tsn, chunk)) = self.sender.board.take_unranked(now) {
                let mut rank = self.policies.retransmission_order.rank(&cx, &chunk);
                rank.until = rank.until.filter(|t| *t > now);
                self.sender.board.rank_marked(tsn, rank);
            }
        }
        self.sender.board.first_marked()
    }

    /// Fills the packet with what is marked too, in the order of the policy. On the wire TSNs rise (§6.10).
    fn bundle_marked(&mut self, path: PathId, size: &mut usize) {
        let most = self.paths.packet_size(path);
        let leader = self.scratch.packet.first().copied();
        let mut aside = core::mem::take(&mut self.scratch.aside);
        while *size + self.paths.chunk_len(1) <= most && aside.len() < MOST_ASIDE {
            let Some(tsn) = self.sender.board.first_marked() else { break };
            let len = self.sender.board.get(tsn).map_or(0, |c| self.paths.chunk_len(c.payload.len()));
            let Some(entry) = self.sender.board.take_first_marked() else { break };
            if Some(tsn) == leader {
                continue;
            }
            if *size + len <= most {
                *size += len;
                self.scratch.packet.push(tsn);
            } else {
                aside.push(entry);
            }
        }
        aside.drain(..).for_each(|entry| self.sender.board.put_back_marked(entry));
        self.scratch.aside = aside;
    }

    /// Further outstanding chunks of the same path, when the order asks for them (Petlund et al. 2009 §2.4, mechanism 5).
    fn bundle_outstanding(&mut self, path: PathId, mut size: usize) {
        let Some(v) = self.views.path(&mut self.paths, &self.policies, path) else { return };
        if !self.policies.retransmission_order.bundles_outstanding(v) {
            return;
        }
        let most = self.paths.packet_size(path);
        let Some(p) = self.paths.get(path.index()) else { return };
        for c in p.flight.copies().take(MOST_OUTSTANDING) {
            let Some(chunk) = self.sender.board.get(c.tsn) else { continue };
            let len = self.paths.chunk_len(chunk.payload.len());
            let fits = size + len <= most && !chunk.copies.is_full();
            if chunk.state == ChunkState::Outstanding
                && !chunk.repaired
                && !chunk.parity
                && fits
                && !self.scratch.packet.contains(&c.tsn)
            {
                self.sender.further = TransmissionCause::Bundled;
                size += len;
                self.scratch.packet.push(c.tsn);
            }
            if size + 20 > most {
                break;
            }
        }
    }

    /// Asks the retransmission policy; gates the answer by window and free passes.
    fn retransmission_path(&mut self, now: Instant, chunk: &ChunkView) -> Option<PathId> {
        let usable = carrying(&self.paths, &self.policies);
        let mut candidates = match self.config.mtu.discovery {
            Some(_) => self.paths.taking_whole(usable, chunk.len),
            None => usable,
        };
        let pass = self.paths.iter().position(|p| p.congestion.has_pass());
        let at_home = pass.is_some() && self.policies.recovery.pass(true) == Pass::OnItsPath;
        let own = |p: &&crate::path::Path| p.congestion.has_pass() && at_home;
        let passes: PathSet = self.paths.iter().filter(own).map(|p| p.id()).collect();
        let bound = self.sender.board.get(self.sender.board.extend(chunk.tsn)).and_then(|c| c.bound);
        let bound = bound.filter(|b| candidates.has(*b));
        for _ in 0..PathSet::CAPACITY {
            if candidates.is_empty() {
                return None;
            }
            let target = match bound {
                Some(b) => Target::On(b),
                None => {
                    let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
                    let r = Retransmit { chunk, candidates, may_exceed_cwnd_once: pass.is_some(), passes };
                    self.policies.retransmission.target(&cx, &r)
                }
            };
            let Target::On(id) = target else { return None };
            let Some(p) = self.paths.get(id.index()).filter(|_| usable.has(id)) else {
                self.stats.rare.decisions_refused += 1;
                return None;
            };
            if self.policies.retransmission.binds() == Binding::AtLoss
                && let Some(c) = self.sender.board.get_mut(self.sender.board.extend(chunk.tsn))
            {
                c.bound = Some(id);
            }
            // Whatever the pass says: after an expiry one packet is in flight until it is answered (§7.2.3).
            let alone = p.allows_beside();
            let passes = pass.is_some() && (p.congestion.has_pass() || !at_home);
            if p.has_window(now) || passes && alone {
                // The one packet that leaves whatever the window says has left.
                if let Some(lossy) = pass {
                    self.paths[lossy].congestion.end_pass();
                }
                self.policies.retransmission.settle();
                return Some(id);
            }
            if bound.is_some() || !self.policies.retransmission.if_full_next() || !candidates.has(id) {
                return None;
            }
            candidates = candidates.without(id);
        }
        None
    }

    // ---- building

    /// Sends the chunks of `scratch.packet` on `path`.
    pub(in crate::association) fn emit_data(&mut self, now: Instant, path: PathId, out: &mut Transmit) {
        let mut list = core::mem::take(&mut self.scratch.packet);
        list.sort_unstable();
        for (i, &tsn) in list.iter().enumerate() {
            self.account(now, tsn, path, i == 0);
        }
        self.scratch.packet = list;
        let facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
        self.finish_data(now, path, &facts, out);
    }

    pub(in crate::association) fn take_for_packet(&mut self, now: Instant, tsn: u64, path: PathId, first: bool) {
        self.account(now, tsn, path, first);
        self.scratch.packet.push(tsn);
    }

    /// Books one chunk of a packet: flight, scoreboard, board of views.
    pub(in crate::association) fn account(&mut self, now: Instant, tsn: u64, path: PathId, first: bool) {
        let Some(chunk) = self.sender.board.get(tsn) else { return };
        let (len, again) = (chunk.len(), chunk.transmissions > 0);
        if again && (chunk.transmissions > 1 || chunk.state == ChunkState::Outstanding) {
            self.paths.iter_unseen().for_each(|p| p.progress.acquit(tsn));
        }
        if again && chunk.state == ChunkState::Outstanding {
            // Two copies live: a duplicate of them says nothing about a timeout.
            self.paths.iter_unseen().for_each(|p| p.expiry.forget_tsn(tsn));
        }
        if again {
            if let Some(old) = chunk.last_path
                && let Some(followed) = self.paths.get_for(old.index(), Shown::Nothing).and_then(|p| p.followed_mut())
            {
                followed.send_again(tsn, old == path);
            }
            let p = self.paths.get_for(path.index(), Shown::Nothing);
            if let Some(followed) = p.and_then(|p| p.followed_mut()) {
                followed.repair();
            }
        }
        if self.paths.get(path.index()).is_some_and(|p| p.rtt.may_begin())
            && let Some(p) = self.paths.get_mut(path.index())
        {
            p.rtt.begin(now);
        }
        // Of what a path shows, a further chunk of a packet changes no more than the bytes in flight.
        let shown = if first { Shown::Flight } else { Shown::FlightBytes };
        let Some(p) = self.paths.get_for(path.index(), shown) else { return };
        let burst = p.capacity.on_sent(now, len);
        if first {
            p.notice_sending(now);
            let at_send = p.rate.on_sent(now, len, p.flight.bytes(), p.rtt.srtt());
            let at_send = DeliveredAtSend { burst, ..at_send };
            p.flight.begin_packet(now, at_send);
        }
        let tx_seq = p.flight.next_seq() - 1;
        p.flight.add_copy(tsn, len);
        if chunk.parity {
            p.flight.note_parity(len);
        }
        if !again && let Some(followed) = p.followed_mut() {
            followed.send(tsn);
        }
        let lowest = self.policies.times_lowest_tsn() && p.followed_mut().is_some_and(|f| f.is_lowest(tsn));
        if lowest && self.policies.repeats_restart_t3() {
            // It is the earliest now: T3 starts anew with it.
            p.timers.stop(PathTimer::T3);
        }
        p.counters.data_sent += len;
        self.sender.user_data_at = Some(now);
        if again {
            let why = if chunk.state == ChunkState::Outstanding { self.sender.further } else { chunk.cause };
            self.stats.rare.repairs.count(why);
            p.counters.data_retransmitted += len;
        } else if chunk.parity {
            self.stats.rare.parity_sent += 1;
            self.stats.rare.parity_bytes_sent += len;
        } else {
            self.stats.chunks_sent[usize::from(chunk.header.flags.unordered)] += 1;
            self.sender.groups.taken(chunk.group, len);
        }
        self.sender.board.on_sent(tsn, LiveCopy { path, tx_seq, sent_at: now, misses: 0 }, self.sender.further);
    }

    /// Encodes the booked packet, adds a SACK when it fits, starts timers.
    pub(in crate::association) fn finish_data(
        &mut self,
        now: Instant,
        path: PathId,
        facts: &Facts,
        out: &mut Transmit,
    ) {
        start_packet(self, path, out);
        let mut list = core::mem::take(&mut self.scratch.packet);
        if list.len() > 1 {
            list.sort_unstable();
        }
        if self.sender.forward_due || self.acknowledger.is_pending() {
            let chunks = list.iter().filter_map(|&t| self.sender.board.get(t));
            let data_len = chunks.map(|c| self.paths.chunk_len(c.payload.len())).sum();
            self.bundle_forward_tsn(now, path, out, data_len);
            self.bundle_sack(now, path, out, data_len);
        }
        let (mut payload, mut once, taps) = (0, true, self.policies.ask(Asks::EXTRA));
        let hurry = self.ends_with_this_packet() || self.asks_at_once(path);
        let last_of_all = if hurry { list.last() } else { None };
        for tsn in &list {
            let Some(c) = self.sender.board.get(*tsn) else { continue };
            payload += c.len();
            once &= c.transmissions == 1;
            if c.parity {
                out.packet.push(&Parity { tsn: c.header.tsn, record: &c.payload });
                continue;
            }
            let mut header = c.header;
            let asks = c.transmissions == 0 || self.config.compatibility.retransmissions_ask;
            header.flags.immediate |= last_of_all == Some(tsn) && asks;
            if self.peer.interleaving {
                out.packet.push_i_data(&c.interleaved(header.flags), &c.payload);
            } else {
                out.packet.push_data(&header, &c.payload);
            }
            if taps {
                self.policies.redundancy.sent(&SentPayload { chunk: &c.view(), payload: &c.payload, at: now });
            }
        }
        self.scratch.packet = list;
        out.may_be_marked = self.peer.ecn && once;
        self.sent_packet(now, path, out);
        if self.policies.ask(Asks::WHOLE_PACKETS) {
            self.show_packet(now, path, out);
        }
        self.after_data(now, path, facts, payload);
    }

    /// The redundancy sees a packet with data as it leaves.
    #[inline(never)]
    fn show_packet(&mut self, now: Instant, path: PathId, out: &Transmit) {
        if self.peer.makes_parity && out.packet.chunk_kinds().iter().any(|k| matches!(*k, kind::DATA | kind::I_DATA)) {
            let mut bytes = Vec::with_capacity(out.packet.len());
            out.packet.write_to(&mut bytes);
            self.policies.redundancy.packet(path, &bytes, now);
        }
    }

    fn asks_at_once(&mut self, path: PathId) -> bool {
        let last = self.sender.queue.is_empty() && self.sender.board.ahead().is_empty();
        self.views
            .path(&mut self.paths, &self.policies, path)
            .is_some_and(|v| self.policies.timer.asks_at_once(v, last))
    }

    /// Nothing is left to be sent before the end: an acknowledgement at once ends it sooner (RFC 7053 §5.1).
    fn ends_with_this_packet(&self) -> bool {
        // RFC 7053 §4: a peer that began to shut down acknowledges at once anyhow.
        matches!(self.handshake.state(), crate::association::State::ShutdownPending)
            && self.sender.queue.is_empty()
            && self.sender.board.ahead().is_empty()
            && !self.sender.board.has_marked()
    }

    fn after_data(&mut self, now: Instant, path: PathId, facts: &Facts, payload: u64) {
        let Some(p) = self.paths.get_for(path.index(), Shown::Nothing) else { return };
        let left = p.congestion.spend_burst();
        if self.policies.ask(Asks::REPAIRED) && self.policies.recovery.bursts() == Bursts::AfterRepair {
            // What is left is left for all paths. It is over with the packet that the window would have allowed.
            self.paths.allow_burst(left);
            let primary = self.paths.get(self.paths.primary().index());
            let room = primary.is_some_and(|p| p.congestion.has_room(p.flight.bytes()));
            self.sender.burst_armed &= left > 0 || !room;
        }
        let cx = self.views.see(&mut self.paths, &self.policies, facts);
        let (Some(v), Some(p)) = (cx.path(path), self.paths.get_for(path.index(), Shown::Nothing)) else { return };
        p.pace.send(now);
        p.expiry.end_probe();
        if p.expiry.is_silent() || !p.congestion.has_room(p.flight.bytes()) {
            p.timers.plan_window_probe(self.policies.window_probe(now, v));
        }
        if let Some(rate) = p.congestion.send(now, p.flight.next_seq() - 1, v) {
            p.pace.take_time(now, rate, payload);
        }
        let asks = self.policies.asks();
        let runs = p.timers.runs(PathTimer::T3);
        if runs && !asks.any(Asks::PROBE) && !asks.any(Asks::SUSPECT) && !asks.any(Asks::QUALITY) {
            return;
        }
        if !runs {
            p.timers.start_t3(self.policies.t3(&cx, v, Arm::Started));
        }
        if self.policies.ask(Asks::PROBE) {
            p.timers.plan_tail_probe(self.policies.tail_probe(&cx, v));
        }
        if self.policies.ask(Asks::SUSPECT) {
            p.suspect_at(self.policies.path_state.look_at(&cx, v));
        }
        if self.policies.ask(Asks::QUALITY) {
            self.policies.path_quality.observe(&cx, Notice::Sent { path, bytes: payload });
            p.pace.release(payload);
        }
    }
}
