//! A network of hosts and routers in virtual time.
//!
//! [`Topology`] says what there is, [`Network`] runs it: agents on hosts hand in packets, links carry them, routers
//! pass them on by the shortest way. A host has one address per cable; a packet leaves by the cable of its source
//! address, so a host with several cables has several paths.

mod agent;
mod ahead;
mod observer;
mod packet;
mod processing;
mod routes;
mod wakes;

pub use agent::{Agent, Context, Peer};
pub use observer::{Event, Observer, Place, What};
pub use packet::{Body, Damaged, Ecn, Packet, Parcel};

use crate::Direction;
use crate::link::{Link, Put};
pub use crate::topology::TopologyError;
use crate::topology::{CableId, NodeId, Role, Topology};
use anabranch_base::Instant;
use core::any::Any;
use processing::Processing;
use routes::{Routes, Row};
use std::collections::BTreeSet;
use wakes::Wakes;

/// A host's end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub u32);

/// An agent in a [`Network`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AgentId(pub u32);

/// One direction of a cable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The link of this cable in this direction.
    pub const fn of(cable: CableId, direction: Direction) -> Self {
        LinkId(cable.0 * 2 + matches!(direction, Direction::Backward) as u32)
    }

    /// The cable it is one direction of.
    pub const fn cable(self) -> CableId {
        CableId(self.0 / 2)
    }
}

/// Hosts, routers, links and agents, running.
pub struct Network<X> {
    links: Vec<Line<X>>,
    roles: Vec<Role>,
    routes: Routes,
    agents: Vec<Slot<X>>,
    events: Wakes,
    now: Instant,
    sent: u64,
    out: Vec<Parcel<X>>,
    /// Boxes without a packet.
    spare: Vec<Parcel<X>>,
    names: Vec<String>,
    observers: Vec<Box<dyn Observer<X>>>,
}

/// Aligned to the lines of a cache: with many links, fetching them is what a packet costs.
#[repr(align(64))]
struct Line<X> {
    /// The wake-up that is in the queue.
    wake: Instant,
    /// The node it leads to.
    to: NodeId,
    /// What that node does with packets.
    end: End,
    link: Link<Parcel<X>>,
}

/// Where a link leads to.
#[derive(Clone, Copy)]
enum End {
    /// A router, with its way out for every address.
    Router(Row),
    /// A host, by the cable of this address.
    Host(Address),
}

struct Slot<X> {
    agent: Box<dyn Agent<X>>,
    started: bool,
    /// Damaged packets for it that were dropped.
    rejected: u64,
    /// The wake-up that is in the queue.
    wake: Instant,
    /// What its host does before packets leave; they leave at once without.
    processing: Option<Box<Processing<X>>>,
}

/// What to look at, as a number: links are even, agents odd.
enum Wake {
    Link(LinkId),
    Agent(AgentId),
}

impl Wake {
    #[inline]
    fn number(self) -> u32 {
        match self {
            Wake::Link(id) => id.0 << 1,
            Wake::Agent(id) => id.0 << 1 | 1,
        }
    }

    #[inline]
    fn of(number: u32) -> Self {
        if number & 1 == 0 { Wake::Link(LinkId(number >> 1)) } else { Wake::Agent(AgentId(number >> 1)) }
    }
}

