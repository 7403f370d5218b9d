//! First in, first out, with a limit in packets, bytes or both; where asked for, with a length from which packets are
//! marked as they come (RFC 3168; a step, as DCTCP has it in RFC 8257 §4.1 for its switches).

use super::{Limit, Mark, Marker, Packet, Queue};
use crate::link::Tally;
use anabranch_base::Instant;
use std::collections::VecDeque;

/// A FIFO that refuses what does not fit.
#[derive(Debug)]
pub struct DropTail<P> {
    waiting: VecDeque<Packet<P>>,
    bytes: u64,
    limit: Limit,
    /// How many wait when one that comes is marked.
    step: u64,
    marker: Marker<P>,
}

impl<P> DropTail<P> {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        DropTail { waiting: VecDeque::new(), bytes: 0, limit, step: u64::MAX, marker: Marker::new(false) }
    }

    /// An empty queue that marks what comes while `step` packets wait.
    pub fn marking(limit: Limit, step: u64) -> Self {
        DropTail { step, marker: Marker::new(true), ..DropTail::new(limit) }
    }

    /// Puts a packet in without asking whether there is room.
    pub(crate) fn put(&mut self, packet: Packet<P>) {
        self.bytes += packet.charged;
        self.waiting.push_back(packet);
    }
}

impl<P> Queue<P> for DropTail<P> {
    fn push(&mut self, _now: Instant, mut packet: Packet<P>, serving: Tally) -> Result<(), Packet<P>> {
        if !self.limit.admits(self.waiting(), serving, packet.charged) {
            return Err(packet);
        }
        if self.waiting.len() as u64 >= self.step {
            self.marker.mark(&mut packet);
        }
        self.put(packet);
        Ok(())
    }

    fn pop(&mut self, _now: Instant, _dropped: &mut Vec<Packet<P>>) -> Option<Packet<P>> {
        let packet = self.waiting.pop_front()?;
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

    fn clear(&mut self, _now: Instant, dropped: &mut Vec<Packet<P>>) {
        self.bytes = 0;
        dropped.extend(self.waiting.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(n: u32, charged: u64) -> Packet<u32> {
        Packet { size: 10, charged, entered: Instant::ZERO, payload: n }
    }

    #[test]
    fn limits_count_what_is_in_transmission() {
        let mut q = DropTail::new(Limit::packets(2));
        let serving = Tally { packets: 1, bytes: 100 };
        assert!(q.push(Instant::ZERO, packet(1, 100), serving).is_ok());
        assert_eq!(q.push(Instant::ZERO, packet(2, 100), serving).unwrap_err().payload, 2);
        assert!(q.push(Instant::ZERO, packet(3, 100), Tally::default()).is_ok());
        let mut none = Vec::new();
        assert_eq!(q.pop(Instant::ZERO, &mut none).unwrap().payload, 1);
        assert_eq!(q.pop(Instant::ZERO, &mut none).unwrap().payload, 3);
        assert_eq!((q.waiting(), none.len()), (Tally::default(), 0));
    }

    #[test]
    fn what_comes_to_a_long_queue_is_marked_and_never_dropped_for_it() {
        let mut q: DropTail<u32> = DropTail::marking(Limit::packets(4), 2);
        // Odd ones may be marked.
        q.set_mark(|p| {
            let able = *p % 2 == 1;
            *p += if able { 100 } else { 0 };
            able
        });
        (0..4).for_each(|n| assert!(q.push(Instant::ZERO, packet(n, 1), Tally::default()).is_ok()));
        assert!(q.push(Instant::ZERO, packet(5, 1), Tally::default()).is_err(), "full is full");
        assert_eq!(q.marked(), Tally { packets: 1, bytes: 10 });
        let mut none = Vec::new();
        let out: Vec<u32> = core::iter::from_fn(|| q.pop(Instant::ZERO, &mut none)).map(|p| p.payload).collect();
        assert_eq!(out, [0, 1, 2, 103]);
    }

    #[test]
    fn byte_limit_is_exact() {
        let mut q = DropTail::new(Limit::bytes(250));
        assert!(q.push(Instant::ZERO, packet(1, 100), Tally::default()).is_ok());
        assert!(q.push(Instant::ZERO, packet(2, 151), Tally::default()).is_err());
        assert!(q.push(Instant::ZERO, packet(3, 150), Tally::default()).is_ok());
        assert!(q.push(Instant::ZERO, packet(4, 1), Tally::default()).is_err());
        let mut dropped = Vec::new();
        q.clear(Instant::ZERO, &mut dropped);
        assert_eq!(dropped.iter().map(|p| p.payload).collect::<Vec<_>>(), [1, 3]);
        assert!(q.push(Instant::ZERO, packet(5, 250), Tally::default()).is_ok());
    }
}
