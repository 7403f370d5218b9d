//! Steps at which a path became longer at a stroke.

use anabranch_base::Duration;

/// By how much the two steps from one arrival to the next were longer than from one departure to the next that were so
/// the most. A path that becomes longer both ways shows two of them in a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jumps([Duration; 2]);

impl Jumps {
    /// No step was longer.
    pub const NONE: Jumps = Jumps([Duration::ZERO; 2]);

    pub fn add(&mut self, d: Duration) {
        let [a, b] = self.0;
        self.0 = [a.max(d), b.max(a.min(d))];
    }
    pub fn with(mut self, d: Duration) -> Self {
        self.add(d);
        self
    }
    /// Those of two spans of time.
    pub fn and(self, other: Jumps) -> Self {
        other.0.into_iter().fold(self, Jumps::with)
    }
    pub fn sum(self) -> Duration {
        self.0[0] + self.0[1]
    }
    /// The part of `bytes` in `packets` that did not come by them.
    pub fn without(self, bytes: u64, packets: u32) -> u64 {
        let jumps = self.0.len() as u64;
        bytes - bytes * jumps / u64::from(packets).max(jumps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_longest() {
        let ms = Duration::from_millis;
        let a = Jumps::default().with(ms(3)).with(ms(50)).with(ms(7)).with(ms(2));
        assert_eq!((a.sum(), a.and(Jumps::default().with(ms(40))).sum()), (ms(57), ms(90)));
        assert_eq!((a.without(10_000, 10), a.without(900, 1)), (8_000, 0));
    }
}
