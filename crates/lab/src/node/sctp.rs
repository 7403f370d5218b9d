//! One end of one association as an agent.

mod link_reports;
mod noting;
mod outcome;

use super::addresses::{ip, simulated, socket};
use super::application::{Application, Reader};
use super::encoder::Dial;
use super::headers::data_chunks;
use super::packet::SctpPacket;
use super::pairs::Pairs;
use super::totals::Totals;
use super::users::Users;
use crate::metrics::{Detail, SharedRecord, Wanted};
use crate::trace::Probe;
use anabranch_base::{Instant, RandomStream, earlier};
use anabranch_engine::{
    AssocConfig, AssocId, Association, CloseReason, ConnectError, Endpoint, EndpointConfig, Event, ListedAddress,
    LocalId, Transmit,
};
use anabranch_policy::view::FrameErrors;
use anabranch_sim::damage::flip;
use anabranch_sim::network::{Address, Agent, AgentId, Body, Context, Ecn, Packet, Peer};
use anabranch_wire::{self as wire, PacketSlices, Verify};
use link_reports::LinkReports;
pub(crate) use link_reports::frame_errors;

/// SCTP port of all agents.
const PORT: u16 = 5_001;

/// Which end of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Begins it when it starts.
    Client,
    /// Waits for it.
    Server,
}

/// Configuration of an agent.
#[derive(Clone, Debug)]
pub struct SctpConfig {
    /// End of the association.
    pub end: End,
    /// The association.
    pub association: AssocConfig,
    /// The paths.
    pub pairs: Pairs,
    /// The agent at the other end.
    pub peer: AgentId,
    /// Bytes in front of each SCTP packet: 20 for IPv4, 28 with UDP encapsulation.
    pub overhead: u32,
    /// Seed of tags, cookies and nonces.
    pub seed: u64,
    /// Name of the flow: its random streams follow it.
    pub flow: String,
}

/// One end of one association.
pub struct SctpAgent {
    config: SctpConfig,
    endpoint: Option<Endpoint>,
    id: Option<AssocId>,
    interfaces: Vec<Address>,
    dial: Option<Dial>,
    reader: Reader,
    record: SharedRecord,
    users: Users,
    /// What the record keeps.
    wanted: Wanted,
    transmit: Transmit,
    /// Bytes in the receive buffer, and gaps in what came.
    held: u64,
    gaps: usize,
    connected: Option<Instant>,
    closed: Option<CloseReason>,
    /// What the association had counted when it ended.
    last: Option<Totals>,
    refused: Option<ConnectError>,
    probe: Option<Probe>,
    reports: Vec<(Address, FrameErrors)>,
    link_reports: LinkReports,
    /// Packets that left.
    sent: u32,
    /// Damaged packets that came and were not taken.
    rejected: u64,
}

impl SctpAgent {
    /// An agent that only answers, and reads at once. What it sees goes to `record`.
    pub fn new(config: SctpConfig, record: SharedRecord) -> Self {
        let interfaces = config.pairs.clients();
        let wanted = record.borrow().wanted();
        SctpAgent {
            config,
            endpoint: None,
            id: None,
            interfaces,
            dial: None,
            reader: Reader::at_once(),
            users: Users::new(record.clone()),
            record,
            wanted,
            transmit: Transmit::default(),
            held: 0,
            gaps: 0,
            connected: None,
            closed: None,
            last: None,
            refused: None,
            probe: None,
            reports: Vec::new(),
            link_reports: LinkReports::default(),
            sent: 0,
            rejected: 0,
        }
    }

    /// This agent with what the link layer of its addresses reports when the association begins, and never again.
    #[must_use]
    pub fn with_reports(mut self, reports: Vec<(Address, FrameErrors)>) -> Self {
        self.reports = reports;
        self
    }

    /// This agent with something to send.
    #[must_use]
    pub fn sending(mut self, application: Application) -> Self {
        self.users.sending(application);
        self
    }

    /// Another flow on this association; who sends it needs its application as well. What is seen of its messages goes to
    /// `record`.
    pub fn share(&mut self, application: Option<Application>, record: SharedRecord) {
        let in_order = record.borrow().wanted().in_order;
        self.wanted.in_order = self.wanted.in_order.max(in_order);
        self.users.share(application, record);
    }

    /// This agent with an encoder that reads from `dial` what the paths carry.
    #[must_use]
    pub fn telling(mut self, dial: Option<Dial>) -> Self {
        self.dial = dial;
        self
    }

    /// This agent with this reader.
    #[must_use]
    pub fn reading(mut self, reader: Reader) -> Self {
        self.reader = reader;
        self
    }

    /// Its paths.
    pub fn pairs(&self) -> &Pairs {
        &self.config.pairs
    }

    /// Has its association noted by `probe` from now on.
    pub fn watch(&mut self, probe: Probe) {
        self.probe = Some(probe);
    }

    #[inline]
    fn note(&mut self, now: Instant) {
        if self.probe.is_some() {
            self.tell_probe(now);
        }
    }

