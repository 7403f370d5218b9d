//! Exact losses for tests: packets by number, or a repeating pattern.

use super::LossModel;
use anabranch_base::{Instant, RandomStream};
use std::collections::BTreeSet;

/// Loses exactly the packets that it lists.
#[derive(Clone, Debug)]
pub struct Mask {
    lost: Lost,
    seen: u64,
}

#[derive(Clone, Debug)]
enum Lost {
    Numbers(BTreeSet<u64>),
    Pattern(Vec<bool>),
}

impl Mask {
    /// Loses the packets with these numbers, counted from 0.
    pub fn packets(numbers: &[u64]) -> Self {
        Mask { lost: Lost::Numbers(numbers.iter().copied().collect()), seen: 0 }
    }

    /// Loses where the pattern says `true`, and starts it again at its end. An empty one loses nothing.
    pub fn pattern(pattern: Vec<bool>) -> Self {
        Mask { lost: Lost::Pattern(pattern), seen: 0 }
    }
}

impl LossModel for Mask {
    fn loses(&mut self, _now: Instant, _random: &mut RandomStream) -> bool {
        let number = self.seen;
        self.seen += 1;
        match &mut self.lost {
            Lost::Numbers(numbers) => numbers.remove(&number),
            Lost::Pattern(pattern) => {
                let place = number.checked_rem(pattern.len() as u64);
                place.and_then(|i| pattern.get(i as usize)).copied().unwrap_or(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(mut mask: Mask, n: u64) -> Vec<u64> {
        let mut random = RandomStream::named(0, "mask");
        (0..n).filter(|_| mask.loses(Instant::ZERO, &mut random)).collect()
    }

    #[test]
    fn exactly_what_was_asked_for() {
        assert_eq!(lost(Mask::packets(&[7, 0, 3]), 10), [0, 3, 7]);
        assert_eq!(lost(Mask::pattern(vec![false, true, false]), 9), [1, 4, 7]);
        assert_eq!(lost(Mask::pattern(vec![]), 9), [] as [u64; 0]);
    }
}
