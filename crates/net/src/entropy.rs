//! Unpredictable bytes from the operating system, through the buffered generator of the crypto library.

use anabranch_base::Entropy;

/// Randomness for tags, cookies, nonces and keys, from the operating system.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, dst: &mut [u8]) {
        // Fails only where the operating system has no random source at all. Going on with guessable tags and
        // keys would be worse than stopping.
        if aws_lc_rs::rand::fill(dst).is_err() {
            panic!("the operating system gives no random bytes");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ() {
        let mut e = SystemEntropy;
        let draws = [e.u64(), e.u64(), e.u64()];
        assert!(draws[0] != draws[1] && draws[1] != draws[2]);
    }
}