    #[inline(never)]
    fn tell_probe(&mut self, now: Instant) {
        let (Some(probe), Some(endpoint), Some(id)) = (&mut self.probe, &self.endpoint, self.id) else { return };
        if let Some(a) = endpoint.association(id) {
            probe.noted(now, a);
        }
    }

    fn open(&mut self, now: Instant) {
        let mut association = self.config.association.clone();
        // The paths are the pairs and no others: elsewhere the network may lead nowhere.
        association.limits.max_paths = self.config.pairs.iter().count().max(1);
        if self.config.end == End::Client && self.interfaces.len() > 1 {
            let listed = |(i, a): (usize, &Address)| ListedAddress { local: LocalId(i as u16), ip: ip(*a) };
            association.addresses.listed = self.interfaces.iter().enumerate().map(listed).collect();
        }
        let mut config = EndpointConfig::new(PORT, association.clone());
        config.accept = self.config.end == End::Server;
        let name = format!("{}.{:?}", self.config.flow, self.config.end).to_lowercase();
        let entropy = RandomStream::named(self.config.seed, &name);
        let mut endpoint = Endpoint::new(config, Box::new(entropy), now);
        if self.config.end == End::Client {
            match self.connect(now, &mut endpoint, association) {
                Ok(id) => self.id = Some(id),
                Err(e) => self.refused = Some(e),
            }
        }
        self.endpoint = Some(endpoint);
    }

    fn connect(&self, now: Instant, endpoint: &mut Endpoint, a: AssocConfig) -> Result<AssocId, ConnectError> {
        let local = |a: Address| LocalId(self.interfaces.iter().position(|i| *i == a).unwrap_or(0) as u16);
        let mut pairs = self.config.pairs.iter();
        let (from, to) = pairs.next().unwrap_or((Address(0), Address(0)));
        let id = endpoint.connect(now, a, local(from), socket(to), PORT)?;
        if let Some(mut a) = endpoint.association_mut(id) {
            for (from, to) in pairs {
                a.add_path(now, local(from), socket(to));
            }
            self.reports.iter().for_each(|(from, report)| a.link_report(local(*from), *report));
            if self.wanted.truth || self.probe.is_some() {
                a.note_losses(true);
            }
        }
        Ok(id)
    }

    /// The next time for the association or its user to do something.
    fn next_own_timeout(&self) -> Option<Instant> {
        let endpoint = self.endpoint.as_ref().and_then(Endpoint::poll_timeout);
        earlier(earlier(endpoint, self.users.next_timeout()), self.reader.next_timeout())
    }

    /// Lets the association, its user and its timers do all they can at this moment.
    fn pump(&mut self, cx: &mut Context<'_, SctpPacket>) {
        let now = cx.now();
        self.take_events(now);
        loop {
            self.use_association(now);
            self.transmit(cx);
            // What was sent or given up may have made room for the user.
            if !self.take_events(now) {
                break;
            }
        }
        self.note_losses(now);
        if let (Some(dial), Some(a)) = (&self.dial, self.association()) {
            dial.set(a.usable_rate());
        }
        self.note(now);
    }

    #[inline]
    fn take_events(&mut self, now: Instant) -> bool {
        self.endpoint.as_ref().is_some_and(Endpoint::has_event) && self.take_new_events(now)
    }

    #[inline(never)]
    fn take_new_events(&mut self, now: Instant) -> bool {
        let Some(endpoint) = &mut self.endpoint else { return false };
        let mut any = false;
        while let Some((id, event)) = endpoint.poll_event() {
            any = true;
            match event {
                Event::Connected => {
                    self.id = Some(id);
                    self.connected.get_or_insert(now);
                }
                Event::Writable => self.users.unblock(),
                Event::Closed(why) => {
                    self.closed = Some(why);
                    self.last = endpoint.association(id).map(Totals::of);
                    self.users.end();
                }
                _ => {}
            }
        }
        any
    }

    fn use_association(&mut self, now: Instant) {
        let (Some(endpoint), Some(id)) = (&mut self.endpoint, self.id) else { return };
        let sends = self.users.next_timeout().is_some_and(|t| t <= now);
        let reads = endpoint.association(id).is_some_and(Association::is_readable);
        if !reads {
            self.reader.rest(now);
        }
        if !sends && !reads {
            return;
        }
        if sends && let Some(mut a) = endpoint.association_mut(id) {
            self.users.send(now, &mut a);
        }
        if reads {
            self.reader.read(now, endpoint, id, &self.users);
        }
    }

