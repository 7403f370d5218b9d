//! Spans of time: how many, their mean, their percentiles.

use anabranch_base::Duration;
use hdrhistogram::Histogram;

/// What is asked of delays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Detail {
    /// Nothing is asked.
    Nothing,
    /// How many, and their mean.
    Mean,
    /// Percentiles and the longest as well.
    Spread,
}

/// Significant digits of percentiles.
const DIGITS: u8 = 3;

/// Delays that were seen. Mean and longest are exact; percentiles are of whole microseconds, to three significant digits,
/// and never above the longest.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    count: u64,
    sum: u128,
    longest: Duration,
    /// No percentiles are asked for.
    mean_only: bool,
    /// Not before there is something to hold: most flows never ask for percentiles of most delays.
    histogram: Option<Box<Histogram<u32>>>,
}

impl Delays {
    /// Keeps the mean and, from [`Detail::Spread`] on, what percentiles are made of.
    pub fn of(detail: Detail) -> Self {
        Delays { mean_only: detail < Detail::Spread, ..Delays::default() }
    }

    /// Adds one.
    pub fn add(&mut self, d: Duration) {
        self.count += 1;
        self.sum += u128::from(d.as_nanos());
        self.longest = self.longest.max(d);
        if self.mean_only {
            return;
        }
        if self.histogram.is_none() {
            self.histogram = Histogram::new(DIGITS).ok().map(Box::new);
        }
        if let Some(h) = &mut self.histogram {
            // Grows by itself; a failure to grow would lose a percentile, not a run.
            let _ = h.record(d.as_micros());
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Delays) {
        self.count += other.count;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
        match (&mut self.histogram, &other.histogram) {
            (Some(h), Some(more)) => {
                let _ = h.add(more.as_ref());
            }
            (empty, more) if empty.is_none() => *empty = more.clone(),
            _ => {}
        }
    }

    /// Number of delays that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, seconds.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e9)
    }

    /// The `p`-th percentile, seconds; `p` from 0 to 100.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let h = self.histogram.as_ref().filter(|h| !h.is_empty())?;
        // The histogram tells the upper end of a bucket.
        Some((h.value_at_percentile(p) as f64 / 1e6).min(self.longest.as_secs_f64()))
    }

    /// Each delay in seconds, to three significant digits, and how often it came.
    pub fn counts(&self) -> Vec<(f64, u64)> {
        let longest = self.longest.as_secs_f64();
        let all = self.histogram.iter().flat_map(|h| h.iter_recorded());
        // The histogram tells the upper end of a bucket.
        all.map(|b| ((b.value_iterated_to() as f64 / 1e6).min(longest), b.count_at_value().into())).collect()
    }

    /// The longest, seconds.
    pub fn max(&self) -> Option<f64> {
        self.histogram.as_ref().filter(|h| !h.is_empty())?;
        Some(self.longest.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_percentiles() {
        let mut d = Delays::default();
        assert_eq!((d.mean(), d.percentile(50.0)), (None, None));
        (1..=1_000).for_each(|ms| d.add(Duration::from_millis(ms)));
        assert_eq!((d.count(), d.mean()), (1_000, Some(0.5005)));
        let p99 = d.percentile(99.0).unwrap();
        assert!((p99 - 0.99).abs() < 0.001, "{p99}");
        let counts = d.counts();
        assert_eq!(counts.iter().map(|c| c.1).sum::<u64>(), 1_000);
        assert!(counts.windows(2).all(|w| w[0].0 < w[1].0) && counts.last().is_some_and(|c| c.0 == 1.0), "{counts:?}");
        let mut mean = Delays::of(Detail::Mean);
        mean.add(Duration::from_millis(3));
        assert_eq!((mean.mean(), mean.max()), (Some(0.003), None));
    }

    #[test]
    fn the_longest_is_exact_and_nothing_is_longer() {
        let (mut d, mut other) = (Delays::default(), Delays::default());
        d.add(Duration::from_micros(50_800));
        other.add(Duration::from_nanos(40_123_456));
        assert_eq!((d.max(), d.percentile(100.0), d.percentile(99.0)), (Some(0.0508), Some(0.0508), Some(0.0508)));
        other.merge(&d);
        assert_eq!((other.max(), other.percentile(99.9)), (Some(0.0508), Some(0.0508)));
        // Three digits of the others.
        let half = other.percentile(50.0).unwrap();
        assert!((half / 0.040_123_456 - 1.0).abs() < 0.001, "{half}");
        let mut empty = Delays::default();
        empty.merge(&other);
        assert_eq!(empty.max(), Some(0.0508));
    }
}
