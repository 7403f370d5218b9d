//! Unpredictable bytes from the operating system.

use anabranch_base::Entropy;

/// Randomness for tags, cookies, nonces and keys, from the operating system. Nothing is fetched ahead: after a `fork`
/// both processes would have it.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, dst: &mut [u8]) {
        // Fails only where the operating system has no random source at all. Going on with guessable tags and
        // keys would be worse than stopping.
        if getrandom::fill(dst).is_err() {
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
