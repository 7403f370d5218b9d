//! Random early detection: drops arriving packets with a probability that grows with the average
//! length of the queue.
//!
//! Floyd, S. and Jacobson, V.: Random early detection gateways for congestion avoidance, IEEE/ACM
//! Transactions on Networking 1(4), 1993; the gentle slope is Floyd's of 2000. Parameters carry the
//! names they have in ns-2 and, by [`RedParams::NS2`], its values; they count packets, as there.
//!
//! As in ns-2.35, and unlike the article:
//! - only packets that wait count, not the one in transmission;
//! - while no more than one packet waits, nothing is dropped early;
//! - the first packet at which the average stands above `thresh` is never dropped;
//! - with `wait` the gap between two early drops is even over 1/p to 2/p packets, not 1 to 1/p;
//! - a queue measured in bytes compares the average with the thresholds times `mean_pktsize`.
//!
//! With `ecn`, packets of senders that want it are marked where they would be dropped by chance; from where all are
//! dropped on, they are too (RFC 3168 §7).
//!
//! Left out of ns-2's: adaptive `linterm`, dropping another packet
//! than the arriving one, and its limit of packets times `mean_pktsize` when bytes are counted (the
//! limit is the link's, in packets, bytes or both). A changed rate changes what an idle time counts
//! for, which in ns-2 it does not.

use super::{Limit, Line, Mark, Marker, Packet, Queue};
use crate::link::Tally;
use anabranch_base::{Instant, RandomStream, Rate};
use std::collections::VecDeque;

/// Parameters of [`Red`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedParams {
    /// Average, in packets, up to which nothing is dropped early. `None`: 5, or as much as fills half
    /// of 5 ms at the rate of the link when that is more.
    pub thresh: Option<f64>,
    /// Average, in packets, at which early drops reach a share of `1 / linterm`. `None`: three times
    /// `thresh`.
    pub maxthresh: Option<f64>,
    /// Weight of the newest length in the average. `None`: `1 - e^(-1 / (10 n))` for the `n` packets
    /// that the link sends in an RTT, taken as three times its delay and one packet's transmission,
    /// or 100 ms when that is more (ns-2's -1).
    pub q_weight: Option<f64>,
    /// Inverse of the share of packets dropped early at `maxthresh`.
    pub linterm: f64,
    /// Above `maxthresh`, does the share grow evenly to all at twice `maxthresh`? If not, everything
    /// is dropped there.
    pub gentle: bool,
    /// Is a large packet dropped more often than a small one, in proportion to its size?
    pub bytes: bool,
    /// Is the queue measured in bytes, not packets?
    pub queue_in_bytes: bool,
    /// Bytes of a packet of mean size, overhead included.
    pub mean_pktsize: u32,
    /// Does an early drop wait for at least as many packets as come on average between two?
    pub wait: bool,
    /// Are packets marked in place of early drops by chance, where their senders want it (ns-2's `setbit_`)?
    pub ecn: bool,
}

impl RedParams {
    /// The defaults of ns-2.35.
    pub const NS2: RedParams = RedParams {
        thresh: None,
        maxthresh: None,
        q_weight: None,
        linterm: 10.0,
        gentle: true,
        bytes: true,
        queue_in_bytes: true,
        mean_pktsize: 500,
        wait: true,
        ecn: false,
    };

    /// What is wrong with the parameters, in words for a user.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let above_zero = |x: Option<f64>| x.is_none_or(|x| x > 0.0 && x.is_finite());
        if !above_zero(self.thresh) || !above_zero(self.maxthresh) {
            return Err("thresh and maxthresh of red must be above zero packets");
        }
        if let (Some(min), Some(max)) = (self.thresh, self.maxthresh)
            && max <= min
        {
            return Err("maxthresh of red must be above thresh");
        }
        if self.thresh.is_none() && self.maxthresh.is_some() {
            return Err("red needs thresh where maxthresh is given");
        }
        if self.q_weight.is_some_and(|w| !(w > 0.0 && w <= 1.0)) {
            return Err("q_weight of red must lie above 0 and not above 1");
        }
        if !(self.linterm >= 1.0 && self.linterm.is_finite()) {
            return Err("linterm of red is the inverse of a share, so at least 1");
        }
        if self.mean_pktsize == 0 {
            return Err("mean_pktsize of red must be at least one byte");
        }
        Ok(())
    }
}

