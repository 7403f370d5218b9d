//! A path in use that falls silent: how it is asked, and when it is left.

use crate::association::Association;
use crate::event::PathReason;
use crate::path::{Path, PathTimer};
use anabranch_base::{Instant, PathId};
use anabranch_policy::Asks;
use anabranch_policy::view::PathState;

impl Association {
    /// The path has been silent although it should have answered; or it has been for as long as T3 waits, and what
    /// T3 says of a path holds (RFC 9260 §6.3.3, §8.2).
    pub(in crate::association) fn on_suspect(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        p.timers.stop(PathTimer::Suspicion);
        if p.state() == PathState::Suspected {
            return self.on_t3(now, id);
        }
        if p.state() != PathState::Active || !p.congestion.is_controlled() || !self.others_active(id) {
            return;
        }
        let needs = self
            .views
            .path(&mut self.paths, &self.policies, id)
            .is_some_and(|v| self.policies.path_state.needs_probe(v));
        if needs && self.paths.get(id.index()).is_some_and(|p| !p.probing.awaits_answer()) {
            self.send_heartbeat(now, id);
        }
        match self.silent_at(now, id) {
            Some(t) if t > now => self.look_again(id, Some(t)),
            _ if needs && self.may_ask_again(id) => self.look_again(id, None),
            None if needs => self.look_again(id, None),
            _ => self.suspect(now, id),
        }
    }

    /// Nothing is on its way there, so there is time: a HEARTBEAT may get lost, two in a row hardly.
    fn may_ask_again(&self, id: PathId) -> bool {
        let lost = |p: &Path| p.probing.given_up_since(p.health.last_heard());
        self.paths.get(id.index()).is_some_and(|p| p.flight.bytes() == 0 && lost(p) < 2)
    }

    fn look_again(&mut self, id: PathId, at: Option<Instant>) {
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.timers.plan_suspicion(at);
        }
    }

    /// When the path is silent for too long, as its policy has it now.
    fn silent_at(&mut self, now: Instant, id: PathId) -> Option<Instant> {
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        self.policies.path_state.suspect_at(&cx, cx.path(id)?)
    }

    /// A probe of a path in use was not answered: true when that is all the path was silent about, and it is left.
    pub(in crate::association) fn probe_confirms_silence(&mut self, now: Instant, id: PathId) -> bool {
        let due = self
            .paths
            .get(id.index())
            .filter(|p| p.state() == PathState::Active && p.congestion.is_controlled())
            .is_some_and(|p| p.health.unanswered_since().is_some());
        if !due || !self.others_active(id) {
            return false;
        }
        let silent = self.silent_at(now, id).is_some_and(|t| t <= now);
        match silent && self.may_ask_again(id) {
            true => self.send_heartbeat(now, id),
            false if silent => self.suspect(now, id),
            false => {}
        }
        silent
    }

    /// A copy of what is late leaves elsewhere, and its acknowledgement will not tell which of the two came: the paths
    /// that hold it are asked themselves, unless they have answered something since.
    pub(in crate::association) fn ask_late_paths(&mut self, now: Instant, tsn: u64) {
        if !self.policies.ask(Asks::SUSPECT) {
            return;
        }
        let Some(copies) = self.sender.copies_of(tsn) else { return };
        for c in copies.iter() {
            let Some(p) = self.paths.get(c.path.index()) else { continue };
            let quiet = p.state() == PathState::Active && p.health.last_heard().is_none_or(|h| h <= c.sent_at);
            if quiet
                && !p.probing.awaits_answer()
                && p.probing.interval(self.config.timers.heartbeat_interval).is_some()
            {
                self.send_heartbeat(now, c.path);
            }
        }
    }

    fn others_active(&self, id: PathId) -> bool {
        self.paths.iter().any(|p| p.id() != id && p.is_in_use())
    }

    fn suspect(&mut self, now: Instant, id: PathId) {
        let expiry = self.paths.get(id.index()).and_then(|p| p.timers.deadline(PathTimer::T3));
        self.leave_path(now, id, PathState::Suspected, PathReason::Silent);
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.timers.plan_suspicion(expiry);
        }
    }
}
