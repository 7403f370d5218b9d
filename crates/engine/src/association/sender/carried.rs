//! What the paths carry within the deadline, looked at with acknowledgements and timers.

use crate::association::Association;
use crate::path::Path;
use crate::tx::carried::{Seen, UsableRate, Way};
use anabranch_base::Instant;

impl Association {
    /// What the paths carry within the deadlines of messages; zero until something is known.
    pub fn usable_rate(&self) -> UsableRate {
        self.sender.carried.published()
    }

    /// Something came, or a timer fired. Nothing here changes what is sent.
    #[inline]
    pub(in crate::association) fn note_carried(&mut self, now: Instant) {
        if self.sender.sends && self.sender.carried.is_due(now) {
            self.update_carried(now);
        }
    }

    #[inline(never)]
    fn update_carried(&mut self, now: Instant) {
        let seen = Seen {
            offered: self.stats.bytes_sent,
            waiting: self.sender.queue.bytes() + self.sender.board.ahead_bytes(),
            given_up: self.stats.abandoned_unsent + self.stats.abandoned_sent,
            delivered: self.paths.iter().map(|p| p.rate.delivered()).fold(0, u64::saturating_add),
        };
        let usable = |p: &&Path| p.is_in_use() && !p.access.is_standby();
        self.sender.carried.update(now, &seen, self.paths.iter().filter(usable).map(way));
    }
}

fn way(p: &Path) -> Way {
    let capacity = p.capacity.rate();
    let held = capacity.bytes_in(p.rtt.recent().max(p.rtt.min_rtt()));
    let flight = if p.one_way.recent().is_zero() { p.rtt.min_rtt() / 2 } else { p.one_way.recent() };
    Way { capacity, may_be_more: p.capacity.is_lower_bound(), flight, queued: p.flight.bytes().saturating_sub(held) }
}
