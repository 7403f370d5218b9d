//! Means, ratios and their differences over paired seeds.

use super::measured::variation;
use super::{Known, Student};
use serde::{Deserialize, Serialize};
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

/// A quantity over paired seeds: its value, each seed's pull on it, and what each seed has by itself. The pulls sum to
/// zero.
///
/// To first order the value moves by `pull / n` when a seed is counted twice, so the variance of the value is that of
/// the pulls over `n`. For a mean this is exact; for a ratio of means it is the usual ratio estimator of survey
/// statistics (Cochran 1977, §2.11).
#[derive(Clone, PartialEq, Debug)]
pub struct Estimator {
    value: f64,
    seeds: BTreeMap<u64, Seed>,
    /// It is a part of a whole, between 0 and 1.
    share: bool,
}

/// What one seed has to do with a quantity.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Seed {
    pull: f64,
    /// The quantity of this seed alone; not finite where it has none, as a quotient by zero.
    own: f64,
}

impl Estimator {
    /// The mean over seeds; `None` without seeds or with a value that is not finite.
    pub fn mean(by_seed: &BTreeMap<u64, f64>) -> Option<Self> {
        if by_seed.values().any(|v| !v.is_finite()) {
            return None;
        }
        let values: Vec<f64> = by_seed.values().copied().collect();
        let value = super::mean(&values)?;
        let seeds = by_seed.iter().map(|(s, v)| (*s, Seed { pull: v - value, own: *v })).collect();
        Some(Estimator { value, seeds, share: false })
    }

    /// As [`mean`](Self::mean) of parts of a whole: its interval stays between 0 and 1.
    pub fn share(by_seed: &BTreeMap<u64, f64>) -> Option<Self> {
        let share = by_seed.values().all(|v| (0.0..=1.0).contains(v));
        Some(Estimator { share, ..Estimator::mean(by_seed)? })
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
        self.joined(other, ratio, quotient, |a, b| a / b)
    }

