//! New data: the path scheduler proposes a chunk and a path, again and again until a packet is full; each answer is
//! checked here and carried out or refused (ARCHITECTURE decision 4).

use crate::association::policies::facts::{self, Facts};
use crate::association::sender::Sender;
use crate::association::sender::give_up::is_partial;
use crate::association::{Association, Undelivered};
use crate::message::SendOptions;
use crate::repair::TransmissionCause;
use crate::settings::Nagle;
use crate::transmit::Transmit;
use anabranch_base::{Duration, Instant, PathId, PathSet, StreamId, Tsn};
use anabranch_policy::Asks;
use anabranch_policy::path_scheduler::{Decision, LookAhead, Occasion, Settled};
use anabranch_policy::view::{ChunkView, QueueView, StreamView};
use anabranch_wire::COMMON_HEADER_LEN;
use bytes::Bytes;

/// A policy that answers nonsense again and again is asked this often per packet at most.
const MAX_ASKS: usize = 64;
/// TSNs from the cumulative acknowledgement to the newest. Gap blocks have 16 bits (RFC 9260 §3.3.4), and so have
/// SSNs: were more than half their number under way in a stream, the peer could not tell late from early (§1.6).
const MAX_SPAN: u64 = 32_000;

/// What came of one answer of the scheduler.
#[derive(PartialEq, Eq)]
enum Step {
    /// There may be room for more, or it is worth asking again.
    Again,
    /// The packet is complete, or there is none.
    Done,
}

/// What waits without a break for so long is no burst: the paths carry less than is offered.
const LONG: Duration = Duration::from_millis(500);

/// The packet under construction.
struct Building {
    on: Option<PathId>,
    size: usize,
    /// Of its newest chunk.
    stream: StreamId,
}

impl Association {
    pub(in crate::association) fn transmit_new(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.sender.scheduler_wakeup = None;
        let repairs_wait = self.sender.board.has_marked() && self.policies.recovery.repairs_first();
        if self.sender.scheduler_blocked || self.waits_for_confirmation() || repairs_wait {
            return false;
        }
        if self.sender.queue.is_empty() && self.sender.board.ahead().is_empty() {
            self.note_nothing_waits(now);
            return false;
        }
        if self.sender.user_sends && self.config.sending.nagle != Nagle::Off && self.waits_for_more() {
            return false;
        }
        let open = facts::eligible(now, &self.paths, &self.sender, &self.policies);
        let nothing_to_ask = !self.policies.ask(Asks::OUTCOMES)
            && !self.policies.ask(Asks::LOOK_AHEAD)
            && !self.sender.board.ahead().is_empty();
        if open.is_empty() && nothing_to_ask && !self.give_up_ahead(now) {
            self.sender.fresh_opportunity = false;
            self.scratch.packet.clear();
            return false;
        }
        // What was given up meanwhile may have made room.
        let open = match open.is_empty() {
            true => facts::eligible(now, &self.paths, &self.sender, &self.policies),
            false => open,
        };
        let mut facts = Facts::with(now, open, &self.paths, &self.sender, &self.policies);
        if core::mem::take(&mut self.sender.fresh_opportunity) && self.policies.ask(Asks::OUTCOMES) {
            let cx = self.views.see(&mut self.paths, &self.policies, &facts);
            let queue = self.sender.board.ahead_view();
            self.policies.path_scheduler.observe(&cx, &queue, Occasion::Opportunity);
        }
        self.scratch.packet.clear();
        let mut packet = Building { on: None, size: COMMON_HEADER_LEN, stream: StreamId(0) };
        for _ in 0..MAX_ASKS {
            if packet.on.is_none() && self.give_up_ahead(now) {
                facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
            }
            if self.policies.ask(Asks::PACKETS) {
                self.tell_room(&packet);
            }
            self.refill_look_ahead(&mut facts);
            if self.ask_scheduler(now, &mut facts, &mut packet) == Step::Done {
                break;
            }
            if self.has_nothing_more() {
                self.note_nothing_waits(now);
                break;
            }
        }
        let Some(path) = packet.on else { return false };
        self.bundle_into_probe(now, path, packet.size);
        self.finish_data(now, path, &facts, out);
        self.sender.window_spent |= facts.eligible.is_empty();
        true
    }

