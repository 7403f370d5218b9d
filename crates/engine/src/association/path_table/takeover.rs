//! What a path held is taken over by the others.

use super::PathTable;
use crate::association::Association;
use crate::association::sender::Sender;
use crate::event::{Event, PathReason};
use crate::path::Path;
use crate::repair::TransmissionCause;
use anabranch_base::{Instant, PathId};
use anabranch_policy::view::PathState;
use std::collections::VecDeque;

/// RFC 6928 §2: the bytes that the packets of a first window add up to at most, unless two are more.
const FIRST_WINDOW: u64 = 14_600;

impl Association {
    /// A path is no longer used: what is in flight on it goes elsewhere, and it is probed at once.
    pub(in crate::association) fn leave_path(&mut self, now: Instant, id: PathId, to: PathState, reason: PathReason) {
        let was_active = self.paths.get(id.index()).is_some_and(|p| p.state() == PathState::Active);
        self.set_path_state(now, id, to, reason);
        self.empty_path(now, id, TransmissionCause::Moved);
        // What it held and no other path holds is to be taken over.
        let holds = self.sender.has_marked_on(id);
        if was_active && holds {
            self.widen_for_takeover(now, id);
        }
        if let Some(p) = self.paths.get_mut(id.index()) {
            if was_active && holds {
                p.health.stall(now);
            }
            if !p.probing.awaits_answer() {
                self.probe_soon(now, id);
            }
        }
        self.opportunity();
        self.paths.settle_takeovers(now, &self.sender, &mut self.events);
    }

    /// What a path held is about to be sent by others. One that lay idle, or carried too little to have its window grow,
    /// would hold it back for round trips: each has room for as many packets as its policy of path states allows. In use
    /// it is at most up to the threshold, beyond which it met losses.
    pub(in crate::association) fn widen_for_takeover(&mut self, now: Instant, left: PathId) {
        let packets = u64::from(self.policies.path_state.takeover_packets());
        if packets == 0 {
            return;
        }
        // Before: what idling takes from a window is not to take this.
        self.decay_idle_windows(now);
        let most = (packets * self.paths.mtu).min((2 * self.paths.mtu).max(FIRST_WINDOW));
        let sound = |p: &&mut Path| {
            let in_use = p.id() != left && p.state() == PathState::Active;
            in_use && p.health.errors() == 0 && !p.expiry.is_silent() && !p.congestion.in_recovery()
        };
        for p in self.paths.iter_mut().filter(sound) {
            p.congestion.take_over(p.flight.bytes(), most);
        }
    }
}

impl PathTable {
    /// Tells when all that was outstanding on a path that was left has been sent again elsewhere.
    pub(in crate::association) fn settle_takeovers(
        &mut self,
        now: Instant,
        sender: &Sender,
        events: &mut VecDeque<Event>,
    ) {
        for i in 0..self.len() {
            let id = PathId(i as u8);
            let Some(since) = self[i].health.stalled_since() else { continue };
            if sender.has_marked_on(id) {
                continue;
            }
            self[i].health.end_stall();
            // A path without another one beside it only repeats.
            if self.iter().any(|p| p.id() != id && p.is_in_use()) {
                events.push_back(Event::TakenOver { path: id, after: now.since(since) });
            }
        }
    }
}