    /// `self - other`, seed by seed.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.joined(other, self.value - other.value, |a, b| a - b, |a, b| a - b)
    }

    /// `self + k`.
    #[must_use]
    pub fn plus(mut self, k: f64) -> Self {
        self.value += k;
        self.share = false;
        self.seeds.values_mut().for_each(|s| s.own += k);
        self
    }

    /// `self * k`.
    #[must_use]
    pub fn times(mut self, k: f64) -> Self {
        self.value *= k;
        self.share = false;
        self.seeds.values_mut().for_each(|s| *s = Seed { pull: s.pull * k, own: s.own * k });
        self
    }

    /// The coefficient of variation of several: their standard deviation (over n - 1) as a share of their mean, each
    /// seed's pull by its derivative. `None` with fewer than two, with a mean of zero, or without a common seed.
    pub fn variation(parts: &[&Self]) -> Option<Self> {
        let values: Vec<f64> = parts.iter().map(|p| p.value).collect();
        let value = variation(&values)?;
        let (n, mean) = (values.len() as f64, super::mean(&values)?);
        let deviation = value * mean.abs();
        // What the variation gains when one of the values does.
        let slope = |v: f64| {
            let of_deviation = if deviation > 0.0 { (v - mean) / ((n - 1.0) * deviation) } else { 0.0 };
            (of_deviation - deviation / (n * mean)) / mean.abs()
        };
        let first = parts.first()?;
        let seed = |s: &u64| {
            let all = parts.iter().map(|p| p.seeds.get(s)).collect::<Option<Vec<&Seed>>>()?;
            let pull = all.iter().zip(&values).map(|(s, v)| s.pull * slope(*v)).sum();
            let own: Vec<f64> = all.iter().map(|s| s.own).collect();
            Some((*s, Seed { pull, own: variation(&own).unwrap_or(f64::NAN) }))
        };
        let seeds: BTreeMap<u64, Seed> = first.seeds.keys().filter_map(seed).collect();
        (!seeds.is_empty()).then_some(Estimator { value, seeds, share: false })
    }

    /// `(self - base) / base`: the relative difference, as a fraction.
    pub fn relative_to(&self, base: &Self) -> Option<Self> {
        Some(self.over(base)?.plus(-1.0))
    }

    /// Its absolute value (as far as its sign is sure; see [`Estimate::absolute`] for the interval around zero).
    #[must_use]
    pub fn absolute(mut self) -> Self {
        if self.value < 0.0 {
            self.value = -self.value;
            self.seeds.values_mut().for_each(|s| *s = Seed { pull: -s.pull, own: -s.own });
        }
        self
    }

    fn joined(
        &self,
        other: &Self,
        value: f64,
        pull: impl Fn(f64, f64) -> f64,
        own: impl Fn(f64, f64) -> f64,
    ) -> Option<Self> {
        let both = |a: &Seed, b: &Seed| Seed { pull: pull(a.pull, b.pull), own: own(a.own, b.own) };
        let common = self.seeds.iter().filter_map(|(s, a)| Some((*s, both(a, other.seeds.get(s)?))));
        let seeds: BTreeMap<u64, Seed> = common.collect();
        (!seeds.is_empty()).then_some(Estimator { value, seeds, share: false })
    }

    /// The value with its 95 % interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { mean: self.value, interval: self.known().map(|k| k.usual()), seeds: self.seeds.len() }
    }

    /// How surely the value is known; `None` with fewer than two seeds.
    pub fn known(&self) -> Option<Known> {
        let n = self.seeds.len();
        let error = (self.variance()? / n as f64).sqrt();
        if self.share {
            Known::share(self.value, error, n)
        } else {
            Student::new(self.value, error, n).map(Known::Student)
        }
    }

    /// Where the quantity of `runs` further runs is expected. One run is held against what single seeds have, with their
    /// own comparison each; several against the spread of their mean. `None` with fewer than two seeds, or when one of
    /// them has no value by itself.
    pub fn of_further(&self, runs: usize) -> Option<Known> {
        let n = self.seeds.len();
        let student = if runs == 1 {
            let own: Vec<f64> = self.seeds.values().map(|s| s.own).collect();
            Student::of_further(&own, 1)
        } else {
            Student::new(self.value, (self.variance()? * (1.0 / n as f64 + 1.0 / runs as f64)).sqrt(), n)
        };
        student.map(|s| if self.share { Known::Between(s, 0.0, 1.0) } else { Known::Student(s) })
    }

    /// Of the pulls; `None` with fewer than two seeds.
    fn variance(&self) -> Option<f64> {
        let freedom = self.seeds.len().checked_sub(1).filter(|f| *f > 0)? as f64;
        Some(self.seeds.values().map(|s| s.pull * s.pull).sum::<f64>() / freedom)
    }
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
    fn one_further_run_is_held_against_single_seeds() {
        // By hand: each seed's own ratio is 2, 3 and 4, so a further one is 3 +/- t(0.975; 2) x sqrt(1 + 1/3).
        let ratio = of(&[2.0, 6.0, 12.0]).over(&of(&[1.0, 2.0, 3.0])).unwrap();
        let (low, high) = ratio.of_further(1).unwrap().usual();
        near(high - 3.0, 4.302_65 * (4.0f64 / 3.0).sqrt());
        near(3.0 - low, high - 3.0);
        near(ratio.estimate().mean, 10.0 / 3.0);
        let gain = of(&[2.0, 6.0, 12.0]).relative_to(&of(&[1.0, 2.0, 3.0])).unwrap();
        near(gain.of_further(1).unwrap().usual().1, high - 1.0);
        // A seed without a ratio of its own leaves the ratio of means, and no word on single runs.
        let (a, b) = (of(&[1.0, 2.0]), of(&[0.0, 4.0]));
        assert!(a.over(&b).unwrap().estimate().interval.is_some() && a.over(&b).unwrap().of_further(1).is_none());
        assert!(of(&[1.0]).of_further(1).is_none() && of(&[1.0, 2.0]).of_further(0).is_none());
    }

    #[test]
    fn a_coefficient_of_variation_by_hand() {
        // 8, 10, 12 at every seed, give or take what all three share: the deviation of 2 stays, the mean moves.
        let parts = [8.0, 10.0, 12.0].map(|v| of(&[v - 1.0, v, v + 1.0]));
        let e = Estimator::variation(&parts.each_ref()).unwrap();
        near(e.value(), 0.2);
        // The slope is -s/m^2 = -0.02 for each unit of the mean; standard error 1/sqrt(3), t(0.975; 2) = 4.30265.
        near(e.estimate().interval.unwrap().1 - 0.2, 4.302_65 * 0.02 / 3.0f64.sqrt());
        // Each seed has its own: 2/9, 2/10, 2/11.
        let (low, high) = e.of_further(1).unwrap().usual();
        near((low + high) / 2.0, (2.0 / 9.0 + 0.2 + 2.0 / 11.0) / 3.0);
        assert!(Estimator::variation(&[&of(&[1.0, 2.0])]).is_none());
        assert!(Estimator::variation(&[&of(&[1.0, 2.0]), &of(&[-1.0, -2.0])]).is_none(), "a mean of zero");
    }

    #[test]
    fn intervals_of_a_variation_cover_as_often_as_they_say() {
        // Four points at 8, 9, 11 and 12, with noise of their own at each of 30 seeds.
        let truth = variation(&[8.0, 9.0, 11.0, 12.0]).unwrap();
        let mut random = anabranch_base::RandomStream::named(1, "variation");
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let trials = 1_000;
        let covers = |_: &i32| {
            let parts = [8.0, 9.0, 11.0, 12.0].map(|v| of(&(0..30).map(|_| v + normal()).collect::<Vec<_>>()));
            let (low, high) = Estimator::variation(&parts.each_ref()).unwrap().estimate().interval.unwrap();
            low <= truth && truth <= high
        };
        let share = (0..trials).filter(covers).count() as f64 / f64::from(trials);
        assert!((0.925..0.97).contains(&share), "{share}");
    }

    #[test]
    fn a_further_comparison_lies_inside_as_often_as_it_says() {
        // Two settings of 20 seeds that share most of their luck; one more pair each time, and the mean of four more.
        let mut random = anabranch_base::RandomStream::named(1, "further");
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let mut pair = move || {
            let shared = 10.0 + normal();
            (shared + 0.3 * normal(), shared + 0.3 * normal() - 0.5)
        };
        let trials = 2_000;
        let mut inside = [0, 0];
        for _ in 0..trials {
            let (a, b): (Vec<f64>, Vec<f64>) = (0..20).map(|_| pair()).unzip();
            let gain = of(&a).relative_to(&of(&b)).unwrap();
            let within = |runs, x: f64| {
                let (low, high) = gain.of_further(runs).unwrap().usual();
                i32::from((low..=high).contains(&x))
            };
            let (a, b) = pair();
            inside[0] += within(1, a / b - 1.0);
            let (a, b): (Vec<f64>, Vec<f64>) = (0..4).map(|_| pair()).unzip();
            inside[1] += within(4, a.iter().sum::<f64>() / b.iter().sum::<f64>() - 1.0);
        }
        for share in inside.map(|n| f64::from(n) / f64::from(trials)) {
            assert!((0.935..0.965).contains(&share), "{share}");
        }
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
