//! How surely a number is known.

use super::{Student, bootstrap};

/// What the seeds say of a number: an interval, and how likely it lies beyond any other number.
#[derive(Clone, PartialEq, Debug)]
pub enum Known {
    /// Student's t around it.
    Student(Student),
    /// A share that lies between 0 and 1: Student's t around its logit, the error carried over by the delta method
    /// (Agresti 2013, §3.1 and §16.1). Times `unit` it is in another unit, as 100 for per cent.
    Share {
        /// The logit of the share.
        logit: Student,
        /// Value of a share of one in the unit shown: 100 for per cent.
        unit: f64,
    },
    /// Student's t around it, of a number that cannot lie beyond these.
    Between(Student, f64, f64),
    /// What it comes to in resamples of the seeds, in order.
    Draws(Vec<f64>),
}

impl Known {
    /// A share with its standard error, from `n` values; as it is where it has no logit or no error.
    pub fn share(value: f64, error: f64, n: usize) -> Option<Self> {
        let spread = value * (1.0 - value);
        if value > 0.0 && value < 1.0 && error > 0.0 {
            return Some(Known::Share { logit: Student::new(logit(value), error / spread, n)?, unit: 1.0 });
        }
        Some(Known::Student(Student::new(value, error, n)?))
    }

    /// The value itself when nothing about it is unsure.
    pub fn exact(&self) -> Option<f64> {
        match self {
            Known::Student(s) | Known::Between(s, ..) => s.exact(),
            Known::Share { .. } => None,
            Known::Draws(all) => all.first().copied().filter(|v| all.last() == Some(v)),
        }
    }

    /// Everything times `k`, which is positive: another unit.
    #[must_use]
    pub fn scaled(self, k: f64) -> Self {
        match self {
            Known::Student(s) => Known::Student(s.scaled(k)),
            Known::Share { logit, unit } => Known::Share { logit, unit: unit * k },
            Known::Between(s, low, high) => Known::Between(s.scaled(k), low * k, high * k),
            Known::Draws(all) => Known::Draws(all.into_iter().map(|v| v * k).collect()),
        }
    }

    /// The 95 % interval.
    pub fn usual(&self) -> (f64, f64) {
        match self {
            Known::Student(s) => s.usual(),
            Known::Share { logit, unit } => {
                let (low, high) = logit.usual();
                (unit * share(low), unit * share(high))
            }
            Known::Between(s, least, most) => {
                let (low, high) = s.usual();
                (low.max(*least), high.min(*most))
            }
            Known::Draws(all) => bootstrap::interval(all),
        }
    }

    /// One-sided p-value of "the true value lies above `x`": how often a number as high as this comes of one at `x`.
    pub fn above(&self, x: f64) -> f64 {
        match self {
            Known::Student(s) | Known::Between(s, ..) => s.above(x),
            Known::Share { logit: s, unit } => s.above(logit(x / unit)),
            Known::Draws(all) => bootstrap::p(all.partition_point(|v| *v <= x), all.len()),
        }
    }

    /// One-sided p-value of "the true value lies below `x`".
    pub fn below(&self, x: f64) -> f64 {
        match self {
            Known::Student(s) | Known::Between(s, ..) => s.below(x),
            Known::Share { logit: s, unit } => s.below(logit(x / unit)),
            Known::Draws(all) => bootstrap::p(all.len() - all.partition_point(|v| *v < x), all.len()),
        }
    }
}

/// The logarithm of the odds; infinite at and beyond the ends.
fn logit(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    libm::log(share / (1.0 - share))
}

/// The share with this logit.
fn share(logit: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-logit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Estimator;
    use anabranch_base::RandomStream;

    #[test]
    fn shares_stay_between_nothing_and_all() {
        let known = Known::share(0.01, 0.008, 10).unwrap().scaled(100.0);
        let (low, high) = known.usual();
        assert!(low > 0.0 && low < 1.0 && high > 1.0 && high < 10.0, "{low} {high}");
        // p-values and interval are one rule, and no share lies below 0 or above 1.
        assert!((known.above(low) - 0.025).abs() < 1e-9 && (known.below(high) - 0.025).abs() < 1e-9);
        assert_eq!((known.above(0.0), known.below(0.0), known.below(100.0), known.above(-5.0)), (0.0, 1.0, 0.0, 0.0));
        // By hand: the logit of 0.5 is 0, its error 0.1 / 0.25; t(0.975; 9) = 2.26216.
        let (low, high) = Known::share(0.5, 0.1, 10).unwrap().usual();
        let end = 1.0 / (1.0 + libm::exp(-2.262_16 * 0.4));
        assert!((high - end).abs() < 1e-5 && (low - (1.0 - end)).abs() < 1e-5, "{low} {high}");
        // Without any spread, or at an end, there is nothing to carry over.
        assert_eq!(Known::share(0.3, 0.0, 10).unwrap().usual(), (0.3, 0.3));
        assert_eq!(Known::share(0.0, 0.0, 10).unwrap().exact(), Some(0.0));
    }

    #[test]
    fn intervals_of_shares_cover_as_often_as_they_say() {
        // Each seed counts some of 400 messages; the share of a seed itself varies around the true one.
        for (i, truth) in [0.02f64, 0.1, 0.5, 0.97].into_iter().enumerate() {
            let mut random = RandomStream::named(i as u64, "shares");
            let trials = 1_000;
            let covers = |_: &i32| {
                let seed = |s: u64, random: &mut RandomStream| {
                    let own = truth + truth.min(1.0 - truth) * (random.unit() - 0.5);
                    (s, (0..400).filter(|_| random.unit() < own).count() as f64 / 400.0)
                };
                let seeds = (0..20).map(|s| seed(s, &mut random)).collect();
                let (low, high) = Estimator::share(&seeds).unwrap().estimate().interval.unwrap();
                assert!(low > 0.0 && high < 1.0);
                low <= truth && truth <= high
            };
            let share = (0..trials).filter(covers).count() as f64 / f64::from(trials);
            assert!((0.93..0.97).contains(&share), "{truth}: {share}");
        }
    }
}