impl Default for RedParams {
    fn default() -> Self {
        RedParams::NS2
    }
}

/// A FIFO with early drops.
#[derive(Debug)]
pub struct Red<P> {
    params: RedParams,
    limit: Limit,
    random: RandomStream,
    waiting: VecDeque<Packet<P>>,
    bytes: u64,
    /// Thresholds, in the unit of `average`.
    thresh: f64,
    maxthresh: f64,
    q_weight: f64,
    /// Mean packets the link sends in a second.
    pace: f64,
    average: f64,
    idle_since: Option<Instant>,
    /// Has the average been above `thresh` since it last was not?
    above: bool,
    /// Packets and bytes since the last drop, or since the average rose above `thresh`.
    since_drop: Tally,
    marker: Marker<P>,
}

/// What becomes of a packet for which there is room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Early {
    Keep,
    /// Dropped by chance, or marked.
    Signal,
    /// The queue is so long that all are dropped.
    Drop,
}

impl<P> Red<P> {
    /// An empty queue in front of `line`, idle since [`Instant::ZERO`].
    pub fn new(params: RedParams, limit: Limit, line: Line, random: RandomStream) -> Self {
        let pace = pace_of(line.rate, params.mean_pktsize);
        let thresh = params.thresh.unwrap_or_else(|| if pace.is_finite() { (0.0025 * pace).max(5.0) } else { 5.0 });
        let maxthresh = params.maxthresh.unwrap_or(3.0 * thresh);
        let rtt = (3.0 * (line.delay.as_secs_f64() + 1.0 / pace)).max(0.1);
        let q_weight = params.q_weight.unwrap_or_else(|| -libm::expm1(-1.0 / (10.0 * rtt * pace)));
        let unit = if params.queue_in_bytes { f64::from(params.mean_pktsize) } else { 1.0 };
        Red {
            limit,
            random,
            waiting: VecDeque::new(),
            bytes: 0,
            thresh: thresh * unit,
            maxthresh: maxthresh * unit,
            q_weight,
            pace,
            average: 0.0,
            idle_since: Some(Instant::ZERO),
            above: false,
            since_drop: Tally::default(),
            marker: Marker::new(params.ecn),
            params,
        }
    }

    /// The average length, in packets, or bytes if the queue is measured so.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Share of packets to drop at this average (in the unit of [`average`](Self::average)), before
    /// drops are spread out; `p_b` of the article.
    pub fn share_at(&self, average: f64) -> f64 {
        let max_p = 1.0 / self.params.linterm;
        let share = if average < self.maxthresh {
            max_p * (average - self.thresh) / (self.maxthresh - self.thresh)
        } else if self.params.gentle {
            max_p + (1.0 - max_p) * (average - self.maxthresh) / self.maxthresh
        } else {
            1.0
        };
        share.clamp(0.0, 1.0)
    }

    /// Moves the average on by an arrival that finds `length`. A time without packets counts as if as
    /// many small ones had come to an empty queue as the link could have sent in it.
    fn move_average(&mut self, now: Instant, length: f64) {
        let keep = 1.0 - self.q_weight;
        if let Some(since) = self.idle_since.take() {
            let idle = now.since(since).as_secs_f64();
            let missed = if idle > 0.0 { (self.pace * idle).floor() } else { 0.0 };
            self.average *= libm::pow(keep, missed);
        }
        self.average = keep * self.average + self.q_weight * length;
    }

    /// Probability that a packet of `size` charged bytes is dropped now; `p_a` of the article.
    fn chance_now(&self, size: u64) -> f64 {
        let share = self.share_at(self.average);
        let mean = u64::from(self.params.mean_pktsize.max(1));
        let passed = if self.params.bytes { self.since_drop.bytes / mean } else { self.since_drop.packets };
        let passed = passed as f64 * share;
        let chance = match self.params.wait {
            true if passed < 1.0 => 0.0,
            true if passed < 2.0 => share / (2.0 - passed),
            false if passed < 1.0 => share / (1.0 - passed),
            _ => 1.0,
        };
        if self.params.bytes && chance < 1.0 { chance * size as f64 / mean as f64 } else { chance }
    }

