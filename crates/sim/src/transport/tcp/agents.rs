//! TCP on a host.

use super::{AckSegment, DataSegment, Receiver, Segment, Sender, SenderCounters, Supply, TcpConfig};
use crate::network::{Address, Agent, Body, Context, Packet, Peer};
use crate::traffic::{Emission, Kind, Source};
use crate::transport::FlowCounters;
use anabranch_base::{Duration, Instant, RandomStream};
use std::collections::BTreeMap;

/// Where segments go.
#[derive(Clone, Copy, Debug)]
struct Way {
    source: Address,
    peer: Peer,
    header: u32,
}

impl Way {
    fn send<X>(self, cx: &mut Context<'_, X>, data: DataSegment) {
        cx.send(Packet::new(self.source, self.peer, self.header + data.bytes, Body::Tcp(Segment::Data(data))));
    }
}

/// Where in a tick a connection's clock begins.
fn phase(config: &TcpConfig, random: &mut RandomStream) -> Duration {
    Duration::from_nanos(random.below(config.rto.tick.as_nanos().max(1)))
}

/// Called with a connection after each of its steps.
pub type Watch = Box<dyn FnMut(Instant, &Sender)>;

/// Sends one connection to a [`TcpSink`].
pub struct TcpSource {
    way: Way,
    sender: Sender,
    watch: Option<Watch>,
}

impl TcpSource {
    /// Sends `supply` from `source` to the sink `peer`. `random` gives the phase of the sender's clock.
    pub fn new(config: TcpConfig, source: Address, peer: Peer, supply: Supply, random: &mut RandomStream) -> Self {
        let way = Way { source, peer, header: config.header };
        TcpSource { way, sender: Sender::new(config, 0, supply, phase(&config, random)), watch: None }
    }

    /// Calls `watch` after each step of the connection from now on, before what it sends has left.
    pub fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    #[inline]
    fn tell(&mut self, now: Instant) {
        if let Some(watch) = &mut self.watch {
            watch(now, &self.sender);
        }
    }

    /// The connection.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }
}

impl<X: 'static> Agent<X> for TcpSource {
    fn start(&mut self, cx: &mut Context<'_, X>) {
        let (way, now) = (self.way, cx.now());
        self.sender.start(now, &mut |data| way.send(cx, data));
        self.tell(now);
    }

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        if let Body::Tcp(Segment::Ack(ack)) = &packet.body {
            let (way, now) = (self.way, cx.now());
            self.sender.acknowledge(now, ack, &mut |data| way.send(cx, data));
            self.tell(now);
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        let (way, now) = (self.way, cx.now());
        self.sender.timeout(now, &mut |data| way.send(cx, data));
        self.tell(now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.sender.next_timeout()
    }
}

/// A finished transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Which client asked for it.
    pub client: u32,
    /// Bytes of the transfer.
    pub bytes: u64,
    /// When it was asked for.
    pub began: Instant,
    /// When the last acknowledgement arrived.
    pub ended: Instant,
}

/// Sends each transfer of a generator over a connection of its own, as web servers do.
pub struct TcpTransfers {
    config: TcpConfig,
    way: Way,
    traffic: Box<dyn Source>,
    random: RandomStream,
    next: Option<Emission>,
    begun: u32,
    open: BTreeMap<u32, (Sender, Transfer)>,
    finished: Vec<Transfer>,
    /// Of the senders of those that are done.
    closed: SenderCounters,
}

impl TcpTransfers {
    /// Sends what `traffic` asks for from `source` to the sink `peer`: an emission is a transfer, whatever its kind.
    pub fn new(config: TcpConfig, source: Address, peer: Peer, traffic: Box<dyn Source>, random: RandomStream) -> Self {
        let way = Way { source, peer, header: config.header };
        let (open, finished, closed) = (BTreeMap::new(), Vec::new(), SenderCounters::default());
        TcpTransfers { config, way, traffic, random, next: None, begun: 0, open, finished, closed }
    }

    /// Transfers that are done, in the order of their ends.
    pub fn finished(&self) -> &[Transfer] {
        &self.finished
    }

    /// What the senders of all transfers did.
    pub fn counters(&self) -> SenderCounters {
        self.open.values().fold(self.closed, |sum, (sender, _)| sum.plus(sender.counters()))
    }

    /// How many are not done.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    fn begin<X>(&mut self, cx: &mut Context<'_, X>, emission: Emission) {
        let (way, now, flow) = (self.way, cx.now(), self.begun);
        self.begun += 1;
        let client = if let Kind::Transfer { client } = emission.kind { client } else { 0 };
        let transfer = Transfer { client, bytes: emission.size, began: now, ended: now };
        let phase = phase(&self.config, &mut self.random);
        let mut sender = Sender::new(self.config, flow, Supply::Finite(emission.size), phase);
        sender.start(now, &mut |data| way.send(cx, data));
        self.open.insert(flow, (sender, transfer));
    }
}

