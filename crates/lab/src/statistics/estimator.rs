//! Means, ratios and their differences over paired seeds.

use super::CONFIDENCE;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;

/// A value with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub mean: f64,
    /// Lower and upper end of the interval; `None` when one seed alone cannot tell.
    pub interval: Option<(f64, f64)>,
    /// Seeds it rests on.
    pub seeds: usize,
}

impl Estimate {
    /// Everything times `k`: another unit.
    #[must_use]
    pub fn scaled(self, k: f64) -> Self {
        let order = |(a, b): (f64, f64)| if k < 0.0 { (b * k, a * k) } else { (a * k, b * k) };
        Estimate { mean: self.mean * k, interval: self.interval.map(order), ..self }
    }

    /// Its absolute value; an interval around zero starts at zero.
    #[must_use]
    pub fn absolute(self) -> Self {
        let fold = |(a, b): (f64, f64)| {
            let top = a.abs().max(b.abs());
            (if a <= 0.0 && b >= 0.0 { 0.0 } else { a.abs().min(b.abs()) }, top)
        };
        Estimate { mean: self.mean.abs(), interval: self.interval.map(fold), ..self }
    }
}

/// A quantity over paired seeds: its value and each seed's pull on it. The pulls sum to zero.
///
/// To first order the value moves by `pull / n` when a seed is counted twice, so the variance of the value is that of
/// the pulls over `n`. For a mean this is exact; for a ratio of means it is the usual ratio estimator of survey
/// statistics (Cochran 1977, §2.11).
#[derive(Clone, PartialEq, Debug)]
pub struct Estimator {
    value: f64,
    pulls: BTreeMap<u64, f64>,
}

impl Estimator {
    /// The mean over seeds; `None` without seeds or with a value that is not finite.
    pub fn mean(by_seed: &BTreeMap<u64, f64>) -> Option<Self> {
        if by_seed.values().any(|v| !v.is_finite()) {
            return None;
        }
        let values: Vec<f64> = by_seed.values().copied().collect();
        let value = super::mean(&values)?;
        Some(Estimator { value, pulls: by_seed.iter().map(|(s, v)| (*s, v - value)).collect() })
    }

    /// Its value.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// `self / other`: with two means the ratio of means. `None` when `other` is zero or no seed is common.
    pub fn over(&self, other: &Self) -> Option<Self> {
        let ratio = self.value / other.value;
        if !ratio.is_finite() {
            return None;
        }
        let quotient = |a: f64, b: f64| (a - ratio * b) / other.value;
        self.joined(other, ratio, quotient)
    }

    /// `self - other`, seed by seed.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.joined(other, self.value - other.value, |a, b| a - b)
    }

    /// `self + k`.
    #[must_use]
    pub fn plus(mut self, k: f64) -> Self {
        self.value += k;
        self
    }

    /// `(self - base) / base`: the relative difference, as a fraction.
    pub fn relative_to(&self, base: &Self) -> Option<Self> {
        Some(self.over(base)?.plus(-1.0))
    }

    /// Its absolute value (as far as its sign is sure; see [`Estimate::absolute`] for the interval around zero).
    #[must_use]
    pub fn absolute(self) -> Self {
        if self.value >= 0.0 {
            return self;
        }
        Estimator { value: -self.value, pulls: self.pulls.into_iter().map(|(s, p)| (s, -p)).collect() }
    }

    fn joined(&self, other: &Self, value: f64, pull: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let common = self.pulls.iter().filter_map(|(s, a)| Some((*s, pull(*a, *other.pulls.get(s)?))));
        let pulls: BTreeMap<u64, f64> = common.collect();
        (!pulls.is_empty()).then_some(Estimator { value, pulls })
    }

    /// The value with its 95 % t-interval.
    pub fn estimate(&self) -> Estimate {
        let seeds = self.pulls.len();
        let interval = half_width(self.pulls.values().copied(), seeds).map(|h| (self.value - h, self.value + h));
        Estimate { mean: self.value, interval, seeds }
    }
}

