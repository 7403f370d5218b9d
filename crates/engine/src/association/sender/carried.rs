//! What the paths carry within the deadline, looked at with acknowledgements and timers.

use crate::association::Association;
use crate::path::Path;
use crate::tx::carried::{Seen, UsableRate, Way};
use anabranch_base::{Duration, Instant};

/// Least silence of a path that carries nothing at the moment.
const SILENCE: Duration = Duration::from_millis(400);

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
        // A look may fall on the moment after each frame was handed over: what waits then has not waited all the time.
        let emptied = self.sender.take_emptied();
        let waits = self.sender.queue.bytes() + self.sender.board.ahead_bytes();
        let seen = Seen {
            offered: self.stats.bytes_sent,
            waiting: if emptied { 0 } else { waits },
            given_up: self.stats.abandoned_unsent + self.stats.abandoned_sent,
            delivered: self.paths.iter().map(|p| p.rate.delivered()).fold(0, u64::saturating_add),
        };
        let usable = |p: &&Path| p.is_in_use() && !p.access.is_standby() && !is_silent(p, now);
        self.sender.carried.update(now, &seen, self.paths.iter().filter(usable).map(way));
    }
}

/// Is nothing heard of what is under way? The last path that there is stays in use all the same.
fn is_silent(p: &Path, now: Instant) -> bool {
    let most = (p.rtt.srtt() + p.rtt.rttvar() * 4).max(SILENCE);
    let owed = p.flight.oldest_sent().max(p.health.last_heard()).filter(|_| p.flight.bytes() > 0);
    p.health.errors() > 0 || owed.is_some_and(|t| now.since(t) > most)
}

fn way(p: &Path) -> Way {
    let capacity = p.capacity.rate();
    let held = capacity.bytes_in(p.rtt.recent().max(p.rtt.min_rtt()));
    let flight = if p.one_way.recent().is_zero() { p.rtt.min_rtt() / 2 } else { p.one_way.recent() };
    Way { capacity, may_be_more: p.capacity.is_lower_bound(), flight, queued: p.flight.bytes().saturating_sub(held) }
}
