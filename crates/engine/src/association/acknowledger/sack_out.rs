//! SACK and NR-SACK as they leave (RFC 9260 §3.3.4; draft-tuexen-tsvwg-sctp-multipath §3.2).

use crate::association::Association;
use crate::association::path_table::list::Shown;
use crate::association::receiver::MOST_NAMED;
use crate::association::receiver::Report;
use crate::association::transmit::{Scratch, start_packet};
use crate::transmit::Transmit;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_wire::{CountedSack, NrSackOut, RepairedOut, SackOut, TimeStamp};
use smallvec::SmallVec;

impl Association {
    /// Adds the SACK when one is pending for this path and it fits beside `room_needed` further bytes.
    pub(in crate::association) fn bundle_sack(
        &mut self,
        now: Instant,
        path: PathId,
        out: &mut Transmit,
        room_needed: usize,
    ) -> bool {
        if !self.acknowledger.is_pending()
            || self.acknowledger.target(&self.paths, self.config.compatibility.sacks_follow_data) != Some(path)
            || !self.handshake.state().is_connected()
        {
            return false;
        }
        let begin = out.packet.len();
        let room = self.paths.packet_size(path).saturating_sub(begin + room_needed);
        let Some(room) = room.checked_sub(self.sack_len()) else { return false };
        let max_gaps = room / 4;
        if self.collect_gaps(max_gaps + 1) > max_gaps {
            return false;
        }
        self.push_sack(now, out, room, begin);
        true
    }

    /// A packet with nothing but the SACK.
    #[inline]
    pub(in crate::association) fn transmit_sack(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.acknowledger.is_due() && self.handshake.state().is_connected() && self.transmit_due_sack(now, out)
    }

    #[inline(never)]
    fn transmit_due_sack(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let Some(path) = self.acknowledger.target(&self.paths, self.config.compatibility.sacks_follow_data) else {
            return false;
        };
        start_packet(self, path, out);
        let room = self.paths.packet_size(path).saturating_sub(out.packet.len() + self.sack_len());
        self.collect_gaps(room / 4);
        // The packet's header is its own.
        self.push_sack(now, out, room, 0);
        self.sent_packet(now, path, out);
        true
    }

    /// Gathers what is to be reported above the cumulative TSN, at most so many blocks; answers how many.
    fn collect_gaps(&mut self, max: usize) -> usize {
        let Scratch { gaps, kept, .. } = &mut *self.scratch;
        gaps.clear();
        kept.clear();
        let how = match (self.peer.nr_sack, self.config.extensions.nr_sack_covers_undelivered) {
            (false, _) => Report::Renegable,
            (true, true) => Report::KeepsAll,
            (true, false) => Report::KeepsDelivered,
        };
        self.receiver.report(how, gaps, kept, max);
        gaps.len() + kept.len()
    }

    /// The SACK and what goes with it, with so much room for its lists; what the packet has from `begin` on is there for
    /// it.
    fn push_sack(&mut self, now: Instant, out: &mut Transmit, room: usize, begin: usize) {
        let blocks = self.scratch.gaps.len() + self.scratch.kept.len();
        let left = room.saturating_sub(4 * blocks) / 4;
        self.scratch.duplicates.clear();
        self.receiver.take_duplicates(&mut self.scratch.duplicates);
        self.scratch.duplicates.truncate(left);
        let a_rwnd = self.receiver.announce(self.paths.mtu());
        let (cum_tsn, a_rwnd) = (self.receiver.cum(), u32::try_from(a_rwnd).unwrap_or(u32::MAX));
        let (gaps, kept, duplicates) = (&self.scratch.gaps[..], &self.scratch.kept[..], &self.scratch.duplicates[..]);
        if let Some(e) = self.acknowledger.echo() {
            out.packet.push(&e);
        }
        if self.peer.time_stamps {
            // Of the packet, not of the answer, which may have waited.
            let arrived = self.acknowledger.arrived(now);
            out.packet.push(&TimeStamp { micros: (arrived.as_nanos() / 1_000) as u32 });
        }
        if self.peer.parity && self.receiver.has_restored() {
            let tsns: SmallVec<[Tsn; MOST_NAMED]> = self.receiver.restored().collect();
            out.packet.push(&RepairedOut { settled: false, tsns: &tsns });
        }
        let packets = self.acknowledger.answered(self.peer.packet_count);
        if self.peer.nr_sack {
            out.packet.push(&NrSackOut { cum_tsn, a_rwnd, gaps, kept, duplicates });
        } else {
            out.packet.push(&CountedSack { sack: SackOut { cum_tsn, a_rwnd, gaps, duplicates }, packets });
        }
        self.acknowledger.sent(out.packet.len() - begin);
        self.stats.sacks_sent += 1;
        if let Some(p) = self.paths.get_for(self.acknowledger.path.index(), Shown::Nothing) {
            p.health.send_sack(now);
        }
    }

    /// Bytes of a SACK, or of an NR-SACK where that is agreed on, without its lists.
    fn sack_len(&self) -> usize {
        let echo = self.acknowledger.echo_len();
        let stamp = if self.peer.time_stamps { TimeStamp::LEN } else { 0 };
        let restored = match self.receiver.has_restored() {
            true => RepairedOut::len_with(self.receiver.restored().count()),
            false => 0,
        };
        echo + stamp + restored + if self.peer.nr_sack { NrSackOut::len_with(0) } else { SackOut::len_with(0) }
    }
}
