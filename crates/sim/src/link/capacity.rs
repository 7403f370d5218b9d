//! What a link can carry.

use super::{LinkConfig, Setting};
use anabranch_base::{Duration, Rate};

impl LinkConfig {
    /// Bytes that a link could carry within a span, overhead included; nothing while it is down. None where it was up
    /// and its rate without limit.
    pub fn capacity(&self, from: Duration, until: Duration) -> Option<f64> {
        let (mut rate, mut up, mut since, mut sum) = (self.mean_rate(), true, from, 0.0);
        let carries = |rate: Option<Rate>, up: bool, span: Duration| {
            if up { rate.map(|r| r.bytes_per_sec() as f64 * span.as_secs_f64()) } else { Some(0.0) }
        };
        let round = self.schedule.period().filter(|p| !p.is_zero());
        let changes = self.schedule.changes();
        let counts = |set: &Setting| matches!(set, Setting::Rate(_) | Setting::Up | Setting::Down);
        let mut begin = Duration::ZERO;
        while begin < until && changes.iter().any(|c| counts(&c.set)) {
            for c in changes.iter().filter(|c| begin + c.at < until) {
                let at = begin + c.at;
                let (new_rate, new_up) = match c.set {
                    Setting::Rate(rate) => (rate, up),
                    Setting::Up => (rate, true),
                    Setting::Down => (rate, false),
                    _ => continue,
                };
                if at > since {
                    sum += carries(rate, up, at - since)?;
                    since = at;
                }
                (rate, up) = (new_rate, new_up);
            }
            begin += round.unwrap_or(until);
        }
        Some(sum + carries(rate, up, until - since)?)
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
        link.schedule = Schedule::once(vec![
            Change { at: s(1), set: Setting::Down },
            Change { at: s(2), set: rate(10) },
            Change { at: s(3), set: Setting::Up },
        ]);
        assert_eq!((link.capacity(s(0), s(5)), link.capacity(s(1), s(3))), (Some(100.0 + 20.0), Some(0.0)));
        link.schedule = Schedule::once(vec![Change { at: s(1), set: Setting::Rate(None) }]);
        assert_eq!((link.capacity(s(0), s(1)), link.capacity(s(0), s(2))), (Some(100.0), None));
    }
}
