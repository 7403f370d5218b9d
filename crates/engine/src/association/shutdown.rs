//! Ending: gracefully (§9.2) or at once (§9.1).

use super::control_out::{What, causes};
use super::{Association, Phase, State};
use crate::event::{CloseReason, Event};
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_wire::Cause;

impl Association {
    /// Ends gracefully: what was handed over is delivered first.
    pub fn shutdown(&mut self, now: Instant) {
        match self.state {
            State::Established => {
                self.state = State::ShutdownPending;
                // T5: a peer that never lets us finish does not hold us for ever (§9.2).
                self.guard_timer = Some(now + self.config.rto_max * 5);
                self.continue_shutdown(now);
            }
            State::CookieWait | State::CookieEchoed { .. } => self.close(CloseReason::Aborted),
            _ => {}
        }
    }

    /// Ends at once; the peer gets an ABORT with `reason`.
    pub fn abort(&mut self, now: Instant, reason: &[u8]) {
        match self.state.phase() {
            Phase::Closed => {}
            Phase::Connecting => self.close(CloseReason::Aborted),
            _ => {
                let reason = reason.get(..reason.len().min(256)).unwrap_or(reason);
                self.abort_raw(now, causes(&[Cause::UserAbort(reason)]), CloseReason::Aborted);
            }
        }
    }

    fn all_delivered(&self) -> bool {
        self.queue.is_empty() && self.board.is_empty()
    }

    /// Takes the next step once nothing is outstanding.
    pub(super) fn continue_shutdown(&mut self, now: Instant) {
        if !self.all_delivered() {
            return;
        }
        let path = self.usable_paths().iter().next().unwrap_or(PathId(0));
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent;
                self.push_control(path, What::Shutdown);
            }
            State::ShutdownReceived => {
                self.state = State::ShutdownAckSent;
                self.push_control(path, What::ShutdownAck);
            }
            _ => return,
        }
        self.control_attempts = 0;
        self.control_timer = Some(now + self.control_backoff());
    }

    pub(super) fn on_shutdown(&mut self, now: Instant, path: PathId, cum: Tsn) {
        if !self.state.is_connected() {
            return;
        }
        self.on_sack(now, cum, None);
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.events.push_back(Event::PeerShutdown);
                self.continue_shutdown(now);
            }
            // Both asked at once (§9.2).
            State::ShutdownSent => {
                self.state = State::ShutdownAckSent;
                self.push_control(path, What::ShutdownAck);
                self.control_attempts = 0;
                self.control_timer = Some(now + self.control_backoff());
            }
            State::ShutdownAckSent => self.push_control(path, What::ShutdownAck),
            _ => {}
        }
    }

    pub(super) fn on_shutdown_ack(&mut self, now: Instant, path: PathId) {
        let _ = now;
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            self.control.clear();
            self.push_control(path, What::ShutdownComplete);
            self.close(CloseReason::Shutdown);
        }
    }

    pub(super) fn on_shutdown_complete(&mut self) {
        if matches!(self.state, State::ShutdownAckSent) {
            self.control.clear();
            self.close(CloseReason::Shutdown);
        }
    }

    /// DATA while our SHUTDOWN is under way: SHUTDOWN again with the new point, and the timer again (§9.2).
    pub(super) fn on_data_in_shutdown_sent(&mut self, now: Instant) {
        let path = self.sack_path;
        self.push_control(path, What::Shutdown);
        self.control_timer = Some(now + self.control_backoff());
        if !self.tracker.has_gap() && !self.tracker.pending_duplicates() {
            self.sack_due = false;
            self.sack_timer = None;
        } else {
            self.sack_due = true;
        }
    }
}
