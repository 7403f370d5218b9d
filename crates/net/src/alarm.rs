//! The kernel's own timer: a runtime that rounds to milliseconds would slow down every path that is paced, and wakes
//! itself for each timer that is set.

use crate::clock;
use crate::driver::descriptor::{Steady, register};
use anabranch_base::Instant;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A timer that is set again only when it would expire too late; that it expires early now and then does no harm.
pub struct Alarm {
    timer: AsyncFd<Steady<TimerFd>>,
    armed: Option<Instant>,
}

impl Alarm {
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Alarm { timer: register(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?)?, armed: None })
    }

    /// Expires at `at` at the latest.
    pub fn set(&mut self, at: Option<Instant>, now: Instant) {
        let Some(at) = at else { return };
        if self.armed.is_some_and(|armed| armed <= at) {
            return;
        }
        self.arm(at, now);
    }

    fn arm(&mut self, at: Instant, now: Instant) {
        // Zero would switch the timer off.
        let left = Duration::from_nanos((at - now).as_nanos().max(1));
        let once = Expiration::OneShot(TimeSpec::from_duration(left));
        match self.timer.get_ref().get().set(once, TimerSetTimeFlags::empty()) {
            Ok(()) => self.armed = Some(at),
            Err(error) => tracing::error!(%error, "the timer cannot be set"),
        }
    }

    /// Waits until it expires; for ever when nothing is set.
    pub async fn rung(&mut self) {
        loop {
            let Ok(mut ready) = self.timer.readable().await else { return std::future::pending().await };
            // Not read: setting it anew takes the expiry back, and each expiry is reported once.
            ready.clear_ready();
            drop(ready);
            let now = clock::now();
            match self.armed {
                Some(at) if at > now => self.arm(at, now),
                Some(_) => {
                    self.armed = None;
                    return;
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::Duration as Span;

    #[tokio::test]
    async fn rings_in_time_and_not_by_the_millisecond() {
        let mut a = Alarm::new().unwrap();
        let mut best = Span::MAX;
        for _ in 0..50 {
            let at = clock::now() + Span::from_micros(300);
            a.set(Some(at), clock::now());
            a.rung().await;
            let late = clock::now();
            assert!(late >= at);
            best = best.min(late - at);
        }
        // The best of many: a busy machine may delay any single one.
        assert!(best < Span::from_micros(400), "{best}");
    }

    #[tokio::test]
    async fn rings_once_for_each_time() {
        let mut a = Alarm::new().unwrap();
        for pause in [0, 1, 5] {
            let at = clock::now() + Span::from_millis(2);
            a.set(Some(at), clock::now());
            std::thread::sleep(Duration::from_millis(pause));
            a.rung().await;
            assert!(clock::now() >= at && a.armed.is_none());
            let again = tokio::time::timeout(Duration::from_millis(20), a.rung()).await;
            assert!(again.is_err(), "it was not set again");
        }
    }

    #[tokio::test]
    async fn an_earlier_time_replaces_a_later_one_but_not_the_other_way_round() {
        let mut a = Alarm::new().unwrap();
        let now = clock::now();
        let (soon, later) = (now + Span::from_millis(5), now + Span::from_secs(100));
        a.set(Some(later), now);
        assert_eq!(a.armed, Some(later));
        a.set(Some(soon), now);
        assert_eq!(a.armed, Some(soon));
        a.set(Some(later), now);
        assert_eq!(a.armed, Some(soon));
        a.rung().await;
        assert!(clock::now() >= soon);
        assert_eq!(a.armed, None);
    }
}
