//! Variation of the delay.

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
}

impl Jitter {
    /// `delay` with the variation of one packet, never below zero.
    pub(super) fn vary(self, delay: Duration, random: &mut RandomStream) -> Duration {
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
        }
    }

    /// The shortest delay that can come out.
    pub(super) fn shortest(self, delay: Duration) -> Duration {
        match self {
            Jitter::None => delay,
            Jitter::Uniform(span) => delay.saturating_sub(span),
            Jitter::Normal(_) => Duration::ZERO,
        }
    }
}

/// A standard normal value (Box and Muller 1958, one of the pair).
fn normal(random: &mut RandomStream) -> f64 {
    let (radius, turn) = (1.0 - random.unit(), random.unit());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * core::f64::consts::PI * turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation in ms of 100,000 delays of 100 ms.
    fn moments(jitter: Jitter) -> (f64, f64) {
        let mut random = RandomStream::named(4, "jitter");
        let n = 100_000;
        let all: Vec<f64> =
            (0..n).map(|_| jitter.vary(Duration::from_millis(100), &mut random).as_millis_f64()).collect();
        let mean = all.iter().sum::<f64>() / f64::from(n);
        let var = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        (mean, var.sqrt())
    }

    #[test]
    fn moments_match_the_distribution() {
        let ms = Duration::from_millis;
        let (mean, sd) = moments(Jitter::Uniform(ms(12)));
        assert!((mean - 100.0).abs() < 0.1 && (sd - 12.0 / 3f64.sqrt()).abs() < 0.05, "{mean} {sd}");
        let (mean, sd) = moments(Jitter::Normal(ms(7)));
        assert!((mean - 100.0).abs() < 0.1 && (sd - 7.0).abs() < 0.07, "{mean} {sd}");
        assert_eq!(moments(Jitter::None), (100.0, 0.0));
    }

    #[test]
    fn never_below_zero_and_within_the_span() {
        let mut random = RandomStream::named(4, "jitter");
        for _ in 0..10_000 {
            let d = Jitter::Uniform(Duration::from_millis(4)).vary(Duration::from_millis(1), &mut random);
            assert!(d <= Duration::from_millis(5));
            Jitter::Uniform(Duration::MAX).vary(Duration::MAX, &mut random);
            Jitter::Normal(Duration::MAX).vary(Duration::MAX, &mut random);
        }
    }
}
