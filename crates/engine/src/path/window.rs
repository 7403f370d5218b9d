//! When one more packet may leave on a path.

use super::Path;
use anabranch_base::{Duration, Instant, Rate};

/// Packets that are paced leave together where they are due within this time: a timer for each costs more than it
/// smooths. On a fast path a timer each millisecond does too, and its queue takes more.
const PACED_TOGETHER: Duration = Duration::from_millis(1);
const FAST_TOGETHER: Duration = Duration::from_millis(3);
const FAST: Rate = Rate::from_bits_per_sec(30_000_000);

impl Path {
    /// Window, burst and pace allow one more packet. After a timeout a single one may be in flight until something is
    /// acknowledged, however small it is (RFC 9260 §7.2.1); or one beyond the window, to see whether the path works.
    #[inline]
    pub fn has_window(&self, now: Instant) -> bool {
        let room = self.expiry.may_probe() || self.allows_beside() && self.congestion.has_room(self.flight.bytes());
        // Most often what the path carries changes nothing.
        room && (self.congestion.allows_burst(false) && self.pace.allows(now, PACED_TOGETHER)
            || self.has_fast_window(now))
    }

    /// The window held something back: it is full, and would be with data that wait in place of parity.
    pub fn is_fully_used(&self, waiting: u64) -> bool {
        let (all, data) = (self.flight.bytes(), self.flight.data());
        !self.congestion.has_room(all) && !self.congestion.has_room(data.saturating_add(waiting))
    }

    /// Burst and pace of a path that is known to carry something.
    fn has_fast_window(&self, now: Instant) -> bool {
        let known = self.capacity.rate();
        let together = if known >= FAST { FAST_TOGETHER } else { PACED_TOGETHER };
        self.congestion.allows_burst(known > Rate::ZERO) && self.pace.allows(now, together)
    }

    /// May a packet leave beside those in flight, as far as expiries of T3 have a say in it? Without congestion control they
    /// have none.
    #[inline]
    pub fn allows_beside(&self) -> bool {
        self.expiry.allows_beside(self.flight.packets()) || !self.congestion.is_controlled()
    }
}
