//! Reports of packets that arrived damaged (draft-stewart-tsvwg-sctpktdrprep).
//!
//! A chunk that the report shows to have been damaged on its way leaves again at once, and no window is cut: it was not
//! congestion. One that a queue dropped is a loss like any other.
//!
//! A report is believed as far as it shows what we sent: the peer's tag, the ports, and of each chunk TSN and the first
//! bytes of payload. A chunk that has been sent more than once already is left to the other ways of repair, so that no
//! number of reports makes a chunk leave more than once more. Those of middle boxes count if they carry our tag too.
//!
//! What arrives damaged is reported to a peer that announced the same. Nothing of such a packet is believed: its tag and
//! ports say whom it is for, and the report goes to the confirmed address that it came from. It is never longer than
//! the packet, and there are few of them, so that nothing is gained by forging damage.

use crate::association::Association;
use crate::association::control::What;
use crate::association::receive::Source;
use crate::path::flight::CopyRef;
use crate::repair::TransmissionCause;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_policy::loss_cause::LossKind;
use anabranch_policy::view::PathState;
use anabranch_wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN, I_DATA_HEADER_LEN, Packet, PacketDrop, kind};
use bytes::Bytes;

/// Payload bytes that have to be the ones that were sent; all of a shorter chunk.
const SHOWN: usize = 16;
/// Of a report, with the common header in front, before the packet it shows.
const REPORT_LEN: usize = COMMON_HEADER_LEN + PacketDrop::HEADER_LEN;

impl Association {
    pub(in crate::association) fn on_packet_drop(&mut self, now: Instant, report: &PacketDrop<'_>) {
        let dropped = report.packet;
        let wanted = self.handshake.header();
        if dropped.get(..8) != wanted.to_bytes().get(..8) {
            return;
        }
        let mut lost: Vec<(PathId, u64)> = Vec::new();
        let mut rest = dropped.get(COMMON_HEADER_LEN..).unwrap_or_default();
        while let [k, _, l0, l1, ..] = *rest {
            let len = usize::from(u16::from_be_bytes([l0, l1]));
            let header = match k {
                kind::DATA => DATA_HEADER_LEN,
                kind::I_DATA => I_DATA_HEADER_LEN,
                _ => 4,
            };
            if len < header {
                break;
            }
            let chunk = rest.get(..len).unwrap_or(rest);
            if header > 4
                && let Some(found) = self.take_damaged(now, chunk, len, header)
            {
                lost.push(found);
            }
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
        if report.is_damage() {
            return;
        }
        for (path, bytes) in lost {
            self.react(now, path, LossKind::FastRetransmit, bytes);
        }
    }

    /// A packet with our tag and ports came `from` there, and its checksum is wrong. True when that
    /// is to be reported.
    pub(crate) fn report_damage(&mut self, now: Instant, from: Source, packet: &Packet<'_>, bytes: &[u8]) -> bool {
        if !self.peer.packet_drop || !self.handshake.state().is_connected() || !may_be_reported(packet) {
            return false;
        }
        let confirmed = |p: &&crate::path::Path| {
            (p.local(), p.remote()) == (from.local, from.remote)
                && p.access.is_known()
                && p.state() != PathState::Unconfirmed
        };
        let Some(path) = self.paths.iter().find(confirmed).map(|p| p.id()) else { return false };
        let room = bytes
            .len()
            .saturating_sub(self.handshake.auth().room())
            .min(self.paths.packet_size(path))
            .saturating_sub(REPORT_LEN);
        // Whole words, for padding counts too.
        let Some(shown) = bytes.get(..room / 4 * 4).filter(|s| s.len() >= LEAST_SHOWN) else { return false };
        if !self.control.takes_damage_report(now) {
            return false;
        }
        let whole_len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.control.push(path, What::Damage { shown: Bytes::copy_from_slice(shown), whole_len });
        true
    }

    /// Marks the chunk that `shown` is the beginning of, if it is one that was sent once and is in flight. Its path and
    /// payload bytes.
    fn take_damaged(&mut self, now: Instant, shown: &[u8], len: usize, header: usize) -> Option<(PathId, u64)> {
        let tsn = shown.get(4..8).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes)?;
        let tsn = self.sender.board.extend(Tsn(tsn));
        let c = self.sender.board.get(tsn).filter(|c| c.transmissions == 1)?;
        let copy = c.copies.single()?;
        let (bytes, all) = (shown.get(header..)?, c.payload.len());
        let needed = all.min(SHOWN);
        if len != header + all || bytes.len() < needed || bytes.get(..needed) != c.payload.get(..needed) {
            return None;
        }
        let lost = self.copy_lost(now, copy.path, &CopyRef { tx_seq: copy.tx_seq, tsn }, TransmissionCause::Reports);
        (lost > 0).then_some((copy.path, lost))
    }
}

/// Less of a packet may not show a chunk by which it is believed.
const LEAST_SHOWN: usize = COMMON_HEADER_LEN + I_DATA_HEADER_LEN + SHOWN;

/// Data that could leave again, and nothing that is not to be answered: a report, or the end or beginning of something.
fn may_be_reported(packet: &Packet<'_>) -> bool {
    let mut data = false;
    for c in packet.chunks() {
        match c.map(|c| c.kind) {
            Ok(kind::DATA | kind::I_DATA) => data = true,
            Ok(kind::PACKET_DROP | kind::ABORT | kind::INIT | kind::INIT_ACK) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    data
}
