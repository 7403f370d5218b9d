//! Named, seeded random streams, and the seam for real entropy.
//!
//! One seed gives one stream per name, so adding a consumer never shifts another's numbers.

use rand_core::{Infallible, Rng, SeedableRng, TryRng};
use rand_pcg::Pcg64Mcg;

/// A deterministic random stream. The algorithm (PCG 64 MCG) is fixed: fingerprints depend on it.
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64Mcg);

impl RandomStream {
    /// The stream called `name` of `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then SplitMix64 to spread seed and name over the 128-bit state.
        let h = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut state = seed ^ h.rotate_left(32);
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&(next() ^ h).to_le_bytes());
        bytes[8..].copy_from_slice(&next().to_le_bytes());
        RandomStream(Pcg64Mcg::from_seed(bytes))
    }

    /// Uniform over all 64-bit values.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Uniform over all 32-bit values.
    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }
    /// Uniform in `0..n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.u64()) * u128::from(n)) >> 64) as u64
    }
    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

impl TryRng for RandomStream {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.u32())
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.u64())
    }
    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(dst);
        Ok(())
    }
}

/// Source of unpredictable bytes for tags, cookies, nonces and keys. The socket driver hands in the
/// operating system's; the simulator hands in a [`RandomStream`], so runs repeat byte for byte.
pub trait Entropy: Send {
    /// Fills `dst` with random bytes.
    fn fill(&mut self, dst: &mut [u8]);

    /// A random 32-bit value.
    fn u32(&mut self) -> u32 {
        let mut b = [0; 4];
        self.fill(&mut b);
        u32::from_le_bytes(b)
    }
    /// A random 64-bit value.
    fn u64(&mut self) -> u64 {
        let mut b = [0; 8];
        self.fill(&mut b);
        u64::from_le_bytes(b)
    }
}

impl Entropy for RandomStream {
    fn fill(&mut self, dst: &mut [u8]) {
        self.0.fill_bytes(dst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_separate_streams_and_seeds_repeat() {
        let draw = |seed, name| {
            let mut s = RandomStream::named(seed, name);
            [s.u64(), s.u64(), s.u64()]
        };
        assert_eq!(draw(1, "loss"), draw(1, "loss"));
        assert_ne!(draw(1, "loss"), draw(1, "jitter"));
        assert_ne!(draw(1, "loss"), draw(2, "loss"));
    }

    #[test]
    fn the_algorithm_never_drifts() {
        // Every committed fingerprint rests on these numbers.
        let mut s = RandomStream::named(42, "fingerprint");
        let got = [s.u64(), s.u64()];
        assert_eq!(got, [5_791_391_932_555_788_597, 874_223_336_558_087_490]);
    }

    #[test]
    fn uniform_within_bounds() {
        let mut s = RandomStream::named(3, "bounds");
        let mut sum = 0.0;
        for _ in 0..10_000 {
            assert!(s.below(7) < 7);
            let u = s.unit();
            assert!((0.0..1.0).contains(&u));
            sum += u;
        }
        assert!((sum / 10_000.0 - 0.5).abs() < 0.02);
        assert_eq!(s.below(0), 0);
    }
}
