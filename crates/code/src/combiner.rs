//! A repair symbol, built up source by source.

use crate::gf256;
use fearless_simd::Level;

/// How sources are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Each source as it is: one repair symbol restores one of its sources, and two over the same ones no more.
    Xor,
    /// Each times a coefficient from a generator: as many repair symbols as are missing restore them, but in about one
    /// case of 255.
    Rlc,
}

impl Code {
    /// The coefficient of source `number` in the repair symbol with `seed`; never zero. The mixing is that of splitmix64
    /// (Steele, Lea and Flood 2014).
    #[inline]
    pub fn coefficient(self, seed: u16, number: u64) -> u8 {
        if self == Code::Xor {
            return 1;
        }
        let mut z = (u64::from(seed) << 32 | number & 0xffff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (1 + (z >> 33) % 255) as u8
    }
}

/// The sum of some sources.
#[derive(Debug)]
pub struct Combiner {
    level: Level,
    code: Code,
    seed: u16,
    sum: Vec<u8>,
}

impl Combiner {
    /// An empty sum. `seed` has to differ between repair symbols over the same sources.
    pub fn new(code: Code, seed: u16) -> Self {
        Self::onto(code, seed, Vec::new())
    }

    /// An empty sum with room.
    pub fn with_capacity(code: Code, seed: u16, bytes: usize) -> Self {
        Self::onto(code, seed, Vec::with_capacity(bytes))
    }

    fn onto(code: Code, seed: u16, sum: Vec<u8>) -> Self {
        Combiner { level: Level::new(), code, seed, sum }
    }

    /// Adds the source with this number, which may lie in several pieces, one behind the other.
    pub fn add(&mut self, number: u64, pieces: &[&[u8]]) {
        let len = pieces.iter().map(|p| p.len()).sum();
        if self.sum.len() < len {
            self.sum.resize(len, 0);
        }
        let by = self.code.coefficient(self.seed, number);
        add_pieces(self.level, &mut self.sum, pieces, by);
    }

    /// The repair symbol, as long as the longest source.
    pub fn finish(self) -> Vec<u8> {
        self.sum
    }
}

/// Adds what lies in pieces times `by` to `sum`, which is long enough.
pub(crate) fn add_pieces(level: Level, sum: &mut [u8], pieces: &[&[u8]], by: u8) {
    let mut rest = sum;
    for piece in pieces {
        let (here, behind) = rest.split_at_mut(piece.len().min(rest.len()));
        gf256::add_scaled(level, here, piece, by);
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_never_zero_and_differ() {
        let all: Vec<u8> = (0..5_000).map(|n| Code::Rlc.coefficient(3, n)).collect();
        assert!(all.iter().all(|c| *c != 0));
        let of_value = |v| all.iter().filter(|c| **c == v).count();
        assert!((1..=255).all(|v| (3..60).contains(&of_value(v))), "about twenty of each");
        assert_ne!(all, (0..5_000).map(|n| Code::Rlc.coefficient(4, n)).collect::<Vec<_>>());
        assert_eq!(Code::Xor.coefficient(3, 9), 1);
    }

    #[test]
    fn pieces_are_one_source() {
        let (mut whole, mut cut) = (Combiner::new(Code::Rlc, 1), Combiner::new(Code::Rlc, 1));
        whole.add(5, &[b"head and payload"]);
        cut.add(5, &[b"head and", b"", b" payload"]);
        assert_eq!(whole.finish(), cut.finish());
    }
}
