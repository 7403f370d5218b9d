//! Explicit congestion notification: marks of queues come back as ECNE and are answered by CWR
//! (draft-stewart-tsvwg-sctpecn; RFC 4960 appendix A has its older form; RFC 3168).
//!
//! The receiver repeats an ECNE in front of each SACK until a CWR shows that the sender knows. The sender cuts the
//! window of the path that carried the marked TSN, as after a loss, once per window: what was sent before the last cut
//! says nothing new. Packets with a repeated chunk leave without ECT (RFC 3168 §6.1.5).

use crate::association::Association;
use crate::association::control::control_out::What;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_policy::loss_cause::{Cause, LossEvent, LossKind};
use anabranch_policy::path_quality::Notice;
use anabranch_wire::Ecne;

/// ECNE with its chunk header, bytes.
pub(in crate::association) const ECNE_LEN: usize = 12;

/// Marks that the sender has not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    lowest: Tsn,
    highest: Tsn,
    packets: u32,
}

impl Association {
    /// A packet with DATA, the lowest of them `tsn`, was marked on its way.
    #[inline(never)]
    pub(in crate::association) fn note_mark(&mut self, path: PathId, tsn: Tsn) {
        if let Some(p) = self.paths.get_mut(path.index()) {
            p.counters.marked_received += 1;
        }
        if !self.peer.ecn {
            return;
        }
        let m = self.marks.get_or_insert(Marks { lowest: tsn, highest: tsn, packets: 0 });
        m.packets = m.packets.saturating_add(1);
        if tsn.at_or_before(m.lowest) {
            m.lowest = tsn;
        }
        if m.highest.at_or_before(tsn) {
            m.highest = tsn;
        }
    }

    /// What goes in front of a SACK.
    pub(in crate::association) fn echo(&self) -> Option<Ecne> {
        self.marks.map(|m| Ecne { tsn: m.lowest, marked: m.packets })
    }

    /// The sender reacted to all up to this TSN.
    pub(in crate::association) fn on_cwr(&mut self, tsn: Tsn) {
        if let Some(m) = &mut self.marks {
            if m.highest.at_or_before(tsn) {
                self.marks = None;
            } else if m.lowest.at_or_before(tsn) {
                (m.lowest, m.packets) = (m.highest, 1);
            }
        }
    }

    /// The peer says that the packet with this TSN was marked.
    pub(in crate::association) fn on_ecne(&mut self, now: Instant, path: PathId, e: &Ecne) {
        let tsn = self.board.extend(e.tsn);
        if tsn >= self.board.sent_end() || self.board.has_unsent_until(tsn) {
            return;
        }
        let copy = self.board.get(tsn).and_then(|c| c.copies.iter().last().copied());
        if let Some(copy) = copy
            && let Some(p) = self.paths.get(copy.path.index())
            && p.recovery_exit.is_none_or(|exit| copy.tx_seq > exit)
        {
            self.cut_for_mark(now, copy.path);
        }
        // Also for what was acknowledged meanwhile: the answer before this one may have been lost.
        let newest = Tsn((self.board.sent_end() - 1) as u32);
        self.push_control(path, What::Cwr(newest));
    }

    /// One cut for the packets in flight.
    fn cut_for_mark(&mut self, now: Instant, path: PathId) {
        self.refresh_view(path);
        let facts = self.facts(now);
        let cx = facts.view(&self.views);
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        let e = LossEvent { path, kind: LossKind::FastRetransmit, bytes: 0, new_episode: true };
        let to = p.window.on_loss(&cx, path, &e, Cause::Congestion);
        p.cwnd = to.cwnd.max(self.mtu);
        p.ssthresh = to.ssthresh;
        p.partial_bytes_acked = to.partial_bytes_acked;
        p.growth_carry = 0;
        p.recovery_exit = p.flight.next_seq().checked_sub(1);
        p.counters.recoveries += 1;
        p.counters.cuts_by_mark += 1;
        self.refresh_view(path);
        let facts = self.facts(now);
        let cx = facts.view(&self.views);
        self.policies.coupling.on_loss(&cx, &e, Cause::Congestion);
        self.policies.path_quality.observe(&cx, Notice::Lost { path });
        self.adjust_coupling(now);
    }
}
