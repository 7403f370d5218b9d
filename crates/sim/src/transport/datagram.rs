//! Datagrams: what a traffic generator makes, sent when it says so.

use super::FlowCounters;
use crate::link::Tally;
use crate::network::{Address, Agent, Body, Context, Packet, Peer};
use crate::traffic::{Emission, Kind, Source};
use anabranch_base::Instant;

/// A header of TCP is so many bytes longer than one of UDP.
const STREAM_MORE: u32 = 12;

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

/// Counts the datagrams that reach it.
#[derive(Clone, Debug, Default)]
pub struct DatagramSink {
    highest: Option<u64>,
    counters: FlowCounters,
    late: u64,
    missing: u64,
}

impl DatagramSink {
    /// Nothing has come.
    pub fn new() -> Self {
        DatagramSink::default()
    }

    /// What came. A datagram that arrives twice counts twice.
    pub fn counters(&self) -> FlowCounters {
        self.counters
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
            let next = self.highest.map_or(0, |h| h + 1);
            self.late += u64::from(number + 1 < next);
            // The latest one that comes twice is a copy made on the way, and fills no gap.
            match number.checked_sub(next) {
                Some(between) => self.missing += between,
                None if number + 1 < next => self.missing = self.missing.saturating_sub(1),
                None => {}
            }
            self.highest = self.highest.max(Some(number));
            self.counters.count(cx.now(), sent, packet.size.saturating_sub(header), false);
        }
    }

    fn timeout(&mut self, _: &mut Context<'_, X>) {}

    fn next_timeout(&self) -> Option<Instant> {
        None
    }
}
