//! A transmitter paced by a recorded trace, in the format and with the meaning of mahimahi's mm-link
//! (Netravali et al., USENIX ATC 2015).
//!
//! Each line of a trace is the millisecond of one delivery opportunity. Bytes of waiting packets
//! leave in it, in order, up to its size; a packet that does not fit goes on in the next one and has
//! left when its last byte has. What an opportunity has no packet for is lost, and a packet that
//! comes at the very time of an opportunity comes too late for it. After the last line the trace
//! begins again, the time of that line later.
//!
//! mm-link counts 1504 bytes per opportunity and, with each IP packet, 4 bytes of its tunnel. Here it
//! is 1500 and the link's overhead; [`DeliveryTrace::with_size`] and an overhead of 4 give its count.

use crate::TraceError;
use crate::trace::lines;
use anabranch_base::{Duration, Instant, Rate};
use std::sync::Arc;

/// When a link may deliver, and how much each time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryTrace {
    /// Milliseconds, never falling, the last above zero.
    times: Arc<[u64]>,
    /// Bytes per opportunity, above zero.
    size: u64,
}

impl DeliveryTrace {
    /// Default bytes per opportunity.
    pub const SIZE: u32 = 1_500;

    /// Reads a trace: one time in milliseconds per line. Comments from `#` on are skipped.
    ///
    /// # Errors
    /// The first line that is no number or smaller than the one before; a trace that has no line or
    /// lasts no time.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<u64> = Vec::new();
        for (number, line) in lines(text) {
            let time = match line.parse() {
                Ok(ms) if ms <= LONGEST => ms,
                _ => {
                    let what = format!("`{line}` is no time: write whole milliseconds, one opportunity per line");
                    return Err(TraceError::at(number, what));
                }
            };
            if let Some(last) = times.last().filter(|last| time < **last) {
                let what = format!("{time} ms comes after {last} ms: times must not fall");
                return Err(TraceError::at(number, what));
            }
            times.push(time);
        }
        match times.last() {
            None => Err(TraceError::at(0, "there is no delivery opportunity in this trace")),
            Some(0) => Err(TraceError::at(0, "a trace must last longer than zero: its last time is its length")),
            Some(_) => Ok(DeliveryTrace { times: times.into(), size: u64::from(Self::SIZE) }),
        }
    }

    /// This trace with this many bytes per opportunity, one at least.
    #[must_use]
    pub fn with_size(mut self, bytes: u32) -> Self {
        self.size = u64::from(bytes.max(1));
        self
    }

    /// How many opportunities there are before the trace begins again.
    pub fn opportunities(&self) -> usize {
        self.times.len()
    }

    /// After how long the trace begins again.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms())
    }

    /// The rate if nothing is wasted.
    pub fn mean_rate(&self) -> Rate {
        Rate::of(self.times.len() as u64 * self.size, self.period())
    }

    fn period_ms(&self) -> u64 {
        self.times.last().copied().unwrap_or(1).max(1)
    }

    /// Time of opportunity `number`, counted on through all rounds.
    fn time(&self, number: u64) -> Instant {
        let count = (self.times.len() as u64).max(1);
        let within = self.times.get((number % count) as usize).copied().unwrap_or(0);
        Instant::from_millis((number / count).saturating_mul(self.period_ms()).saturating_add(within))
    }

    /// The first opportunity at or after `at`.
    fn first_from(&self, at: Instant) -> u64 {
        let ms = at.as_nanos().div_ceil(1_000_000);
        let (mut round, mut within) = (ms / self.period_ms(), ms % self.period_ms());
        if within == 0 && round > 0 {
            // The end of a round is also the start of the next, and comes first.
            (round, within) = (round - 1, self.period_ms());
        }
        let place = self.times.partition_point(|t| *t < within) as u64;
        round.saturating_mul(self.times.len() as u64).saturating_add(place)
    }
}

/// Times in milliseconds that stay within an [`Instant`] (580 years) after many rounds.
const LONGEST: u64 = 1_000_000_000_000;

/// A trace and how far it has come.
#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    trace: DeliveryTrace,
    /// The first opportunity that no packet has been given.
    next: u64,
    /// Bytes left of the one before it, which is at `left_at`.
    left: u64,
    left_at: Instant,
}

impl Opportunities {
    pub(super) fn new(trace: DeliveryTrace) -> Self {
        Opportunities { trace, next: 0, left: 0, left_at: Instant::FAR }
    }

    /// Gives opportunities to a packet of `bytes` whose turn comes at `now`; says when its last byte
    /// leaves.
    pub(super) fn give(&mut self, now: Instant, entered: Instant, bytes: u64) -> Instant {
        // What is there at this instant is only for packets that were waiting for it.
        let waited = entered < now;
        let have = if waited && self.left_at == now { self.left } else { 0 };
        let Some(need) = bytes.checked_sub(have).filter(|need| *need > 0) else {
            (self.left, self.left_at) = (have - bytes, now);
            return now;
        };
        let from = if waited { now } else { now + Duration::from_nanos(1) };
        if self.trace.time(self.next) < from {
            self.next = self.next.max(self.trace.first_from(from));
        }
        let last = self.next + (need.div_ceil(self.trace.size) - 1);
        self.left = (last - self.next + 1) * self.trace.size - need;
        self.left_at = self.trace.time(last);
        self.next = last + 1;
        self.left_at
    }

    /// Takes back what was given to the packet in transmission.
    pub(super) fn take_back(&mut self) {
        (self.next, self.left) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, Link, LinkConfig, Setting};

