//! How often a path is estimated: the time between its losses, kept while it is statistically the same (Xu et al. 2014
//! §IV, which takes the rule from CMT-QA; reconstructed).

use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

/// Interval before there were losses.
const FIRST: Duration = Duration::from_secs(1);
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(10);
/// Losses that are remembered.
const KEPT: usize = 10;
/// Quantiles of Student's t for a two-sided interval of 95 %, by degrees of freedom from 2 on.
const T: [f64; KEPT - 2] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// The interval of one path.
#[derive(Clone, Debug)]
pub struct Interval {
    last_loss: Option<Instant>,
    /// Seconds between losses, newest last.
    gaps: VecDeque<f64>,
    length: f64,
}

impl Default for Interval {
    fn default() -> Self {
        Interval { last_loss: None, gaps: VecDeque::new(), length: FIRST.as_secs_f64() }
    }
}

impl Interval {
    /// Something was lost on a path with this round trip: at most one loss in a round trip counts.
    pub fn lost(&mut self, now: Instant, srtt: Duration) {
        let Some(last) = self.last_loss else {
            self.last_loss = Some(now);
            return;
        };
        let gap = now.since(last);
        if gap < srtt || gap.is_zero() {
            return;
        }
        self.last_loss = Some(now);
        if self.gaps.len() == KEPT {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap.as_secs_f64());
        let mean = self.gaps.iter().sum::<f64>() / self.gaps.len() as f64;
        if self.half_width(mean).is_none_or(|h| (self.length - mean).abs() > h) {
            self.length = mean;
        }
    }
    /// Half of the confidence interval of the mean; none of fewer than three.
    fn half_width(&self, mean: f64) -> Option<f64> {
        let n = self.gaps.len();
        let t = T.get(n.checked_sub(3)?)?;
        let squares: f64 = self.gaps.iter().map(|g| (g - mean) * (g - mean)).sum();
        Some(t * libm::sqrt(squares / (n - 1) as f64) / libm::sqrt(n as f64))
    }
    /// Was a time between losses seen?
    pub fn is_measured(&self) -> bool {
        !self.gaps.is_empty()
    }
    /// The interval, at least a round trip.
    pub fn length(&self, srtt: Duration) -> Duration {
        Duration::from_secs_f64(self.length).clamp(LEAST.max(srtt).min(MOST), MOST)
    }
    /// What the interval would be were the next loss now, where that is longer: a path that carries nothing loses nothing.
    pub fn without_loss(&self, now: Instant, srtt: Duration) -> Duration {
        let quiet = self.last_loss.map_or(Duration::ZERO, |t| now.since(t)).min(MOST);
        self.length(srtt).max(quiet)
    }
    /// The path begins anew, with an interval as long as it was quiet.
    pub fn begin_anew(&mut self, now: Instant, srtt: Duration) {
        let length = self.without_loss(now, srtt).as_secs_f64();
        *self = Interval { length, ..Interval::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    const RTT: Duration = Duration::from_millis(50);

    /// Losses with these gaps in ms.
    fn after(gaps: &[u64]) -> Interval {
        let mut u = Interval::default();
        let mut now = Instant::from_millis(5_000);
        u.lost(now, RTT);
        for g in gaps {
            now += ms(*g);
            u.lost(now, RTT);
        }
        u
    }

    #[test]
    fn begins_at_a_second_and_follows_the_first_gaps() {
        assert_eq!(after(&[]).length(RTT), ms(1_000));
        assert_eq!(after(&[400]).length(RTT), ms(400));
        assert_eq!(after(&[400, 600]).length(RTT), ms(500));
    }

    #[test]
    fn keeps_what_is_statistically_the_same() {
        // Mean 500, deviation 100, three gaps: 500 ± 4.303 * 100 / sqrt(3) = 252 to 748, and 500 was kept from two.
        assert_eq!(after(&[400, 600, 500]).length(RTT), ms(500));
        // Mean 540, deviation 122, 540 ± 303: 500 stays.
        assert_eq!(after(&[400, 600, 620]).length(RTT), ms(500));
        // Ten gaps of 2 s push it out of the interval, in steps.
        let mut gaps = vec![400, 600, 500];
        gaps.extend([2_000; 10]);
        assert_eq!(after(&gaps).length(RTT), ms(2_000));
    }

    /// Quantiles by degrees of freedom: the half width of a known sample.
    #[test]
    fn half_widths_follow_student() {
        for n in 3..=10usize {
            let gaps = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { 2.0 }).collect();
            let u = Interval { gaps, ..Interval::default() };
            let mean = u.gaps.iter().sum::<f64>() / n as f64;
            let spread = u.gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / (n - 1) as f64;
            let quantile = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262][n - 3];
            let expected = quantile * libm::sqrt(spread / n as f64);
            assert!((u.half_width(mean).unwrap() - expected).abs() < 1e-12);
        }
        assert_eq!(Interval::default().half_width(1.0), None);
    }

    #[test]
    fn has_limits_and_counts_one_loss_in_a_round_trip() {
        assert_eq!(after(&[60, 60, 60]).length(RTT), ms(100));
        assert_eq!(after(&[60, 60]).length(ms(300)), ms(300));
        assert_eq!(after(&[20, 20]).gaps.len(), 0, "too soon after the first");
        assert_eq!(after(&[90_000]).length(RTT), ms(10_000));
        assert_eq!(after(&[100]).length(ms(90_000)), ms(10_000), "limits do not cross");
    }

    #[test]
    fn quiet_counts_and_a_new_beginning_forgets() {
        let mut u = after(&[100, 100, 100]);
        let now = Instant::from_millis(5_300);
        assert_eq!(u.without_loss(now, RTT), ms(100));
        assert_eq!(u.without_loss(now + ms(700), RTT), ms(700));
        u.begin_anew(now + ms(700), RTT);
        assert_eq!((u.length(RTT), u.gaps.len()), (ms(700), 0));
        u.lost(now + ms(750), RTT);
        assert_eq!(u.length(RTT), ms(700), "the first loss after it says nothing of a gap");
    }
}
