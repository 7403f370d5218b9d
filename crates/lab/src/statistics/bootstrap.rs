//! Intervals for percentiles, by resampling.

use super::{CONFIDENCE, Estimate, Known, percentile_of_sorted};
use anabranch_base::RandomStream;
use std::collections::BTreeMap;

/// Resamples of one interval.
const ROUNDS: usize = 2_000;

/// A number over paired seeds that has no pulls, as a percentile: its value, and what it comes to in each of many
/// resamples of the seeds (Efron 1979). All numbers over as many seeds are resampled alike, so that what seeds share
/// cancels in comparisons.
#[derive(Clone, PartialEq, Debug)]
pub struct Draws {
    value: f64,
    /// None with a single seed.
    rounds: Vec<f64>,
    seeds: Vec<u64>,
}

impl Draws {
    /// The `p`-quantile (`p` in 0..=1) over the seeds. `None` without values, or with one that is not finite.
    pub fn percentile(by_seed: &BTreeMap<u64, f64>, p: f64) -> Option<Self> {
        let values: Vec<f64> = by_seed.values().copied().collect();
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let value = super::percentile(&values, p)?;
        let n = values.len();
        let mut draw = RandomStream::named(1, "bootstrap");
        let mut sample = Vec::with_capacity(n);
        let mut round = || {
            sample.clear();
            sample.extend((0..n).filter_map(|_| values.get(draw.below(n as u64) as usize)));
            sample.sort_by(f64::total_cmp);
            percentile_of_sorted(&sample, p)
        };
        let rounds = (0..if n > 1 { ROUNDS } else { 0 }).filter_map(|_| round()).collect();
        Some(Draws { value, rounds, seeds: by_seed.keys().copied().collect() })
    }

    /// Its value.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// What several numbers come to together; `None` when that is not finite. Of different seeds it has no interval.
    pub fn of_parts(parts: &[&Self], f: impl Fn(&[f64]) -> f64) -> Option<Self> {
        let first = parts.first()?;
        let own = |of: &dyn Fn(&Self) -> Option<f64>| parts.iter().map(|p| of(p)).collect::<Option<Vec<f64>>>();
        let value = own(&|p| Some(p.value)).map(|v| f(&v)).filter(|v| v.is_finite())?;
        let alike = parts.iter().all(|p| p.seeds == first.seeds);
        let round = |i: usize| own(&|p| p.rounds.get(i).copied()).map(|v| f(&v)).filter(|v| v.is_finite());
        let rounds = (0..if alike { first.rounds.len() } else { 0 }).filter_map(round).collect();
        Some(Draws { value, rounds, seeds: first.seeds.clone() })
    }

    /// The value with the interval that holds 95 % of the resamples (percentile bootstrap).
    pub fn estimate(&self) -> Estimate {
        Estimate { mean: self.value, interval: self.known().map(|k| k.usual()), seeds: self.seeds.len() }
    }

    /// How surely the value is known; `None` with fewer than two seeds.
    pub fn known(&self) -> Option<Known> {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then_some(Known::Draws(sorted))
    }
}

/// Both ends of the interval of these resamples, which are in order.
pub(super) fn interval(sorted: &[f64]) -> (f64, f64) {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let end = |p| percentile_of_sorted(sorted, p).unwrap_or(f64::NAN);
    (end(tail), end(1.0 - tail))
}

/// One-sided p-value of the true number lying on the side of `x` on which these resamples do not lie.
pub(super) fn p(beyond: usize, rounds: usize) -> f64 {
    // One more of each, so that no number of resamples shows certainty (Davison, Hinkley 1997, §4.2).
    (beyond + 1) as f64 / (rounds + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], p: f64) -> Option<Draws> {
        Draws::percentile(&values.iter().enumerate().map(|(i, v)| (i as u64, *v)).collect(), p)
    }

    #[test]
    fn the_interval_of_a_median_is_that_of_its_order_statistics() {
        // Distribution-free: for n = 99 the 95 % interval of the median reaches from order statistic 40 to 60
        // (binomial with one half); the bootstrap must come near.
        let values: Vec<f64> = (1..=99).map(f64::from).collect();
        let e = of(&values, 0.5).unwrap().estimate();
        let (low, high) = e.interval.unwrap();
        assert_eq!(e.mean, 50.0);
        assert!((low - 40.0).abs() <= 2.0 && (high - 60.0).abs() <= 2.0, "{low} {high}");
    }

    #[test]
    fn seeds_repeat_and_one_value_has_no_interval() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0];
        assert_eq!(of(&values, 0.9), of(&values, 0.9));
        assert_eq!(of(&[2.0], 0.9).unwrap().estimate().interval, None);
        assert_eq!((of(&[], 0.9), of(&[1.0, f64::NAN], 0.9)), (None, None));
    }

    #[test]
    fn what_seeds_share_cancels_in_comparisons() {
        // The seeds differ by far more than the two sides; each pair differs by exactly 1.
        let a: Vec<f64> = (0..30).map(|i| f64::from(i * i)).collect();
        let b: Vec<f64> = a.iter().map(|v| v - 1.0).collect();
        let (a, b) = (of(&a, 0.9).unwrap(), of(&b, 0.9).unwrap());
        let difference = |v: &[f64]| v[0] - v[1];
        let e = Draws::of_parts(&[&a, &b], difference).unwrap().estimate();
        let (low, high) = e.interval.unwrap();
        assert!((e.mean - 1.0).abs() < 1e-9 && (high - low) < 1e-9, "{e:?}");
        // Of other seeds it has a value and no interval.
        let other = Draws::percentile(&BTreeMap::from([(90, 1.0), (91, 2.0)]), 0.9).unwrap();
        let e = Draws::of_parts(&[&a, &other], difference).unwrap().estimate();
        assert!(e.interval.is_none());
        assert!(Draws::of_parts(&[&a], |_| f64::NAN).is_none());
    }

    #[test]
    fn the_interval_of_a_percentile_covers_as_often_as_it_says() {
        // The 90th percentile of even draws from 0 to 1 is 0.9.
        let mut random = RandomStream::named(3, "percentiles");
        let trials = 400;
        let covers = |_: &i32| {
            let values: Vec<f64> = (0..60).map(|_| random.unit()).collect();
            let (low, high) = of(&values, 0.9).unwrap().estimate().interval.unwrap();
            low <= 0.9 && 0.9 <= high
        };
        let share = (0..trials).filter(covers).count() as f64 / f64::from(trials);
        assert!((0.90..0.98).contains(&share), "{share}");
    }
}
