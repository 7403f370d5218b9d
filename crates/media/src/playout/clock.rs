//! The sender's clock as the receiver sees it.

use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

/// How time stamps of the sender become instants of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClockMode {
    /// Both ends read the same clock (one process, or one machine's monotonic clock): a message is due at its
    /// time stamp plus the latency, exactly.
    Shared,
    /// The offset between the clocks is estimated as the smallest `arrival - time stamp` of the last 30
    /// seconds, that is, along the fastest path when its queue is empty. It is taken over at once during the
    /// first two seconds; after that it is followed at no more than 200 ppm, so that drift of the clocks is
    /// removed and a path that comes or goes does not jerk the output. Offsets more than five seconds off
    /// mean that a clock was set, and are taken over at once.
    #[default]
    Estimated,
}

const BUCKET: Duration = Duration::from_secs(1);
const BUCKETS: usize = 30;
const SETTLE: Duration = Duration::from_secs(2);
const SLEW_PPM: i128 = 200;
const STEP_NS: i128 = 5_000_000_000;

/// Turns time stamps into instants.
#[derive(Debug)]
pub(super) struct Clock {
    mode: ClockMode,
    /// Time stamp of the latest message, in microseconds without wrapping.
    last_us: Option<i128>,
    /// Smallest `arrival - time stamp` per second of arrival, in ns, newest at the back.
    buckets: VecDeque<(Instant, i128)>,
    offset: Option<i128>,
    started: Instant,
    updated: Instant,
}

impl Clock {
    pub(super) fn new(mode: ClockMode) -> Self {
        Clock {
            mode,
            last_us: None,
            buckets: VecDeque::new(),
            offset: None,
            started: Instant::ZERO,
            updated: Instant::ZERO,
        }
    }

    /// Takes in an arrival; returns the sender's time in ns, to be given to [`Clock::instant`] later.
    pub(super) fn arrival(&mut self, now: Instant, timestamp: u32) -> i128 {
        let now_ns = i128::from(now.as_nanos());
        if self.mode == ClockMode::Shared {
            // The true stamp is the one nearest to now; one from the future is a lie.
            let behind = (now_ns / 1_000) as u32;
            let us = now_ns / 1_000 + i128::from(timestamp.wrapping_sub(behind) as i32);
            return (us * 1_000).min(now_ns);
        }
        let us = match self.last_us {
            Some(last) => last + i128::from(timestamp.wrapping_sub(last as u32) as i32),
            None => i128::from(timestamp),
        };
        self.last_us = Some(us);
        self.sample(now, now_ns - us * 1_000);
        us * 1_000
    }

    /// When the sender's time `sent_ns` is on the receiver's clock; the epoch when it lies before it.
    pub(super) fn instant(&self, sent_ns: i128) -> Instant {
        let ns = sent_ns + self.offset.unwrap_or(0);
        Instant::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    fn sample(&mut self, now: Instant, sample: i128) {
        let Some(offset) = self.offset else {
            self.restart(now, sample);
            return;
        };
        match self.buckets.back_mut() {
            Some((began, min)) if now.since(*began) < BUCKET => *min = (*min).min(sample),
            _ => {
                self.buckets.push_back((now, sample));
                if self.buckets.len() > BUCKETS {
                    self.buckets.pop_front();
                }
            }
        }
        let horizon = BUCKET * BUCKETS as u64;
        while self.buckets.front().is_some_and(|(began, _)| now.since(*began) > horizon) {
            self.buckets.pop_front();
        }
        let target = self.buckets.iter().map(|(_, min)| *min).min().unwrap_or(sample);
        if (target - offset).abs() > STEP_NS {
            self.restart(now, target);
            return;
        }
        let elapsed = i128::from(now.since(self.updated).as_nanos());
        self.updated = self.updated.max(now);
        let step = elapsed * SLEW_PPM / 1_000_000;
        self.offset = Some(if now.since(self.started) < SETTLE {
            offset.min(target)
        } else {
            offset + (target - offset).clamp(-step, step)
        });
    }

    fn restart(&mut self, now: Instant, offset: i128) {
        self.offset = Some(offset);
        self.started = now;
        self.updated = now;
        self.buckets.clear();
        self.buckets.push_back((now, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Feeds messages sent every 10 ms from `from` to `to` (sender's ms), each delayed by `delay(ms)`;
    /// returns the estimate of the offset in ms at the end.
    fn feed(c: &mut Clock, from: u64, to: u64, offset_ms: u64, delay: impl Fn(u64) -> f64) -> f64 {
        for ms in (from..to).step_by(10) {
            let at = Instant::from_nanos((ms + offset_ms) * MS + (delay(ms) * 1e6) as u64);
            c.arrival(at, (ms * 1_000) as u32);
        }
        c.offset.unwrap() as f64 / 1e6
    }

    #[test]
    fn shared_clock_is_exact_across_the_wrap() {
        let mut c = Clock::new(ClockMode::Shared);
        for us in [5_000u64, (1 << 32) - 5, (1 << 32) + 3, 3 << 32] {
            let sent = c.arrival(Instant::from_nanos(us * 1_000 + 70 * MS), us as u32);
            assert_eq!(c.instant(sent).as_nanos(), us * 1_000);
        }
        let now = Instant::from_millis(1_000);
        let sent = c.arrival(now, 2_000_000);
        assert_eq!(c.instant(sent), now, "a stamp from the future counts as now");
    }

    #[test]
    fn smallest_delay_is_the_base() {
        let mut c = Clock::new(ClockMode::Estimated);
        let slow_then_fast = |ms: u64| if ms < 500 { 160.0 } else { [30.0, 170.0, 90.0][ms as usize / 10 % 3] };
        assert_eq!(feed(&mut c, 0, 1_900, 7_000, slow_then_fast), 7_030.0);
    }

    #[test]
    fn a_path_that_comes_or_goes_moves_the_base_slowly() {
        let mut c = Clock::new(ClockMode::Estimated);
        feed(&mut c, 0, 5_000, 7_000, |_| 160.0);
        let after = feed(&mut c, 5_000, 10_000, 7_000, |_| 30.0);
        assert!((7_158.9..7_159.1).contains(&after), "5 s at 200 ppm are 1 ms: {after}");
        let mut c = Clock::new(ClockMode::Estimated);
        feed(&mut c, 0, 5_000, 7_000, |_| 30.0);
        let after = feed(&mut c, 5_000, 30_000, 7_000, |_| 160.0);
        assert_eq!(after, 7_030.0, "the window still remembers the fast path");
        let after = feed(&mut c, 30_000, 60_000, 7_000, |_| 160.0);
        assert!((7_030.5..7_036.5).contains(&after), "{after}");
    }

    #[test]
    fn drift_of_the_clocks_is_followed() {
        let mut c = Clock::new(ClockMode::Estimated);
        let drift = 1e-4;
        let end = feed(&mut c, 0, 600_000, 7_000, |ms| 30.0 + ms as f64 * drift);
        // The window's minimum lags by its length when the offset rises: 30 s at 100 ppm are 3 ms.
        assert!((7_030.0 + 60.0 - 3.5..7_030.0 + 60.5).contains(&end), "{end}");
    }

    #[test]
    fn a_set_clock_is_taken_over() {
        let mut c = Clock::new(ClockMode::Estimated);
        feed(&mut c, 0, 5_000, 7_000, |_| 30.0);
        let sent = c.arrival(Instant::from_millis(12_100), 2_000_000_000);
        assert_eq!(c.instant(sent), Instant::from_millis(12_100));
    }
}
