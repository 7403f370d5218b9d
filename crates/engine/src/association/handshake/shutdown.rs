//! Ending: gracefully (§9.2) or at once (§9.1).

use crate::association::control::{What, causes};
use crate::association::{Association, Phase, State};
use crate::event::{CloseReason, Event};
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_wire::Cause;

impl Association {
    /// Ends gracefully: what was handed over is delivered first.
    pub fn shutdown(&mut self, now: Instant) {
        match self.handshake.state {
            State::Established => {
                self.handshake.state = State::ShutdownPending;
                self.start_guard(now);
                self.continue_shutdown(now);
            }
            State::CookieWait => self.close(CloseReason::Aborted),
            // The peer may have what it needs for an association: it learns that none will be.
            State::CookieEchoed { .. } => self.abort(now, b""),
            _ => {}
        }
    }

    /// Ends at once; the peer gets an ABORT with `reason`.
    pub fn abort(&mut self, now: Instant, reason: &[u8]) {
        match self.handshake.state.phase() {
            Phase::Closed => {}
            Phase::Connecting if self.handshake.peer_tag == 0 => self.close(CloseReason::Aborted),
            _ => {
                let reason = reason.get(..reason.len().min(256)).unwrap_or(reason);
                self.abort_raw(now, causes(&[Cause::UserAbort(reason)]), CloseReason::Aborted);
            }
        }
    }

    /// T5: a peer that never lets us finish does not hold us for ever (§9.2).
    fn start_guard(&mut self, now: Instant) {
        self.handshake.guard = Some(now + self.config.timers.rto_max * 5);
        self.handshake.guarded_from = self.sender.cumulative();
    }

    /// The peer had its time; but data that still flows is given more.
    pub(in crate::association) fn on_guard_timer(&mut self, now: Instant) {
        self.handshake.guard = None;
        if matches!(self.handshake.state, State::ShutdownPending | State::ShutdownReceived)
            && self.sender.cumulative() != self.handshake.guarded_from
        {
            return self.start_guard(now);
        }
        self.abort_with(now, &[], CloseReason::PeerGone);
    }

    /// It does not answer any more (§8.1).
    pub(in crate::association) fn give_up_on_peer(&mut self, now: Instant, why: CloseReason) {
        if self.config.failure.abort_when_given_up && self.handshake.peer_tag != 0 {
            self.abort_with(now, &[], why);
        } else {
            self.close(why);
        }
    }

    /// Any packet gives the peer of our SHUTDOWN all its time again (§9.2).
    #[inline(never)]
    pub(in crate::association) fn peer_is_there(&mut self, now: Instant) {
        self.handshake.attempts = 0;
        let path = self.control_path();
        self.start_control_timer(now, path);
    }

    fn all_delivered(&self) -> bool {
        self.sender.is_drained()
    }

    /// Takes the next step once nothing is outstanding.
    #[inline(never)]
    pub(in crate::association) fn continue_shutdown(&mut self, now: Instant) {
        if !self.all_delivered() {
            return;
        }
        let (state, what) = match self.handshake.state {
            State::ShutdownPending => (State::ShutdownSent, What::Shutdown),
            State::ShutdownReceived => (State::ShutdownAckSent, What::ShutdownAck),
            _ => return,
        };
        self.handshake.state = state;
        self.handshake.attempts = 0;
        let path = self.control_path();
        self.control.push(path, what);
        self.start_control_timer(now, path);
        if matches!(self.handshake.state, State::ShutdownSent) {
            self.start_guard(now);
        }
    }

    pub(in crate::association) fn on_shutdown(&mut self, now: Instant, path: PathId, cum: Tsn) {
        if !self.handshake.state.is_connected() {
            return;
        }
        // pion and what descends from it put their own point here. Such a peer has acknowledged nothing, and wants to
        // end all the same.
        if !self.is_unsent(self.sender.extend(cum)) {
            self.on_sack(now, cum, None);
        }
        match self.handshake.state {
            State::Established | State::ShutdownPending => {
                self.handshake.state = State::ShutdownReceived;
                self.events.push_back(Event::PeerShutdown);
                self.continue_shutdown(now);
            }
            // Both asked at once (§9.2).
            State::ShutdownSent => {
                self.handshake.state = State::ShutdownAckSent;
                self.control.push(self.way_back(path), What::ShutdownAck);
                self.handshake.attempts = 0;
                self.start_control_timer(now, path);
            }
            State::ShutdownAckSent => self.control.push(self.way_back(path), What::ShutdownAck),
            _ => {}
        }
    }

    /// Answers go where the question came from (§6.4), but not by an interface that is gone: nothing would tell.
    fn way_back(&self, path: PathId) -> PathId {
        let down = self.paths.get(path.index()).is_some_and(|p| !p.access.is_up());
        if down { self.control_path() } else { path }
    }

    pub(in crate::association) fn on_shutdown_ack(&mut self, now: Instant, path: PathId) {
        if matches!(self.handshake.state, State::ShutdownSent | State::ShutdownAckSent) {
            self.control.clear();
            self.control.push(self.way_back(path), What::ShutdownComplete);
            self.handshake.ends(now);
            self.close(CloseReason::Shutdown);
        }
    }

    pub(in crate::association) fn on_shutdown_complete(&mut self) {
        if matches!(self.handshake.state, State::ShutdownAckSent) {
            self.control.clear();
            self.close(CloseReason::Shutdown);
        }
    }

    /// DATA while our SHUTDOWN is under way: SHUTDOWN again with the new point (§9.2).
    #[inline(never)]
    pub(in crate::association) fn on_data_in_shutdown_sent(&mut self) {
        let path = self.acknowledger.path();
        self.control.push(path, What::Shutdown);
        if !self.receiver.has_gap() && !self.receiver.has_duplicates() {
            self.acknowledger.stop();
        } else {
            self.acknowledger.request();
        }
    }
}