    fn transmit(&mut self, cx: &mut Context<'_, SctpPacket>) {
        let now = cx.now();
        let sent = self.wanted.packet > Detail::Nothing || self.wanted.in_order > Detail::Nothing;
        let Some(endpoint) = &mut self.endpoint else { return };
        loop {
            if let Some(probe) = &mut self.probe
                && let Some(a) = self.id.and_then(|id| endpoint.association(id))
            {
                probe.asking(now, a);
            }
            if !endpoint.poll_transmit(now, &mut self.transmit) {
                break;
            }
            let t = &mut self.transmit;
            let Some(destination) = simulated(t.remote) else { continue };
            let source = match self.config.end {
                End::Client => self.interfaces.get(usize::from(t.local.0)).copied(),
                End::Server => self.config.pairs.answers(destination),
            };
            let Some(source) = source else { continue };
            if sent && t.packet.payload_len() > 0 {
                for c in data_chunks(t.packet.head_mut()) {
                    self.record.borrow_mut().transmitted(c.tsn, now);
                    if c.begin {
                        self.users.record_of(c.message).borrow_mut().begun(c.message, now);
                    }
                }
            }
            let number = self.sent;
            self.sent = number.wrapping_add(1);
            if self.wanted.repairs
                && self.config.end == End::Client
                && let Some(a) = self.id.and_then(|id| endpoint.association(id))
            {
                noting::departures(&mut self.record.borrow_mut(), a, t, number, now);
            }
            if let Some(probe) = &mut self.probe
                && let Some(a) = self.id.and_then(|id| endpoint.association(id))
            {
                probe.sending(a, data_chunks(t.packet.head_mut()).map(|c| c.tsn));
            }
            let size = t.packet.len() as u32 + self.config.overhead;
            let body = Body::Other(SctpPacket::take(&mut t.packet, number));
            let to = Peer { address: destination, agent: self.config.peer };
            let ecn = if t.may_be_marked { Ecn::Able } else { Ecn::No };
            cx.send(Packet { ecn, ..Packet::new(source, to, size, body) });
        }
    }
}

/// The bytes of a packet with the bits flipped that a link has damaged; none where its headers in front are wrong, since
/// then the host drops it. Bits count from the first of `overhead` bytes in front of it.
fn damaged(packet: &PacketSlices, overhead: u32, flips: &[u32]) -> Option<Vec<u8>> {
    let front = overhead * 8;
    let own: Option<Vec<u32>> = flips.iter().map(|bit| bit.checked_sub(front)).collect();
    let mut bytes = Vec::new();
    packet.write_to(&mut bytes);
    flip(&mut bytes, &own?);
    Some(bytes)
}

impl Agent<SctpPacket> for SctpAgent {
    fn start(&mut self, cx: &mut Context<'_, SctpPacket>) {
        self.open(cx.now());
        if self.refused.is_none() {
            self.users.start(cx.now());
            self.follow_links(cx);
        }
        self.pump(cx);
    }

    fn receive(&mut self, cx: &mut Context<'_, SctpPacket>, packet: &mut Packet<SctpPacket>) {
        let (p, flips) = match &mut packet.body {
            Body::Other(p) => (p, None),
            Body::Damaged(d) => match &mut d.body {
                Body::Other(p) => (p, Some(&d.flips)),
                _ => return,
            },
            _ => return,
        };
        let number = p.number();
        let Some(p) = p.slices_mut() else { return };
        let (now, end) = (cx.now(), self.config.end);
        let local = match end {
            End::Client => self.interfaces.iter().position(|a| *a == packet.destination),
            // The server answers each address from the one it was called at, so one side serves all.
            End::Server => Some(0),
        };
        let (Some(endpoint), Some(local)) = (&mut self.endpoint, local) else { return };
        if packet.ecn == Ecn::Marked {
            endpoint.next_is_marked();
        }
        if let Some(flips) = flips {
            // Only now are there bytes that can be wrong. The engine's own test is the one that a host would make.
            let bytes = damaged(p, self.config.overhead, flips);
            let taken = bytes.as_deref().is_some_and(|b| wire::Packet::parse(b, Verify::Checksum).is_ok());
            self.rejected += u64::from(!taken);
            if let Some(bytes) = bytes {
                endpoint.handle_borrowed(now, LocalId(local as u16), socket(packet.source), &bytes, Verify::Checksum);
                self.note(now);
                self.pump(cx);
            }
            return;
        }
        endpoint.handle_slices(now, LocalId(local as u16), socket(packet.source), p);
        self.note(now);
        self.note_arrival(now, packet.source, number, p);
        self.pump(cx);
        if self.wanted.held
            && let Some(held) = self.association().map(Association::held_for_reading)
        {
            self.note_held(held, now);
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, SctpPacket>) {
        let now = cx.now();
        let all_that_is_due = self.report_frames(cx) && self.next_own_timeout().is_none_or(|t| t > now);
        if all_that_is_due {
            return;
        }
        if let Some(e) = self.endpoint.as_mut().filter(|e| e.poll_timeout().is_some_and(|t| t <= now)) {
            e.handle_timeout(now);
        }
        self.note(now);
        self.pump(cx);
    }

    fn next_timeout(&self) -> Option<Instant> {
        earlier(self.next_own_timeout(), self.link_reports.next())
    }
}
