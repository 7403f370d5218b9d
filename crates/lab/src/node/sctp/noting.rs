//! What an agent notes of its association for the metrics of its flow.

use super::{End, SctpAgent};
use crate::metrics::{Departure, Detail, Record};
use crate::node::headers::data_chunks;
use anabranch_base::{Instant, Tsn};
use anabranch_engine::{Association, Transmit};
use anabranch_sim::network::Address;
use anabranch_wire::PacketSlices;

/// The chunks of a packet that is about to leave, the `number`-th of its sender, and why each leaves.
pub(super) fn departures(record: &mut Record, a: &Association, t: &mut Transmit, number: u32, at: Instant) {
    let path = t.path.unwrap_or_default();
    for c in data_chunks(t.packet.head_mut()) {
        if let Some(k) = a.sent_chunk(Tsn(c.tsn)) {
            let (cause, class) = (k.cause, k.class);
            record.chunk_left(&Departure { tsn: c.tsn, at, path, packet: number, cause, class });
        }
    }
}

impl SctpAgent {
    /// What the sender took for lost, beside what became of it.
    pub(super) fn note_losses(&mut self, now: Instant) {
        if !self.wanted.truth && self.probe.is_none() || self.config.end == End::Server {
            return;
        }
        let (Some(endpoint), Some(id)) = (&mut self.endpoint, self.id) else { return };
        let Some(mut a) = endpoint.association_mut(id) else { return };
        let lost = a.lost_copies();
        if let Some(probe) = self.probe.as_mut().filter(|_| !lost.is_empty()) {
            probe.lost(now, &lost);
        }
        if let Some(r) = self.record.borrow_mut().repairs_mut() {
            lost.iter().for_each(|l| r.taken_for_lost(l));
        }
    }

    /// What waits in the receive buffer.
    pub(super) fn note_held(&mut self, held: u64, now: Instant) {
        if core::mem::replace(&mut self.held, held) != held {
            self.record.borrow_mut().held(held, now);
        }
    }

    fn note_gaps(&mut self, now: Instant) {
        let gaps = self.association().map_or(0, Association::gaps);
        if core::mem::replace(&mut self.gaps, gaps) != gaps {
            self.record.borrow_mut().holes(gaps as u64, now);
        }
    }

    /// What the record keeps of a packet that came.
    pub(super) fn note_arrival(&mut self, now: Instant, from: Address, number: u32, p: &mut PacketSlices) {
        let server = self.config.end == End::Server;
        if server && self.wanted.holes {
            self.note_gaps(now);
        }
        let w = &self.wanted;
        if p.payload_len() == 0 || !w.paths && !w.repairs && w.packet == Detail::Nothing {
            return;
        }
        let mut record = self.record.borrow_mut();
        if server && let Some(path) = self.interfaces.iter().position(|a| *a == from) {
            record.came_on(path, p.payload_len() as u64, now);
        }
        if self.wanted.packet > Detail::Nothing {
            data_chunks(p.head_mut()).for_each(|c| record.arrived(c.tsn, now));
        }
        if server && self.wanted.repairs {
            data_chunks(p.head_mut()).for_each(|c| record.chunk_came(c.tsn, number, now));
        }
    }
}
