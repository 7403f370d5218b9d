//! DATA and FORWARD-TSN from the peer, and when to acknowledge.

use crate::association::Association;
use crate::association::control::control_out::{What, causes};
use crate::event::CloseReason;
use crate::rx::tsn_tracker::Received;
use anabranch_base::{Duration, Instant, PathId, Tsn};
use anabranch_policy::acknowledge::{AckWhen, ReceiveView};
use anabranch_policy::view::PathState;
use anabranch_wire::{Cause, Data, DataHeader, ForwardTsn};
use bytes::Bytes;

/// What the DATA chunks of one packet amounted to.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::association) struct Arrival {
    pub any: bool,
    /// Lowest TSN among them.
    pub lowest: Option<Tsn>,
    pub new: bool,
    pub immediate: bool,
    pub dropped: bool,
    /// Something was missing before one of them or after.
    pub gap: bool,
}

/// A path with more errors than this is not asked again by what comes from there: several such must not end an
/// association (§8.1).
const MOST_ASKED: u16 = 3;

/// How long a FORWARD-TSN waits for its SACK, at least, whatever the delay for DATA is (RFC 9260 §6.2 has 200 ms there).
/// With 20 ms a path whose MTU falls costs more frames (weather/one-mtu-600: 24 instead of 14.5); why is not understood.
const FORWARD_SACK_DELAY: Duration = Duration::from_millis(200);

impl Association {
    /// One DATA chunk (§6.2). `owner` holds the payload, when it can be shared.
    pub(in crate::association) fn on_data(
        &mut self,
        now: Instant,
        path: PathId,
        d: &Data<'_>,
        owner: Option<&Bytes>,
        seen: &mut Arrival,
    ) {
        if self.peer.interleaving {
            return self.on_other_kind_of_data(now);
        }
        let Some(tsn) = self.admit(now, path, &d.header, d.payload, seen) else { return };
        if let Some(owner) = owner
            && d.payload.len() == owner.len()
            && self.reconfig.deferred.is_none()
            && self.reassembly.is_in_turn(&d.header)
        {
            return self.reassembly.insert_in_turn(tsn, &d.header, owner);
        }
        self.on_other_data(now, tsn, d, owner);
    }

    /// What belongs to a larger message, does not come in turn, or came in a datagram that may not be held for it.
    fn on_other_data(&mut self, now: Instant, tsn: u64, d: &Data<'_>, owner: Option<&Bytes>) {
        // A slice holds the whole datagram: a chunk that is the smaller part of it is copied.
        let payload = match owner.filter(|o| 2 * d.payload.len() >= o.len()) {
            Some(owner) if d.payload.len() == owner.len() => owner.clone(),
            Some(owner) => owner.slice_ref(d.payload),
            None => self.reassembly.copy(&d.header, d.payload, tsn <= self.tracker.cum_extended()),
        };
        if self.reconfig.deferred.is_some() && self.hold_for_reset(tsn, &d.header, &payload) {
            return;
        }
        let outcome = self.reassembly.insert(tsn, &d.header, payload);
        let outcome = outcome.and_then(|()| self.reassembly.check_cum(self.tracker.cum_extended()));
        if outcome.is_err() {
            self.broken_fragments(now);
        } else if self.receiver_is_stuck() {
            self.make_do(now);
        }
    }

    /// Notes a chunk with this header and payload as received; its extended TSN when it is to be delivered.
    pub(in crate::association) fn admit(
        &mut self,
        now: Instant,
        path: PathId,
        header: &DataHeader,
        payload: &[u8],
        seen: &mut Arrival,
    ) -> Option<u64> {
        if payload.is_empty() {
            let c = causes(&[Cause::NoUserData(header.tsn)]);
            self.abort_raw(now, c, CloseReason::ProtocolViolation("DATA without payload"));
            return None;
        }
        seen.any = true;
        if seen.lowest.is_none_or(|l| header.tsn.at_or_before(l)) {
            seen.lowest = Some(header.tsn);
        }
        seen.immediate |= header.flags.immediate || !self.received_any && !self.config.quirks.first_data_waits;
        self.received_any = true;
        // What closes a hole is news the sender waits for, too (RFC 5681 §4.2).
        seen.gap |= self.tracker.has_gap();
        let tsn = match self.tracker.check(header.tsn) {
            Received::Duplicate => {
                self.tracker.note_duplicate(header.tsn);
                self.stats.duplicates_received += 1;
                return None;
            }
            Received::OutOfWindow => {
                seen.dropped = true;
                return None;
            }
            Received::New(tsn) => tsn,
        };
        if self.reassembly.held_bytes() + payload.len() + self.config.receive_overhead > self.room_for(header.tsn) {
            self.stats.dropped_no_buffer += 1;
            seen.dropped = true;
            if header.tsn == self.tracker.cum().next() && self.reassembly.ready_len() == 0 {
                self.make_do(now);
            }
            return None;
        }
        self.stats.out_of_sequence += u64::from(header.tsn != self.tracker.cum().next());
        self.stats.chunks_received[usize::from(header.flags.unordered)] += 1;
        self.user_data_at = Some(now);
        self.tracker.insert(tsn);
        seen.new = true;
        if header.stream.0 >= self.inbound_streams {
            // Acknowledged, reported, dropped (§6.5).
            self.push_control(path, What::Error(causes(&[Cause::InvalidStream(header.stream)])));
            return None;
        }
        Some(tsn)
    }

