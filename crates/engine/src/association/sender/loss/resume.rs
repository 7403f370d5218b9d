//! A path that answers after an expiry of T3, where the policy of timers wants it used at once: the back-off ends,
//! what the answer overtook is sent again, and the rest is timed anew.

use crate::association::Association;
use crate::path::Path;
use crate::path::timers::TICK;
use crate::repair::TransmissionCause;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::PathState;

/// What a longer packet or a busy peer may add to a steady round trip.
const SPREAD: Duration = Duration::from_millis(10);

impl Association {
    /// `path` answered what left at `sent_at`; `surely` when nothing else can have been meant. The answer to something
    /// sent several times ends the back-off only if it came when that of the newest copy was due, for it may be a slow
    /// path's to an older one (Karn's rule).
    #[inline]
    pub(in crate::association) fn note_resumed(&mut self, now: Instant, path: PathId, sent_at: Instant, surely: bool) {
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        if !p.expiry.awaits_answer() || !self.policies.timer.resumes() {
            return;
        }
        let srtt = p.rtt.srtt();
        let in_time = surely || now.since(sent_at) <= srtt + (p.rtt.rttvar() * 4).max(srtt / 4).max(SPREAD);
        p.expiry.answer(sent_at, in_time);
    }

    /// The answer to a FORWARD-TSN shows that its path works, although it acknowledges no data.
    fn note_answered_forward(&mut self, now: Instant) {
        let cum = self.sender.board.cumulative();
        let answered = self.sender.forward_sent.filter(|(to, _, _)| *to <= cum);
        let Some((_, sent_at, path)) = answered else { return };
        self.note_resumed(now, path, sent_at, false);
        if let Some(p) = self.paths.get_mut(path.index()) {
            p.expiry.end_row();
        }
    }

    /// Looks at what the paths that resumed still have in flight.
    pub(in crate::association) fn use_resumed_paths(&mut self, now: Instant) {
        self.note_answered_forward(now);
        if self.paths.iter().any(|p| p.expiry.has_resumed()) {
            self.resume_paths(now);
        }
    }

    #[inline(never)]
    fn resume_paths(&mut self, now: Instant) {
        for i in 0..self.paths.len() {
            let id = PathId(i as u8);
            let Some(resumed) = self.paths.get_mut(i).and_then(|p| p.expiry.take_resumed()) else { continue };
            if resumed.answered > Instant::ZERO {
                self.repair_overtaken(now, id, resumed.answered);
            }
            if let Some(d) = self.paths.get_mut(i).and_then(|p| p.mtu.discovery_mut()).filter(|_| resumed.dark) {
                d.answers_again(now);
            }
            let initial = self.paths.initial_cwnd();
            if let Some(p) = self.paths.get_mut(i).filter(|_| resumed.dark) {
                // It is no window of losses in a queue: what waits begins as on a path that idled (RFC 9260 §7.2.1).
                p.congestion.widen(initial);
            }
            self.leave_for(now, id);
        }
        self.sender.begin_opportunity(self.config.sending.max_burst, &self.policies, &mut self.paths);
    }

    /// What left on the path before `answered` did and should have been answered by now is lost, and the timer of the
    /// rest is the one of a path that works.
    fn repair_overtaken(&mut self, now: Instant, id: PathId, answered: Instant) {
        let rto = self.views.rto(&self.paths, &self.policies, id);
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        p.expiry.end_row();
        // As much later as reordering may make it.
        let usual = p.rtt.srtt() + p.rtt.srtt() / 4;
        let mut again = None;
        let mut list = core::mem::take(&mut self.scratch.copies);
        list.clear();
        list.extend(p.flight.copies());
        for c in &list {
            let sent = self
                .sender
                .board
                .get(c.tsn)
                .and_then(|k| k.copies.iter().find(|l| l.path == id && l.tx_seq == c.tx_seq));
            let Some(sent_at) = sent.map(|l| l.sent_at) else { continue };
            let age = now.since(sent_at);
            let overtaken = sent_at < answered;
            if overtaken && age > usual || age >= rto {
                self.copy_lost(now, id, c, TransmissionCause::Timer);
            } else if overtaken {
                again = again.or(Some(sent_at + usual + TICK));
            }
        }
        list.clear();
        self.scratch.copies = list;
        if let Some(p) = self.paths.get_mut(id.index()) {
            if again.is_some() {
                p.expiry.look_again(answered);
                p.timers.plan_window_probe(again);
            }
            let at = p.flight.oldest_sent().map(|oldest| (oldest + rto).max(now + TICK));
            p.timers.shorten_t3(at, self.sender.board.reneged() > 0);
        }
    }

    /// What is in flight on paths that were only used because none answered goes elsewhere now.
    fn leave_for(&mut self, now: Instant, id: PathId) {
        if !self.paths.usable().has(id) {
            return;
        }
        let idle = |p: &Path| p.id() == id || p.state() == PathState::Active || p.flight.packets() == 0;
        for i in 0..self.paths.len() {
            if self.paths.get(i).is_some_and(|p| !idle(p)) {
                self.empty_path(now, PathId(i as u8), TransmissionCause::Moved);
            }
        }
    }
}
