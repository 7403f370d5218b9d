//! Times in which everything is lost.

use super::LossModel;
use crate::TraceError;
use crate::trace::lines;
use anabranch_base::{Duration, Instant, RandomStream};

/// A list of outages, once or again and again. Unlike a link that is down, a link in an outage goes
/// on sending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outages {
    /// From when until when (not included), since the start of the run, in the order of time.
    pub times: Vec<(Duration, Duration)>,
    /// Begin again after this time; `None` lists each outage once.
    pub period: Option<Duration>,
}

impl Outages {
    /// Reads an outage per line: from when until when, in seconds. Comments from `#` on are skipped.
    ///
    /// # Errors
    /// The first line without two times, or not later than the line before.
    pub fn parse(text: &str, period: Option<Duration>) -> Result<Self, TraceError> {
        let mut times: Vec<(Duration, Duration)> = Vec::new();
        for (number, line) in lines(text) {
            let mut words = line.split([' ', '\t', ',']).filter(|w| !w.is_empty()).map(seconds);
            let (Some(Some(from)), Some(Some(until)), None) = (words.next(), words.next(), words.next()) else {
                return Err(TraceError::at(number, "an outage is two times in seconds: from when, until when"));
            };
            if until <= from {
                return Err(TraceError::at(number, "an outage must end after it begins"));
            }
            if times.last().is_some_and(|last| from < last.1) {
                return Err(TraceError::at(number, "an outage must not begin before the one above has ended"));
            }
            times.push((from, until));
        }
        Ok(Outages { times, period })
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        let apart = self.times.windows(2).all(|w| w[0].1 <= w[1].0);
        if !apart || self.times.iter().any(|t| t.1 <= t.0) {
            return Err("outages must end after they begin, and come one after the other");
        }
        if let (Some(period), Some(last)) = (self.period, self.times.last())
            && last.1 > period
        {
            return Err("outages that repeat must end within their period");
        }
        Ok(())
    }

    /// Share of time within outages in the long run.
    pub(super) fn mean(&self) -> f64 {
        let lost: f64 = self.times.iter().map(|t| t.1.saturating_sub(t.0).as_secs_f64()).sum();
        self.period.filter(|p| !p.is_zero()).map_or(0.0, |p| lost / p.as_secs_f64())
    }
}

fn seconds(word: &str) -> Option<Duration> {
    let s: f64 = word.parse().ok()?;
    (0.0..1e9).contains(&s).then(|| Duration::from_secs_f64(libm::round(s * 1e9) / 1e9))
}

impl LossModel for Outages {
    fn loses(&mut self, now: Instant, _random: &mut RandomStream) -> bool {
        let since_start = now.as_nanos();
        let place = self.period.map_or(Some(since_start), |p| since_start.checked_rem(p.as_nanos()));
        let place = Duration::from_nanos(place.unwrap_or(since_start));
        let begun = self.times.partition_point(|t| t.0 <= place);
        begun.checked_sub(1).and_then(|i| self.times.get(i)).is_some_and(|t| place < t.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_ms(mut outages: Outages, n: u64) -> Vec<u64> {
        let mut random = RandomStream::named(0, "outages");
        (0..n).filter(|ms| outages.loses(Instant::from_millis(*ms), &mut random)).collect()
    }

    #[test]
    fn everything_within_is_lost() {
        let ms = Duration::from_millis;
        let outages = Outages::parse("# tunnel\n0.002 0.004\n0.007, 0.008\n", None).unwrap();
        assert_eq!(outages.times, [(ms(2), ms(4)), (ms(7), ms(8))]);
        assert_eq!(lost_ms(outages.clone(), 30), [2, 3, 7]);
        let again = Outages { period: Some(ms(10)), ..outages };
        assert_eq!(again.mean(), 0.3);
        assert_eq!(lost_ms(again, 20), [2, 3, 7, 12, 13, 17]);
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text| Outages::parse(text, None).unwrap_err().to_string();
        assert_eq!(error("1 2\n3\n"), "line 2: an outage is two times in seconds: from when, until when");
        assert_eq!(error("1 x"), "line 1: an outage is two times in seconds: from when, until when");
        assert_eq!(error("-1 2"), "line 1: an outage is two times in seconds: from when, until when");
        assert_eq!(error("1 1"), "line 1: an outage must end after it begins");
        assert_eq!(error("1 4\n3 5"), "line 2: an outage must not begin before the one above has ended");
    }

    #[test]
    fn nonsense_is_named() {
        let ms = Duration::from_millis;
        let bad = |times, period| Outages { times, period }.check().is_err();
        assert!(!bad(vec![(ms(1), ms(2)), (ms(2), ms(3))], Some(ms(3))));
        assert!(bad(vec![(ms(1), ms(4))], Some(ms(3))));
        assert!(bad(vec![(ms(5), ms(6)), (ms(1), ms(2))], None));
        assert!(bad(vec![(ms(2), ms(2))], None));
    }
}
