//! HyStart++ (RFC 9406): the first slow start ends when round trips become longer, after a trial of some rounds at a
//! quarter of its growth, before a queue overflows.

use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// `L` of a sender that does not pace: at most so many segments count of one acknowledgement.
pub(super) const LARGEST_STEP: u64 = 8;

/// The first slow start of one connection.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// When the segments from `first` on left; `None` for those that left again.
    left: VecDeque<Option<Instant>>,
    first: u64,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    samples: u32,
    window_end: u64,
    conservative: Option<Conservative>,
}

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The round trip that ended slow start.
    baseline: Duration,
    /// Rounds of it that are over.
    rounds: u32,
}

/// What an acknowledgement means for the window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Step {
    /// It grows by so many segments.
    Grow(f64),
    /// Slow start is over: the threshold is the window.
    Over,
}

impl HyStart {
    pub fn new() -> Self {
        HyStart {
            left: VecDeque::new(),
            first: 0,
            last_round: None,
            this_round: None,
            samples: 0,
            window_end: 1,
            conservative: None,
        }
    }

    /// Segment `number` leaves.
    pub fn leaves(&mut self, number: u64, now: Instant) {
        let place = number.saturating_sub(self.first) as usize;
        match self.left.get_mut(place) {
            Some(before) => *before = None,
            None => self.left.push_back(Some(now)),
        }
    }

    /// Segments below `next` have been acknowledged; `sent` is one past the highest that has left.
    pub fn acknowledged(&mut self, now: Instant, next: u64, sent: u64) -> Step {
        let acked = next.saturating_sub(self.first);
        let gone = self.left.drain(..(acked as usize).min(self.left.len()));
        if let Some(left) = gone.flatten().last() {
            let rtt = now.since(left);
            self.this_round = Some(self.this_round.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        self.first = self.first.max(next);
        self.judge();
        if next >= self.window_end {
            if let Some(css) = &mut self.conservative {
                css.rounds += 1;
                if css.rounds >= CSS_ROUNDS {
                    return Step::Over;
                }
            }
            self.last_round = self.this_round.take();
            self.samples = 0;
            self.window_end = sent;
        }
        let grows = acked.min(LARGEST_STEP) as f64;
        Step::Grow(if self.conservative.is_some() { grows / CSS_GROWTH_DIVISOR } else { grows })
    }

    /// Has the round trip become longer, or shorter again?
    fn judge(&mut self) {
        let Some(now) = self.this_round.filter(|_| self.samples >= N_RTT_SAMPLE) else { return };
        match (self.conservative, self.last_round) {
            (Some(css), _) if now < css.baseline => self.conservative = None,
            (None, Some(last)) => {
                let eighth = Duration::from_nanos(last.as_nanos() / MIN_RTT_DIVISOR);
                if now >= last + eighth.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH) {
                    self.conservative = Some(Conservative { baseline: now, rounds: 0 });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows after rounds of ten segments whose round trips are these, in ms; the last is where slow start was over.
    fn windows(rtts: &[u64]) -> (Vec<f64>, bool) {
        let (mut h, mut now, mut sent, mut cwnd) = (HyStart::new(), Instant::ZERO, 0u64, 10.0);
        let mut all = Vec::new();
        for rtt in rtts {
            (sent..sent + 10).for_each(|n| h.leaves(n, now));
            let next_round = sent + 10;
            now += Duration::from_millis(*rtt);
            for n in sent..next_round {
                // The next round is out before the last of this one is acknowledged.
                let out = if n + 1 == next_round { next_round + 10 } else { next_round };
                match h.acknowledged(now, n + 1, out) {
                    Step::Grow(by) => cwnd += by,
                    Step::Over => return (all, true),
                }
            }
            all.push(cwnd);
            sent = next_round;
        }
        (all, false)
    }

    #[test]
    fn a_quarter_of_the_growth_for_five_rounds() {
        // 100 ms and an eighth of it are 112.5: the third round is longer. It counts from its eighth sample on.
        let (all, over) = windows(&[100, 100, 113, 113, 113, 113, 113, 113, 113]);
        assert_eq!(all[..2], [20.0, 30.0]);
        let third = 30.0 + 7.0 + 3.0 * 0.25;
        assert_eq!(all[2..], [third, third + 2.5, third + 5.0, third + 7.5]);
        assert!(over, "the fifth round of it, the one in which it began included, is the last");
    }

    #[test]
    fn a_round_trip_that_shortens_again_resumes_slow_start() {
        let (all, over) = windows(&[100, 100, 113, 100, 100, 100, 100, 100, 100, 100]);
        assert!(!over);
        assert_eq!(all[9] - all[8], 10.0);
        let (slow, _) = windows(&[100; 10]);
        assert!(all[9] < slow[9]);
    }

    #[test]
    fn thresholds_of_short_and_long_round_trips() {
        let ends = |first: u64, then: u64| windows(&[[first].as_slice(), &[then; 9]].concat()).1;
        // 4 ms at least, 16 ms at most.
        assert_eq!([ends(10, 13), ends(10, 14), ends(400, 415), ends(400, 416)], [false, true, false, true]);
    }

    #[test]
    fn what_was_sent_again_is_no_sample_and_a_large_step_is_cut() {
        let mut h = HyStart::new();
        (0..20).for_each(|n| h.leaves(n, Instant::ZERO));
        (0..20).for_each(|n| h.leaves(n, Instant::from_millis(5)));
        assert_eq!(h.acknowledged(Instant::from_millis(6), 20, 40), Step::Grow(8.0));
        assert_eq!((h.this_round, h.last_round, h.samples), (None, None, 0));
    }
}
