//! What the numbers of seeded runs say, and how surely.
//!
//! Every quantity is an [`Estimator`]: its value and, for each seed, how far that seed pulls it from the value. A mean
//! is one, so is a ratio of means, so is any difference or sum of them; their seeds stay paired throughout, and one
//! rule gives the 95 % interval of all: Student's t over the pulls, for a share around its logit. For percentiles,
//! which have no such pulls, there is the bootstrap, [`Draws`]. [`Measured`] is either.

mod bootstrap;
mod estimator;
mod holm;
mod known;
mod measured;
mod prediction;
mod student;

pub use bootstrap::Draws;
pub use estimator::{Estimate, Estimator};
pub use holm::holm;
pub use known::Known;
pub use measured::Measured;
pub use prediction::prediction;
pub use student::Student;

/// Probability that an interval covers the true value.
pub const CONFIDENCE: f64 = 0.95;

/// The arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The `p`-quantile (`p` in 0..=1) by linear interpolation between order statistics; `None` without values.
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile_of_sorted(&sorted, p)
}

/// As [`percentile`], of values that are in order already.
pub fn percentile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let (a, b) = (*sorted.get(below)?, *sorted.get((below + 1).min(last))?);
    Some(a + (b - a) * (place - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_order_statistics() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&values, 0.5), Some(2.5));
        assert_eq!(percentile(&values, 1.0), Some(4.0));
        assert!((percentile(&values, 0.9).unwrap() - 3.7).abs() < 1e-12);
        assert_eq!(percentile(&[], 0.5), None);
    }
}
