//! Explicit congestion notification: marks of queues come back as ECNE and are answered by CWR
//! (draft-stewart-tsvwg-sctpecn; RFC 4960 appendix A has its older form; RFC 3168).
//!
//! The sender cuts the window of the path that carried the marked TSN, as after a loss, once per window: what was sent
//! before the last cut says nothing new. Packets with a repeated chunk leave without ECT (RFC 3168 §6.1.5).

use crate::association::Association;
use crate::association::control::What;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_policy::loss_cause::{Cause, LossEvent, LossKind};
use anabranch_policy::path_quality::Notice;
use anabranch_wire::Ecne;

impl Association {
    /// The peer says that the packet with this TSN was marked.
    pub(in crate::association) fn on_ecne(&mut self, now: Instant, path: PathId, e: &Ecne) {
        let tsn = self.sender.board.extend(e.tsn);
        if tsn >= self.sender.board.sent_end() || self.sender.board.has_unsent_until(tsn) {
            return;
        }
        let copy = self.sender.board.get(tsn).and_then(|c| c.copies.iter().last().copied());
        if let Some(copy) = copy
            && let Some(p) = self.paths.get(copy.path.index())
            && p.congestion.is_after_episode(copy.tx_seq)
        {
            self.cut_for_mark(now, copy.path);
        }
        // Also for what was acknowledged meanwhile: the answer before this one may have been lost.
        let newest = Tsn((self.sender.board.sent_end() - 1) as u32);
        self.control.push(path, What::Cwr(newest));
    }

    /// One cut for the packets in flight.
    fn cut_for_mark(&mut self, now: Instant, path: PathId) {
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        let mtu = self.paths.mtu();
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        let e = LossEvent { path, kind: LossKind::FastRetransmit, bytes: 0, packets: None, new_episode: true };
        let to = p.congestion.judge_loss(&cx, path, &e, Cause::Congestion);
        p.congestion.cut(&to, mtu);
        p.congestion.begin_episode(p.flight.next_seq().checked_sub(1));
        p.counters.recoveries += 1;
        p.counters.cuts_by_mark += 1;
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        self.policies.coupling.on_loss(&cx, &e, Cause::Congestion);
        self.policies.path_quality.observe(&cx, Notice::Lost { path });
        self.adjust_coupling(now);
    }
}
