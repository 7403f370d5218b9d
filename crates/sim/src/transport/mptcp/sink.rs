//! The receiving end of Multipath TCP on a host.

use super::coded::Decoding;
use super::{Assembly, Coding, Content, MptcpAck, MptcpConfig, MptcpData, MptcpParcel, MptcpSegment, Ranks, Unit};
use crate::network::{Address, Agent, Body, Context, Packet, Peer};
use crate::transport::FlowCounters;
use crate::transport::tcp::Receiver;
use anabranch_base::Instant;

/// Receives what a [`MptcpSource`](super::MptcpSource) sends.
pub struct MptcpSink {
    config: MptcpConfig,
    flows: Vec<Flow>,
    assembly: Assembly,
    /// Of a coded transport.
    decoding: Option<Box<Decoding>>,
    counters: FlowCounters,
    /// What came for the first time with the latest packet.
    arrived: Vec<Unit>,
}

/// The receiving end of a subflow.
struct Flow {
    receiver: Receiver,
    /// Where acknowledgements go, and from which address.
    back: Option<(Address, Peer)>,
}

/// The most subflows.
const MOST_FLOWS: usize = 64;

impl MptcpSink {
    /// Receives what a source of the same configuration sends.
    pub fn new(config: MptcpConfig) -> Self {
        let assembly = Assembly::new(config.receive_buffer);
        let (assembly, decoding) = match config.coding {
            Coding::Plain => (assembly, None),
            Coding::Fmtcp(f) => (assembly, Some(Decoding::new(f.block, false))),
            Coding::Nc(n) => (assembly.keeping(usize::from(n.generation)), Some(Decoding::new(n.generation, true))),
        };
        let (counters, decoding) = (FlowCounters::default(), decoding.map(Box::new));
        MptcpSink { config, flows: Vec::new(), assembly, decoding, counters, arrived: Vec::new() }
    }

    /// Bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.assembly.delivered()
    }

    /// The connection's data.
    pub fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    /// What came of the connection's data, by segments; what two subflows have brought, or one twice, came again.
    pub fn counters(&self) -> FlowCounters {
        self.counters
    }

    /// What came on each subflow.
    pub fn subflows(&self) -> impl ExactSizeIterator<Item = &Receiver> {
        self.flows.iter().map(|f| &f.receiver)
    }

    /// Sums that came, and those of them that said something new.
    pub fn sums(&self) -> (u64, u64) {
        self.decoding.as_ref().map_or((0, 0), |d| (d.came, d.useful))
    }

    /// Bytes that wait for others: segments that are not in order, and sums that are not solved.
    pub fn held(&self) -> u64 {
        let of_sum = match self.config.coding {
            Coding::Fmtcp(f) => f.symbol,
            _ => self.config.tcp.segment,
        };
        self.assembly.held() + self.decoding.as_ref().map_or(0, |d| d.waiting() * u64::from(of_sum))
    }

    /// What came for the first time with the latest packet.
    pub fn arrived(&self) -> &[Unit] {
        &self.arrived
    }

    /// Takes what a packet carries; says whether it filled a hole in the data.
    fn take(&mut self, now: Instant, data: &MptcpData) -> bool {
        let segment = &data.segment;
        let before = self.assembly.delivered();
        let new = match &data.content {
            Content::Nothing => return false,
            Content::Plain(c) => {
                let new = self.assembly.take(c.number, segment.bytes, c.value, c.last);
                let unit = Unit { number: c.number, bytes: segment.bytes, sent: segment.sent };
                self.arrived.extend(new.then_some(unit));
                if let Some(decoding) = self.decoding.as_deref_mut().filter(|_| new) {
                    decoding.original(&unit, c.value, &mut self.assembly, &mut self.arrived);
                }
                new
            }
            Content::Coded(c) => match &mut self.decoding {
                Some(decoding) => decoding.take(c, segment.sent, &mut self.assembly, &mut self.arrived),
                None => false,
            },
        };
        self.counters.count(now, segment.sent, segment.bytes, !new);
        self.assembly.delivered() - before > u64::from(segment.bytes)
    }

    fn acknowledge<X>(&self, cx: &mut Context<'_, X>, flow: usize) {
        let Some((f, (source, peer))) = self.flows.get(flow).and_then(|f| Some((f, f.back?))) else { return };
        let segment = f.receiver.acknowledgement(flow as u32);
        let size = self.config.tcp.header + 8 * segment.block_count();
        let ranks = self.decoding.as_ref().map_or(Ranks::default(), |d| d.ranks());
        let ack = MptcpAck { segment, next: self.assembly.next(), edge: self.assembly.edge(), ranks };
        cx.send(Packet::new(source, peer, size, Body::Mptcp(MptcpParcel::of(MptcpSegment::Ack(ack)))));
    }
}

impl<X: 'static> Agent<X> for MptcpSink {
    fn start(&mut self, _: &mut Context<'_, X>) {}

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        self.arrived.clear();
        let Body::Mptcp(parcel) = &packet.body else { return };
        let Some(MptcpSegment::Data(data)) = parcel.segment() else { return };
        let (data, number) = (*data, data.segment.flow as usize);
        if number >= MOST_FLOWS {
            return;
        }
        while self.flows.len() <= number {
            self.flows.push(Flow { receiver: Receiver::new(&self.config.tcp), back: None });
        }
        // The data first, so that the acknowledgement is of them.
        let filled = data.segment.number > 0 && self.take(cx.now(), &data);
        let Some(flow) = self.flows.get_mut(number) else { return };
        flow.back = Some((packet.destination, Peer { address: packet.source, agent: packet.from }));
        let due = flow.receiver.receive(cx.now(), &data.segment);
        if due || filled {
            // A window that another subflow may wait for is not held back.
            flow.receiver.acknowledges_early();
            self.acknowledge(cx, number);
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        for number in 0..self.flows.len() {
            if self.flows.get_mut(number).is_some_and(|f| f.receiver.timeout(cx.now())) {
                self.acknowledge(cx, number);
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.flows.iter().filter_map(|f| f.receiver.next_timeout()).min()
    }
}