    /// All that there was to send has left.
    fn note_nothing_waits(&mut self, now: Instant) {
        self.sender.end_waiting();
        self.paths.note_app_limited(now);
    }

    /// What the scheduler keeps off a path that is open shows nothing of what it would carry.
    fn note_waiting(&mut self, now: Instant) {
        let since = *self.sender.waiting_since.get_or_insert(now);
        match now.since(since) >= LONG {
            true => self.paths.note_kept_off(now),
            false => self.paths.note_app_limited(now),
        }
    }

    /// Is there no further chunk, and no policy that asks about that?
    fn has_nothing_more(&self) -> bool {
        let asks = self.policies.asks();
        let asks = asks.any(Asks::OUTCOMES) || asks.any(Asks::LOOK_AHEAD) || asks.any(Asks::PACKETS);
        !asks && self.sender.queue.is_empty() && self.sender.board.ahead().is_empty()
    }

    /// Has a path to answer before data may leave?
    fn waits_for_confirmation(&mut self) -> bool {
        self.paths.is_confirming()
            && self.paths.goes_on_confirming(&self.addresses, self.config.failure.max_path_retrans)
    }

    /// Less than a packet, while an answer is on its way (Nagle). The end of a message that takes several packets does
    /// not wait: its peer can do nothing with the beginning, and acknowledges a lone packet late.
    fn waits_for_more(&self) -> bool {
        let little = self.sender.queue.bytes() + self.sender.board.ahead_bytes() < self.paths.mtu();
        little
            && matches!(self.handshake.state(), crate::association::State::Established)
            && self.sender.board.outstanding_bytes() > 0
            && (self.config.sending.nagle == Nagle::All || !self.has_begun_message())
    }

    /// Does the next chunk belong to a message of which something has left?
    fn has_begun_message(&self) -> bool {
        match self.sender.board.ahead().first() {
            Some(c) => self.sender.board.get(self.sender.board.extend(c.tsn)).is_some_and(|c| !c.header.flags.begin),
            None => self.sender.queue.is_cutting(),
        }
    }

    /// One question to the scheduler, and what its answer leads to. Keeps `facts` true.
    fn ask_scheduler(&mut self, now: Instant, facts: &mut Facts, packet: &mut Building) -> Step {
        let Some(next_len) = self.sender.board.ahead().first().map(|c| c.len) else {
            self.note_nothing_waits(now);
            return Step::Done;
        };
        if facts.eligible.is_empty() {
            return Step::Done;
        }
        let Some(shown) = self.chunks_for_window(now, next_len, facts.peer_rwnd) else {
            self.sender.window_spent = packet.on.is_some();
            return Step::Done;
        };
        // The only chunk there is would not fit: whatever the answer, the packet is complete.
        if let Some(path) = packet.on
            && shown == 1
            && !self.policies.ask(Asks::OUTCOMES)
            && packet.size + self.paths.chunk_len(next_len as usize) > self.paths.packet_size(path)
        {
            return Step::Done;
        }
        let decision = {
            let cx = self.views.see(&mut self.paths, &self.policies, facts);
            let ahead = self.sender.board.ahead_view();
            let chunks = ahead.chunks.get(..shown).unwrap_or_default();
            self.policies.path_scheduler.next(&cx, &QueueView { chunks, ..ahead })
        };
        match decision {
            Decision::Send { index, path } => self.take_one(now, facts, packet, index, path),
            Decision::Copies { index, paths } => self.take_copies(now, facts, packet, index, paths),
            Decision::WaitUntil(t) => {
                if packet.on.is_none() {
                    self.sender.scheduler_wakeup = Some(t.max(now + Duration::from_micros(1)));
                    self.settle(now, &Settled::Waiting(t));
                }
                Step::Done
            }
            Decision::Blocked => {
                if packet.on.is_none() {
                    self.note_waiting(now);
                    self.sender.scheduler_blocked = true;
                    self.settle(now, &Settled::Blocked);
                }
                Step::Done
            }
        }
    }

