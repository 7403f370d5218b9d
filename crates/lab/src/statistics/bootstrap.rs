//! Intervals for percentiles, by resampling.

use super::{CONFIDENCE, Estimate, percentile_of_sorted};
use anabranch_base::RandomStream;

/// Resamples of one interval.
const ROUNDS: usize = 2_000;

/// The `p`-quantile (`p` in 0..=1) of `values`, one for each seed, with its 95 % interval by the percentile bootstrap
/// (Efron 1979). `seed` makes it repeatable. `None` without values; no interval for a single one.
pub fn percentile(values: &[f64], p: f64, seed: u64) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mean = percentile_of_sorted(&sorted, p)?;
    let n = sorted.len();
    if n < 2 || sorted.iter().any(|v| !v.is_finite()) {
        return Some(Estimate { mean, interval: None, seeds: n });
    }
    let mut draw = RandomStream::named(seed, "bootstrap");
    let mut rounds: Vec<f64> = Vec::with_capacity(ROUNDS);
    let mut places = vec![0usize; n];
    let mut sample = Vec::with_capacity(n);
    for _ in 0..ROUNDS {
        // Places instead of values: counting them gives the sample in order without sorting.
        places.fill(0);
        for _ in 0..n {
            if let Some(times) = places.get_mut(draw.below(n as u64) as usize) {
                *times += 1;
            }
        }
        sample.clear();
        for (value, times) in sorted.iter().zip(&places) {
            sample.extend(std::iter::repeat_n(*value, *times));
        }
        rounds.extend(percentile_of_sorted(&sample, p));
    }
    rounds.sort_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval = percentile_of_sorted(&rounds, tail).zip(percentile_of_sorted(&rounds, 1.0 - tail));
    Some(Estimate { mean, interval, seeds: n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_is_that_of_its_order_statistics() {
        // Distribution-free: for n = 99 the 95 % interval of the median reaches from order statistic 40 to 60
        // (binomial with one half); the bootstrap must come near.
        let values: Vec<f64> = (1..=99).map(f64::from).collect();
        let e = percentile(&values, 0.5, 7).unwrap();
        let (low, high) = e.interval.unwrap();
        assert_eq!(e.mean, 50.0);
        assert!((low - 40.0).abs() <= 2.0 && (high - 60.0).abs() <= 2.0, "{low} {high}");
    }

    #[test]
    fn seeds_repeat_and_one_value_has_no_interval() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0];
        assert_eq!(percentile(&values, 0.9, 1), percentile(&values, 0.9, 1));
        assert_eq!(percentile(&[2.0], 0.9, 1).unwrap().interval, None);
        assert_eq!(percentile(&[], 0.9, 1), None);
    }
}
