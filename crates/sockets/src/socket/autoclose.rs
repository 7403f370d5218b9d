//! SCTP_AUTOCLOSE (RFC 6458 §8.1.8): an association of a one-to-many socket over which no user data went for a time ends.

use super::association::AssociationId;
use super::{Stack, Style};
use anabranch_base::{Duration, Instant};

/// What an association of such a socket keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct AutoClose {
    after: Duration,
    /// When it came up.
    since: Instant,
    /// When it is looked at next.
    due: Instant,
}

impl Stack {
    /// An association came up: from now on it may be idle. What the option is then holds for its life, as in the kernel.
    pub(super) fn begin_idling(&mut self, now: Instant, id: AssociationId) {
        let Some(a) = self.associations.get_mut(&id) else { return };
        let owner = a.owner.and_then(|o| self.sockets.get(&o)).filter(|s| s.style == Style::OneToMany);
        let Some(seconds) = owner.map(|s| s.options.auto_close).filter(|s| *s != 0) else { return };
        let after = Duration::from_secs(seconds.into());
        a.auto_close = Some(AutoClose { after, since: now, due: now + after });
        self.closings.insert((now + after, id));
    }

    /// It is over, or its end has begun.
    pub(super) fn end_idling(&mut self, id: AssociationId) {
        if let Some(c) = self.associations.get_mut(&id).and_then(|a| a.auto_close.take()) {
            self.closings.remove(&(c.due, id));
        }
    }

    /// When an association may have been idle for long enough.
    pub(super) fn next_closing(&self) -> Option<Instant> {
        self.closings.first().map(|(due, _)| *due)
    }

    /// Ends those that were.
    pub(super) fn close_idle(&mut self, now: Instant) {
        while let Some(&(due, id)) = self.closings.first().filter(|(due, _)| *due <= now) {
            self.closings.remove(&(due, id));
            let Some(c) = self.associations.get(&id).and_then(|a| a.auto_close) else { continue };
            let Some(mut e) = self.engine_mut(id) else { continue };
            let due = e.last_user_data().map_or(c.since, |t| t.max(c.since)) + c.after;
            if due <= now {
                e.shutdown(now);
                continue;
            }
            drop(e);
            if let Some(a) = self.associations.get_mut(&id) {
                a.auto_close = Some(AutoClose { due, ..c });
            }
            self.closings.insert((due, id));
        }
    }
}