    /// What becomes of a packet of `size` charged bytes although there is room?
    fn early(&mut self, size: u64) -> Early {
        let waits = if self.params.queue_in_bytes { self.bytes } else { self.waiting.len() as u64 };
        if self.average < self.thresh || waits <= 1 {
            self.above = false;
            return Early::Keep;
        }
        let all_at = if self.params.gentle { 2.0 * self.maxthresh } else { self.maxthresh };
        if self.average >= all_at {
            return Early::Drop;
        }
        if !self.above {
            self.above = true;
            self.since_drop = Tally { packets: 1, bytes: size };
            return Early::Keep;
        }
        let chance = self.chance_now(size);
        if self.random.chance(chance) { Early::Signal } else { Early::Keep }
    }
}

/// Packets of mean size in a second.
fn pace_of(rate: Option<Rate>, mean_pktsize: u32) -> f64 {
    rate.map_or(f64::INFINITY, |r| r.bytes_per_sec() as f64 / f64::from(mean_pktsize.max(1)))
}

impl<P> Queue<P> for Red<P> {
    fn push(&mut self, now: Instant, mut packet: Packet<P>, serving: Tally) -> Result<(), Packet<P>> {
        let length = if self.params.queue_in_bytes { self.bytes as f64 } else { self.waiting.len() as f64 };
        self.move_average(now, length);
        self.since_drop = self.since_drop.plus(Tally { packets: 1, bytes: packet.charged });
        let early = self.early(packet.charged);
        let fits = self.limit.admits(self.waiting(), serving, packet.charged);
        if early != Early::Keep || !fits {
            self.since_drop = Tally::default();
            let marked = early == Early::Signal && fits && self.marker.mark(&mut packet);
            if !marked {
                return Err(packet);
            }
        }
        self.bytes += packet.charged;
        self.waiting.push_back(packet);
        Ok(())
    }

    fn pop(&mut self, now: Instant, _dropped: &mut Vec<Packet<P>>) -> Option<Packet<P>> {
        let Some(packet) = self.waiting.pop_front() else {
            self.idle_since.get_or_insert(now);
            return None;
        };
        self.bytes -= packet.charged;
        Some(packet)
    }

