//! When segments left for the first time.

use anabranch_base::Instant;
use std::collections::VecDeque;

/// Of the segments from the first unacknowledged one on.
#[derive(Debug, Default)]
pub(super) struct FirstSent {
    /// Segments before these.
    before: u64,
    times: VecDeque<Instant>,
}

impl FirstSent {
    /// Segment `number` leaves at `now`; says when it left first.
    pub fn leaves(&mut self, number: u64, now: Instant) -> Instant {
        let place = number.saturating_sub(self.before) as usize;
        if place == self.times.len() {
            self.times.push_back(now);
        }
        self.times.get(place).copied().unwrap_or(now)
    }

    /// Segments below `una` will not leave again.
    pub fn forget_below(&mut self, una: u64) {
        let gone = (una.saturating_sub(self.before) as usize).min(self.times.len());
        self.times.drain(..gone);
        self.before = self.before.max(una);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_stays_until_it_is_acknowledged() {
        let (mut first, ms) = (FirstSent::default(), Instant::from_millis);
        assert_eq!([first.leaves(0, ms(1)), first.leaves(1, ms(2)), first.leaves(2, ms(3))], [ms(1), ms(2), ms(3)]);
        first.forget_below(1);
        assert_eq!([first.leaves(1, ms(10)), first.leaves(2, ms(11)), first.leaves(3, ms(12))], [ms(2), ms(3), ms(12)]);
        // All of it, and a number below what is kept.
        first.forget_below(4);
        assert_eq!([first.leaves(4, ms(20)), first.leaves(4, ms(21))], [ms(20), ms(20)]);
    }
}
