//! What the delays of one path look like over the last intervals (RFC 8382 §3.2).
//!
//! All sums are over samples of the delay in one direction; a constant that all of them have in common drops out.

use anabranch_base::Duration;
use std::collections::VecDeque;

/// Intervals over which skewness and deviation are taken (RFC 8382's M).
const RECENT: usize = 30;
/// Crossings count beyond so much of the deviation (p_v).
const SIGNIFICANT: f64 = 0.7;
/// Skewness below which a path is at a bottleneck (c_s), and until which it stays there (c_h).
const CONGESTED: f64 = 0.1;
const STAYS: f64 = 0.3;
/// Part of packets lost that shows a bottleneck (p_l).
const LOSSY: f64 = 0.05;
/// How far paths of one group may differ: crossings (p_f), deviation and loss as parts (p_mad, p_d), skewness (p_s).
const CROSSINGS: f64 = 0.1;
const PART: f64 = 0.1;
const SKEWNESS: f64 = 0.15;

/// One interval that is over.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Samples, their mean in seconds, how many more lay below the middle than above, and their summed deviation.
    samples: u32,
    mean: f64,
    skew: i32,
    deviation: f64,
    lost: u64,
    acked: u64,
    /// The mean crossed the middle by enough to count.
    crossed: bool,
}

/// Delays of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    now: Interval,
    sum: f64,
    past: VecDeque<Interval>,
    /// The mean of the last means, and of the interval before.
    middle: Option<f64>,
    last_mean: Option<f64>,
    /// Side of the middle on which a mean lay significantly last.
    above: Option<bool>,
    bottleneck: bool,
}

/// The statistics of RFC 8382 §3.2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub intervals: usize,
    pub skewness: f64,
    /// Mean absolute deviation, seconds.
    pub deviation: f64,
    /// Significant crossings of the middle for each interval.
    pub crossings: f64,
    pub loss: f64,
    pub bottleneck: bool,
}

impl Summary {
    /// May both be of one queue (RFC 8382 §3.3.1)?
    pub fn is_like(&self, o: &Summary) -> bool {
        let near = |a: f64, b: f64, most: f64| (a - b).abs() < most;
        let loss = self.loss.max(o.loss);
        near(self.crossings, o.crossings, CROSSINGS)
            && near(self.deviation, o.deviation, PART * self.deviation.max(o.deviation))
            && near(self.skewness, o.skewness, SKEWNESS)
            && (loss <= LOSSY || near(self.loss, o.loss, PART * loss))
    }
}

impl Delays {
    /// Intervals kept (RFC 8382's N).
    pub const KEPT: usize = 50;