    fn waiting(&self) -> Tally {
        Tally { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    fn set_mark(&mut self, mark: Mark<P>) {
        self.marker.mark = Some(mark);
    }

    fn marked(&self) -> Tally {
        self.marker.marked
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.pace = pace_of(rate, self.params.mean_pktsize);
    }

    fn clear(&mut self, now: Instant, dropped: &mut Vec<Packet<P>>) {
        self.bytes = 0;
        self.idle_since.get_or_insert(now);
        dropped.extend(self.waiting.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::Duration;

    const PACKETS: RedParams = RedParams {
        thresh: Some(5.0),
        maxthresh: Some(15.0),
        q_weight: Some(0.002),
        bytes: false,
        queue_in_bytes: false,
        ..RedParams::NS2
    };

    fn line(mbit: u64, delay_ms: u64) -> Line {
        Line { rate: Some(Rate::from_bits_per_sec(mbit * 1_000_000)), delay: Duration::from_millis(delay_ms) }
    }

    fn red(params: RedParams) -> Red<()> {
        Red::new(params, Limit::NONE, line(10, 10), RandomStream::named(1, "red"))
    }

    fn push(q: &mut Red<()>, ms: u64, size: u32) -> bool {
        let packet = Packet { size, charged: u64::from(size), entered: Instant::from_millis(ms), payload: () };
        q.push(Instant::from_millis(ms), packet, Tally::default()).is_ok()
    }

    #[test]
    fn the_share_follows_both_slopes() {
        let share = |params, average| red(params).share_at(average);
        for (average, want) in [(5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55), (30.0, 1.0), (99.0, 1.0)] {
            assert!((share(PACKETS, average) - want).abs() < 1e-12, "{average}");
        }
        assert_eq!(share(RedParams { gentle: false, ..PACKETS }, 15.0), 1.0);
        assert!((share(RedParams { queue_in_bytes: true, ..PACKETS }, 5_000.0) - 0.05).abs() < 1e-12);
    }

    #[test]
    fn what_is_left_open_follows_the_link() {
        // 10 Mbit/s in packets of 500 bytes: 2,500 a second, so 6.25 in 2.5 ms; RTT below 100 ms.
        let q = red(RedParams { queue_in_bytes: false, ..RedParams::NS2 });
        assert_eq!((q.thresh, q.maxthresh), (6.25, 18.75));
        assert!((q.q_weight - (1.0 - (-1.0f64 / 2_500.0).exp())).abs() < 1e-12);
        // A slow link of long delay: 5 packets; RTT 3 (0.2 + 0.004) s at 250 packets a second.
        let q: Red<()> = Red::new(RedParams::NS2, Limit::NONE, line(1, 200), RandomStream::named(1, "red"));
        assert_eq!((q.thresh, q.maxthresh), (2_500.0, 7_500.0));
        assert!((q.q_weight - (1.0 - (-1.0f64 / (10.0 * 0.612 * 250.0)).exp())).abs() < 1e-12);
    }

    #[test]
    fn the_average_follows_arrivals_and_decays_while_idle() {
        let mut q = red(RedParams { q_weight: Some(0.5), thresh: Some(1e9), maxthresh: Some(2e9), ..PACKETS });
        for _ in 0..4 {
            push(&mut q, 0, 500);
        }
        // Lengths found: 0, 1, 2, 3.
        assert_eq!(q.average(), 0.5 * (3.0 + 0.5 * (2.0 + 0.5)));
        let before = q.average();
        let mut none = Vec::new();
        (0..4).for_each(|_| assert!(q.pop(Instant::from_millis(1), &mut none).is_some()));
        assert!(q.pop(Instant::from_millis(2), &mut none).is_none());
        assert!(q.pop(Instant::from_millis(9), &mut none).is_none());
        // Idle from 2 ms to 4 ms: 5 packets of 0.4 ms could have gone, and one more comes.
        push(&mut q, 4, 500);
        assert!((q.average() - before / 64.0).abs() < 1e-12, "{}", q.average());
    }

    #[test]
    fn all_is_dropped_far_above_and_nothing_while_one_waits() {
        let mut q = red(RedParams { q_weight: Some(1.0), ..PACKETS });
        (0..4).for_each(|_| assert!(push(&mut q, 0, 500)));
        q.average = 1e6;
        q.q_weight = 1e-9;
        assert!(!push(&mut q, 0, 500));
        q.waiting.truncate(1);
        assert!(push(&mut q, 0, 500));
    }

    #[test]
    fn chance_marks_and_excess_drops() {
        let params = RedParams { q_weight: Some(1.0), wait: false, ecn: true, ..PACKETS };
        let mut q: Red<()> = Red::new(params, Limit::NONE, line(10, 10), RandomStream::named(1, "red"));
        q.set_mark(|()| true);
        let kept = (0..200).filter(|_| push(&mut q, 0, 500)).count() as u64;
        // The average is the length: beyond twice maxthresh nothing gets in.
        assert_eq!((kept, q.waiting().packets), (30, 30));
        assert!((1..26).contains(&q.marked().packets), "{:?}", q.marked());
        q.set_mark(|()| false);
        q.waiting.truncate(20);
        let before = q.marked();
        let dropped = (0..10).filter(|_| !push(&mut q, 0, 500)).count();
        assert!(dropped > 0 && q.marked() == before, "a sender that does not want marks gets drops");
    }

    #[test]
    fn a_line_without_rate_never_builds_an_average() {
        let mut q: Red<()> = Red::new(RedParams::NS2, Limit::NONE, Line::default(), RandomStream::named(1, "red"));
        for ms in 0..100 {
            assert!(push(&mut q, ms, 1_500));
            assert!(q.pop(Instant::from_millis(ms), &mut Vec::new()).is_some());
            assert!(q.pop(Instant::from_millis(ms), &mut Vec::new()).is_none());
        }
        assert_eq!(q.average(), 0.0);
    }

    #[test]
    fn nonsense_is_named() {
        assert!(RedParams::NS2.check().is_ok() && PACKETS.check().is_ok());
        for bad in [
            RedParams { maxthresh: Some(5.0), ..PACKETS },
            RedParams { thresh: Some(-1.0), ..PACKETS },
            RedParams { thresh: None, ..PACKETS },
            RedParams { q_weight: Some(0.0), ..PACKETS },
            RedParams { linterm: 0.5, ..PACKETS },
            RedParams { mean_pktsize: 0, ..PACKETS },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
