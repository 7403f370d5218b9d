//! Parity from the peer, and what is restored from it.

use super::Outcome;
use crate::association::Association;
use crate::association::receive::Source;
use crate::association::receiver::data_in::Arrival;
use crate::association::receiver::i_data_in::as_data;
use crate::parity_head;
use anabranch_base::{Instant, Tsn};
use anabranch_policy::Asks;
use anabranch_policy::redundancy::SourceHead;
use anabranch_wire::{Chunk, Data, IData, Packet, Parity, RawChunk, Repaired, Verify, kind};
use bytes::Bytes;

impl Association {
    /// A chunk came for the first time: parity may cover it.
    #[inline(never)]
    pub(super) fn note_source(&mut self, now: Instant, number: u64, head: &SourceHead, payload: &[u8]) {
        if self.policies.ask(Asks::REPAIR) {
            self.policies.repair.arrived(number, &[head.bytes(), payload]);
            self.take_restored(now);
        }
    }

    /// A PARITY chunk: received as DATA is, and shown to the policy.
    pub(in crate::association) fn on_parity(&mut self, now: Instant, p: &Parity<'_>, seen: &mut Arrival) {
        let Some((number, _)) = self.admit_tsn(now, p.tsn, 0, seen) else { return };
        self.stats.rare.parity_received += 1;
        if self.policies.ask(Asks::REPAIR) {
            self.policies.repair.parity(now, number, p.record);
            self.take_restored(now);
            self.take_corrected(now);
        }
    }

    /// Hands on what the policy restored, as if it had come.
    fn take_restored(&mut self, now: Instant) {
        while let Some((number, symbol)) = self.policies.repair.restored() {
            let (tsn, packet) = (Tsn(number as u32), self.paths.mtu());
            let outcome = if self.peer.interleaving {
                let Some((header, payload)) = parity_head::i_data(tsn, symbol) else { continue };
                let owner = Bytes::copy_from_slice(payload);
                self.receiver.restore_interleaved(number, &IData { header, payload: &owner }, &owner, packet)
            } else {
                let Some((header, payload)) = parity_head::data(tsn, symbol) else { continue };
                let owner = Bytes::copy_from_slice(payload);
                self.receiver.restore(number, &Data { header, payload: &owner }, &owner, packet)
            };
            if outcome.is_some() {
                self.stats.rare.repaired += 1;
            }
            if let Some(broken) = outcome.filter(|o| *o != Outcome::Held) {
                self.mend(now, broken);
            }
        }
    }

    /// A packet with a wrong checksum, of a peer whose parity may correct it. Did that bring anything?
    pub(crate) fn take_damaged_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> bool {
        let known = || self.paths.iter().any(|p| (p.local(), p.remote()) == (from.local, from.remote));
        if !self.policies.ask(Asks::DAMAGED) || !self.peer.parity || !self.handshake.state().accepts_data() || !known()
        {
            return false;
        }
        self.policies.repair.damaged(now, bytes);
        self.take_corrected(now)
    }

    /// Takes data out of packets that the policy corrected, where their checksum is right, as if it had been restored:
    /// a packet that came damaged is one that its path lost.
    fn take_corrected(&mut self, now: Instant) -> bool {
        if !self.policies.ask(Asks::DAMAGED) {
            return false;
        }
        let mut any = false;
        while let Some(bytes) = self.policies.repair.corrected() {
            let Ok(packet) = Packet::parse(&bytes, Verify::Checksum) else { continue };
            if packet.header.vtag != self.handshake.local_tag() {
                continue;
            }
            any = true;
            for raw in packet.chunks().flatten() {
                self.take_corrected_chunk(now, &raw);
            }
        }
        any
    }

    fn take_corrected_chunk(&mut self, now: Instant, raw: &RawChunk<'_>) {
        let packet = self.paths.mtu();
        let (outcome, given_up) = match (raw.kind, self.peer.interleaving) {
            (kind::DATA, false) => {
                let Ok(d) = raw.as_data() else { return };
                let owner = Bytes::copy_from_slice(d.payload);
                match self.receiver.number_of_missing(d.header.tsn) {
                    Some(number) => {
                        let d = Data { header: d.header, payload: &owner };
                        (self.receiver.restore(number, &d, &owner, packet), false)
                    }
                    None => (None, self.receiver.take_given_up(&d.header, None, &owner)),
                }
            }
            (kind::I_DATA, true) => {
                let Ok(Chunk::IData(d)) = raw.decode() else { return };
                let owner = Bytes::copy_from_slice(d.payload);
                match self.receiver.number_of_missing(d.header.tsn) {
                    Some(number) => {
                        let d = IData { header: d.header, payload: &owner };
                        (self.receiver.restore_interleaved(number, &d, &owner, packet), false)
                    }
                    None => (None, self.receiver.take_given_up(&as_data(&d.header), Some(d.header.mid), &owner)),
                }
            }
            _ => return,
        };
        self.stats.rare.repaired += u64::from(outcome.is_some() || given_up);
        if let Some(broken) = outcome.filter(|o| *o != Outcome::Held) {
            self.mend(now, broken);
        }
    }

    /// The peer gives up what is up to a TSN: of what came damaged, check bits may come later.
    #[inline]
    pub(super) fn note_given_up(&mut self, new_cum: Tsn) {
        if self.peer.parity && self.policies.ask(Asks::DAMAGED) {
            self.receiver.note_given_up(new_cum);
        }
    }

    /// The peer knows that these were lost: they count as received.
    pub(in crate::association) fn on_settled(&mut self, now: Instant, r: &Repaired<'_>) {
        let mut news = false;
        for tsn in r.tsns() {
            news |= self.receiver.settle_restored(tsn);
        }
        if !news {
            // Said again: our SACK was lost.
            return self.acknowledger.after_forward_tsn(now, self.config.timers.sack_delay, true);
        }
        if self.receiver.check_cum() == Outcome::Broken {
            return self.broken_fragments(now);
        }
        let cum = self.receiver.cum();
        self.after_forward(now, cum);
    }

    /// The cumulative TSN moved over what may have been restored.
    #[inline]
    pub(super) fn pass_restored(&mut self) {
        if self.peer.parity {
            let cum = self.receiver.pass_restored();
            self.policies.repair.settle_below(cum + 1);
        }
    }
}
