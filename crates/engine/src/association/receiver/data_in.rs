//! DATA and FORWARD-TSN from the peer, and when to acknowledge.

use super::{Admission, Outcome};
use crate::association::Association;
use crate::association::acknowledger::PacketOfData;
use crate::association::control::{What, causes};
use crate::event::CloseReason;
use crate::parity_head;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_wire::{Cause, Data, DataHeader, ForwardTsn};
use bytes::Bytes;

/// What the DATA chunks of one packet amounted to.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::association) struct Arrival {
    pub any: bool,
    /// Bytes of payload.
    pub bytes: usize,
    /// Lowest TSN among them.
    pub lowest: Option<Tsn>,
    pub new: bool,
    pub immediate: bool,
    pub dropped: bool,
    /// Something was missing before one of them or after.
    pub gap: bool,
}

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
        let outcome = self.receiver.take(tsn, d, owner, self.paths.mtu());
        if outcome != Outcome::Held {
            return self.mend(now, outcome);
        }
        // What it restores counts on its being in its message.
        if self.peer.parity {
            self.note_source(now, tsn, &parity_head::of_data(&d.header, d.payload.len()), d.payload);
        }
    }

    /// What was received cannot go on as it is.
    #[cold]
    pub(super) fn mend(&mut self, now: Instant, outcome: Outcome) {
        match outcome {
            Outcome::Held => {}
            Outcome::Broken => self.broken_fragments(now),
            Outcome::Stuck => self.make_do(now),
        }
    }

    /// Notes a chunk with this header and payload as received; its extended TSN when it is to be delivered.
    #[inline]
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
        seen.immediate |= header.flags.immediate;
        let (tsn, next) = self.admit_tsn(now, header.tsn, payload.len(), seen)?;
        if !next {
            self.stats.rare.out_of_sequence += 1;
        }
        self.stats.chunks_received[usize::from(header.flags.unordered)] += 1;
        if header.stream.0 >= self.receiver.streams() {
            // Acknowledged, reported, dropped (§6.5).
            self.control.push(path, What::Error(causes(&[Cause::InvalidStream(header.stream)])));
            return None;
        }
        Some(tsn)
    }

    /// Notes a TSN with so many bytes as received; itself, extended, and whether it was the next one, unless there is
    /// nothing to be done with it.
    #[inline]
    pub(super) fn admit_tsn(&mut self, now: Instant, tsn: Tsn, len: usize, seen: &mut Arrival) -> Option<(u64, bool)> {
        seen.any = true;
        seen.bytes += len;
        if seen.lowest.is_none_or(|l| tsn.at_or_before(l)) {
            seen.lowest = Some(tsn);
        }
        let first = self.acknowledger.note_data();
        seen.immediate |= first && !self.config.compatibility.first_data_waits;
        // What closes a hole is news the sender waits for, too (RFC 5681 §4.2).
        seen.gap |= self.receiver.has_gap();
        let taken = match self.receiver.admit(tsn, len) {
            Admission::Taken { tsn, next } => (tsn, next),
            refused => {
                self.drop_data(now, refused, seen);
                return None;
            }
        };
        self.sender.note_user_data(now);
        seen.new = true;
        Some(taken)
    }

    fn drop_data(&mut self, now: Instant, why: Admission, seen: &mut Arrival) {
        match why {
            Admission::Duplicate => self.stats.rare.duplicates_received += 1,
            Admission::OutOfWindow => seen.dropped = true,
            Admission::Restored => {
                self.stats.rare.repaired_needlessly += 1;
                seen.new = true;
            }
            Admission::NoRoom { stuck } => {
                self.stats.rare.dropped_no_buffer += 1;
                seen.dropped = true;
                if stuck {
                    self.make_do(now);
                }
            }
            Admission::Taken { .. } => {}
        }
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
    fn make_do(&mut self, now: Instant) {
        let parts = self.config.messages.partial_delivery && self.receiver.deliver_part(self.peer.interleaving);
        if parts {
            return;
        }
        let why = CloseReason::ProtocolViolation("a message larger than the receive buffer");
        self.abort_raw(now, causes(&[Cause::OutOfResource]), why);
    }

    /// After all chunks of a packet: acknowledge now or later (§6.2).
    pub(in crate::association) fn after_packet_with_data(&mut self, now: Instant, path: PathId, seen: &Arrival) {
        self.doubt_answers(now, path, seen);
        self.acknowledger.note_path(path);
        if let Some(done) = self.receiver.finish_reset() {
            self.on_deferred_reset(now, done);
        }
        let gap_left = self.receiver.has_gap();
        let p = PacketOfData {
            bytes: seen.bytes,
            new: seen.new,
            gap: seen.gap || gap_left,
            gap_left,
            immediate: seen.immediate || seen.dropped,
            counted: self.peer.packet_count,
            last_sack: self.paths.get(path.index()).and_then(|p| p.health.last_sack()),
        };
        self.acknowledger.after_packet(now, p, self.config.timers.sack_delay, self.policies.acknowledge.as_ref());
        if matches!(self.handshake.state(), crate::association::State::ShutdownSent) {
            self.on_data_in_shutdown_sent();
        }
    }

    /// FORWARD-TSN (RFC 3758 §3.6).
    pub(in crate::association) fn on_forward_tsn(&mut self, now: Instant, f: &ForwardTsn<'_>) {
        if self.peer.interleaving {
            return self.on_other_kind_of_data(now);
        }
        self.note_given_up(f.new_cum);
        if self.receiver.skip(f) == Outcome::Broken {
            return self.broken_fragments(now);
        }
        self.after_forward(now, f.new_cum);
    }

    /// After a FORWARD-TSN of either kind: acknowledge now or later.
    pub(in crate::association) fn after_forward(&mut self, now: Instant, new_cum: Tsn) {
        self.pass_restored();
        if let Some(done) = self.receiver.finish_reset() {
            self.on_deferred_reset(now, done);
        }
        // An old one means that our SACK was lost.
        let urgent = self.receiver.has_gap() || !new_cum.at_or_before(self.receiver.cum());
        self.acknowledger.after_forward_tsn(now, self.config.timers.sack_delay, urgent);
    }
}
