//! Smallest, mean and largest of samples.

use serde::Serialize;

/// Samples in short.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    min: f64,
    max: f64,
    sum: f64,
    n: u64,
}

/// As it is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Smallest value.
    pub min: f64,
    /// Mean value.
    pub avg: f64,
    /// Largest value.
    pub max: f64,
}

impl Samples {
    /// Takes one in.
    pub fn add(&mut self, x: f64) {
        self.min = if self.n == 0 { x } else { self.min.min(x) };
        self.max = if self.n == 0 { x } else { self.max.max(x) };
        self.sum += x;
        self.n += 1;
    }

    /// What they were; none without a sample.
    pub fn range(&self) -> Option<Range> {
        let tidy = |x: f64| (x * 1e3).round() / 1e3;
        (self.n > 0).then(|| Range { min: tidy(self.min), avg: tidy(self.sum / self.n as f64), max: tidy(self.max) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_mean_max() {
        let mut s = Samples::default();
        assert_eq!(s.range(), None);
        [4.0, 1.0, 1.0].iter().for_each(|x| s.add(*x));
        assert_eq!(s.range(), Some(Range { min: 1.0, avg: 2.0, max: 4.0 }));
    }
}
