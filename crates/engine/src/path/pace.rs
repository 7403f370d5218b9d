//! When DATA may leave on a path, and when it did.

use anabranch_base::{Duration, Instant, Rate};

/// The pacing of a path.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The next packet may leave.
    next: Instant,
    /// A timer waits for that.
    pending: bool,
    /// Payload bytes that left in the current sending opportunity and were not reported yet.
    released: u64,
    last_data_sent: Option<Instant>,
}

impl Pace {
    /// A packet with DATA leaves.
    #[inline(always)]
    pub fn send(&mut self, now: Instant) {
        self.last_data_sent = Some(now);
    }

    /// When the last one did.
    #[inline]
    pub fn last_data_sent(&self) -> Option<Instant> {
        self.last_data_sent
    }

    /// No DATA for so long; never before the first.
    pub fn has_idled(&self, now: Instant, long: Duration) -> bool {
        self.last_data_sent.is_some_and(|t| now.since(t) >= long)
    }

    /// `payload` bytes have left that take their time at `rate`.
    #[inline]
    pub fn take_time(&mut self, now: Instant, rate: Rate, payload: u64) {
        self.next = self.next.max(now) + rate.time_for(payload);
        self.pending = true;
    }

    /// May a packet leave, where those due within `together` leave as one?
    #[inline(always)]
    pub fn allows(&self, now: Instant, together: Duration) -> bool {
        self.next <= now + together
    }

    /// When the next packet may leave, if a timer waits for that.
    #[inline(always)]
    pub fn wakeup(&self) -> Option<Instant> {
        if self.pending && self.next > Instant::ZERO { Some(self.next) } else { None }
    }

    /// Timers fire: if the next packet may leave, none is waited for any more.
    #[inline]
    pub fn wake(&mut self, now: Instant) {
        self.pending &= self.next > now;
    }

    /// `payload` bytes left, of which the quality estimator is to learn.
    pub fn release(&mut self, payload: u64) {
        self.released += payload;
    }

    /// Is there anything for it to learn?
    #[inline(always)]
    pub fn has_released(&self) -> bool {
        self.released > 0
    }

    /// What left in the opportunity that ends now.
    pub fn take_released(&mut self) -> u64 {
        core::mem::take(&mut self.released)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn packets_leave_at_the_rate_whenever_they_are_asked_for() {
        for rate in [10_000, 100_000, 1_000_000] {
            let rate = Rate::from_bytes_per_sec(rate);
            let mut p = Pace::default();
            let mut sent = 0;
            for ms in 1_000..3_000 {
                while p.allows(at(ms), Duration::ZERO) {
                    p.take_time(at(ms), rate, 1_000);
                    sent += 1_000;
                }
            }
            let least = rate.bytes_per_sec() * 2;
            assert!((least..=least + 1_000).contains(&sent), "{sent} bytes in two seconds at {rate:?}");
        }
    }

    /// A pause does not save up: after it one packet leaves, and what is due within the time that packets leave together.
    #[test]
    fn a_pause_is_no_credit() {
        let rate = Rate::from_bytes_per_sec(1_000_000);
        for pause in [0, 10, 1_000, 100_000] {
            let mut p = Pace::default();
            p.take_time(at(1_000), rate, 1_000);
            let now = at(1_001 + pause);
            let mut burst = 0;
            while p.allows(now, MS(3)) && burst < 100 {
                p.take_time(now, rate, 1_000);
                burst += 1;
            }
            assert_eq!(burst, 4, "after {pause} ms");
        }
    }

    #[test]
    fn a_timer_runs_from_a_paced_packet_until_the_next_may_leave() {
        let mut p = Pace::default();
        assert_eq!(p.wakeup(), None, "nothing was paced");
        p.take_time(at(100), Rate::from_bytes_per_sec(100_000), 1_000);
        for ms in 100..110 {
            p.wake(at(ms));
            assert_eq!(p.wakeup(), Some(at(110)));
        }
        p.wake(at(110));
        assert_eq!(p.wakeup(), None);
    }

    #[test]
    fn a_path_idles_from_its_last_data_on() {
        let mut p = Pace::default();
        assert!(!p.has_idled(at(10_000), Duration::ZERO), "it never began");
        p.send(at(100));
        assert!((0..200).all(|ms| p.has_idled(at(100 + ms), MS(50)) == (ms >= 50)));
    }
}
