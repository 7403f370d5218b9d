//! Whose time comes next.

use super::{AssocId, Endpoint};
use anabranch_base::Instant;

impl Endpoint {
    /// An association wants to be woken at `next`, which was `noted`.
    #[inline]
    pub(super) fn retime(&mut self, id: AssocId, next: Option<Instant>, noted: Option<Instant>) {
        // A timer that moved away, as T3 does with each acknowledgement, is found out when the old time comes.
        let sooner = match (next, noted) {
            (Some(next), Some(noted)) => next < noted,
            (next, noted) => next != noted,
        };
        if sooner {
            self.note_timeout(id, next);
        }
    }

    pub(super) fn note_timeout(&mut self, id: AssocId, next: Option<Instant>) {
        let Some(s) = self.slots.get_mut(&id) else { return };
        s.timeout = next;
        let slots = &self.slots;
        match next {
            Some(t) => {
                self.alarms.push(t, id, slots.len(), |t, id| slots.get(&id).is_some_and(|s| s.timeout == Some(t)));
            }
            None => self.settle_alarms(),
        }
    }

    pub(super) fn settle_alarms(&mut self) {
        let slots = &self.slots;
        self.alarms.settle(|t, id| slots.get(&id).is_some_and(|s| s.timeout == Some(t)));
    }

    /// When [`Endpoint::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.jar.rotate_if_due(now, self.entropy.as_mut());
        // Each association once: one that asks for the same instant again is served in the next call.
        let mut due = core::mem::take(&mut self.due);
        while let Some((t, id)) = self.alarms.pop_due(now) {
            if let Some(s) = self.slots.get_mut(&id).filter(|s| s.timeout == Some(t)) {
                s.timeout = None;
                due.push(id);
            }
        }
        for id in due.drain(..) {
            let Some(s) = self.slots.get_mut(&id) else { continue };
            let fires = s.association.next_timeout().is_some_and(|t| t <= now);
            if fires && let Some(s) = self.slots.work_on(&id) {
                s.association.handle_timeout(now);
            }
            if let Some(s) = self.slots.get(&id) {
                let (next, noted) = (s.association.next_timeout(), s.timeout);
                self.retime(id, next, noted);
            }
            if fires {
                self.wake(id);
            }
        }
        self.due = due;
        self.settle_alarms();
    }
}
