//! Datagrams: what a traffic generator makes, sent when it says so.

use super::FlowCounters;
use crate::link::Tally;
use crate::network::{Address, Agent, Body, Context, Packet, Peer};
use crate::traffic::{Emission, Kind, Source};
use anabranch_base::Instant;
use std::collections::BTreeMap;

/// A header of TCP is so many bytes longer than one of UDP.
const STREAM_MORE: u32 = 12;

/// Gaps that a sink remembers.
const MOST_GAPS: usize = 65_536;

/// Sends a generator's traffic as datagrams, as UDP does. What counts as [a stream's](Kind::Stream) leaves at once all
/// the same, with headers of TCP's length.
///
/// The generator needs a clock of its own: one that emits whenever it is asked, such as
/// [`Bulk`](crate::traffic::Bulk), never lets the time go on.
pub struct DatagramSource {
    source: Address,
    peer: Peer,
    traffic: Box<dyn Source>,
    header: u32,
    largest: u32,
    next: Option<Emission>,
    sent: Tally,
}

impl DatagramSource {
    /// Sends from `source` to `peer`. An emission of more than 1,472 bytes leaves as several datagrams, and each
    /// carries 28 bytes of headers (IPv4 and UDP).
    pub fn new(source: Address, peer: Peer, traffic: Box<dyn Source>) -> Self {
        DatagramSource { source, peer, traffic, header: 28, largest: 1_472, next: None, sent: Tally::default() }
    }

    /// With `header` bytes of headers on each datagram and at most `largest` bytes of payload. ns-2's UDP agent adds
    /// no header.
    #[must_use]
    pub fn with_sizes(mut self, header: u32, largest: u32) -> Self {
        (self.header, self.largest) = (header, largest.max(1));
        self
    }

    /// Datagrams sent, in bytes of payload.
    pub fn sent(&self) -> Tally {
        self.sent
    }

    fn emit<X>(&mut self, cx: &mut Context<'_, X>, emission: Emission) {
        let mut bytes = emission.size;
        let header = self.header + if emission.kind == Kind::Stream { STREAM_MORE } else { 0 };
        while bytes > 0 {
            let payload = bytes.min(u64::from(self.largest)) as u32;
            bytes -= u64::from(payload);
            let body = Body::Datagram { number: self.sent.packets, sent: cx.now(), header };
            self.sent.add(payload);
            cx.send(Packet::new(self.source, self.peer, payload + header, body));
        }
    }
}

impl<X: 'static> Agent<X> for DatagramSource {
    fn start(&mut self, cx: &mut Context<'_, X>) {
        self.next = self.traffic.next(cx.now());
        self.timeout(cx);
    }

    fn receive(&mut self, _: &mut Context<'_, X>, _: &mut Packet<X>) {}

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        if let Some(emission) = self.next.filter(|e| e.at <= cx.now()) {
            self.emit(cx, emission);
            self.next = self.traffic.next(cx.now());
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        Some(self.next?.at)
    }
}

/// Counts the datagrams of one source that reach it.
#[derive(Clone, Debug, Default)]
pub struct DatagramSink {
    /// One past the highest number that came.
    next: u64,
    /// Numbers below it that have not come: the first of each gap, and one past its last. Of many the latest; what
    /// comes so late that its gap is forgotten counts as a copy.
    gaps: BTreeMap<u64, u64>,
    missing: u64,
    late: u64,
    counters: FlowCounters,
}

impl DatagramSink {
    /// Nothing has come.
    pub fn new() -> Self {
        DatagramSink::default()
    }

    /// What came. A datagram that arrives twice is a duplicate the second time.
    pub fn counters(&self) -> FlowCounters {
        self.counters
    }

    /// Notes that `number` came; says whether for the first time.
    fn note(&mut self, number: u64) -> bool {
        if number >= self.next {
            if number > self.next {
                self.gaps.insert(self.next, number);
                if self.gaps.len() > MOST_GAPS {
                    self.gaps.pop_first();
                }
                self.missing += number - self.next;
            }
            self.next = number + 1;
            return true;
        }
        let Some((&first, &end)) = self.gaps.range(..=number).next_back().filter(|(_, end)| number < **end) else {
            return false;
        };
        self.gaps.remove(&first);
        // What is left of the gap on either side.
        for (first, end) in [(first, number), (number + 1, end)] {
            if first < end {
                self.gaps.insert(first, end);
            }
        }
        self.missing -= 1;
        self.late += 1;
        true
    }

    /// Datagrams that came after one sent later.
    pub fn overtaken(&self) -> u64 {
        self.late
    }

    /// Datagrams that have not come though one sent later has: lost, unless they are only late.
    pub fn missing(&self) -> u64 {
        self.missing
    }
}

impl<X: 'static> Agent<X> for DatagramSink {
    fn start(&mut self, _: &mut Context<'_, X>) {}

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        if let Body::Datagram { number, sent, header } = packet.body {
            let new = self.note(number);
            self.counters.count(cx.now(), sent, packet.size.saturating_sub(header), !new);
        }
    }

    fn timeout(&mut self, _: &mut Context<'_, X>) {}

    fn next_timeout(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ones_fill_gaps_and_copies_do_not() {
        let mut sink = DatagramSink::new();
        let come = [2, 2, 7, 4, 4, 0, 3, 7, 0, 8, 6];
        let new = come.map(|n| sink.note(n));
        assert_eq!(new, [true, false, true, true, false, true, true, false, false, true, true]);
        // 1 and 5 are missing.
        assert_eq!((sink.missing(), sink.overtaken(), &sink.gaps), (2, 4, &BTreeMap::from([(1, 2), (5, 6)])));
        // Each other one is lost: what is remembered has an end, what is missing has none.
        (5..105_000).for_each(|n| assert!(sink.note(2 * n)));
        assert_eq!((sink.gaps.len(), sink.missing()), (MOST_GAPS, 2 + 104_995));
        assert_eq!((sink.note(1), sink.note(209_997)), (false, true));
    }
}
