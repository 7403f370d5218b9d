//! What a link can carry.

use super::{LinkConfig, Setting};
use anabranch_base::{Duration, Rate};

impl LinkConfig {
    /// Bytes that a link could carry within a span; none where its rate was without limit in it.
    pub fn capacity(&self, from: Duration, until: Duration) -> Option<f64> {
        let (mut rate, mut since, mut sum) = (self.mean_rate(), from, 0.0);
        let carries = |rate: Option<Rate>, span: Duration| rate.map(|r| r.bytes_per_sec() as f64 * span.as_secs_f64());
        let round = self.schedule.period().filter(|p| !p.is_zero());
        let rates = self.schedule.changes().iter().filter_map(|c| match c.set {
            Setting::Rate(rate) => Some((c.at, rate)),
            _ => None,
        });
        let mut begin = Duration::ZERO;
        while begin < until && rates.clone().next().is_some() {
            for (at, next) in rates.clone().map(|(at, rate)| (begin + at, rate)).filter(|(at, _)| *at < until) {
                if at > since {
                    sum += carries(rate, at - since)?;
                    since = at;
                }
                rate = next;
            }
            begin += round.unwrap_or(until);
        }
        Some(sum + carries(rate, until - since)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Change, Schedule};

    #[test]
    fn a_line_carries_what_its_rate_is_at_each_time() {
        let s = Duration::from_secs;
        let rate = |bytes| Setting::Rate(Some(Rate::from_bytes_per_sec(bytes)));
        let mut link = LinkConfig { rate: Some(Rate::from_bytes_per_sec(100)), ..LinkConfig::default() };
        assert_eq!(link.capacity(s(2), s(10)), Some(800.0));
        link.schedule = Schedule::once(vec![Change { at: s(1), set: rate(10) }, Change { at: s(4), set: rate(50) }]);
        assert_eq!(link.capacity(s(0), s(10)), Some(100.0 + 30.0 + 300.0));
        assert_eq!(link.capacity(s(3), s(5)), Some(10.0 + 50.0));
        assert_eq!(link.capacity(s(0), s(4)), Some(100.0 + 30.0));
        // Rounds of five seconds; the first rate does not come back by itself.
        link.schedule.repeat(s(5));
        assert_eq!(link.capacity(s(4), s(10)), Some(50.0 + 50.0 + 30.0 + 50.0));
        link.schedule = Schedule::once(vec![Change { at: s(1), set: Setting::Rate(None) }]);
        assert_eq!((link.capacity(s(0), s(1)), link.capacity(s(0), s(2))), (Some(100.0), None));
    }
}
