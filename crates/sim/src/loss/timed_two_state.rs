//! Two-state loss that moves with time, not with packets: a fade lasts as long whether or not
//! anything is sent.
//!
//! Stays are exponential, so the state at a packet depends only on the state at the packet before and
//! the time between: P(bad after t) = share + (was_bad - share) e^(-(1/good + 1/bad) t). One draw per
//! packet samples the process exactly, however long the link was idle.

use super::LossModel;
use anabranch_base::{Duration, Instant, RandomStream};

/// Everything is lost in the bad state, nothing in the good one.
#[derive(Clone, Copy, Debug)]
pub struct TimedTwoState {
    share_bad: f64,
    /// Sum of both rates of change, per second.
    pace: f64,
    bad: bool,
    seen: Option<Instant>,
}

/// Share of time in the bad state.
pub(super) fn share_bad(mean_good: Duration, mean_bad: Duration) -> f64 {
    let (good, bad) = (mean_good.as_secs_f64(), mean_bad.as_secs_f64());
    if good + bad > 0.0 { bad / (good + bad) } else { 0.0 }
}

impl TimedTwoState {
    /// The process with these mean stays, its state drawn from the stationary distribution.
    pub fn new(mean_good: Duration, mean_bad: Duration, random: &mut RandomStream) -> Self {
        let share_bad = share_bad(mean_good, mean_bad);
        let shortest = 1e-9;
        let pace = 1.0 / mean_good.as_secs_f64().max(shortest) + 1.0 / mean_bad.as_secs_f64().max(shortest);
        TimedTwoState { share_bad, pace, bad: random.chance(share_bad), seen: None }
    }
}

impl LossModel for TimedTwoState {
    fn loses(&mut self, now: Instant, random: &mut RandomStream) -> bool {
        if let Some(before) = self.seen {
            let memory = libm::exp(-self.pace * now.since(before).as_secs_f64());
            let was = if self.bad { 1.0 } else { 0.0 };
            self.bad = random.chance(self.share_bad + (was - self.share_bad) * memory);
        }
        self.seen = Some(now);
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts() {
        // Packets a long time apart see independent states.
        let mut random = RandomStream::named(5, "idle");
        let mut model = TimedTwoState::new(Duration::from_millis(50), Duration::from_millis(50), &mut random);
        let (mut now, mut same, mut last) = (Instant::ZERO, 0, false);
        for _ in 0..4_000 {
            let is = model.loses(now, &mut random);
            same += i32::from(is == last);
            last = is;
            now += Duration::from_secs(10);
        }
        assert!((same - 2_000).abs() < 130, "{same}");
    }
}