    fn link(trace: &str) -> Link<u64> {
        Link::new("cell", 1, LinkConfig::traced(DeliveryTrace::parse(trace).unwrap(), Duration::ZERO))
    }

    /// Milliseconds at which packets leave, given when (in microseconds) and how large they come.
    fn leave(link: &mut Link<u64>, packets: &[(u64, u32)]) -> Vec<f64> {
        for (i, (us, size)) in packets.iter().enumerate() {
            link.enqueue(Instant::from_nanos(us * 1_000), *size, i as u64);
        }
        let mut out = Vec::new();
        while let Some(at) = link.next_event() {
            while let Some(d) = link.poll_delivery(at) {
                assert_eq!(d.payload, out.len() as u64);
                out.push(d.at.as_secs_f64() * 1e3);
            }
        }
        out
    }

    #[test]
    fn packets_share_opportunities_byte_by_byte() {
        // 1000 bytes and 500 of the second leave at 5, its rest and all of the third at 9.
        assert_eq!(leave(&mut link("5\n9\n20\n"), &[(0, 1_000), (0, 1_000), (0, 1_000)]), [5.0, 9.0, 9.0]);
        // 4000 bytes take three, and what is left of the third serves the next.
        assert_eq!(leave(&mut link("5\n9\n20\n"), &[(0, 4_000), (0, 500), (0, 1)]), [20.0, 20.0, 25.0]);
        // Two of one millisecond are two.
        assert_eq!(leave(&mut link("5\n5\n20\n"), &[(0, 1_500), (0, 1_500), (0, 1)]), [5.0, 5.0, 20.0]);
    }

    #[test]
    fn what_is_not_used_is_lost() {
        // At 5 and 9 no packet waits; the packet of 9.000 comes too late for that one.
        assert_eq!(leave(&mut link("5\n9\n20\n"), &[(9_000, 100)]), [20.0]);
        assert_eq!(leave(&mut link("5\n9\n20\n"), &[(8_999, 100)]), [9.0]);
        // The second comes when the first has just left with bytes to spare.
        let mut cell = link("5\n9\n20\n");
        cell.enqueue(Instant::ZERO, 100, 0);
        assert!(cell.poll_deliver(Instant::from_millis(5)).is_some());
        cell.enqueue(Instant::from_millis(5), 100, 1);
        assert_eq!(cell.next_event(), Some(Instant::from_millis(9)));
    }

    #[test]
    fn the_trace_begins_again() {
        // 5 9 20 | 25 29 40 | 45 ...
        assert_eq!(leave(&mut link("5\n9\n20\n"), &[(30_000, 1_500), (30_000, 1_500)]), [40.0, 45.0]);
        // A first time of 0 falls on the end of the round before: 0 7 | 7 14 | 14 ...
        assert_eq!(leave(&mut link("0\n7\n"), &[(6_000, 1_500), (6_000, 1_500), (6_000, 1_500)]), [7.0, 7.0, 14.0]);
        // Far on: round 10,000,000 of 20 ms.
        assert_eq!(leave(&mut link("5\n9\n20\n"), &[(200_000_006_000, 1)]), [200_000_009.0]);
    }

    #[test]
    fn throughput_is_the_mean_rate_when_saturated() {
        let trace = DeliveryTrace::parse("1\n1\n4\n10\n").unwrap();
        assert_eq!(trace.mean_rate(), Rate::from_bytes_per_sec(600_000));
        let config = LinkConfig::traced(trace, Duration::ZERO).with_limit(Limit::packets(50));
        let mut link = Link::new("cell", 1, config);
        // Enough from the start: what comes at 1 ms is too late for the first two.
        (0..5).for_each(|n| assert_eq!(link.enqueue(Instant::ZERO, 700, n), crate::Verdict::Queued));
        for ms in 0..10_000 {
            link.enqueue(Instant::from_millis(ms), 700, ms);
        }
        // Up to and with the opportunity at 10 s, all but what the last packet lacks.
        let bytes = std::iter::from_fn(|| link.poll_delivery(Instant::from_millis(10_000))).count() * 700;
        assert!((6_000_000 - 700..=6_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_cut_gives_back_what_was_not_used() {
        let mut cell = link("5\n9\n20\n");
        cell.enqueue(Instant::ZERO, 3_500, 0);
        cell.apply(Instant::from_millis(6), Setting::Down);
        cell.apply(Instant::from_millis(7), Setting::Up);
        cell.enqueue(Instant::from_millis(7), 100, 1);
        assert_eq!(cell.next_event(), Some(Instant::from_millis(9)));
        // And a rate takes the place of the trace, also for what is in transmission.
        cell.apply(Instant::from_millis(8), Setting::Rate(Some(Rate::from_bytes_per_sec(1_000))));
        assert_eq!(cell.next_event(), Some(Instant::from_millis(108)));
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text| DeliveryTrace::parse(text).unwrap_err().to_string();
        assert_eq!(error("1\n2.5\n"), "line 2: `2.5` is no time: write whole milliseconds, one opportunity per line");
        assert_eq!(error("-1"), "line 1: `-1` is no time: write whole milliseconds, one opportunity per line");
        assert_eq!(error("3\n\n2\n"), "line 3: 2 ms comes after 3 ms: times must not fall");
        assert_eq!(error("# empty\n"), "there is no delivery opportunity in this trace");
        assert_eq!(error("0\n0\n"), "a trace must last longer than zero: its last time is its length");
        assert!(DeliveryTrace::parse("99999999999999999999").is_err());
    }
}
