//! Errors in a row over all paths: when a peer is given up (RFC 9260 §8.1).

use anabranch_base::{Duration, Instant};

/// Errors since the peer last answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerErrors {
    count: u16,
    /// When that left whose silence began the row.
    since: Option<Instant>,
    last: Option<Instant>,
}

impl PeerErrors {
    /// One more, counted once in `apart` at most: what a short blackout costs must not depend on how many paths there are
    /// nor on how quick their timers are. What was not answered left at `sent`. Answers whether it counted.
    pub fn note(&mut self, now: Instant, sent: Instant, apart: Duration) -> bool {
        if self.last.is_some_and(|t| now.since(t) < apart) {
            return false;
        }
        self.last = Some(now);
        if self.count == 0 {
            self.since = Some(sent);
        }
        self.count = self.count.saturating_add(1);
        true
    }

    /// The peer answered.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    pub fn count(&self) -> u16 {
        self.count
    }

    /// When the last error was counted, of this row or of an earlier one.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }

    /// When the first packet of this row left.
    pub fn since(&self) -> Option<Instant> {
        self.since.filter(|_| self.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_close_together_count_once_and_an_answer_ends_the_row() {
        let (mut e, apart) = (PeerErrors::default(), Duration::from_millis(500));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(e.note(at(200), at(0), apart));
        assert!(!e.note(at(699), at(210), apart));
        assert!(e.note(at(700), at(220), apart));
        assert_eq!((e.count(), e.since(), e.last()), (2, Some(at(0)), Some(at(700))));
        e.clear();
        assert_eq!((e.count(), e.since()), (0, None));
        assert!(e.note(at(1_200), at(1_000), apart));
        assert_eq!(e.since(), Some(at(1_000)));
    }
}
