//! I-DATA and I-FORWARD-TSN from the peer (RFC 8260), and those of the two kinds that do not belong here.

use crate::association::Association;
use crate::association::receiver::data_in::Arrival;
use crate::event::CloseReason;
use anabranch_base::{Instant, PathId, Ssn};
use anabranch_wire::{Cause, DataHeader, IData, IForwardTsn};
use bytes::Bytes;

impl Association {
    /// One I-DATA chunk. `owner` holds the payload, when it can be shared.
    pub(in crate::association) fn on_i_data(
        &mut self,
        now: Instant,
        path: PathId,
        d: &IData<'_>,
        owner: Option<&Bytes>,
        seen: &mut Arrival,
    ) {
        let h = &d.header;
        let common =
            DataHeader { tsn: h.tsn, stream: h.stream, ssn: Ssn(h.mid.0 as u16), ppid: h.ppid, flags: h.flags };
        let Some(tsn) = self.admit(now, path, &common, d.payload, seen) else { return };
        // A slice holds the whole datagram: a chunk that is the smaller part of it is copied.
        let payload = match owner.filter(|o| 2 * d.payload.len() >= o.len()) {
            Some(owner) => owner.slice_ref(d.payload),
            None => Bytes::copy_from_slice(d.payload),
        };
        if self.reconfig.deferred.is_some() && self.hold_interleaved_for_reset(tsn, h, &payload) {
            return;
        }
        if self.reassembly.insert_interleaved(h, payload).is_err() {
            self.broken_fragments(now);
        } else if self.receiver_is_stuck() {
            self.make_do(now);
        }
    }

    /// I-FORWARD-TSN (RFC 8260 §2.3.1).
    pub(in crate::association) fn on_i_forward_tsn(&mut self, now: Instant, f: &IForwardTsn<'_>) {
        if self.tracker.forward(f.new_cum).is_some() {
            self.reassembly.forward_interleaved(&mut f.entries());
        }
        self.after_forward(now, f.new_cum);
    }

    /// DATA where I-DATA was agreed on, or the other way round (RFC 8260 §2.2.3, §2.3.1).
    #[cold]
    pub(in crate::association) fn on_other_kind_of_data(&mut self, now: Instant) {
        let why = CloseReason::ProtocolViolation("DATA and I-DATA mixed");
        self.abort_with(now, &[Cause::ProtocolViolation(b"DATA and I-DATA mixed")], why);
    }
}