impl<X: Clone + Send + 'static> Network<X> {
    /// A network over `topology`; its links draw from `seed`, each by its own name.
    ///
    /// # Errors
    /// [`TopologyError`] names the part that is wrong.
    pub fn new(topology: &Topology, seed: u64) -> Result<Self, TopologyError> {
        topology.check()?;
        let routes = Routes::new(topology);
        let (mut links, mut terms) = (Vec::new(), BTreeSet::new());
        for c in &topology.cables {
            for (to, way, config) in [(c.b, "forward", &c.forward), (c.a, "backward", &c.backward)] {
                let mut link = Link::new(&format!("{}.{way}", c.name), seed, config.clone());
                link.keep_dropped();
                link.set_mark(Parcel::mark);
                link.set_flip(Parcel::flip);
                link.share_terms(&mut terms);
                let end = routes.row(to).map_or(End::Host(Address(u32::MAX)), End::Router);
                links.push(Line { wake: Instant::FAR, to, end, link });
            }
        }
        for (address, out) in routes.ways_out() {
            links[LinkId(out.0 ^ 1).0 as usize].end = End::Host(address);
        }
        Ok(Network {
            links,
            roles: topology.nodes.iter().map(|n| n.role).collect(),
            routes,
            agents: Vec::new(),
            events: Wakes::new(),
            now: Instant::ZERO,
            sent: 0,
            out: Vec::new(),
            spare: Vec::new(),
            names: topology.nodes.iter().map(|n| n.name.clone()).collect(),
            observers: Vec::new(),
        })
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.names.iter().position(|n| n == name).map(|i| NodeId(i as u32))
    }

    /// The addresses of a host, in the order of its cables.
    pub fn addresses(&self, node: NodeId) -> &[Address] {
        self.routes.addresses(node)
    }

    /// Does a packet that leaves from `from` find a way to `to`?
    pub fn reaches(&self, from: Address, to: Address) -> bool {
        self.way(from, to).is_some()
    }

    /// The links that lead a packet from `from` to `to`; none when there is no way.
    pub fn way(&self, from: Address, to: Address) -> Option<Vec<LinkId>> {
        let (target, mut way) = (self.routes.host(to)?, Vec::new());
        let mut link = self.routes.first(from)?;
        // A way visits no node twice.
        for _ in 0..=self.roles.len() {
            way.push(link);
            let at = self.links.get(link.0 as usize)?.to;
            if self.roles.get(at.0 as usize) == Some(&Role::Host) {
                return (at == target).then_some(way);
            }
            link = self.routes.next(at, to)?;
        }
        None
    }

    /// Puts an agent on the network; it starts at `start`. Its id is [`next_id`](Self::next_id) from before the call.
    pub fn add(&mut self, agent: Box<dyn Agent<X>>, start: Instant) -> AgentId {
        let (id, start) = (self.next_id(), start.max(self.now));
        self.agents.push(Slot { agent, started: false, rejected: 0, wake: start, processing: None });
        self.events.push(start, Wake::Agent(id).number());
        id
    }

    /// The id of the agent that is added next: ids count agents from 0, so two agents can know each other before
    /// either exists.
    pub fn next_id(&self) -> AgentId {
        AgentId(self.agents.len() as u32)
    }

    /// The agent, as what it is.
    pub fn agent<A: Agent<X>>(&self, id: AgentId) -> Option<&A> {
        (self.agents.get(id.0 as usize)?.agent.as_ref() as &dyn Any).downcast_ref()
    }

    /// The agent, as what it is. What is done to it takes effect when it is called next.
    pub fn agent_mut<A: Agent<X>>(&mut self, id: AgentId) -> Option<&mut A> {
        (self.agents.get_mut(id.0 as usize)?.agent.as_mut() as &mut dyn Any).downcast_mut()
    }

    /// A link. Between two events it may lag behind [`now`](Self::now): [`settle`](Self::settle) brings it there.
    pub fn link(&self, id: LinkId) -> Option<&Link<Parcel<X>>> {
        Some(&self.links.get(id.0 as usize)?.link)
    }

    /// How many links there are: two for each cable.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Damaged packets for an agent of one of this crate's transports that were dropped at its host.
    pub fn rejected(&self, agent: AgentId) -> u64 {
        self.agents.get(agent.0 as usize).map_or(0, |s| s.rejected)
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// From now on shows every packet to `observer`, after those before it. Costs time in proportion to the number of
    /// links.
    pub fn observe(&mut self, observer: Box<dyn Observer<X>>) {
        self.links.iter_mut().for_each(|l| l.link.record());
        self.observers.push(observer);
    }

    /// The first observer that is an `O`.
    pub fn observer_mut<O: Observer<X>>(&mut self) -> Option<&mut O> {
        self.observers.iter_mut().find_map(|o| (o.as_mut() as &mut dyn Any).downcast_mut())
    }

    /// Runs until `until` inclusive, or until nothing is left to happen.
    pub fn run_until(&mut self, until: Instant) {
        while let Some((at, wake)) = self.events.pop_until(until) {
            self.now = self.now.max(at);
            if !self.observers.is_empty() {
                self.settle();
            }
            match Wake::of(wake) {
                Wake::Link(id) => self.wake_link(id, at),
                Wake::Agent(id) => self.wake_agent(id, at),
            }
        }
        self.now = self.now.max(until);
        self.settle();
    }

    /// Brings every link to [`now`](Self::now), so that its counters and backlog are of this moment.
    pub fn settle(&mut self) {
        let mut notices = Vec::new();
        for (i, Line { link, .. }) in self.links.iter_mut().enumerate() {
            link.advance(self.now);
            notices.extend(link.take_notices().map(|n| (LinkId(i as u32), n)));
        }
        notices.sort_by_key(|(_, n)| n.at);
        for (id, n) in &notices {
            let what = n.dropped.map_or(What::Dequeued, What::Dropped);
            if let Some(packet) = n.payload.packet() {
                show(&mut self.observers, &Event { at: n.at, place: Place::Link(*id), what, packet });
            }
        }
    }

    #[inline]
    fn tell(&mut self, place: Place, what: What, parcel: &Parcel<X>) {
        if !self.observers.is_empty()
            && let Some(packet) = parcel.packet()
        {
            show(&mut self.observers, &Event { at: self.now, place, what, packet });
        }
    }

    fn wake_link(&mut self, id: LinkId, at: Instant) {
        let Some(line) = self.links.get_mut(id.0 as usize).filter(|l| l.wake == at) else { return };
        line.wake = Instant::FAR;
        let (to, end) = (line.to, line.end);
        let mut next = line.link.poll_deliver(self.now);
        while let Some(parcel) = next {
            self.tell(Place::Link(id), What::Arrived, &parcel);
            if self.agents.len() > ahead::FEW_AGENTS {
                self.fetch_ahead(id, end, &parcel);
            }
            self.arrive(to, end, parcel);
            let link = &mut self.links[id.0 as usize].link;
            next = if link.may_deliver(self.now) { link.poll_deliver(self.now) } else { None };
        }
        self.collect_dropped(id);
        self.watch(id);
    }

    /// Puts the link's next event into the queue, unless an earlier one is there.
    #[inline]
    fn watch(&mut self, id: LinkId) {
        let line = &mut self.links[id.0 as usize];
        if let Some(next) = line.link.next_event() {
            let next = next.max(self.now);
            if next < line.wake {
                line.wake = next;
                self.events.push(next, Wake::Link(id).number());
            }
        }
    }

    #[inline]
    fn arrive(&mut self, at: NodeId, end: End, parcel: Parcel<X>) {
        let Some(packet) = parcel.packet() else { return };
        match end {
            End::Router(row) => {
                if let Some(link) = self.routes.onward(row, packet.destination) {
                    return self.enter(link, parcel);
                }
            }
            End::Host(address) => {
                // What comes by a cable is mostly for its own address, which spares looking up whose it is.
                if (packet.destination == address || self.routes.host(packet.destination) == Some(at))
                    && self.agents.get(packet.to.0 as usize).is_some_and(|s| s.started)
                {
                    return self.receive(at, parcel);
                }
            }
        }
        self.tell(Place::Node(at), What::Lost, &parcel);
        parcel.empty(&mut self.spare);
    }

    #[inline]
    fn receive(&mut self, at: NodeId, mut parcel: Parcel<X>) {
        // What this crate's own transports carry has checksums, which a damaged packet does not pass; a transport outside
        // tests its own.
        let rejects = |p: &&Packet<X>| matches!(&p.body, Body::Damaged(d) if !matches!(d.body, Body::Other(_)));
        if let Some(to) = parcel.packet().filter(rejects).map(|p| p.to) {
            self.agents.get_mut(to.0 as usize).into_iter().for_each(|s| s.rejected += 1);
            self.tell(Place::Node(at), What::Rejected, &parcel);
            parcel.empty(&mut self.spare);
            return;
        }
        self.tell(Place::Node(at), What::Received, &parcel);
        if let Some(packet) = parcel.packet_mut() {
            self.call(packet.to, |agent, cx| agent.receive(cx, packet));
        }
        parcel.empty(&mut self.spare);
    }

    #[inline]
    fn enter(&mut self, link: LinkId, parcel: Parcel<X>) {
        self.tell(Place::Link(link), What::Enqueued, &parcel);
        let Some(size) = parcel.packet().map(|p| p.size) else { return };
        let line = &mut self.links[link.0 as usize];
        let put = line.link.put(self.now, size, parcel);
        match put {
            Put::Alone(at) => {
                if at < line.wake {
                    line.wake = at;
                    self.events.push(at, Wake::Link(link).number());
                }
            }
            // What is behind others in a row changes nothing about the first.
            Put::Queued => {
                if line.wake == Instant::FAR || !line.link.keeps_order() {
                    self.watch(link);
                }
            }
            Put::Dropped(_) => {
                self.watch(link);
                self.collect_dropped(link);
            }
        }
    }

    /// The boxes of what a link has dropped serve again.
    #[inline]
    fn collect_dropped(&mut self, link: LinkId) {
        let spare = &mut self.spare;
        self.links[link.0 as usize].link.take_dropped(|parcel| {
            parcel.empty(spare);
        });
    }

    fn wake_agent(&mut self, id: AgentId, at: Instant) {
        let Some(slot) = self.agents.get_mut(id.0 as usize).filter(|s| s.wake == at) else { return };
        slot.wake = Instant::FAR;
        if slot.processing.is_some() {
            self.release(id);
        }
        let Some(slot) = self.agents.get_mut(id.0 as usize) else { return };
        if !slot.started {
            slot.started = true;
            self.call(id, |agent, cx| agent.start(cx));
        } else if slot.agent.next_timeout().is_some_and(|t| t <= self.now) {
            self.call(id, |agent, cx| agent.timeout(cx));
        } else {
            self.call(id, |_, _| {});
        }
    }

    #[inline]
    fn call(&mut self, id: AgentId, f: impl FnOnce(&mut dyn Agent<X>, &mut Context<'_, X>)) {
        let Some(slot) = self.agents.get_mut(id.0 as usize) else { return };
        let (links, routes) = (&mut self.links, &self.routes);
        let beneath = agent::Beneath { links, routes };
        f(slot.agent.as_mut(), &mut Context { now: self.now, id, out: &mut self.out, spare: &mut self.spare, beneath });
        let mut next = slot.agent.next_timeout().map(|t| t.max(self.now));
        if let Some(processing) = &mut slot.processing {
            processing.take(self.now, &mut self.out);
            next = next.into_iter().chain(processing.next()).min();
        }
        if let Some(next) = next.filter(|t| *t < slot.wake) {
            slot.wake = next;
            self.events.push(next, Wake::Agent(id).number());
        }
        if self.out.len() <= 1 {
            if let Some(parcel) = self.out.pop() {
                self.depart(id, parcel);
            }
            return;
        }
        let mut out = core::mem::take(&mut self.out);
        for parcel in out.drain(..) {
            self.depart(id, parcel);
        }
        self.out = out;
    }

    #[inline]
    fn depart(&mut self, from: AgentId, mut parcel: Parcel<X>) {
        let Some(packet) = parcel.packet_mut() else { return };
        (packet.from, packet.number) = (from, self.sent);
        self.sent += 1;
        let source = packet.source;
        let Some(link) = self.routes.first(source) else { return };
        if !self.observers.is_empty()
            && let Some(host) = self.routes.host(source)
        {
            self.tell(Place::Node(host), What::Sent, &parcel);
        }
        self.enter(link, parcel);
    }
}

fn show<X: 'static>(observers: &mut [Box<dyn Observer<X>>], e: &Event<'_, X>) {
    observers.iter_mut().for_each(|o| o.observe(Event { ..*e }));
}

#[cfg(test)]
mod tests;