/// Half the width of the t-interval; `None` with fewer than two seeds.
fn half_width(pulls: impl Iterator<Item = f64>, n: usize) -> Option<f64> {
    let freedom = n.checked_sub(1).filter(|f| *f > 0)? as f64;
    let variance = pulls.map(|p| p * p).sum::<f64>() / freedom;
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.5 + CONFIDENCE / 2.0);
    Some(t * (variance / n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Estimator {
        Estimator::mean(&values.iter().enumerate().map(|(i, v)| (i as u64, *v)).collect()).unwrap()
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 5e-4 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn the_t_interval_of_a_textbook() {
        // t(0.975; 9) = 2.26216, t(0.975; 1) = 12.7062: printed in every table of the distribution.
        let e = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]).estimate();
        let (low, high) = e.interval.unwrap();
        near(e.mean, 5.5);
        near(high - 5.5, 2.26216 * 3.027_65 / 10.0_f64.sqrt());
        near(5.5 - low, high - 5.5);
        let (low, high) = of(&[0.0, 2.0]).estimate().interval.unwrap();
        near(high, 1.0 + 12.7062);
        near(low, 1.0 - 12.7062);
    }

    #[test]
    fn one_seed_has_no_interval() {
        assert_eq!(of(&[3.0]).estimate(), Estimate { mean: 3.0, interval: None, seeds: 1 });
        assert!(Estimator::mean(&BTreeMap::new()).is_none());
        assert!(Estimator::mean(&BTreeMap::from([(1, f64::NAN)])).is_none());
    }

    #[test]
    fn pairs_cancel_what_seeds_share() {
        // The seeds differ by far more than the two sides; each pair differs by exactly 1.
        let (a, b) = (of(&[101.0, 11.0, 51.0]), of(&[100.0, 10.0, 50.0]));
        let e = a.minus(&b).unwrap().estimate();
        near(e.mean, 1.0);
        let (low, high) = e.interval.unwrap();
        assert!(high - low < 1e-9);
        // And in proportion: each is 1.1 times its partner.
        let (a, b) = (of(&[110.0, 11.0, 55.0]), of(&[100.0, 10.0, 50.0]));
        let e = a.relative_to(&b).unwrap().estimate();
        near(e.mean, 0.1);
        let (low, high) = e.interval.unwrap();
        assert!(high - low < 1e-9);
    }

    #[test]
    fn a_ratio_of_means_by_hand() {
        // y = 2, 4; x = 1, 3: ratio 3/2, pulls (-1 + 1.5)/2 and (1 - 1.5)/2, standard error sqrt(0.125)/sqrt(2) = 0.25.
        let e = of(&[2.0, 4.0]).over(&of(&[1.0, 3.0])).unwrap().estimate();
        near(e.mean, 1.5);
        near(e.interval.unwrap().1 - 1.5, 12.7062 * 0.25);
        assert!(of(&[1.0]).over(&of(&[0.0])).is_none());
    }

    #[test]
    fn only_common_seeds_make_pairs() {
        let a = Estimator::mean(&BTreeMap::from([(1, 1.0), (2, 2.0)])).unwrap();
        let b = Estimator::mean(&BTreeMap::from([(2, 2.0), (3, 3.0)])).unwrap();
        assert_eq!(a.minus(&b).unwrap().estimate().seeds, 1);
        let c = Estimator::mean(&BTreeMap::from([(9, 1.0)])).unwrap();
        assert!(a.minus(&c).is_none());
    }

    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        // Uniform values, five seeds each: the t-interval covers the true mean in about 95 of 100 experiments.
        let mut draw = anabranch_base::RandomStream::named(1, "coverage");
        let trials = 4_000;
        let covered = (0..trials)
            .filter(|_| {
                let values: Vec<f64> = (0..5).map(|_| draw.unit()).collect();
                of(&values).estimate().interval.is_some_and(|(low, high)| low <= 0.5 && 0.5 <= high)
            })
            .count();
        let share = covered as f64 / f64::from(trials);
        assert!((0.93..0.96).contains(&share), "{share}");
    }

    #[test]
    fn absolute_values_fold_at_zero() {
        let e = Estimate { mean: -0.1, interval: Some((-0.3, 0.1)), seeds: 3 };
        assert_eq!(e.absolute(), Estimate { mean: 0.1, interval: Some((0.0, 0.3)), seeds: 3 });
        let e = Estimate { mean: -2.0, interval: Some((-3.0, -1.0)), seeds: 3 };
        assert_eq!(e.absolute().interval, Some((1.0, 3.0)));
        assert_eq!(e.scaled(-1.0).interval, Some((1.0, 3.0)));
    }
}
