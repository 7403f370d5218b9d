//! How large packets are.

use crate::draw::normal;
use anabranch_base::RandomStream;

/// Sizes of packets in bytes, drawn one by one.
#[derive(Clone, PartialEq, Debug)]
pub enum Sizes {
    /// All the same.
    Fixed(u32),
    /// Evenly between two sizes, both included.
    Uniform {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// A few sizes, each with its weight.
    Shares(Vec<(u32, f64)>),
    /// Log-normal, drawn again until it lies within the bounds.
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
}

impl Sizes {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let bounds = |min: u32, max: u32| {
            if min == 0 || max < min {
                return Err("packet sizes must be at least one byte, the largest no smaller than the smallest");
            }
            Ok(())
        };
        match self {
            Sizes::Fixed(size) => bounds(*size, *size),
            Sizes::Uniform { min, max } => bounds(*min, *max),
            Sizes::Shares(shares) => {
                let weights = || shares.iter().map(|s| s.1);
                if shares.iter().any(|s| s.0 == 0) {
                    return Err("packet sizes must be at least one byte");
                }
                if weights().any(|w| !(w >= 0.0 && w.is_finite())) || weights().sum::<f64>() <= 0.0 {
                    return Err("shares of packet sizes must not be negative, nor all zero");
                }
                Ok(())
            }
            Sizes::LogNormal { mu, sigma, min, max } => {
                bounds(*min, *max)?;
                // Otherwise drawing again and again might never end.
                let (low, high) = (libm::log(f64::from(*min)), libm::log(f64::from(*max) + 0.5));
                if !(*sigma >= 0.0 && mu.is_finite() && sigma.is_finite() && low <= mu + sigma && high >= mu - sigma) {
                    return Err("the bounds of log-normal sizes must leave room around the median");
                }
                Ok(())
            }
        }
    }

    /// One size; 0 only from parameters that [`check`](Self::check) refuses.
    pub(super) fn draw(&self, random: &mut RandomStream) -> u32 {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Uniform { min, max } => {
                let span = u64::from(max.saturating_sub(*min)) + 1;
                min.saturating_add(u32::try_from(random.below(span)).unwrap_or(u32::MAX))
            }
            Sizes::Shares(shares) => {
                let mut left = random.unit() * shares.iter().map(|s| s.1).sum::<f64>();
                let found = shares.iter().find(|s| {
                    left -= s.1;
                    left < 0.0
                });
                found.or(shares.last()).map_or(0, |s| s.0)
            }
            Sizes::LogNormal { mu, sigma, min, max } => {
                let (low, high) = (f64::from(*min), f64::from(*max));
                let one = |r: &mut RandomStream| libm::round(libm::exp(mu + sigma * normal(r)));
                let fits = (0..TRIES).map(|_| one(random)).find(|size| (low..=high).contains(size));
                fits.unwrap_or(low) as u32
            }
        }
    }
}

/// Draws before the smallest size is taken. Bounds that pass the check reach to within one standard
/// deviation of the median, so only very narrow ones are missed so often.
const TRIES: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sizes: &Sizes, n: u32) -> Vec<f64> {
        assert_eq!(sizes.check(), Ok(()));
        let mut random = RandomStream::named(6, "sizes");
        (0..n).map(|_| f64::from(sizes.draw(&mut random))).collect()
    }

    #[test]
    fn shares_come_in_proportion() {
        let n = 100_000;
        let all = drawn(&Sizes::Shares(vec![(44, 3.0), (576, 0.0), (1_500, 1.0)]), n);
        let large = all.iter().filter(|s| **s == 1_500.0).count() as f64;
        assert!(all.iter().all(|s| [44.0, 1_500.0].contains(s)));
        // Binomial with p = 1/4.
        assert!((large - 25_000.0).abs() < 4.0 * (f64::from(n) * 0.25 * 0.75).sqrt(), "{large}");
    }

    #[test]
    fn bounds_hold() {
        let all = drawn(&Sizes::LogNormal { mu: 4.0, sigma: 1.0, min: 40, max: 60 }, 20_000);
        assert!(all.iter().all(|s| (40.0..=60.0).contains(s)));
        let all = drawn(&Sizes::Uniform { min: 7, max: 9 }, 20_000);
        assert!([7.0, 8.0, 9.0].iter().all(|want| all.contains(want)) && all.iter().all(|s| (7.0..=9.0).contains(s)));
    }

    #[test]
    fn nonsense_is_named() {
        for bad in [
            Sizes::Fixed(0),
            Sizes::Uniform { min: 9, max: 8 },
            Sizes::Shares(vec![]),
            Sizes::Shares(vec![(100, -1.0), (200, 2.0)]),
            Sizes::Shares(vec![(0, 1.0)]),
            Sizes::LogNormal { mu: 2.0, sigma: 0.1, min: 500, max: 600 },
            Sizes::LogNormal { mu: f64::NAN, sigma: 0.1, min: 5, max: 600 },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
            // And never hangs.
            bad.draw(&mut RandomStream::named(1, "bad"));
        }
    }
}