    fn take_one(&mut self, now: Instant, facts: &mut Facts, packet: &mut Building, index: usize, path: PathId) -> Step {
        let Some(chunk) = self.sender.board.ahead().get(index).filter(|_| facts.eligible.has(path)) else {
            return self.refuse(now);
        };
        let (chunk_tsn, chunk_len, stream) = (chunk.tsn, chunk.len, chunk.stream);
        // Not in between: what is given up takes its whole message along, chunks of this packet too.
        if packet.on.is_none() && is_partial(chunk) {
            let chunk = *chunk;
            if self.give_up_chosen(now, &chunk) {
                *facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
                return Step::Again;
            }
        }
        let len = self.paths.chunk_len(chunk_len as usize);
        // It need not be the one that was asked about; alone it may be a probe all the same.
        let hole = || index < self.sender.board.ahead_holes();
        if chunk_len > facts.peer_rwnd && !hole() && !self.sender.has_nothing_in_flight() {
            return Step::Done;
        }
        // The first one leaves however small the path has become since it was cut (§6.9).
        let full = |p| p != path || packet.size + len > self.paths.packet_size(path);
        if packet.on.is_some_and(|p| full(p) || self.policies.ask(Asks::PACKETS) && stream != packet.stream) {
            return Step::Done;
        }
        let tsn = self.sender.board.extend(chunk_tsn);
        self.take_for_packet(now, tsn, path, packet.on.is_none());
        packet.on = Some(path);
        packet.size += len;
        packet.stream = stream;
        facts.note_taking(path, &self.paths, &self.sender, &self.policies);
        self.settle_sent(facts, Settled::Sent { tsn: chunk_tsn, path, len: chunk_len });
        Step::Again
    }

    #[inline(never)]
    fn take_copies(
        &mut self,
        now: Instant,
        facts: &mut Facts,
        packet: &mut Building,
        index: usize,
        paths: PathSet,
    ) -> Step {
        if packet.on.is_some() {
            return Step::Done;
        }
        let paths = paths.and(facts.eligible);
        let Some(chunk) = self.sender.board.ahead().get(index).copied() else { return self.refuse(now) };
        let Some(path) = paths.iter().next() else { return self.refuse(now) };
        if self.give_up_chosen(now, &chunk) {
            *facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
            return Step::Again;
        }
        let tsn = self.sender.board.extend(chunk.tsn);
        self.take_for_packet(now, tsn, path, true);
        self.sender.copies_due.extend(paths.without(path).iter().map(|p| (tsn, p, TransmissionCause::Copy)));
        packet.on = Some(path);
        facts.note_taking(path, &self.paths, &self.sender, &self.policies);
        self.settle_sent(facts, Settled::Sent { tsn: chunk.tsn, path, len: chunk.len });
        Step::Done
    }

    #[cold]
    fn refuse(&mut self, now: Instant) -> Step {
        self.stats.rare.decisions_refused += 1;
        self.sender.scheduler_blocked = true;
        self.settle(now, &Settled::Refused);
        Step::Done
    }

    pub(in crate::association) fn settle_sent(&mut self, facts: &Facts, outcome: Settled) {
        if self.policies.ask(Asks::OUTCOMES) {
            let cx = self.views.see(&mut self.paths, &self.policies, facts);
            self.policies.path_scheduler.settle(&cx, &outcome);
        }
    }

    #[inline]
    fn settle(&mut self, now: Instant, outcome: &Settled) {
        if self.policies.ask(Asks::OUTCOMES) {
            self.tell_scheduler(now, outcome);
        }
    }

