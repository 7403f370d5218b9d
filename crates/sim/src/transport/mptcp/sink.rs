//! The receiving end of Multipath TCP on a host.

use super::{Assembly, MptcpAck, MptcpConfig, MptcpData, MptcpParcel, MptcpSegment, Unit};
use crate::network::{Address, Agent, Body, Context, Packet, Peer};
use crate::transport::FlowCounters;
use crate::transport::tcp::Receiver;
use anabranch_base::Instant;

/// Receives what a [`MptcpSource`](super::MptcpSource) sends.
pub struct MptcpSink {
    config: MptcpConfig,
    flows: Vec<Flow>,
    assembly: Assembly,
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
        let (assembly, counters) = (Assembly::new(config.receive_buffer), FlowCounters::default());
        MptcpSink { config, flows: Vec::new(), assembly, counters, arrived: Vec::new() }
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

    /// What came for the first time with the latest packet.
    pub fn arrived(&self) -> &[Unit] {
        &self.arrived
    }

    /// Takes what a packet carries; says whether it filled a hole in the data.
    fn take(&mut self, now: Instant, data: &MptcpData) -> bool {
        let (segment, c) = (&data.segment, &data.content);
        let before = self.assembly.delivered();
        let new = self.assembly.take(c.number, segment.bytes, c.value, c.last);
        self.counters.count(now, segment.sent, segment.bytes, !new);
        if new {
            self.arrived.push(Unit { number: c.number, bytes: segment.bytes, sent: segment.sent });
        }
        self.assembly.delivered() - before > u64::from(segment.bytes)
    }

    fn acknowledge<X>(&self, cx: &mut Context<'_, X>, flow: usize) {
        let Some((f, (source, peer))) = self.flows.get(flow).and_then(|f| Some((f, f.back?))) else { return };
        let segment = f.receiver.acknowledgement(flow as u32);
        let size = self.config.tcp.header + 8 * segment.block_count();
        let ack = MptcpAck { segment, next: self.assembly.next(), edge: self.assembly.edge() };
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
