//! How regularly a path answers: from one piece of unambiguous news to the next, while something was in flight.

use anabranch_base::{Duration, Instant};

/// Mean and mean deviation of the gaps between answers, over the last thirty or so: slow, so that the disorder in which
/// a path dies does not make it look patient.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerGaps {
    mean: Duration,
    deviation: Duration,
}

impl AnswerGaps {
    pub fn mean(&self) -> Duration {
        self.mean
    }
    pub fn deviation(&self) -> Duration {
        self.deviation
    }

    /// News after the news of `before`; the oldest packet in flight left at `owed_since`. The time before there was
    /// anything in flight does not count: it says how the user sends.
    pub fn sample(&mut self, now: Instant, before: Option<Instant>, owed_since: Instant) {
        let Some(before) = before.filter(|b| *b < now) else { return };
        let gap = now.since(before.max(owed_since));
        if self.mean.is_zero() {
            (self.mean, self.deviation) = (gap, gap / 2);
            return;
        }
        let off = if gap > self.mean { gap - self.mean } else { self.mean - gap };
        self.deviation = (self.deviation * 31 + off) / 32;
        self.mean = (self.mean * 31 + gap) / 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn steady_answers_have_their_gap_and_no_deviation() {
        let mut g = AnswerGaps::default();
        for i in 1..200u64 {
            g.sample(t(i * 40), Some(t(i * 40 - 40)), t((i * 40).saturating_sub(200)));
        }
        assert_eq!((g.mean().as_millis(), g.deviation().as_millis()), (40, 0));
    }

    #[test]
    fn pauses_of_the_user_are_no_gaps() {
        let mut g = AnswerGaps::default();
        g.sample(t(100), None, t(0));
        assert!(g.mean().is_zero(), "{g:?}");
        g.sample(t(5_040), Some(t(100)), t(5_000));
        g.sample(t(5_040), Some(t(5_040)), t(5_000));
        assert_eq!((g.mean().as_millis(), g.deviation().as_millis()), (40, 20));
        g.sample(t(5_400), Some(t(5_040)), t(5_020));
        assert_eq!((g.mean().as_millis(), g.deviation().as_micros()), (50, 29_375), "40 and 360; 20 and 320 off");
    }
}
