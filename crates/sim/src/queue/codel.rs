//! Controlled delay (CoDel, RFC 8289): drops at the head when packets have waited longer than
//! `target` for a whole `interval`, and then ever faster until they no longer do.
//!
//! With `ecn`, packets of senders that want it are marked and sent on where they would be dropped.
//!
//! Difference from RFC 8289 §5: the largest packet is learnt from the packets seen.

use super::{Limit, Mark, Marker, Packet, Queue};
use crate::link::Tally;
use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

/// Parameters of [`CoDel`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoDelParams {
    /// Wait that is acceptable for longer than `interval` (RFC 8289 §4.4).
    pub target: Duration,
    /// Time in which a wait may come down by itself, about the longest usual RTT (RFC 8289 §4.3).
    pub interval: Duration,
    /// Are packets marked in place of drops, where their senders want it?
    pub ecn: bool,
}

impl Default for CoDelParams {
    /// RFC 8289's: 5 ms and 100 ms.
    fn default() -> Self {
        CoDelParams { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

impl CoDelParams {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.target.is_zero() || self.interval <= self.target {
            return Err("codel needs a target longer than zero and an interval longer than the target");
        }
        Ok(())
    }

    /// The drop after that at `from`, the `count`-th of its row: `interval / sqrt(count)` later.
    fn control_law(&self, from: Instant, count: u32) -> Instant {
        from + Duration::from_secs_f64(self.interval.as_secs_f64() / libm::sqrt(f64::from(count.max(1))))
    }
}

/// A FIFO that keeps the time packets wait short.
#[derive(Debug)]
pub struct CoDel<P> {
    params: CoDelParams,
    waiting: VecDeque<Packet<P>>,
    bytes: u64,
    limit: Limit,
    /// Charged bytes of the largest packet seen. A queue no longer than one packet is never too long.
    largest: u64,
    /// When the wait, above the target since an interval before, calls for drops.
    too_long_at: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Drops in this row of drops, and at the start of it.
    count: u32,
    last_count: u32,
    marker: Marker<P>,
}

impl<P> CoDel<P> {
    /// An empty queue.
    pub fn new(params: CoDelParams, limit: Limit) -> Self {
        CoDel {
            marker: Marker::new(params.ecn),
            params,
            waiting: VecDeque::new(),
            bytes: 0,
            limit,
            largest: 0,
            too_long_at: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Takes the head and says whether it may be dropped.
    fn take(&mut self, now: Instant) -> Option<(Packet<P>, bool)> {
        let Some(packet) = self.waiting.pop_front() else {
            self.too_long_at = None;
            return None;
        };
        self.bytes -= packet.charged;
        if now.since(packet.entered) < self.params.target || self.bytes <= self.largest {
            self.too_long_at = None;
            return Some((packet, false));
        }
        let due = *self.too_long_at.get_or_insert(now + self.params.interval);
        // What set the time is not yet late: the interval is longer than zero.
        Some((packet, now >= due))
    }

    /// Goes on dropping while the control law says so.
    fn go_on(&mut self, now: Instant, mut head: (Packet<P>, bool), dropped: &mut Vec<Packet<P>>) -> Option<Packet<P>> {
        self.dropping = head.1;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if self.marker.mark(&mut head.0) {
                self.drop_next = self.params.control_law(self.drop_next, self.count);
                break;
            }
            dropped.push(head.0);
            let Some(next) = self.take(now) else {
                self.dropping = false;
                return None;
            };
            head = next;
            if head.1 {
                self.drop_next = self.params.control_law(self.drop_next, self.count);
            } else {
                self.dropping = false;
            }
        }
        Some(head.0)
    }

    /// Drops or marks the head and starts a row of drops; soon after another row, near the rate that ended it.
    fn begin(&mut self, now: Instant, mut head: Packet<P>, dropped: &mut Vec<Packet<P>>) -> Option<Packet<P>> {
        self.dropping = true;
        let grown = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < self.params.interval * 16;
        self.count = if grown > 1 && recent { grown } else { 1 };
        self.drop_next = self.params.control_law(now, self.count);
        self.last_count = self.count;
        if self.marker.mark(&mut head) {
            return Some(head);
        }
        dropped.push(head);
        self.take(now).map(|next| next.0)
    }
}

impl<P> Queue<P> for CoDel<P> {
    fn push(&mut self, _now: Instant, packet: Packet<P>, serving: Tally) -> Result<(), Packet<P>> {
        if !self.limit.admits(self.waiting(), serving, packet.charged) {
            return Err(packet);
        }
        self.largest = self.largest.max(packet.charged);
        self.bytes += packet.charged;
        self.waiting.push_back(packet);
        Ok(())
    }

    fn pop(&mut self, now: Instant, dropped: &mut Vec<Packet<P>>) -> Option<Packet<P>> {
        let Some(head) = self.take(now) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.go_on(now, head, dropped)
        } else if head.1 {
            self.begin(now, head.0, dropped)
        } else {
            Some(head.0)
        }
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

    fn clear(&mut self, _now: Instant, dropped: &mut Vec<Packet<P>>) {
        self.bytes = 0;
        self.too_long_at = None;
        self.dropping = false;
        dropped.extend(self.waiting.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Fills with 1000-byte packets each ms and takes one each `serve` ms until `until`; when drops
    /// at the head happened.
    fn drops(q: &mut CoDel<u64>, serve: u64, from: u64, until: u64) -> Vec<u64> {
        let mut out = Vec::new();
        for ms in from..until {
            let packet = Packet { size: 1_000, charged: 1_000, entered: at(ms), payload: ms };
            assert!(q.push(at(ms), packet, Tally::default()).is_ok());
            if ms % serve == 0 {
                let mut dropped = Vec::new();
                q.pop(at(ms), &mut dropped);
                out.extend(dropped.iter().map(|_| ms));
            }
        }
        out
    }

    #[test]
    fn a_queue_within_the_target_is_left_alone() {
        let mut q = CoDel::new(CoDelParams::default(), Limit::NONE);
        assert_eq!(drops(&mut q, 1, 0, 10_000), [] as [u64; 0]);
    }

    #[test]
    fn drops_follow_the_control_law() {
        let mut q = CoDel::new(CoDelParams::default(), Limit::NONE);
        let got = drops(&mut q, 2, 0, 1_000);
        // Served every 2 ms, the head served at 2k entered at k: the wait passes 5 ms at 10 ms, the
        // first drop is an interval later, and those after it 100 ms / sqrt(n) apart.
        let mut want = vec![110.0];
        let mut n = 1.0f64;
        while want.last().unwrap() + 100.0 / n.sqrt() < 1_000.0 {
            want.push(want.last().unwrap() + 100.0 / n.sqrt());
            n += 1.0;
        }
        let served: Vec<u64> = want.iter().map(|ms| 2 * (ms / 2.0).ceil() as u64).filter(|ms| *ms < 1_000).collect();
        assert_eq!(got, served);
        assert!(got.len() > 20);
    }

    #[test]
    fn marks_follow_the_control_law_too() {
        let law = |ecn| {
            let mut q = CoDel::new(CoDelParams { ecn, ..CoDelParams::default() }, Limit::NONE);
            q.set_mark(|_| true);
            (drops(&mut q, 2, 0, 1_000).len() as u64, q.marked().packets)
        };
        let (dropped, none) = law(false);
        assert_eq!((law(true).0, none), (0, 0));
        let marked = law(true).1;
        assert!(dropped > 20 && marked.abs_diff(dropped) <= 1, "{marked} marked, {dropped} dropped");
    }

    #[test]
    fn one_packet_is_never_too_many() {
        let mut q = CoDel::new(CoDelParams::default(), Limit::NONE);
        let mut dropped = Vec::new();
        for second in 0..20 {
            for ms in [0, 1] {
                let entered = at(second * 1_000 + ms);
                let _ = q.push(entered, Packet { size: 1_000, charged: 1_000, entered, payload: 0 }, Tally::default());
            }
            // Both waited for most of a second, but behind the head there is never more than one.
            assert!(q.pop(at(second * 1_000 + 900), &mut dropped).is_some());
            assert!(q.pop(at(second * 1_000 + 901), &mut dropped).is_some());
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn a_new_row_starts_near_the_rate_of_the_last() {
        let mut q = CoDel::new(CoDelParams::default(), Limit::NONE);
        let first = drops(&mut q, 2, 0, 2_000).len() as u32;
        assert!(first > 50);
        let before = q.count;
        q.clear(at(2_000), &mut Vec::new());
        // The next row starts where the last one had got to, less where that began.
        let again = drops(&mut q, 2, 2_000, 2_200);
        let wait = again[1] - again[0];
        assert_eq!(q.last_count, before - 1);
        assert!(wait <= 100 / (f64::from(q.last_count).sqrt() as u64) + 2, "{again:?}");
        // After a long quiet time it starts afresh.
        q.clear(at(2_200), &mut Vec::new());
        let late = drops(&mut q, 2, 10_000, 10_300);
        assert!((99..=101).contains(&(late[1] - late[0])), "{late:?}");
    }

    #[test]
    fn nonsense_is_named() {
        let ms = Duration::from_millis;
        assert!(CoDelParams::default().check().is_ok());
        assert!(CoDelParams { target: ms(100), interval: ms(100), ecn: false }.check().is_err());
        assert!(CoDelParams { target: ms(0), interval: ms(100), ecn: false }.check().is_err());
    }
}
