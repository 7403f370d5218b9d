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
    fn share_within_four_standard_deviations() {
        for (p, seed) in [(0.001, 1), (0.05, 2), (0.5, 3)] {
            let mut random = RandomStream::named(seed, "bernoulli");
            let mut model = Bernoulli::new(p);
            let n = 200_000;
            let lost = (0..n).filter(|_| model.loses(Instant::ZERO, &mut random)).count() as f64;
            let sd = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((lost - f64::from(n) * p).abs() < 4.0 * sd, "p={p} lost={lost}");
        }
    }

    #[test]
    fn the_ends_are_exact() {
        let mut random = RandomStream::named(1, "ends");
        assert!((0..1000).all(|_| !Bernoulli::new(0.0).loses(Instant::ZERO, &mut random)));
        assert!((0..1000).all(|_| Bernoulli::new(1.0).loses(Instant::ZERO, &mut random)));
    }
}
