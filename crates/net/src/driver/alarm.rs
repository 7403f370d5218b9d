//! The driver's alarm: the kernel's own timer, because a runtime that rounds to milliseconds would slow down every
//! path that is paced.

use super::descriptor::{Steady, register};
use anabranch_base::Instant;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A timer that is armed anew only when it would ring too late; that it rings early now and then does no harm.
pub(super) struct Alarm {
    timer: AsyncFd<Steady<TimerFd>>,
    armed: Option<Instant>,
}

impl Alarm {
    /// Must be called within a runtime.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Alarm { timer: register(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?)?, armed: None })
    }

    /// Rings at `at` at the latest.
    pub fn set(&mut self, at: Option<Instant>, now: Instant) {
        let Some(at) = at else { return };
        if self.armed.is_some_and(|armed| armed <= at) {
            return;
        }
        // Zero would switch the timer off.
        let left = Duration::from_nanos((at - now).as_nanos().max(1));
        let once = Expiration::OneShot(TimeSpec::from_duration(left));
        match self.timer.get_ref().get().set(once, TimerSetTimeFlags::empty()) {
            Ok(()) => self.armed = Some(at),
            Err(error) => tracing::error!(%error, "the timer cannot be set"),
        }
    }

    /// Waits until it rings.
    pub async fn rung(&mut self) {
        loop {
            let Ok(mut ready) = self.timer.readable().await else { return std::future::pending().await };
            // Never blocks: the descriptor does not.
            match ready.try_io(|t| Ok(t.get_ref().get().wait()?)) {
                Ok(_) => {
                    self.armed = None;
                    return;
                }
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
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
