//! Independent loss, the same probability for every packet.

use super::LossModel;
use anabranch_base::{Instant, RandomStream};

/// Uniform random loss.
#[derive(Clone, Copy, Debug)]
pub struct Bernoulli {
    p: f64,
}

impl Bernoulli {
    /// Each packet is lost with probability `p`.
    pub const fn new(p: f64) -> Self {
        Bernoulli { p }
    }
}

impl LossModel for Bernoulli {
    fn loses(&mut self, _now: Instant, random: &mut RandomStream) -> bool {
        random.chance(self.p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_exact() {
        let mut random = RandomStream::named(1, "ends");
        assert!((0..1000).all(|_| !Bernoulli::new(0.0).loses(Instant::ZERO, &mut random)));
        assert!((0..1000).all(|_| Bernoulli::new(1.0).loses(Instant::ZERO, &mut random)));
    }
}
