//! Credit and growth of the windows after a SACK (§7.2.1, §7.2.2), and the coupling between them.

use crate::association::Association;
use crate::association::path_table::list::Shown;
use crate::association::policies::facts::Facts;
use anabranch_base::{Instant, PathId};
use anabranch_policy::Asks;
use anabranch_policy::ack_credit::PathAck;
use anabranch_policy::coupling::Growth;
use anabranch_policy::window::AckOnPath;

impl Association {
    pub(in crate::association) fn grow(&mut self, now: Instant, advanced: bool) {
        for i in 0..self.paths.len() {
            self.grow_path(now, PathId(i as u8), advanced);
        }
    }

    /// Credit and growth of one path, once for each SACK. Parity fills the window and earns none: a flow that makes it takes
    /// no more of a path than it would without.
    pub(in crate::association) fn grow_path(&mut self, now: Instant, path: PathId, advanced: bool) {
        let i = path.index();
        let (Some(p), Some(slot)) = (self.paths.get(i), self.scratch.acks.get_mut(i)) else { return };
        if slot.bytes == 0 || core::mem::replace(&mut slot.grown, true) {
            return;
        }
        let t = *slot;
        let ack = PathAck {
            path,
            bytes: t.bytes - t.uncredited,
            cumulative_bytes: t.cumulative,
            fully_used: t.fully_used,
            oldest_advanced: match self.policies.expects_lowest_tsn() {
                true => p.followed().is_some_and(|f| f.has_progressed()),
                false => p.flight.expected_seq() > t.expected,
            },
            cumulative_advanced: advanced,
        };
        let mtu = self.paths.mtu();
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        let credited = self.policies.ack_credit.credit(&cx, &ack).min(ack.bytes);
        let Some(p) = self.paths.get_for(i, Shown::Window) else { return };
        let on_path = AckOnPath {
            bytes: credited,
            acked: t.bytes,
            packets: t.packets.max(1),
            fully_used: t.fully_used,
            newest_seq: t.proven,
            rtt: t.newest.map(|n| now.since(n.sent_at)),
            app_limited: p.progress.at_send().app_limited,
        };
        let proposal = p.congestion.judge_ack(&cx, path, &on_path);
        let g = Growth { path, acked: credited, grow: proposal.grow(), fully_used: t.fully_used };
        let share = self.policies.coupling.scale(&cx, &g);
        p.congestion.grow(&proposal, share, mtu, p.flight.bytes() == 0);
        // The next path's growth sees it.
    }

    /// The windows are coupled over the paths in use: these changed.
    pub(in crate::association) fn couple_changed_paths(&mut self, now: Instant) {
        if self.paths.is_uncoupled() {
            self.adjust_coupling(now);
        }
    }

    pub(in crate::association) fn adjust_coupling(&mut self, now: Instant) {
        self.couple(now);
    }

    /// Coupling's adjustment of all windows, from views that are fresh.
    pub(in crate::association) fn couple(&mut self, now: Instant) {
        self.paths.set_coupled();
        if self.policies.ask(Asks::ADJUST) {
            self.adjust_windows(now);
        }
    }

    #[inline(never)]
    fn adjust_windows(&mut self, now: Instant) {
        let facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
        let mut out = core::mem::take(&mut self.scratch.adjust);
        out.clear();
        {
            let cx = self.views.see(&mut self.paths, &self.policies, &facts);
            self.policies.coupling.adjust(&cx, &mut out);
        }
        for a in &out {
            let mtu = self.paths.mtu();
            if let Some(p) = self.paths.get_for(a.path.index(), Shown::Window) {
                p.congestion.set(&a.to, mtu);
            }
        }
        self.scratch.adjust = out;
    }
}
