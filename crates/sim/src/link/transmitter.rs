//! Puts one packet after another on the wire at a rate that may change in the middle of a packet.
//!
//! Work is counted in byte-nanoseconds per second (bytes times 10^9), so a rate in bytes per second
//! does `rate` work per nanosecond and everything stays in whole numbers. The last nanosecond of a
//! packet may do more work than the packet needs; what is over counts for the next one if it follows
//! at once, so the long-run rate is exact.

use super::Tally;
use crate::queue::Packet;
use anabranch_base::{Instant, Rate};

#[derive(Debug)]
pub(super) struct Transmitter<P> {
    rate: Option<Rate>,
    current: Option<Sending<P>>,
    /// Work done beyond the last packet, and the instant it may be used at.
    surplus: (Instant, u128),
}

#[derive(Debug)]
struct Sending<P> {
    packet: Packet<P>,
    work: u128,
    since: Instant,
    finish: Instant,
}

impl<P> Transmitter<P> {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Transmitter { rate, current: None, surplus: (Instant::FAR, 0) }
    }

    pub(super) fn busy(&self) -> bool {
        self.current.is_some()
    }

    /// When the packet in transmission has left; [`Instant::FAR`] at rate zero.
    pub(super) fn finish(&self) -> Option<Instant> {
        self.current.as_ref().map(|s| s.finish)
    }

    /// What is in transmission, in charged bytes.
    pub(super) fn load(&self) -> Tally {
        match &self.current {
            Some(s) => Tally { packets: 1, bytes: s.packet.charged },
            None => Tally::default(),
        }
    }

    /// Starts `packet`. The transmitter must be free.
    pub(super) fn start(&mut self, now: Instant, packet: Packet<P>) {
        let surplus = if self.surplus.0 == now { self.surplus.1 } else { 0 };
        let work = (u128::from(packet.charged) * 1_000_000_000).saturating_sub(surplus);
        let finish = finish_of(self.rate, now, work);
        self.current = Some(Sending { packet, work, since: now, finish });
    }

    /// Takes the packet that has left by `now`.
    pub(super) fn take_finished(&mut self, now: Instant) -> Option<(Instant, Packet<P>)> {
        let sent = self.current.take_if(|s| s.finish <= now)?;
        let done = work_in(self.rate, sent.since, sent.finish);
        self.surplus = (sent.finish, done.saturating_sub(sent.work));
        Some((sent.finish, sent.packet))
    }

    /// Changes the rate; the packet in transmission goes on with what is left of it.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Option<Rate>) {
        if let Some(s) = &mut self.current {
            s.work = s.work.saturating_sub(work_in(self.rate, s.since, now));
            s.since = now;
            s.finish = finish_of(rate, now, s.work);
        }
        self.surplus.1 = 0;
        self.rate = rate;
    }

    /// Gives up the packet in transmission.
    pub(super) fn abort(&mut self) -> Option<Packet<P>> {
        self.current.take().map(|s| s.packet)
    }
}

fn work_in(rate: Option<Rate>, from: Instant, to: Instant) -> u128 {
    let rate = rate.map_or(0, Rate::bytes_per_sec);
    u128::from(rate) * u128::from(to.since(from).as_nanos())
}

fn finish_of(rate: Option<Rate>, now: Instant, work: u128) -> Instant {
    match rate {
        None => now,
        Some(Rate::ZERO) => Instant::FAR,
        Some(rate) => {
            let ns = work.div_ceil(u128::from(rate.bytes_per_sec()));
            now + anabranch_base::Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(charged: u64) -> Packet<()> {
        Packet { size: 0, charged, entered: Instant::ZERO, payload: () }
    }

    #[test]
    fn long_run_rate_is_exact() {
        // 7 bytes at 3,000,000,000 bytes/s take 2 1/3 ns.
        let mut t = Transmitter::new(Some(Rate::from_bytes_per_sec(3_000_000_000)));
        let mut now = Instant::ZERO;
        for _ in 0..3_000 {
            t.start(now, packet(7));
            now = t.finish().unwrap();
            assert!(t.take_finished(now).is_some());
        }
        assert_eq!(now.as_nanos(), 7_000);
    }

    #[test]
    fn surplus_is_not_saved_over_a_pause() {
        let mut t = Transmitter::new(Some(Rate::from_bytes_per_sec(3_000_000_000)));
        t.start(Instant::ZERO, packet(7));
        assert_eq!(t.take_finished(Instant::from_nanos(2)).map(|x| x.0), None);
        assert_eq!(t.take_finished(Instant::from_nanos(9)).map(|x| x.0), Some(Instant::from_nanos(3)));
        t.start(Instant::from_nanos(9), packet(7));
        assert_eq!(t.finish(), Some(Instant::from_nanos(12)));
    }

    #[test]
    fn rate_changes_in_the_middle() {
        let mut t = Transmitter::new(Some(Rate::from_bytes_per_sec(1_000)));
        t.start(Instant::ZERO, packet(10));
        assert_eq!(t.finish(), Some(Instant::from_millis(10)));
        t.set_rate(Instant::from_millis(4), Some(Rate::from_bytes_per_sec(2_000)));
        assert_eq!(t.finish(), Some(Instant::from_millis(7)));
        t.set_rate(Instant::from_millis(5), Some(Rate::ZERO));
        assert_eq!(t.finish(), Some(Instant::FAR));
        t.set_rate(Instant::from_millis(100), Some(Rate::from_bytes_per_sec(4_000)));
        assert_eq!(t.finish(), Some(Instant::from_millis(101)));
        t.set_rate(Instant::from_millis(100), None);
        assert_eq!(t.finish(), Some(Instant::from_millis(100)));
    }
}
