//! What a path carried: bytes acknowledged over the time from the first to the last that left (Xu et al. 2014 eq. 6).

use anabranch_base::{Duration, Instant};

/// A shorter time gives no rate.
const LEAST: Duration = Duration::from_millis(1);

/// The interval at hand of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carried {
    acked: u64,
    sent: Option<(Instant, Instant)>,
}

impl Carried {
    /// Something left.
    pub fn sent(&mut self, now: Instant) {
        let first = self.sent.map_or(now, |(first, _)| first);
        self.sent = Some((first, now));
    }
    /// Bytes were acknowledged, whenever they left.
    pub fn acked(&mut self, bytes: u64) {
        self.acked += bytes;
    }
    /// Did anything leave?
    pub fn is_used(&self) -> bool {
        self.sent.is_some()
    }
    /// Ends the interval: bytes a second, over at least `least`; none where nothing tells.
    pub fn end(&mut self, least: Duration) -> Option<f64> {
        let Carried { acked, sent } = core::mem::take(self);
        let (first, last) = sent?;
        let span = last.since(first).max(least);
        (acked > 0 && span >= LEAST).then(|| acked as f64 / span.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn bytes_acknowledged_from_first_to_last() {
        let at = Instant::from_millis;
        let mut c = Carried::default();
        assert_eq!(c.end(Duration::ZERO), None);
        [1_000, 1_100, 1_500].into_iter().for_each(|t| c.sent(at(t)));
        c.acked(20_000);
        c.acked(30_000);
        assert_eq!(c.end(Duration::ZERO), Some(100_000.0));
        assert!(!c.is_used(), "an interval begins");
        c.sent(at(2_000));
        c.acked(1_000);
        assert_eq!(c.end(Duration::ZERO), None, "one opportunity has no length");
        c.sent(at(2_000));
        c.acked(1_000);
        assert_eq!(c.end(ms(100)), Some(10_000.0), "a round trip at least");
        c.acked(1_000);
        assert_eq!(c.end(ms(100)), None, "nothing left");
    }
}