    #[cold]
    pub(in crate::association) fn broken_fragments(&mut self, now: Instant) {
        self.abort_raw(
            now,
            causes(&[Cause::ProtocolViolation(b"fragments do not fit")]),
            CloseReason::ProtocolViolation("fragments that do not fit together"),
        );
    }

    /// No room, and no reading would make any: the first part of the message goes to the user, or it is over.
    #[cold]
    pub(in crate::association) fn make_do(&mut self, now: Instant) {
        let parts = if self.peer.interleaving {
            self.config.partial_delivery && self.reassembly.deliver_parts_interleaved()
        } else {
            self.config.partial_delivery && self.reassembly.deliver_part(self.tracker.cum_extended())
        };
        if parts {
            return;
        }
        let why = CloseReason::ProtocolViolation("a message larger than the receive buffer");
        self.abort_raw(now, causes(&[Cause::OutOfResource]), why);
    }

    /// After all chunks of a packet: acknowledge now or later (§6.2).
    pub(in crate::association) fn after_packet_with_data(&mut self, now: Instant, path: PathId, seen: &Arrival) {
        self.doubt_answers(now, path, seen);
        self.sack_path = path;
        if self.reconfig.deferred.is_some() {
            self.finish_deferred(now);
        }
        self.packets_since_sack += 1;
        let first_data = *self.first_data.get_or_insert(now);
        let view = ReceiveView {
            now,
            packets_since_sack: self.packets_since_sack,
            gap: seen.gap || self.tracker.has_gap(),
            gap_left: self.tracker.has_gap(),
            duplicates_only: !seen.new,
            counted: self.peer.packet_count,
            immediate: seen.immediate || seen.dropped,
            last_sack: self.paths.get(path.index()).and_then(|p| p.sack_sent),
            first_data: Some(first_data),
            delay: self.config.sack_delay.min(Duration::from_millis(500)),
        };
        self.still_first =
            self.config.quirks.repeats_wait_too && !seen.new && !view.gap && self.packets_since_sack == 1;
        if self.still_first {
            self.sack_timer = Some(now + view.delay);
        }
        match self.policies.acknowledge.decide(&view) {
            AckWhen::Now => {
                self.sack_due = true;
                self.sack_count_lost = false;
            }
            AckWhen::By(t) => self.sack_timer = Some(self.sack_timer.map_or(t, |o| o.min(t))),
        }
        if matches!(self.state, crate::association::State::ShutdownSent) {
            self.on_data_in_shutdown_sent();
        }
    }

    /// Nothing but repetitions, and by another path than the one we answer on: perhaps the peer does not hear us there.
    /// Every other such answer goes back by the way they came, and a HEARTBEAT finds out; while it stays unanswered
    /// acknowledgements prefer another path (§6.4). Data by such a path are the moment to ask it again.
    fn doubt_answers(&mut self, now: Instant, path: PathId, seen: &Arrival) {
        if self.config.quirks.sacks_follow_data {
            return;
        }
        if self.paths.get(path.index()).is_some_and(|p| p.answers_lost) {
            self.ask_for_answer(now, path);
        }
        if seen.new || seen.dropped {
            return;
        }
        self.answer_by = None;
        let Some(said) = self.sack_target().filter(|said| *said != path) else { return };
        self.answers_back = !self.answers_back;
        self.answer_by = Some(path).filter(|_| self.answers_back);
        if self.paths.get(said.index()).is_some_and(|p| !p.answers_lost) {
            self.ask_for_answer(now, said);
        }
    }

    /// A HEARTBEAT on a path that perhaps answers, and perhaps not; less and less often while it does not, and soon no
    /// more than on any other.
    fn ask_for_answer(&mut self, now: Instant, path: PathId) {
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        if p.state == PathState::Unconfirmed || p.errors > MOST_ASKED {
            return;
        }
        let patience = self.config.rto_initial * (1 << p.errors);
        if p.heartbeat.is_none() && p.doubted_at.is_none_or(|t| now.since(t) >= patience) {
            p.doubted_at = Some(now);
            self.request_heartbeat(now, path);
        }
    }

    /// FORWARD-TSN (RFC 3758 §3.6).
    pub(in crate::association) fn on_forward_tsn(&mut self, now: Instant, f: &ForwardTsn<'_>) {
        if self.peer.interleaving {
            return self.on_other_kind_of_data(now);
        }
        if let Some(to) = self.tracker.forward(f.new_cum) {
            self.reassembly.forward(to, &mut f.streams());
            // It may have moved over the end of what has no end.
            if self.reassembly.check_cum(self.tracker.cum_extended()).is_err() {
                return self.broken_fragments(now);
            }
        }
        self.after_forward(now, f.new_cum);
    }

    /// After a FORWARD-TSN of either kind: acknowledge now or later.
    pub(in crate::association) fn after_forward(&mut self, now: Instant, new_cum: Tsn) {
        if self.reconfig.deferred.is_some() {
            self.finish_deferred(now);
        }
        // It is no DATA, and says nothing that the peer does not know: it waits for the next SACK.
        let by = now + FORWARD_SACK_DELAY.max(self.config.sack_delay.min(Duration::from_millis(500)));
        self.sack_timer = Some(self.sack_timer.map_or(by, |o| o.min(by)));
        // An old one means that our SACK was lost.
        if self.tracker.has_gap() || !new_cum.at_or_before(self.tracker.cum()) {
            self.sack_due = true;
        }
    }
}
