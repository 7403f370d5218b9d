//! Student's t around a number that is known with an error.

use super::{CONFIDENCE, mean};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A centre with its standard error and degrees of freedom.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Student {
    centre: f64,
    error: f64,
    freedom: f64,
}

impl Student {
    /// A centre whose error was estimated from `n` values; `None` with fewer than two, or when a number is not finite.
    pub fn new(centre: f64, error: f64, n: usize) -> Option<Self> {
        let freedom = n.checked_sub(1).filter(|f| *f > 0)? as f64;
        (centre.is_finite() && error.is_finite()).then_some(Student { centre, error, freedom })
    }

    /// Where the mean of `further` more runs is expected, from the runs seen: their spread and that of their mean
    /// (Hahn, Meeker 1991, §4.8). `None` with fewer than two runs seen, or none to come.
    pub fn of_further(seen: &[f64], further: usize) -> Option<Self> {
        let centre = mean(seen)?;
        let n = seen.len();
        let freedom = n.checked_sub(1).filter(|f| *f > 0)? as f64;
        let variance = seen.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / freedom;
        Student::new(centre, (variance * (1.0 / n as f64 + 1.0 / further as f64)).sqrt(), n)
    }

    /// The value itself when nothing about it is unsure.
    pub fn exact(&self) -> Option<f64> {
        (self.error == 0.0).then_some(self.centre)
    }

    /// Everything times `k`: another unit.
    #[must_use]
    pub fn scaled(self, k: f64) -> Self {
        Student { centre: self.centre * k, error: self.error * k.abs(), ..self }
    }

    /// The interval that covers the true value with this probability.
    pub fn interval(&self, probability: f64) -> (f64, f64) {
        let t = StudentsT::new(0.0, 1.0, self.freedom).map_or(f64::NAN, |t| t.inverse_cdf(0.5 + probability / 2.0));
        let half = if self.error == 0.0 { 0.0 } else { t * self.error };
        (self.centre - half, self.centre + half)
    }

    /// The 95 % interval.
    pub fn usual(&self) -> (f64, f64) {
        self.interval(CONFIDENCE)
    }

    /// One-sided p-value of "the true value lies above `x`": how often a centre as high as this comes of one at `x`.
    pub fn above(&self, x: f64) -> f64 {
        let t = (self.centre - x) / self.error;
        if t.is_nan() {
            return 1.0;
        }
        StudentsT::new(0.0, 1.0, self.freedom).map_or(1.0, |s| s.sf(t))
    }

    /// One-sided p-value of "the true value lies below `x`".
    pub fn below(&self, x: f64) -> f64 {
        let t = (self.centre - x) / self.error;
        if t.is_nan() {
            return 1.0;
        }
        StudentsT::new(0.0, 1.0, self.freedom).map_or(1.0, |s| s.cdf(t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_and_intervals_are_one_rule() {
        let s = Student::new(3.0, 0.5, 10).unwrap();
        let (low, high) = s.usual();
        // t(0.975; 9) = 2.26216.
        assert!((high - 3.0 - 2.262_16 * 0.5).abs() < 1e-5 && (3.0 - low - 2.262_16 * 0.5).abs() < 1e-5);
        assert!((s.above(low) - 0.025).abs() < 1e-9 && (s.below(high) - 0.025).abs() < 1e-9);
        assert!((s.above(3.0) - 0.5).abs() < 1e-12 && s.above(-100.0) < 1e-9 && s.below(-100.0) > 1.0 - 1e-9);
        assert!((s.scaled(100.0).above(100.0 * low) - 0.025).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_spread_is_exact() {
        let s = Student::new(3.0, 0.0, 4).unwrap();
        assert_eq!((s.exact(), s.usual()), (Some(3.0), (3.0, 3.0)));
        assert_eq!((s.above(2.0), s.below(2.0), s.above(3.0)), (0.0, 1.0, 1.0));
        assert_eq!(Student::new(3.0, 0.1, 1), None);
        assert_eq!(Student::new(f64::NAN, 0.1, 5), None);
        assert_eq!(Student::of_further(&[1.0, 2.0], 0), None);
    }
}
