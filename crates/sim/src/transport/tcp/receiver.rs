//! The receiving end: what is there, and when to say so.

use super::quick_ack::QuickAck;
use super::runs::{Run, Runs};
use super::{AckSegment, DataSegment, MAX_BLOCKS, TcpConfig};
use crate::transport::FlowCounters;
use anabranch_base::{Duration, Instant};

/// Receives one connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The first segment that is missing.
    next: u64,
    /// Segments above it.
    above: Runs,
    in_order: u64,
    end: Option<u64>,
    delay: Option<Duration>,
    /// Linux's way of delaying.
    quick: Option<QuickAck>,
    blocks: usize,
    /// The latest segment, if it had come before and that is reported (RFC 2883).
    duplicate: Option<u64>,
    reports_duplicates: bool,
    /// When a delayed acknowledgement is due.
    due: Instant,
    /// Was the latest segment none that had come before?
    fresh: bool,
    counters: FlowCounters,
}

impl Receiver {
    /// Nothing received.
    pub fn new(config: &TcpConfig) -> Self {
        Receiver {
            next: 0,
            above: Runs::default(),
            in_order: 0,
            end: None,
            delay: config.delayed_ack,
            quick: config.delayed_ack.filter(|_| config.quick_ack).map(QuickAck::new),
            duplicate: None,
            reports_duplicates: matches!(config.recovery, super::Recovery::Rack),
            blocks: if config.is_selective() { usize::from(config.sack_blocks).min(MAX_BLOCKS) } else { 0 },
            due: Instant::FAR,
            fresh: false,
            counters: FlowCounters::default(),
        }
    }

    /// Takes a segment; says whether it is to be acknowledged now. If not, it will be at
    /// [`next_timeout`](Self::next_timeout).
    pub fn receive(&mut self, now: Instant, segment: &DataSegment) -> bool {
        let number = segment.number;
        if segment.last {
            self.end = Some(number + 1);
        }
        let again = if number == self.next && self.above.is_empty() {
            self.next += 1;
            self.in_order += u64::from(segment.bytes);
            false
        } else {
            !self.fill(segment)
        };
        self.fresh = !again;
        self.duplicate = (again && self.reports_duplicates).then_some(number);
        if number > 0 {
            self.counters.count(now, segment.sent, segment.bytes, again);
        }
        // RFC 5681 §4.2: out of order, or filling a gap, at once; otherwise each second. The SYN does not wait.
        let plain = number > 0 && number + 1 == self.next && self.above.is_empty() && self.duplicate.is_none();
        let delay = self.quick.as_mut().map_or(self.delay, |quick| {
            if number == 0 {
                quick.opened(now);
            } else {
                quick.segment(now, plain);
            }
            if plain && self.due == Instant::FAR { quick.wait() } else { None }
        });
        match delay {
            Some(wait) if plain && self.due == Instant::FAR => {
                self.due = now + wait;
                false
            }
            _ => {
                self.due = Instant::FAR;
                true
            }
        }
    }

    /// Out of order, filling a gap, or come before; says whether it is new.
    fn fill(&mut self, segment: &DataSegment) -> bool {
        let (number, bytes) = (segment.number, u64::from(segment.bytes));
        if number < self.next {
            return false;
        }
        let new = self.above.add(number, number + 1, bytes);
        if let Some(Run { end, bytes, .. }) = self.above.take_at(self.next) {
            self.next = end;
            self.in_order += bytes;
        }
        new
    }

    /// The acknowledgement of now.
    pub fn acknowledgement(&self, flow: u32) -> AckSegment {
        let mut blocks = [(0, 0); MAX_BLOCKS];
        let mut places = blocks.iter_mut().take(self.blocks);
        if let Some(duplicate) = self.duplicate {
            let report = if duplicate < self.next {
                (0, u16::try_from(self.next - duplicate).unwrap_or(0))
            } else {
                (u16::try_from(duplicate - self.next).unwrap_or(0), 1)
            };
            if report != (0, 0)
                && let Some(place) = places.next()
            {
                *place = report;
            }
        }
        if !self.above.is_empty() {
            let mut newest = [Run::default(); MAX_BLOCKS];
            for run in self.above.iter() {
                let place = newest.partition_point(|n| n.touched > run.touched);
                if place < MAX_BLOCKS {
                    newest[place..].rotate_right(1);
                    newest[place] = *run;
                }
            }
            let near = newest.iter().filter(|r| r.end > 0).filter_map(|run| {
                let above = u16::try_from(run.first - self.next).ok()?;
                Some((above, u16::try_from(run.end - run.first).unwrap_or(u16::MAX)))
            });
            for (block, run) in places.zip(near) {
                *block = run;
            }
        }
        AckSegment { flow, next: self.next, blocks }
    }

    /// The delayed acknowledgement is due: says whether one is to be sent.
    pub fn timeout(&mut self, now: Instant) -> bool {
        let due = self.due <= now;
        if due {
            self.due = Instant::FAR;
        }
        due
    }

    /// An acknowledgement leaves although none was due.
    pub(in crate::transport) fn acknowledges_early(&mut self) {
        self.due = Instant::FAR;
    }

    /// When to call [`timeout`](Self::timeout).
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        (self.due != Instant::FAR).then_some(self.due)
    }

    /// Was the latest segment none that had come before?
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.in_order
    }

    /// Segments delivered in order, the SYN included: the next one expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Has everything been delivered?
    pub fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// What came, in any order.
    pub fn counters(&self) -> FlowCounters {
        self.counters
    }
}
