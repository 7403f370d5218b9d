//! Numbers of an association that must be unpredictable, and others that only have to scatter.

use anabranch_base::Entropy;
use sha2::{Digest, Sha256};

/// Nonces of HEARTBEATs (RFC 9260 §5.4: 64 bits, unpredictable), and jitter.
pub(crate) struct Nonces {
    secret: [u8; 16],
    counter: u64,
    jitter: u64,
}

impl Nonces {
    pub fn new(entropy: &mut dyn Entropy) -> Self {
        let mut secret = [0; 16];
        entropy.fill(&mut secret);
        Nonces { secret, counter: 0, jitter: entropy.u64() }
    }

    /// Never the same twice, and not to be guessed from earlier ones: SHA-256 of a secret and a count. All inputs have
    /// one length, so that a keyed hash needs nothing more, and secret and count are one block of it.
    pub fn next(&mut self) -> u64 {
        self.counter += 1;
        let mut input = [0; 24];
        let (secret, count) = input.split_at_mut(16);
        secret.copy_from_slice(&self.secret);
        count.copy_from_slice(&self.counter.to_be_bytes());
        Sha256::digest(input).iter().take(8).fold(0, |n, &b| n << 8 | u64::from(b))
    }

    /// Uniform in `0..n`, for jitter: whoever watches the wire sees it anyway, so it comes from no secret (SplitMix64).
    pub fn jitter(&mut self, n: u64) -> u64 {
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.jitter ^ (self.jitter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Nonces;
    use anabranch_base::RandomStream;
    use std::collections::BTreeSet;

    #[test]
    fn nonces_differ_and_jitter_covers_its_span() {
        let mut n = Nonces::new(&mut RandomStream::named(1, "nonces"));
        let mut other = Nonces::new(&mut RandomStream::named(2, "nonces"));
        let drawn: BTreeSet<u64> = (0..500).flat_map(|_| [n.next(), other.next()]).collect();
        assert_eq!(drawn.len(), 1_000);
        let tenths: BTreeSet<u64> = (0..500).map(|_| n.jitter(10)).collect();
        assert_eq!(tenths, (0..10).collect());
    }
}
