//! Packets with DATA: retransmissions, new data as the path scheduler proposes.

use super::Association;
use super::transmit::start_packet;
use super::views::has_window;
use crate::message::SendOptions;
use crate::transmit::Transmit;
use crate::tx::scoreboard::{ChunkState, LiveCopy};
use crate::tx::send_queue::Fragment;
use anabranch_base::{Duration, Instant, PathId, PathSet, Rate, Tsn};
use anabranch_policy::path_quality::Notice;
use anabranch_policy::path_scheduler::{Decision, Occasion, Settled};
use anabranch_policy::redundancy::SentPayload;
use anabranch_policy::retransmission::{Binding, Retransmit, Target};
use anabranch_policy::timer::Arm;
use anabranch_policy::view::{ChunkView, QueueView, StreamView};
use anabranch_wire::{COMMON_HEADER_LEN, data_chunk_len};

/// A policy that answers nonsense again and again is asked this often per packet at most.
const MAX_ASKS: usize = 64;
/// TSNs from the cumulative acknowledgement to the newest. Gap blocks have 16 bits (RFC 9260 §3.3.4), and so have
/// SSNs: were more than half their number under way in a stream, the peer could not tell late from early (§1.6).
const MAX_SPAN: u64 = 32_000;

impl Association {
    // ---- retransmissions

    pub(super) fn transmit_retransmission(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let chunk = loop {
            self.give_up_marked(now);
            self.settle_takeovers(now);
            if self.board.marked().is_empty() {
                return false;
            }
            let first = self.first_marked(now);
            let Some(chunk) = self.board.marked().get(first).copied() else { return false };
            if !self.give_up_chosen(now, &chunk) {
                break chunk;
            }
        };
        let Some(path) = self.retransmission_path(now, &chunk) else { return false };
        self.scratch.packet.clear();
        let mut size = COMMON_HEADER_LEN + data_chunk_len(chunk.len as usize);
        self.scratch.packet.push(self.board.extend(chunk.tsn));
        self.bundle_marked(now, &mut size);
        self.bundle_outstanding(path, size);
        self.stats.retransmissions += self.scratch.packet.len() as u64;
        self.emit_data(now, path, out);
        self.settle_takeovers(now);
        true
    }

    fn first_marked(&mut self, now: Instant) -> usize {
        let facts = self.facts(now);
        let cx = facts.view(&self.views);
        self.policies.retransmission_order.first(&cx, self.board.marked()).min(self.board.marked().len() - 1)
    }

    /// Fills the packet with what is marked too, in the order of the policy. On the wire TSNs rise (§6.10).
    fn bundle_marked(&mut self, now: Instant, size: &mut usize) {
        let room = |size: usize, c: &ChunkView| size + data_chunk_len(c.len as usize) <= self.config.packet_size;
        let mut rest = core::mem::take(&mut self.scratch.marked);
        rest.clear();
        let first = self.scratch.packet.first().copied();
        rest.extend(self.board.marked().iter().filter(|c| room(*size, c) && Some(self.board.extend(c.tsn)) != first));
        let facts = self.facts(now);
        while !rest.is_empty() {
            let cx = facts.view(&self.views);
            let at = self.policies.retransmission_order.first(&cx, &rest).min(rest.len() - 1);
            let c = rest.remove(at);
            if room(*size, &c) {
                *size += data_chunk_len(c.len as usize);
                self.scratch.packet.push(self.board.extend(c.tsn));
                rest.retain(|c| room(*size, c));
            }
        }
        self.scratch.marked = rest;
    }

    /// Further outstanding chunks of the same path, when the order asks for them (P2 §2.4, mechanism 5).
    fn bundle_outstanding(&mut self, path: PathId, mut size: usize) {
        let Some(v) = self.views.paths.get(path.index()) else { return };
        if !self.policies.retransmission_order.bundles_outstanding(v) {
            return;
        }
        let Some(p) = self.paths.get(path.index()) else { return };
        for c in p.flight.copies() {
            let Some(chunk) = self.board.get(c.tsn) else { continue };
            let len = data_chunk_len(chunk.payload.len());
            let fits = size + len <= self.config.packet_size && !chunk.copies.is_full();
            if chunk.state == ChunkState::Outstanding && fits && !self.scratch.packet.contains(&c.tsn) {
                size += len;
                self.scratch.packet.push(c.tsn);
            }
            if size + 20 > self.config.packet_size {
                break;
            }
        }
    }

