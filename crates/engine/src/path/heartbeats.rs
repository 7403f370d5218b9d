//! HEARTBEATs of a path that are not answered yet.

use anabranch_base::Instant;

/// An unanswered HEARTBEAT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingHeartbeat {
    pub nonce: u64,
    pub sent_at: Instant,
    pub deadline: Instant,
}

/// HEARTBEATs of a path before its newest. Those given up are answered late by a path that has only become slow; the
/// others another one followed too soon. The answer to any of them shows that the path works (RFC 9260 §5.4, §8.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Earlier {
    /// Nonce and time of sending, the oldest overwritten first: three seconds of those that look after a silent path.
    sent: [Option<(u64, Instant)>; 32],
    /// A bit for each: is it given up?
    given_up: u32,
    next: u8,
}

impl Earlier {
    pub fn remember(&mut self, h: &PendingHeartbeat, given_up: bool) {
        if let Some(slot) = self.sent.get_mut(usize::from(self.next)) {
            *slot = Some((h.nonce, h.sent_at));
        }
        self.given_up = self.given_up & !(1 << self.next) | u32::from(given_up) << self.next;
        self.next = (self.next + 1) % self.sent.len() as u8;
    }
    /// How many were given up that left after `t`.
    pub fn given_up_since(&self, t: Option<Instant>) -> usize {
        let later = |s: &Option<(u64, Instant)>| s.is_some_and(|(_, at)| t.is_none_or(|t| at > t));
        self.sent.iter().enumerate().filter(|(i, s)| self.given_up & 1 << i != 0 && later(s)).count()
    }
    /// When the HEARTBEAT with this nonce left.
    pub fn sent_at(&self, nonce: u64) -> Option<Instant> {
        self.sent.iter().flatten().find(|(n, _)| *n == nonce).map(|(_, at)| *at)
    }
    /// What left at `t` or before says nothing more.
    pub fn forget_to(&mut self, t: Instant) {
        self.sent.iter_mut().for_each(|s| *s = s.filter(|(_, at)| *at > t));
    }
}
