//! What a metric is of: a span of the run.

use anabranch_base::{Duration, Instant};

const TICK: Duration = Duration::from_nanos(1);

/// A span of a run in which something is measured. Its first moment belongs to it, its last one to what follows; only
/// the end of the run belongs to the window that ends there. Windows that follow each other have each moment once.
///
/// What happens at a moment (a delivery, a loss, a time-out, a packet at a cable) belongs to the windows that hold the
/// moment. What has a history (a packet, a message, a frame, a chunk with its repetitions) belongs to those that hold the
/// moment at which it was made or first left, however late it comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Window {
    from: Instant,
    until: Instant,
    /// It ends with the run.
    last: bool,
}

impl Window {
    /// From `from` to `until` in a run that lasts for `duration`.
    pub fn new(from: Duration, until: Duration, duration: Duration) -> Self {
        Window { from: Instant::ZERO + from, until: Instant::ZERO + until, last: until >= duration }
    }

    /// From a moment on, for ever.
    pub const fn since(from: Instant) -> Self {
        Window { from, until: Instant::FAR, last: true }
    }

    /// What of it there is of a flow that starts at `start`.
    #[must_use]
    pub fn from_start(self, start: Instant) -> Self {
        Window { from: self.from.max(start), ..self }
    }

    /// Its first moment.
    pub const fn from(self) -> Instant {
        self.from
    }

    /// Its end, which is the first moment that no longer belongs to it.
    pub const fn until(self) -> Instant {
        self.until
    }

    /// From when until when, since the run began.
    pub fn span(self) -> (Duration, Duration) {
        (self.from - Instant::ZERO, self.until - Instant::ZERO)
    }

    /// Its length, by which rates are divided.
    pub fn time(self) -> Duration {
        self.until - self.from
    }

    /// Is there nothing of it, as of a flow that starts later?
    pub fn is_empty(self) -> bool {
        self.from >= self.until
    }

    /// Does what happens at this moment belong to it?
    pub fn holds(self, at: Instant) -> bool {
        at >= self.from && !self.is_over(at)
    }

    /// Is it over at this moment?
    pub fn is_over(self, at: Instant) -> bool {
        at > self.until || at == self.until && !self.last
    }

    /// The last moment before it; none where it begins with the run.
    pub fn before(self) -> Option<Instant> {
        (self.from > Instant::ZERO).then(|| self.from - TICK)
    }

    /// The last moment in it; none where it ends with the run.
    pub fn end(self) -> Option<Instant> {
        (!self.last).then(|| self.until - TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + S(seconds)
    }

    #[test]
    fn windows_that_follow_each_other_have_each_moment_once() {
        let all: Vec<Window> =
            [(0, 4), (4, 9), (9, 10)].into_iter().map(|(a, b)| Window::new(S(a), S(b), S(10))).collect();
        for moment in (0..=10).map(at).chain([at(4) - TICK, at(9) - TICK]) {
            assert_eq!(all.iter().filter(|w| w.holds(moment)).count(), 1, "{moment:?}");
        }
        assert!(all[1].holds(at(4)) && all[2].holds(at(10)) && !all[2].holds(at(10) + TICK));
        // Counters are read at the same moments.
        assert_eq!(all.iter().map(|w| w.before()).collect::<Vec<_>>(), [None, all[0].end(), all[1].end()]);
        assert_eq!(all[2].end(), None);
    }

    #[test]
    fn a_flow_has_the_part_after_its_start() {
        let w = Window::new(S(2), S(4), S(10));
        assert_eq!((w.from_start(at(1)), w.time()), (w, S(2)));
        assert_eq!(w.from_start(at(3)).time(), S(1));
        assert!(w.from_start(at(4)).is_empty() && w.from_start(at(5)).is_empty() && !w.is_empty());
        assert!(!w.from_start(at(5)).holds(at(5)));
        let ever = Window::since(at(3));
        assert!(ever.holds(at(3)) && ever.holds(Instant::FAR) && !ever.holds(at(2)) && ever.end().is_none());
    }
}