    /// Asks the retransmission policy; gates the answer by window and free passes (baselines B3).
    fn retransmission_path(&mut self, now: Instant, chunk: &ChunkView) -> Option<PathId> {
        let mut candidates = self.usable_paths();
        let pass = self.paths.iter().position(|p| p.free_pass);
        let bound = self.board.get(self.board.extend(chunk.tsn)).and_then(|c| c.bound).filter(|b| candidates.has(*b));
        for _ in 0..PathSet::CAPACITY {
            if candidates.is_empty() {
                return None;
            }
            let target = match bound {
                Some(b) => Target::On(b),
                None => {
                    let facts = self.facts(now);
                    let cx = facts.view(&self.views);
                    let r = Retransmit { chunk, candidates, free_pass: pass.is_some() };
                    self.policies.retransmission.target(&cx, &r)
                }
            };
            let Target::On(id) = target else { return None };
            let Some(p) = self.paths.get(id.index()).filter(|_| self.usable_paths().has(id)) else {
                self.stats.decisions_refused += 1;
                return None;
            };
            if self.policies.retransmission.binds() == Binding::AtLoss
                && let Some(c) = self.board.get_mut(self.board.extend(chunk.tsn))
            {
                c.bound = Some(id);
            }
            if has_window(p, now) || pass.is_some() {
                // The one packet that leaves whatever the window says has left.
                if let Some(lossy) = pass {
                    self.paths[lossy].free_pass = false;
                }
                return Some(id);
            }
            if bound.is_some() || !self.policies.retransmission.if_full_next() || !candidates.has(id) {
                return None;
            }
            candidates = candidates.without(id);
        }
        None
    }

    // ---- new data

    pub(super) fn transmit_new(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.scheduler_wakeup = None;
        if self.scheduler_blocked {
            return false;
        }
        if core::mem::take(&mut self.fresh_opportunity) {
            let facts = self.facts(now);
            let cx = facts.view(&self.views);
            let queue = QueueView { chunks: self.board.ahead() };
            self.policies.path_scheduler.observe(&cx, &queue, Occasion::Opportunity);
        }
        self.scratch.packet.clear();
        let mut on: Option<PathId> = None;
        let mut size = COMMON_HEADER_LEN;
        for _ in 0..MAX_ASKS {
            if on.is_none() {
                // Not in between: what is given up takes its whole message along, chunks of this packet too.
                self.give_up_ahead(now);
            }
            self.refill_look_ahead(now);
            let Some(next) = self.board.ahead().first() else {
                self.note_app_limited(now);
                break;
            };
            let next_len = next.len;
            let facts = self.facts(now);
            if facts.eligible.is_empty() {
                break;
            }
            let Some(shown) = self.chunks_for_window(now, next_len) else { break };
            let decision = {
                let cx = facts.view(&self.views);
                let chunks = self.board.ahead().get(..shown).unwrap_or_default();
                self.policies.path_scheduler.next(&cx, &QueueView { chunks })
            };
            match decision {
                Decision::Send { index, path } => {
                    let Some(chunk) = self.board.ahead().get(index).copied().filter(|_| facts.eligible.has(path))
                    else {
                        self.refuse(now);
                        break;
                    };
                    if on.is_none() && self.give_up_chosen(now, &chunk) {
                        continue;
                    }
                    let len = data_chunk_len(chunk.len as usize);
                    // It need not be the one that was asked about; alone it may be a probe all the same.
                    let hole = index < self.board.ahead_holes();
                    if chunk.len > self.peer_rwnd() && !hole && !self.nothing_in_flight() {
                        break;
                    }
                    if on.is_some_and(|p| p != path) || size + len > self.config.packet_size {
                        break;
                    }
                    let tsn = self.board.extend(chunk.tsn);
                    self.take_for_packet(now, tsn, path, on.is_none());
                    on = Some(path);
                    size += len;
                    self.settle(now, &Settled::Sent { tsn: chunk.tsn, path, len: chunk.len });
                }
                Decision::Copies { index, paths } => {
                    if on.is_some() {
                        break;
                    }
                    let paths = paths.and(facts.eligible);
                    let Some(chunk) = self.board.ahead().get(index).copied() else {
                        self.refuse(now);
                        break;
                    };
                    let Some(path) = paths.iter().next() else {
                        self.refuse(now);
                        break;
                    };
                    if self.give_up_chosen(now, &chunk) {
                        continue;
                    }
                    let tsn = self.board.extend(chunk.tsn);
                    self.take_for_packet(now, tsn, path, true);
                    self.copies_due.extend(paths.without(path).iter().map(|p| (tsn, p)));
                    on = Some(path);
                    self.settle(now, &Settled::Sent { tsn: chunk.tsn, path, len: chunk.len });
                    break;
                }
                Decision::WaitUntil(t) => {
                    if on.is_none() {
                        self.scheduler_wakeup = Some(t.max(now + Duration::from_micros(1)));
                        self.settle(now, &Settled::Waiting(t));
                    }
                    break;
                }
                Decision::Blocked => {
                    if on.is_none() {
                        self.scheduler_blocked = true;
                        self.settle(now, &Settled::Blocked);
                    }
                    break;
                }
            }
        }
        let Some(path) = on else { return false };
        self.finish_data(now, path, out);
        true
    }

