//! Packets of one size at a constant rate, one by one or in bursts, without any jitter.

use super::{Emission, packet};
use anabranch_base::{Duration, Instant, Rate};

/// Constant bit rate. The first packet leaves at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cbr {
    /// Bytes of payload per second.
    pub rate: Rate,
    /// Bytes of payload per packet.
    pub size: u32,
    /// Packets that leave together. The rate is that of all, so bursts are as far apart as what they carry takes.
    pub burst: u32,
}

impl Cbr {
    /// The default of ns-2's `Application/Traffic/CBR`: 448 kbit/s in packets of 210 bytes.
    /// Over its UDP agent these are whole packets: it adds no headers.
    pub const NS2: Cbr = Cbr { rate: Rate::from_bits_per_sec(448_000), size: 210, burst: 1 };

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.rate == Rate::ZERO || self.size == 0 {
            return Err("a constant rate needs a rate above zero and packets of at least one byte");
        }
        if self.burst == 0 {
            return Err("a burst has at least one packet");
        }
        Ok(())
    }
}

pub(super) struct Source {
    config: Cbr,
    start: Option<Instant>,
    sent: u128,
}

impl Source {
    pub(super) fn new(config: Cbr) -> Self {
        Source { config, start: None, sent: 0 }
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let start = *self.start.get_or_insert(now);
        // Counted from the start, so that rounding to nanoseconds never adds up.
        let before = self.sent - self.sent % u128::from(self.config.burst.max(1));
        let work = before * u128::from(self.config.size) * 1_000_000_000;
        let after = work.checked_div(u128::from(self.config.rate.bytes_per_sec()))?;
        self.sent += 1;
        let at = start + Duration::from_nanos(u64::try_from(after).ok()?);
        (self.config.size > 0).then(|| packet(at, u64::from(self.config.size)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrafficConfig;
    use super::*;

    #[test]
    fn the_rate_holds_to_the_nanosecond() {
        let mut source = TrafficConfig::Cbr(Cbr::NS2).build(1, "cbr");
        let start = Instant::from_millis(1_000);
        // 210 bytes at 56,000 bytes/s: 3.75 ms, and 800,000 packets in 3,000 s.
        let times: Vec<_> = (0..=800_000).map(|_| source.next(start).unwrap()).collect();
        assert_eq!(times[0].at, start);
        assert_eq!(times[1].at.since(start), Duration::from_micros(3_750));
        assert_eq!(times[800_000].at.since(start), Duration::from_secs(3_000));
        // 7 bytes at 3 bytes/s do not fit whole nanoseconds.
        let mut odd = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(3), size: 7, burst: 1 }).build(1, "cbr");
        let last = (0..=300).map(|_| odd.next(Instant::ZERO).unwrap()).last().unwrap();
        assert_eq!(last.at, Instant::from_millis(700_000));
    }

    #[test]
    fn nothing_at_rate_zero() {
        let silent = TrafficConfig::Cbr(Cbr { rate: Rate::ZERO, size: 7, burst: 1 });
        assert!(silent.check().is_err());
        assert_eq!(silent.build(1, "cbr").next(Instant::ZERO), None);
    }

    #[test]
    fn bursts_leave_at_once_and_keep_the_rate() {
        // 25,000 bytes each 25 ms, as Becke et al. 2013 §IV send them.
        let config = Cbr { rate: Rate::from_bits_per_sec(8_000_000), size: 1_250, burst: 20 };
        let mut source = TrafficConfig::Cbr(config).build(1, "bursts");
        let times: Vec<_> = (0..200).map(|_| source.next(Instant::ZERO).unwrap().at).collect();
        assert!(times.iter().enumerate().all(|(i, t)| *t == Instant::from_millis(i as u64 / 20 * 25)), "{times:?}");
        assert!(TrafficConfig::Cbr(Cbr { burst: 0, ..config }).check().is_err());
    }
}
