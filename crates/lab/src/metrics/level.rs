//! A quantity that holds until it changes: its mean by time, and its largest value.

use super::Window;
use anabranch_base::Instant;

/// A quantity weighed by time, within a window.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    window: Window,
    since: Instant,
    now: u64,
    area: f64,
    max: u64,
}

impl Level {
    /// Zero, measured within `window`.
    pub fn new(window: Window) -> Self {
        Level { window, since: window.from(), now: 0, area: 0.0, max: 0 }
    }

    /// It is `value` from `at` on.
    pub fn set(&mut self, value: u64, at: Instant) {
        // What it is when the window ends stays what it was in it.
        if self.window.is_over(at) {
            return;
        }
        self.area += (at - self.since).as_secs_f64() * self.now as f64;
        if at > self.window.from() {
            // It may have held since before.
            self.max = self.max.max(self.now);
        }
        if at >= self.window.from() {
            self.max = self.max.max(value);
        }
        (self.since, self.now) = (self.since.max(at), value);
    }

    /// Its mean up to `until`, or to the end of the window.
    pub fn mean(&self, until: Instant) -> Option<f64> {
        let until = until.min(self.window.until());
        let span = (until - self.window.from()).as_secs_f64();
        let rest = (until - self.since).as_secs_f64() * self.now as f64;
        (span > 0.0).then(|| (self.area + rest) / span)
    }

    /// Its largest value.
    pub fn max(&self) -> u64 {
        self.max.max(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::Duration;

    fn since(ms: u64) -> Level {
        Level::new(Window::since(Instant::from_millis(ms)))
    }

    #[test]
    fn weighed_by_time_from_the_beginning_of_the_measurement() {
        let s = Instant::from_millis;
        let mut l = since(1_000);
        assert_eq!((l.mean(s(1_000)), l.max()), (None, 0));
        l.set(9, s(0));
        l.set(2, s(500));
        // Two for one second, five for one, nothing for two.
        l.set(5, s(2_000));
        l.set(0, s(3_000));
        assert_eq!((l.mean(s(5_000)), l.max()), (Some(7.0 / 4.0), 5));
    }

    #[test]
    fn what_it_is_when_the_measurement_begins_counts() {
        let s = Instant::from_millis;
        let mut l = since(1_000);
        l.set(9, s(500));
        assert_eq!((l.mean(s(2_000)), l.max()), (Some(9.0), 9));
        l.set(1, s(1_500));
        assert_eq!((l.mean(s(2_000)), l.max()), (Some(5.0), 9));
        let mut over = since(1_000);
        over.set(9, s(500));
        over.set(1, s(1_000));
        assert_eq!(over.max(), 1, "it was over when the measurement began");
    }

    #[test]
    fn what_it_becomes_after_the_window_does_not_count() {
        let (s, d) = (Instant::from_millis, Duration::from_millis);
        let mut l = Level::new(Window::new(d(1_000), d(3_000), d(9_000)));
        l.set(4, s(2_000));
        l.set(8, s(3_000));
        l.set(0, s(5_000));
        // Nothing for one second, four for one.
        assert_eq!((l.mean(s(9_000)), l.max()), (Some(2.0), 4));
        // The end of the run belongs to it.
        let mut last = Level::new(Window::new(d(1_000), d(3_000), d(3_000)));
        last.set(8, s(3_000));
        assert_eq!((last.mean(s(3_000)), last.max()), (Some(0.0), 8));
    }
}