impl<X: 'static> Agent<X> for TcpTransfers {
    fn start(&mut self, cx: &mut Context<'_, X>) {
        self.next = self.traffic.next(cx.now());
        self.timeout(cx);
    }

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        let Body::Tcp(Segment::Ack(ack)) = &packet.body else { return };
        let (way, now) = (self.way, cx.now());
        let Some((sender, transfer)) = self.open.get_mut(&ack.flow) else { return };
        sender.acknowledge(now, ack, &mut |data| way.send(cx, data));
        if let Some(ended) = sender.done() {
            self.finished.push(Transfer { ended, ..*transfer });
            self.closed = self.closed.plus(sender.counters());
            self.open.remove(&ack.flow);
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        let (way, now) = (self.way, cx.now());
        for (sender, _) in self.open.values_mut().filter(|(s, _)| s.next_timeout().is_some_and(|t| t <= now)) {
            sender.timeout(now, &mut |data| way.send(cx, data));
        }
        if let Some(emission) = self.next.filter(|e| e.at <= now) {
            self.begin(cx, emission);
            self.traffic.advance(now, &mut self.next);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let transfers = self.open.values().filter_map(|(s, _)| s.next_timeout());
        transfers.chain(self.next.map(|e| e.at)).min()
    }
}

/// Receives the connections of one [`TcpSource`] or [`TcpTransfers`].
pub struct TcpSink {
    config: TcpConfig,
    /// Flow 0, the only one of most sinks.
    first: Flow,
    others: BTreeMap<u32, Flow>,
    /// Of connections that are complete and gone.
    closed: (u64, FlowCounters),
    /// Was the latest segment none that had come before?
    fresh: bool,
}

struct Flow {
    receiver: Receiver,
    /// Where acknowledgements go, and from which address.
    back: Option<(Address, Peer)>,
}

impl Flow {
    fn acknowledge<X>(&self, cx: &mut Context<'_, X>, flow: u32, header: u32) {
        if let Some((source, peer)) = self.back {
            let ack = self.receiver.acknowledgement(flow);
            let size = header + 8 * ack.block_count();
            cx.send(Packet::new(source, peer, size, Body::Tcp(Segment::Ack(ack))));
        }
    }
}

impl TcpSink {
    /// Receives what a source of the same configuration sends.
    pub fn new(config: TcpConfig) -> Self {
        let first = Flow { receiver: Receiver::new(&config), back: None };
        TcpSink { config, first, others: BTreeMap::new(), closed: Default::default(), fresh: false }
    }

    /// Bytes delivered in order, over all connections.
    pub fn delivered(&self) -> u64 {
        if self.others.is_empty() {
            return self.first.receiver.delivered() + self.closed.0;
        }
        self.flows().map(|f| f.receiver.delivered()).sum::<u64>() + self.closed.0
    }

    /// Has everything of connection `flow`, which has begun, been delivered?
    pub fn is_complete(&self, flow: u32) -> bool {
        let of = if flow == 0 { Some(&self.first) } else { self.others.get(&flow) };
        of.is_none_or(|f| f.receiver.is_complete())
    }

    /// What came, over all connections.
    pub fn counters(&self) -> FlowCounters {
        self.flows().fold(self.closed.1, |sum, f| sum.plus(&f.receiver.counters()))
    }

    /// Was the latest segment, of whatever connection, none that had come before?
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// The receiver of the first connection.
    pub fn receiver(&self) -> &Receiver {
        &self.first.receiver
    }

    fn flows(&self) -> impl Iterator<Item = &Flow> {
        core::iter::once(&self.first).chain(self.others.values())
    }

    /// A segment of a connection that is gone comes again: everything was received.
    fn answer_closed<X>(&mut self, cx: &mut Context<'_, X>, packet: &Packet<X>, data: &DataSegment) {
        self.closed.1.duplicates.add(data.bytes);
        self.fresh = false;
        let peer = Peer { address: packet.source, agent: packet.from };
        let ack = AckSegment { flow: data.flow, next: u64::MAX, blocks: Default::default() };
        cx.send(Packet::new(packet.destination, peer, self.config.header, Body::Tcp(Segment::Ack(ack))));
    }
}

impl<X: 'static> Agent<X> for TcpSink {
    fn start(&mut self, _: &mut Context<'_, X>) {}

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        let Body::Tcp(Segment::Data(data)) = &packet.body else { return };
        let header = self.config.header;
        let flow = if data.flow == 0 {
            &mut self.first
        } else {
            if data.number > 0 && !self.others.contains_key(&data.flow) {
                self.answer_closed(cx, packet, data);
                return;
            }
            let new = || Flow { receiver: Receiver::new(&self.config), back: None };
            self.others.entry(data.flow).or_insert_with(new)
        };
        flow.back = Some((packet.destination, Peer { address: packet.source, agent: packet.from }));
        if flow.receiver.receive(cx.now(), data) {
            flow.acknowledge(cx, data.flow, header);
        }
        self.fresh = flow.receiver.is_fresh();
        if data.flow != 0
            && flow.receiver.is_complete()
            && flow.receiver.next_timeout().is_none()
            && let Some(gone) = self.others.remove(&data.flow)
        {
            self.closed.0 += gone.receiver.delivered();
            self.closed.1 = self.closed.1.plus(&gone.receiver.counters());
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        let header = self.config.header;
        let others = self.others.iter_mut().map(|(id, f)| (*id, f));
        for (id, flow) in core::iter::once((0, &mut self.first)).chain(others) {
            if flow.receiver.timeout(cx.now()) {
                flow.acknowledge(cx, id, header);
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        if self.others.is_empty() {
            return self.first.receiver.next_timeout();
        }
        self.flows().filter_map(|f| f.receiver.next_timeout()).min()
    }
}