    fn refuse(&mut self, now: Instant) {
        self.stats.decisions_refused += 1;
        self.scheduler_blocked = true;
        self.settle(now, &Settled::Refused);
    }

    fn settle(&mut self, now: Instant, outcome: &Settled) {
        let facts = self.facts(now);
        let cx = facts.view(&self.views);
        self.policies.path_scheduler.settle(&cx, outcome);
    }

    /// Gives TSNs to as much as the scheduler wants to see ahead.
    fn refill_look_ahead(&mut self, now: Instant) {
        let facts = self.facts(now);
        let want = {
            let cx = facts.view(&self.views);
            self.policies.path_scheduler.look_ahead(&cx)
        };
        if want.when_drained && !self.board.ahead().is_empty() {
            return;
        }
        let mut added = false;
        while (self.board.ahead().is_empty() || self.board.ahead_bytes() < want.bytes)
            && self.board.end() - self.board.cumulative() < MAX_SPAN
        {
            let Some(f) = self.next_fragment(now) else { break };
            self.board.append(f);
            added = true;
        }
        if added && want.bytes > 0 {
            let facts = self.facts(now);
            let cx = facts.view(&self.views);
            self.policies.path_scheduler.observe(&cx, &QueueView { chunks: self.board.ahead() }, Occasion::Refilled);
        }
    }

    fn next_fragment(&mut self, now: Instant) -> Option<Fragment> {
        let facts = self.facts(now);
        let cx = facts.view(&self.views);
        let abandon = &self.policies.abandon;
        let may_give_up = self.peer.forward_tsn;
        let groups = &mut self.groups;
        let mut expired = |s: &StreamView, message: u64, o: &SendOptions| {
            let view = ChunkView {
                stream: s.id,
                message,
                len: s.head_len,
                class: s.class,
                deadline: s.head_deadline,
                queued_at: s.head_queued,
                group_broken: groups.is_broken(o.group),
                group_unsent: groups.unsent(o.group),
                ..ChunkView::waiting(Tsn(0))
            };
            let gone = may_give_up && s.head_deadline.is_some() && abandon.give_up(&cx, &view);
            if gone {
                groups.break_up(o.group);
                groups.taken(o.group, s.head_len);
            }
            gone
        };
        let max = self.mtu as usize;
        let (f, given_up) = self.queue.next(now, max, self.policies.stream_scheduler.as_mut(), &mut expired);
        self.stats.abandoned_unsent += given_up;
        f
    }

