//! Puts one packet after another on the wire at a rate that may change in the middle of a packet.
//!
//! Work is counted in byte-nanoseconds per second (bytes times 10^9), so a rate in bytes per second
//! does `rate` work per nanosecond and everything stays in whole numbers of 64 bits. The last nanosecond of a
//! packet may do more work than the packet needs; what is over counts for the next one if it follows
//! at once, so the long-run rate is exact.

use super::Tally;
use super::mahimahi::{DeliveryTrace, Opportunities};
use crate::queue::Packet;
use anabranch_base::{Duration, Instant, Rate};

#[derive(Debug)]
pub(super) struct Transmitter<P> {
    rate: Option<Rate>,
    /// Paces in place of the rate.
    trace: Option<Box<Opportunities>>,
    current: Option<Sending<P>>,
    /// Work done beyond the last packet, and the instant it may be used at.
    surplus: (Instant, u64),
    /// What has left at the latest instant at which something did, in charged bytes.
    left: (Instant, Tally),
}

#[derive(Debug)]
struct Sending<P> {
    packet: Packet<P>,
    /// Left to do since then. A packet and its overhead are below 2^33 bytes, so this fits.
    work: u64,
    since: Instant,
    finish: Instant,
}

impl<P> Transmitter<P> {
    pub(super) fn new(rate: Option<Rate>, trace: Option<DeliveryTrace>) -> Self {
        let trace = trace.map(|t| Box::new(Opportunities::new(t)));
        Transmitter { rate, trace, current: None, surplus: (Instant::FAR, 0), left: (Instant::FAR, Tally::default()) }
    }

    pub(super) fn busy(&self) -> bool {
        self.current.is_some()
    }

    /// When the packet in transmission has left; [`Instant::FAR`] at rate zero, and if there is none.
    #[inline]
    pub(super) fn finish_at(&self) -> Instant {
        match &self.current {
            Some(s) => s.finish,
            None => Instant::FAR,
        }
    }

    /// What is in transmission, in charged bytes.
    pub(super) fn load(&self) -> Tally {
        match &self.current {
            Some(s) => Tally { packets: 1, bytes: s.packet.charged },
            None => Tally::default(),
        }
    }

    /// What a packet that comes at `now` finds in transmission: that which leaves at this very instant is still there.
    pub(super) fn load_found(&self, now: Instant) -> Tally {
        if self.left.0 == now { self.load().plus(self.left.1) } else { self.load() }
    }

    /// Starts `packet`. The transmitter must be free.
    pub(super) fn start(&mut self, now: Instant, packet: Packet<P>) {
        if let Some(trace) = &mut self.trace {
            let finish = trace.give(now, packet.entered, packet.charged);
            self.current = Some(Sending { packet, work: 0, since: now, finish });
            return;
        }
        let surplus = if self.surplus.0 == now { self.surplus.1 } else { 0 };
        let work = work_of(&packet).saturating_sub(surplus);
        let finish = finish_of(self.rate, now, work);
        self.current = Some(Sending { packet, work, since: now, finish });
    }

    /// Goes on where a steady link has ended.
    pub(super) fn take_over(&mut self, ended: &super::steady::Ended) {
        (self.surplus, self.left) = (ended.surplus, ended.left);
    }

    /// Goes on with a packet that is on its way out.
    pub(super) fn resume(&mut self, packet: Packet<P>, how_far: super::steady::Sending) {
        let super::steady::Sending { since, finish, work } = how_far;
        self.current = Some(Sending { packet, work, since, finish });
    }

    /// Work done beyond the last packet, and the instant it may be used at.
    pub(super) fn surplus(&self) -> (Instant, u64) {
        self.surplus
    }

    /// Takes the packet that has left by `now`.
    pub(super) fn take_finished(&mut self, now: Instant) -> Option<(Instant, Packet<P>)> {
        let sent = self.current.take_if(|s| s.finish <= now)?;
        if self.rate.is_some() || sent.finish > sent.since {
            if self.left.0 != sent.finish {
                self.left = (sent.finish, Tally::default());
            }
            self.left.1.packets += 1;
            self.left.1.bytes += sent.packet.charged;
            let rate = self.rate.map_or(0, Rate::bytes_per_sec);
            let done = rate.saturating_mul(sent.finish.since(sent.since).as_nanos());
            self.surplus = (sent.finish, done.saturating_sub(sent.work));
        }
        Some((sent.finish, sent.packet))
    }

    /// Changes the rate; the packet in transmission goes on with what is left of it.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Option<Rate>) {
        let traced = self.trace.take().is_some();
        if let Some(s) = &mut self.current {
            if traced {
                s.work = work_of(&s.packet);
                s.since = now;
            }
            let old = self.rate.map_or(0, Rate::bytes_per_sec);
            s.work = s.work.saturating_sub(old.saturating_mul(now.since(s.since).as_nanos()));
            s.since = now;
            s.finish = finish_of(rate, now, s.work);
        }
        self.surplus.1 = 0;
        self.rate = rate;
    }

    /// Gives up the packet in transmission.
    pub(super) fn abort(&mut self) -> Option<Packet<P>> {
        if let Some(trace) = &mut self.trace {
            trace.take_back();
        }
        self.current.take().map(|s| s.packet)
    }
}

fn work_of<P>(packet: &Packet<P>) -> u64 {
    packet.charged.saturating_mul(1_000_000_000)
}

fn finish_of(rate: Option<Rate>, now: Instant, work: u64) -> Instant {
    match rate {
        None => now,
        Some(Rate::ZERO) => Instant::FAR,
        Some(rate) => now + Duration::from_nanos(work.div_ceil(rate.bytes_per_sec())),
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
        let mut t = Transmitter::new(Some(Rate::from_bytes_per_sec(3_000_000_000)), None);
        let mut now = Instant::ZERO;
        for _ in 0..3_000 {
            t.start(now, packet(7));
            now = t.finish_at();
            assert!(t.take_finished(now).is_some());
        }
        assert_eq!(now.as_nanos(), 7_000);
    }

    #[test]
    fn surplus_is_not_saved_over_a_pause() {
        let mut t = Transmitter::new(Some(Rate::from_bytes_per_sec(3_000_000_000)), None);
        t.start(Instant::ZERO, packet(7));
        assert_eq!(t.take_finished(Instant::from_nanos(2)).map(|x| x.0), None);
        assert_eq!(t.take_finished(Instant::from_nanos(9)).map(|x| x.0), Some(Instant::from_nanos(3)));
        t.start(Instant::from_nanos(9), packet(7));
        assert_eq!(t.finish_at(), Instant::from_nanos(12));
    }

    #[test]
    fn rate_changes_in_the_middle() {
        let mut t = Transmitter::new(Some(Rate::from_bytes_per_sec(1_000)), None);
        t.start(Instant::ZERO, packet(10));
        assert_eq!(t.finish_at(), Instant::from_millis(10));
        t.set_rate(Instant::from_millis(4), Some(Rate::from_bytes_per_sec(2_000)));
        assert_eq!(t.finish_at(), Instant::from_millis(7));
        t.set_rate(Instant::from_millis(5), Some(Rate::ZERO));
        assert_eq!(t.finish_at(), Instant::FAR);
        t.set_rate(Instant::from_millis(100), Some(Rate::from_bytes_per_sec(4_000)));
        assert_eq!(t.finish_at(), Instant::from_millis(101));
        t.set_rate(Instant::from_millis(100), None);
        assert_eq!(t.finish_at(), Instant::from_millis(100));
    }
}
