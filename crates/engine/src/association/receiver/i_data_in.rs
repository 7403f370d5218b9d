//! I-DATA and I-FORWARD-TSN from the peer (RFC 8260), and those of the two kinds that do not belong here.

use super::Outcome;
use crate::association::Association;
use crate::association::receiver::data_in::Arrival;
use crate::event::CloseReason;
use crate::parity_head;
use anabranch_base::{Instant, PathId, Ssn};
use anabranch_wire::{Cause, DataHeader, IData, IDataHeader, IForwardTsn};
use bytes::Bytes;

/// What both kinds of header say.
pub(super) fn as_data(h: &IDataHeader) -> DataHeader {
    DataHeader { tsn: h.tsn, stream: h.stream, ssn: Ssn(h.mid.0 as u16), ppid: h.ppid, flags: h.flags }
}

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
        let Some(tsn) = self.admit(now, path, &as_data(h), d.payload, seen) else { return };
        let outcome = self.receiver.take_interleaved(tsn, d, owner, self.paths.mtu());
        if outcome != Outcome::Held {
            return self.mend(now, outcome);
        }
        // What it restores counts on its being in its message.
        if self.peer.parity {
            self.note_source(now, tsn, &parity_head::of_i_data(h, d.payload.len()), d.payload);
        }
    }

    /// I-FORWARD-TSN (RFC 8260 §2.3.1).
    pub(in crate::association) fn on_i_forward_tsn(&mut self, now: Instant, f: &IForwardTsn<'_>) {
        self.note_given_up(f.new_cum);
        self.receiver.skip_interleaved(f);
        self.after_forward(now, f.new_cum);
    }

    /// DATA where I-DATA was agreed on, or the other way round (RFC 8260 §2.2.3, §2.3.1).
    #[cold]
    pub(in crate::association) fn on_other_kind_of_data(&mut self, now: Instant) {
        let why = CloseReason::ProtocolViolation("DATA and I-DATA mixed");
        self.abort_with(now, &[Cause::ProtocolViolation(b"DATA and I-DATA mixed")], why);
    }
}