    /// A packet took so long.
    pub fn sample(&mut self, delay: Duration) {
        let d = delay.as_secs_f64();
        self.sum += d;
        self.now.samples = self.now.samples.saturating_add(1);
        let middle = self.middle.unwrap_or(d);
        self.now.skew += i32::from(d < middle) - i32::from(d > middle);
        self.now.deviation += (d - self.last_mean.unwrap_or(d)).abs();
    }
    /// So many bytes arrived.
    pub fn acknowledged(&mut self, bytes: u64) {
        self.now.acked = self.now.acked.saturating_add(bytes);
    }
    /// So many did not.
    pub fn lost(&mut self, bytes: u64) {
        self.now.lost = self.now.lost.saturating_add(bytes);
    }
    /// The interval is over.
    pub fn end_interval(&mut self) {
        let mut ended = core::mem::take(&mut self.now);
        let sum = core::mem::take(&mut self.sum);
        if ended.samples > 0 {
            ended.mean = sum / f64::from(ended.samples);
            let beyond = SIGNIFICANT * self.deviation();
            if let Some(off) = self.middle.map(|m| ended.mean - m).filter(|off| off.abs() > beyond) {
                ended.crossed = self.above.is_some_and(|above| above != (off > 0.0));
                self.above = Some(off > 0.0);
            }
            self.last_mean = Some(ended.mean);
        }
        if self.past.len() == Self::KEPT {
            self.past.pop_front();
        }
        self.past.push_back(ended);
        let (sum, n) = self.recent().map(|i| i.mean).fold((0.0, 0u32), |(s, n), m| (s + m, n + 1));
        self.middle = (n > 0).then(|| sum / f64::from(n));
    }
    /// Intervals with samples among the newest.
    fn recent(&self) -> impl Iterator<Item = &Interval> {
        self.past.iter().rev().take(RECENT).filter(|i| i.samples > 0)
    }
    fn samples(&self) -> f64 {
        self.recent().map(|i| f64::from(i.samples)).sum::<f64>().max(1.0)
    }
    fn deviation(&self) -> f64 {
        self.recent().map(|i| i.deviation).sum::<f64>() / self.samples()
    }
    /// Is the path at a bottleneck?
    pub fn judge(&mut self) {
        let s = self.summary();
        self.bottleneck = s.skewness < if self.bottleneck { STAYS } else { CONGESTED } || s.loss > LOSSY;
    }
    pub fn summary(&self) -> Summary {
        let skew: f64 = self.recent().map(|i| f64::from(i.skew)).sum();
        let (lost, acked) = self.past.iter().fold((0, 0u64), |(l, a), i| (l + i.lost, a + i.acked));
        let crossed = self.past.iter().filter(|i| i.crossed).count();
        Summary {
            intervals: self.recent().count(),
            skewness: skew / self.samples(),
            deviation: self.deviation(),
            crossings: crossed as f64 / self.past.len().max(1) as f64,
            loss: lost as f64 / (lost + acked).max(1) as f64,
            bottleneck: self.bottleneck,
        }
    }
    /// Correlation of the changes of both paths' means from interval to interval, and over how many.
    pub fn correlation(&self, other: &Delays) -> (f64, usize) {
        let both = self.past.iter().rev().zip(other.past.iter().rev()).take(RECENT + 1);
        let mut later: Option<(f64, f64)> = None;
        let (mut n, mut xx, mut yy, mut xy) = (0, 0.0, 0.0, 0.0);
        for (a, b) in both {
            if a.samples == 0 || b.samples == 0 {
                later = None;
                continue;
            }
            if let Some((x, y)) = later.map(|(x, y)| (x - a.mean, y - b.mean)) {
                (n, xx, yy, xy) = (n + 1, xx + x * x, yy + y * y, xy + x * y);
            }
            later = Some((a.mean, b.mean));
        }
        let scale = (xx * yy).sqrt();
        (if scale > 0.0 { xy / scale } else { 0.0 }, n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: f64) -> Duration {
        Duration::from_secs_f64(n / 1e3)
    }
    /// Intervals of these delays, ms.
    fn of(intervals: &[&[f64]]) -> Delays {
        let mut d = Delays::default();
        for i in intervals {
            i.iter().for_each(|&n| d.sample(ms(n)));
            d.end_interval();
        }
        d
    }
    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn skewness_counts_below_less_above() {
        // The middle after the first interval is 10: three below, one above, of five samples.
        let d = of(&[&[10.0], &[9.0, 9.0, 8.0, 14.0]]);
        near(d.summary().skewness, 2.0 / 5.0);
        // A queue that stands has most of its delays above the mean: below -0.6.
        let mut d = of(&[&[10.0], &[12.0, 12.0, 12.0, 1.0]]);
        near(d.summary().skewness, -2.0 / 5.0);
        d.judge();
        assert!(d.summary().bottleneck);
        // 0.2 does not begin one, and does not end one either.
        let mut free = of(&[&[10.0], &[8.0, 8.0, 8.0, 12.0, 12.0, 10.0, 10.0, 8.0, 12.0]]);
        near(free.summary().skewness, 1.0 / 10.0);
        free.judge();
        assert!(!free.summary().bottleneck);
        free.bottleneck = true;
        free.judge();
        assert!(free.summary().bottleneck);
    }

    #[test]
    fn deviation_is_from_the_mean_of_the_interval_before() {
        // 0 of the first; 4, 2, 0 from 10; then from 12.
        let d = of(&[&[10.0], &[14.0, 12.0, 10.0], &[12.0, 15.0]]);
        near(d.summary().deviation, (4.0 + 2.0 + 0.0 + 0.0 + 3.0) / 6.0 / 1e3);
    }

    #[test]
    fn crossings_must_be_significant() {
        let swing: Vec<[f64; 1]> = (0..20).map(|i| [if i % 2 == 0 { 10.0 } else { 30.0 }]).collect();
        let swing: Vec<&[f64]> = swing.iter().map(|s| &s[..]).collect();
        // The deviation from interval to interval is 20, of which 0.7 is more than the 10 from the middle.
        assert!(of(&swing).summary().crossings <= 0.1, "only those before a deviation was known");
        // Ten samples at each level: 18 of 20 intervals are like the one before, and the deviation is small.
        let slow: Vec<[f64; 1]> = (0..40).map(|i| [if i / 10 % 2 == 0 { 10.0 } else { 30.0 }]).collect();
        let slow: Vec<&[f64]> = slow.iter().map(|s| &s[..]).collect();
        near(of(&slow).summary().crossings, 2.0 / 40.0);
    }

    #[test]
    fn loss_is_of_all_that_is_kept() {
        let mut d = Delays::default();
        for _ in 0..60 {
            d.acknowledged(900);
            d.lost(100);
            d.end_interval();
        }
        d.judge();
        near(d.summary().loss, 0.1);
        assert!(d.summary().bottleneck, "without a delay");
        assert_eq!(d.past.len(), Delays::KEPT);
    }

    #[test]
    fn likeness_needs_all_statistics() {
        let s = Summary { intervals: 30, skewness: 0.0, deviation: 0.01, crossings: 0.2, loss: 0.02, bottleneck: true };
        assert!(s.is_like(&s));
        assert!(!s.is_like(&Summary { crossings: 0.31, ..s }) && s.is_like(&Summary { crossings: 0.29, ..s }));
        assert!(!s.is_like(&Summary { deviation: 0.0112, ..s }) && s.is_like(&Summary { deviation: 0.0109, ..s }));
        assert!(!s.is_like(&Summary { skewness: 0.16, ..s }) && s.is_like(&Summary { skewness: -0.14, ..s }));
        assert!(s.is_like(&Summary { loss: 0.049, ..s }) && !s.is_like(&Summary { loss: 0.06, ..s }));
        let lossy = Summary { loss: 0.1, ..s };
        assert!(lossy.is_like(&Summary { loss: 0.095, ..s }) && !lossy.is_like(&Summary { loss: 0.085, ..s }));
    }

    #[test]
    fn correlation_is_of_changes() {
        let (a, b) = (of(&[&[1.0], &[3.0], &[2.0], &[5.0]]), of(&[&[50.0], &[54.0], &[52.0], &[58.0]]));
        let (r, n) = a.correlation(&b);
        near(r, 1.0);
        assert_eq!(n, 3);
        // Changes 2, -1, 3 and 0, 3, 1: 0 - 3 + 3 = 0.
        near(a.correlation(&of(&[&[5.0], &[5.0], &[8.0], &[9.0]])).0, 0.0);
        // A gap in one of them takes both changes beside it.
        assert_eq!(a.correlation(&of(&[&[50.0], &[], &[52.0], &[58.0]])).1, 1);
        assert_eq!(a.correlation(&of(&[&[5.0], &[5.0], &[5.0], &[5.0]])), (0.0, 3), "no queue");
    }
}
