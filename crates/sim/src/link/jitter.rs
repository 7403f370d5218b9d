//! Variation of the delay.

use crate::draw::{exponential, normal};
use anabranch_base::{Duration, RandomStream};

/// How a packet's delay varies around the configured one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// Evenly between minus and plus this span.
    Uniform(Duration),
    /// Normally, with this standard deviation.
    Normal(Duration),
    /// Only longer, exponentially with this mean: the queues of others on the way.
    Exponential(Duration),
}

impl Jitter {
    /// `delay` with the variation of one packet, never below zero.
    pub fn vary(self, delay: Duration, random: &mut RandomStream) -> Duration {
        match self {
            Jitter::None => delay,
            Jitter::Uniform(span) => {
                let width = span.as_nanos().saturating_mul(2);
                let offset = random.below(width.saturating_add(1));
                (delay + Duration::from_nanos(offset)).saturating_sub(span)
            }
            Jitter::Normal(sd) => {
                let z = normal(random);
                let offset = Duration::from_secs_f64(sd.as_secs_f64() * z.abs());
                if z < 0.0 { delay.saturating_sub(offset) } else { delay + offset }
            }
            Jitter::Exponential(mean) => delay + Duration::from_secs_f64(exponential(random, mean.as_secs_f64())),
        }
    }

    /// The shortest delay that can come out.
    pub fn shortest(self, delay: Duration) -> Duration {
        match self {
            Jitter::None | Jitter::Exponential(_) => delay,
            Jitter::Uniform(span) => delay.saturating_sub(span),
            Jitter::Normal(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_below_zero_and_within_the_span() {
        let mut random = RandomStream::named(4, "jitter");
        for _ in 0..10_000 {
            let d = Jitter::Uniform(Duration::from_millis(4)).vary(Duration::from_millis(1), &mut random);
            assert!(d <= Duration::from_millis(5));
            Jitter::Uniform(Duration::MAX).vary(Duration::MAX, &mut random);
            Jitter::Normal(Duration::MAX).vary(Duration::MAX, &mut random);
            Jitter::Exponential(Duration::MAX).vary(Duration::MAX, &mut random);
            assert!(
                Jitter::Exponential(Duration::from_millis(4)).vary(Duration::from_millis(1), &mut random)
                    >= Duration::from_millis(1)
            );
        }
    }
}