    #[inline(never)]
    fn tell_scheduler(&mut self, now: Instant, outcome: &Settled) {
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        self.policies.path_scheduler.settle(&cx, outcome);
    }

    /// Says for how much payload the packet has room, to a stream scheduler that fills packets.
    fn tell_room(&mut self, packet: &Building) {
        let room = |p| self.paths.packet_size(p).saturating_sub(packet.size + self.paths.chunk_len(0)) as u64;
        let room = packet.on.filter(|_| !self.policies.ask(Asks::LOOK_AHEAD)).map(room);
        self.policies.stream_scheduler.packet(room);
    }

    /// Gives TSNs to as much as the scheduler wants to see ahead. Keeps `facts` true.
    fn refill_look_ahead(&mut self, facts: &mut Facts) {
        let want = if self.policies.ask(Asks::LOOK_AHEAD) {
            let cx = self.views.see(&mut self.paths, &self.policies, facts);
            self.policies.path_scheduler.look_ahead(&cx)
        } else {
            LookAhead::ONE
        };
        if !self.stream_reset.is_idle() && self.stream_reset.suspends_data() {
            return;
        }
        if want.when_drained && !self.sender.board.ahead().is_empty() {
            return;
        }
        let before = self.sender.board.end();
        while (self.sender.board.ahead().is_empty() || self.sender.board.ahead_bytes() < want.bytes)
            && self.sender.board.end() - self.sender.board.cumulative() < MAX_SPAN
            && self.append_next(facts)
        {}
        // Cut or not, a piece counts as unsent; only what was given up meanwhile does not.
        if self.sender.board.end() > before && want.bytes > 0 {
            facts.note_cutting(&self.sender, &self.policies);
            if self.policies.ask(Asks::OUTCOMES) {
                let cx = self.views.see(&mut self.paths, &self.policies, facts);
                let queue = self.sender.board.ahead_view();
                self.policies.path_scheduler.observe(&cx, &queue, Occasion::Refilled);
            }
        }
    }

    /// Gives the next piece of what waits its TSN; answers whether there was one.
    #[inline]
    fn append_next(&mut self, facts: &Facts) -> bool {
        if self.sender.queue.is_empty() {
            return false;
        }
        if self.peer.forward_tsn && self.sender.may_give_up {
            return self.append_what_is_worth_it(facts);
        }
        let max = self.paths.mtu() as usize;
        let Sender { queue, board, .. } = &mut self.sender;
        queue.next(max, self.policies.stream_scheduler.as_mut(), |_, _, _, _| false, |f| board.append(f)).0
    }

    /// Messages are given up before their first piece where they have become worthless.
    #[inline(never)]
    fn append_what_is_worth_it(&mut self, facts: &Facts) -> bool {
        let cx = self.views.see(&mut self.paths, &self.policies, facts);
        let policies = &mut *self.policies;
        let abandon = &policies.abandon;
        let (groups, abandoned) = (&mut self.sender.groups, &mut self.sender.abandoned);
        let (given_up, keeps, most) =
            (&mut self.sender.given_up, self.config.messages.return_given_up, self.config.limits.send_buffer as u64);
        let expired = |s: &StreamView, message: u64, o: &SendOptions, payload: &Bytes| {
            if s.head_deadline.is_none() {
                return false;
            }
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
            let why = abandon.give_up(&cx, &view);
            if let Some(why) = why {
                abandoned.count(s.id, why, false);
                groups.break_up(o.group);
                groups.taken(o.group, s.head_len);
                if keeps {
                    given_up.keep(Undelivered::unsent(message, o, payload.clone()), most);
                }
            }
            why.is_some()
        };
        let max = self.paths.mtu() as usize;
        let (queue, board) = (&mut self.sender.queue, &mut self.sender.board);
        let (any, given_up) = queue.next(max, policies.stream_scheduler.as_mut(), expired, |f| board.append(f));
        self.stats.abandoned_unsent += given_up;
        any
    }
}
