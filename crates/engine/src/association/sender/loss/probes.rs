//! Packets beyond the window while an expiry of T3 waits for its answer, where the policy of timers wants them: one per
//! interval and path, of fresh data if there is any and of what is outstanding else. So a burst of losses or darkness
//! is over a round trip or two after its end, however long T3 has been backed off. So does a window that is full of
//! packets of which nothing was heard for an interval, before T3 expires.

use crate::association::Association;
use crate::association::policies::facts::carrying;
use crate::path::{Origin, Path};
use crate::repair::TransmissionCause;
use crate::transmit::Transmit;
use crate::tx::scoreboard::{Chunk, ChunkState};
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::{PathState, PathView};

/// Less room than this in a packet is not worth a search.
const CRUMB: usize = 20;
/// A round trip after which much of what has a deadline is late.
const SLOW: Duration = Duration::from_millis(250);

impl Association {
    /// The interval is over. While another path in use works, data goes there, and this one is its policy's affair, unless
    /// answers are [`SLOW`] there and came quicker here: what has a deadline may be late there. Where none works it is the
    /// turn of whichever is used for want of a better one.
    pub(in crate::association) fn on_probe_timer(&mut self, now: Instant, id: PathId) {
        let usable = carrying(&self.paths, &self.policies);
        let silent = |p: &Path| p.expiry.is_silent() || self.stuck_from(p).is_some_and(|at| at <= now);
        let here = self.paths.get(id.index()).map_or(Duration::ZERO, |p| p.rtt.min_rtt());
        let slow = |p: &Path| p.id() != id && p.rtt.srtt() > SLOW.max(here * 2);
        let alone = self.paths.iter().filter(|p| usable.has(p.id())).all(|p| silent(p) || slow(p));
        let Some(p) = self.paths.get(id.index()) else { return };
        let (silent, resumed, later) = (silent(p), p.expiry.has_resumed(), self.stuck_from(p));
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.timers.plan_window_probe(later.filter(|at| *at > now));
        }
        if resumed {
            // What was overtaken is overdue now.
            return self.use_resumed_paths(now);
        }
        if !silent {
            return;
        }
        if alone {
            self.ask_unconfirmed(now);
            let turn = if usable.has(id) { Some(id) } else { usable.iter().next() };
            if let Some(p) = turn.and_then(|id| self.paths.get_mut(id.index())) {
                p.expiry.allow_probe();
            }
            return;
        }
        let v = self.views.path(&mut self.paths, &self.policies, id);
        let at = v.and_then(|v| self.policies.window_probe(now, v));
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.timers.plan_window_probe(at);
        }
    }

    /// From when on nothing was heard for as long as a probe waits of the packets that fill the window; none while there is
    /// room. T3, which remembers every spike, is not the only one who asks then.
    fn stuck_from(&self, p: &Path) -> Option<Instant> {
        if p.congestion.has_room(p.flight.bytes()) || p.flight.packets() == 0 {
            return None;
        }
        let v = p.view(self.paths.mtu(), self.views.signals(p.id()));
        self.policies.window_probe(p.health.quiet_since()?, &v)
    }

    /// No path in use answers: one that has not been confirmed yet, or that the peer has not even learnt, may be the way,
    /// however long its own probes have been backed off.
    fn ask_unconfirmed(&mut self, now: Instant) {
        self.repeat_learning(now);
        for i in 0..self.paths.len() {
            let id = PathId(i as u8);
            let Some(p) = self.paths.get(i) else { continue };
            // Not one that the peer named: it may be a bystander's (RFC 5062 §2).
            let own = matches!(p.origin(), Origin::Handshake | Origin::AddedByUs);
            let may_answer = own && p.state() == PathState::Unconfirmed && p.access.is_open();
            if !may_answer {
                continue;
            }
            let asked = p.probing.asked_at();
            if self.pause_in_the_dark(id).is_some_and(|d| asked.is_none_or(|t| now.since(t) >= d)) {
                self.send_heartbeat(now, id);
            }
        }
    }

    /// How long one waits for an answer of an unconfirmed path while no path in use answers: as long as the policy of path
    /// states does before it looks again after one that fell silent.
    pub(in crate::association) fn pause_in_the_dark(&self, id: PathId) -> Option<Duration> {
        let p = self.paths.get(id.index())?;
        let as_silent = PathView { state: PathState::Suspected, ..p.view(self.paths.mtu(), self.views.signals(id)) };
        let (rto, configured) = (self.probe_timeout(id), self.config.timers.heartbeat_interval);
        self.policies.path_state.heartbeat(&as_silent, rto, configured)
    }

    /// The packet of a path that may send one beyond its window. Fresh data first: what is marked is older.
    #[inline]
    pub(in crate::association) fn transmit_probe(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.paths.iter().any(|p| p.expiry.may_probe()) && self.transmit_beyond_window(now, out)
    }

    #[inline(never)]
    fn transmit_beyond_window(&mut self, now: Instant, out: &mut Transmit) -> bool {
        if self.transmit_new(now, out) || self.transmit_retransmission(now, out) || self.repeat_oldest(now, out) {
            return true;
        }
        // Where nothing waits for an answer the next data need no probe; else they leave when they come.
        self.paths.iter_unseen().filter(|p| p.flight.packets() == 0).for_each(|p| p.expiry.end_probe());
        false
    }

    /// The oldest outstanding chunks of the path once more, as many as fit a packet.
    fn repeat_oldest(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let usable = carrying(&self.paths, &self.policies);
        let Some(id) = self.paths.iter().find(|p| p.expiry.may_probe() && usable.has(p.id())).map(|p| p.id()) else {
            return false;
        };
        self.scratch.packet.clear();
        self.repeat_into(now, id, anabranch_wire::COMMON_HEADER_LEN);
        if self.scratch.packet.is_empty() {
            return false;
        }
        self.make_room_for_copies(now, id);
        self.sender.further = TransmissionCause::Probe;
        self.stats.rare.retransmissions += self.scratch.packet.len() as u64;
        self.emit_data(now, id, out);
        true
    }

    /// Fills what a packet of fresh data left free, which is on no path's account yet.
    pub(in crate::association) fn bundle_into_probe(&mut self, now: Instant, id: PathId, size: usize) {
        if !self.paths.get(id.index()).is_some_and(|p| p.expiry.may_probe()) {
            return;
        }
        let fresh = self.scratch.packet.len();
        self.repeat_into(now, id, size);
        self.make_room_for_copies(now, id);
        self.sender.further = TransmissionCause::Probe;
        for i in fresh..self.scratch.packet.len() {
            if let Some(tsn) = self.scratch.packet.get(i).copied() {
                self.account(now, tsn, id, false);
                self.stats.rare.retransmissions += 1;
            }
        }
    }

    /// Adds to the packet what is marked and what is in flight on the path, the oldest first.
    fn repeat_into(&mut self, now: Instant, id: PathId, mut size: usize) {
        let most = self.paths.packet_size(id);
        let in_time = |c: &Chunk| c.deadline.is_none_or(|d| d > now);
        let may_repeat = |c: &Chunk| !c.parity && c.max_retransmissions.is_none_or(|m| c.transmissions <= m);
        let Some(p) = self.paths.get(id.index()) else { return };
        let marked = self.sender.board.marked().map(|(tsn, _)| tsn);
        for tsn in marked.chain(p.flight.copies().map(|c| c.tsn)) {
            if size + CRUMB > most {
                break;
            }
            let Some(c) = self.sender.board.get(tsn) else { continue };
            let len = self.paths.chunk_len(c.payload.len());
            let waits = matches!(c.state, ChunkState::Marked | ChunkState::Outstanding);
            if waits && size + len <= most && in_time(c) && may_repeat(c) && !self.scratch.packet.contains(&tsn) {
                size += len;
                self.scratch.packet.push(tsn);
            }
        }
    }

    /// A chunk has a few live copies at most: the oldest ones on this path give way.
    fn make_room_for_copies(&mut self, now: Instant, id: PathId) {
        for i in 0..self.scratch.packet.len() {
            let Some(tsn) = self.scratch.packet.get(i).copied() else { continue };
            let Some(c) = self.sender.board.get(tsn).filter(|c| c.copies.is_full()) else { continue };
            let oldest =
                c.copies.iter().find(|l| l.path == id).map(|l| crate::path::flight::CopyRef { tx_seq: l.tx_seq, tsn });
            match oldest {
                Some(copy) => {
                    self.copy_lost(now, id, &copy, TransmissionCause::Probe);
                }
                None => self.scratch.packet.retain(|t| *t != tsn),
            }
        }
    }
}