    fn note_app_limited(&mut self, now: Instant) {
        for p in &mut self.paths {
            if has_window(p, now) {
                p.rate.app_limited(p.flight.bytes());
            }
        }
    }

    // ---- building

    /// Sends the chunks of `scratch.packet` on `path`.
    pub(super) fn emit_data(&mut self, now: Instant, path: PathId, out: &mut Transmit) {
        let mut list = core::mem::take(&mut self.scratch.packet);
        list.sort_unstable();
        for (i, &tsn) in list.iter().enumerate() {
            self.account(now, tsn, path, i == 0);
        }
        self.scratch.packet = list;
        self.finish_data(now, path, out);
    }

    fn take_for_packet(&mut self, now: Instant, tsn: u64, path: PathId, first: bool) {
        self.account(now, tsn, path, first);
        self.scratch.packet.push(tsn);
    }

    /// Books one chunk of a packet: flight, scoreboard, board of views.
    fn account(&mut self, now: Instant, tsn: u64, path: PathId, first: bool) {
        let Some(chunk) = self.board.get(tsn) else { return };
        let (len, again) = (chunk.len(), chunk.transmissions > 0);
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        if first {
            let at_send = p.rate.on_sent(now, len, p.flight.bytes(), p.rtt.srtt());
            p.flight.begin_packet(now, at_send);
        }
        let tx_seq = p.flight.next_seq() - 1;
        p.flight.add_copy(tsn, len);
        p.counters.data_sent += len;
        if again {
            p.counters.data_retransmitted += len;
        } else {
            self.groups.taken(chunk.group, len);
        }
        self.board.on_sent(tsn, LiveCopy { path, tx_seq, sent_at: now, misses: 0 });
        self.refresh_view(path);
    }

    /// Encodes the booked packet, adds a SACK when it fits, starts timers.
    fn finish_data(&mut self, now: Instant, path: PathId, out: &mut Transmit) {
        start_packet(self, path, out);
        self.scratch.packet.sort_unstable();
        let list = core::mem::take(&mut self.scratch.packet);
        let data_len: usize =
            list.iter().filter_map(|&t| self.board.get(t)).map(|c| data_chunk_len(c.payload.len())).sum();
        self.bundle_sack(path, out, data_len);
        let (mut payload, taps) = (0, self.policies.redundancy.enabled());
        for &tsn in &list {
            let Some(c) = self.board.get(tsn) else { continue };
            payload += c.len();
            out.packet.push_data(&c.header, c.payload.clone());
            if taps {
                self.policies.redundancy.sent(&SentPayload { chunk: &c.view(), payload: &c.payload, at: now });
            }
        }
        self.scratch.packet = list;
        self.sent_packet(now, path, out);
        self.after_data(now, path, payload);
    }

    fn after_data(&mut self, now: Instant, path: PathId, payload: u64) {
        self.refresh_view(path);
        let facts = self.facts(now);
        let cx = facts.view(&self.views);
        let Some(v) = self.views.paths.get(path.index()) else { return };
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        p.burst_left = p.burst_left.saturating_sub(1);
        p.last_data_sent = Some(now);
        p.window.on_sent(now, p.flight.next_seq() - 1, v);
        if let Some(rate) = p.window.pace(v).filter(|r| *r > Rate::ZERO) {
            p.next_paced = p.next_paced.max(now) + rate.time_for(payload);
            p.pace_pending = true;
        }
        if p.t3.is_none() {
            p.t3 = Some(self.policies.timer.arm(&cx, v, Arm::Started));
        }
        p.loss_timer = self.policies.loss_timer.deadline(&cx, v);
        p.suspect_timer = self.policies.path_state.suspect_at(&cx, v);
        self.policies.path_quality.observe(&cx, Notice::Sent { path, bytes: payload });
        p.released += payload;
    }
}
