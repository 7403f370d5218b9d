//! A hash that changes when any delivery does.

/// Hash of a sequence of numbers. The algorithm is fixed: committed files depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Adds a number.
    pub fn add(&mut self, x: u64) {
        self.0 = (self.0.rotate_left(23) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// The hash of all numbers so far (SplitMix64's finish).
    pub fn value(self) -> u64 {
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u64]) -> u64 {
        let mut f = Fingerprint::default();
        numbers.iter().for_each(|n| f.add(*n));
        f.value()
    }

    #[test]
    fn order_and_values_count_and_the_algorithm_stands() {
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
        assert_eq!(of(&[1, 2, 3]), 8_022_112_153_289_852_369);
    }
}
