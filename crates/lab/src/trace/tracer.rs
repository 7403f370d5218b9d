//! Watches every packet of a network.

use super::contents::{Contents, Sack};
use super::files::{CsvRow, Files, Outputs, TraceError};
use super::line::{Cause, FlowLine, Line, Why};
use super::probe::{Probe, Sending};
use crate::node::{SctpPacket, ip};
use anabranch_base::Instant;
use anabranch_sim::link::DropReason;
use anabranch_sim::network::{Address, AgentId, Body, Ecn, Event, Observer, Packet, Place, What};
use anabranch_sim::topology::Topology;
use anabranch_wire::Direction;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue is noted at most once in this many nanoseconds.
const QUEUE_EVERY: u64 = 5_000_000;

/// A flow to be traced.
#[derive(Clone, PartialEq, Debug)]
pub struct TracedFlow {
    /// Its name.
    pub name: String,
    /// `sctp`, `tcp` or `udp`.
    pub transport: String,
    /// The agent that sends data.
    pub sender: AgentId,
    /// The agent that receives it.
    pub receiver: AgentId,
    /// Its paths in order, sender's address first; none for a transport that has one path.
    pub pairs: Vec<(Address, Address)>,
}

/// What was run, for the first line of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TracedRun {
    /// The scenario.
    pub scenario: String,
    /// The values of its sweep keys.
    pub point: String,
    /// The seed.
    pub seed: u64,
}

/// Traces one run. Give [`watcher`](Self::watcher) to the network and a [`probe`](Self::probe) to each SCTP sender, run,
/// then [`finish`](Self::finish).
#[derive(Clone)]
pub struct Tracer {
    state: Shared,
}

pub(super) type Shared = Arc<Mutex<State>>;

pub(super) fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tracer {
    /// Opens the files `DIR/STEM…`.
    ///
    /// # Errors
    /// [`TraceError`] names the file that cannot be written.
    pub fn create(
        dir: &Path,
        stem: &str,
        outputs: Outputs,
        topology: &Topology,
        run: &TracedRun,
        flows: Vec<TracedFlow>,
    ) -> Result<Self, TraceError> {
        let mut files = Files::create(dir, stem, outputs)?;
        let line = |f: &TracedFlow| FlowLine {
            name: f.name.clone(),
            transport: f.transport.clone(),
            paths: f.pairs.iter().map(|(a, b)| (ip(*a).to_string(), ip(*b).to_string())).collect(),
        };
        let TracedRun { scenario, point, seed } = run.clone();
        files.log(&Line::Run { scenario, point, seed, flows: flows.iter().map(line).collect() });
        Ok(Tracer { state: Arc::new(Mutex::new(State::new(files, topology, flows))) })
    }

    /// What the network is given.
    pub fn watcher(&self) -> Watcher {
        Watcher(self.state.clone())
    }

    /// What the sender of the flow of this name is given; none for an unknown flow.
    pub fn probe(&self, flow: &str) -> Option<Probe> {
        let index = lock(&self.state).flows.iter().position(|f| f.about.name == flow)?;
        Some(Probe::new(self.state.clone(), index))
    }

    /// Writes out what is buffered and names the files.
    ///
    /// # Errors
    /// The first [`TraceError`] of the whole run.
    pub fn finish(&self) -> Result<Vec<PathBuf>, TraceError> {
        lock(&self.state).files.finish()
    }
}

/// The network's side of a [`Tracer`].
pub struct Watcher(Shared);

impl Observer<SctpPacket> for Watcher {
    fn observe(&mut self, event: Event<'_, SctpPacket>) {
        lock(&self.0).observe(&event);
    }
}

/// A flow while it is traced.
pub(super) struct Flow {
    pub about: TracedFlow,
    /// What the probe knows of packets that are about to leave.
    pub sending: VecDeque<Sending>,
    /// Per path, why the last loss there was noticed.
    pub last_loss: Vec<Why>,
    /// TSNs that were sent: path and number of transmissions.
    sent: BTreeMap<u32, (usize, u32)>,
}

pub(super) struct State {
    pub files: Files,
    pub flows: Vec<Flow>,
    nodes: Vec<String>,
    /// Per link: its name, the nodes at its ends.
    links: Vec<(String, String, String)>,
    /// Per link: what waits, by packet number; when that was last told, and what.
    queues: Vec<Waiting>,
}

#[derive(Default)]
struct Waiting {
    packets: BTreeMap<u64, u32>,
    bytes: u64,
    told: Option<(Instant, usize)>,
}

impl State {
    fn new(files: Files, topology: &Topology, flows: Vec<TracedFlow>) -> Self {
        let name = |i: u32| topology.nodes.get(i as usize).map_or(String::new(), |n| n.name.clone());
        let links: Vec<_> = topology
            .cables
            .iter()
            .flat_map(|c| {
                let (a, b) = (name(c.a.0), name(c.b.0));
                [(format!("{}.forward", c.name), a.clone(), b.clone()), (format!("{}.backward", c.name), b, a)]
            })
            .collect();
        let flow = |about: TracedFlow| {
            let last_loss = vec![Why::Other; about.pairs.len().max(1)];
            Flow { about, sending: VecDeque::new(), last_loss, sent: BTreeMap::new() }
        };
        State {
            files,
            flows: flows.into_iter().map(flow).collect(),
            nodes: topology.nodes.iter().map(|n| n.name.clone()).collect(),
            queues: links.iter().map(|_| Waiting::default()).collect(),
            links,
        }
    }

    fn observe(&mut self, e: &Event<'_, SctpPacket>) {
        let contents = Contents::of(&e.packet.body);
        let flow = self.flows.iter().position(|f| f.about.sender == e.packet.from || f.about.receiver == e.packet.from);
        let path = flow.and_then(|f| self.flows.get(f)?.path(e.packet));
        self.row(e, &contents, flow, path);
        self.capture(e);
        if self.files.wants().log {
            self.note(e, &contents, flow, path);
            self.queue(e);
        }
    }

    fn row(&mut self, e: &Event<'_, SctpPacket>, c: &Contents, flow: Option<usize>, path: Option<usize>) {
        if !self.files.wants().csv {
            return;
        }
        let event = match e.what {
            What::Sent => "sent",
            What::Enqueued => "enqueued",
            What::Dequeued => "dequeued",
            What::Dropped(_) => "dropped",
            What::Arrived => "arrived",
            What::Received => "received",
            What::Lost => "lost",
        };
        let (place, from, to) = match e.place {
            Place::Link(l) => self.links.get(l.0 as usize).map_or(("", "", ""), |l| (&l.0, &l.1, &l.2)),
            Place::Node(n) => (self.nodes.get(n.0 as usize).map_or("", String::as_str), "", ""),
        };
        self.files.row(&CsvRow {
            at: e.at,
            event,
            place,
            from,
            to,
            size: e.packet.size,
            kind: c.kind,
            flow: flow.and_then(|f| self.flows.get(f)).map_or("", |f| f.about.name.as_str()),
            path,
            number: e.packet.number,
            numbers: &c.numbers,
            cause: cause(e.what).map_or("", Cause::word),
            ecn: match e.packet.ecn {
                Ecn::No => "",
                Ecn::Able => "ect",
                Ecn::Marked => "ce",
            },
        });
    }

    /// Both ends of a packet's way go into the captures of their hosts.
    fn capture(&mut self, e: &Event<'_, SctpPacket>) {
        let (Body::Other(p), Place::Node(n)) = (&e.packet.body, e.place) else { return };
        let (direction, own) = match e.what {
            What::Sent => (Direction::Out, e.packet.source),
            What::Received => (Direction::In, e.packet.destination),
            _ => return,
        };
        let Some(host) = self.nodes.get(n.0 as usize) else { return };
        let addresses = (ip(e.packet.source), ip(e.packet.destination));
        self.files.capture(host, &ip(own).to_string(), e.at, direction, addresses, &p.bytes());
    }

    fn note(&mut self, e: &Event<'_, SctpPacket>, c: &Contents, flow: Option<usize>, path: Option<usize>) {
        let (Some(flow), path) = (flow, path.unwrap_or(0)) else { return };
        let t = seconds(e.at);
        if let Some(cause) = cause(e.what) {
            let place = match e.place {
                Place::Link(l) => self.links.get(l.0 as usize).map(|l| l.0.clone()),
                Place::Node(n) => self.nodes.get(n.0 as usize).cloned(),
            };
            let name = self.name(flow);
            let (packet, place, kind) = (e.packet.number, place.unwrap_or_default(), c.kind.to_owned());
            self.files.log(&Line::Lost { t, flow: name, path, packet, place, cause, tsn: c.tsns(), kind });
            return;
        }
        let from_sender = self.flows.get(flow).is_some_and(|f| f.about.sender == e.packet.from);
        match e.what {
            What::Sent if from_sender && matches!(e.packet.body, Body::Other(_)) => {
                self.sent(t, e.packet, c, flow, path)
            }
            What::Received if !from_sender => {
                if let Some(Sack { cumulative, window, gaps }) = c.sack.clone() {
                    let flow = self.name(flow);
                    self.files.log(&Line::Sack { t, flow, path, cumulative, gaps, window });
                }
            }
            _ => {}
        }
    }

    fn name(&self, flow: usize) -> String {
        self.flows.get(flow).map_or(String::new(), |f| f.about.name.clone())
    }

    /// A packet with DATA: what is new, and what is sent again with the reasons.
    fn sent(&mut self, t: f64, p: &Packet<SctpPacket>, c: &Contents, flow: usize, path: usize) {
        let name = self.name(flow);
        let Some(f) = self.flows.get_mut(flow) else { return };
        let sending = f.sending.pop_front().unwrap_or_default();
        let (mut new, mut again) = (Vec::new(), Vec::new());
        for tsn in c.tsns() {
            let entry = f.sent.entry(tsn).or_insert((path, 0));
            entry.1 += 1;
            let (was_on, transmission) = *entry;
            entry.0 = path;
            if transmission == 1 {
                new.push(tsn);
                continue;
            }
            let why = f.last_loss.get(was_on).copied().unwrap_or(Why::Other);
            again.push(Line::Retransmission {
                t,
                flow: name.clone(),
                path,
                packet: p.number,
                tsn,
                transmission,
                was_on,
                why,
                decided_by: sending.decided_by.map(str::to_owned),
                windows: sending.windows.clone(),
            });
        }
        if !new.is_empty() {
            self.files.log(&Line::Data { t, flow: name, path, packet: p.number, bytes: p.size, tsn: new });
        }
        again.iter().for_each(|line| self.files.log(line));
    }

    /// What waits at a link.
    fn queue(&mut self, e: &Event<'_, SctpPacket>) {
        let Place::Link(id) = e.place else { return };
        let (Some(q), Some(link)) = (self.queues.get_mut(id.0 as usize), self.links.get(id.0 as usize)) else { return };
        match e.what {
            What::Enqueued => {
                q.packets.insert(e.packet.number, e.packet.size);
                q.bytes += u64::from(e.packet.size);
            }
            // A loss on the wire hits what has left the queue already.
            What::Dequeued | What::Dropped(_) => match q.packets.remove(&e.packet.number) {
                Some(size) => q.bytes -= u64::from(size),
                None => return,
            },
            _ => return,
        }
        let due = |told: Instant| (e.at - told).as_nanos() >= QUEUE_EVERY;
        let (packets, bytes) = (q.packets.len(), q.bytes);
        // One packet that is just being sent is no queue.
        let quiet = packets < 2 && q.told.is_none_or(|t| t.1 < 2);
        if quiet || q.told.is_some_and(|(at, n)| !due(at) || n == packets) {
            return;
        }
        q.told = Some((e.at, packets));
        self.files.log(&Line::Queue { t: seconds(e.at), link: link.0.clone(), packets, bytes });
    }
}

impl Flow {
    /// The path of a packet, whichever way it goes.
    fn path(&self, p: &Packet<SctpPacket>) -> Option<usize> {
        if self.about.pairs.is_empty() {
            return Some(0);
        }
        let there =
            |pair: &(Address, Address)| *pair == (p.source, p.destination) || *pair == (p.destination, p.source);
        self.about.pairs.iter().position(there)
    }
}

fn cause(what: What) -> Option<Cause> {
    Some(match what {
        What::Dropped(DropReason::Queue) => Cause::Queue,
        What::Dropped(DropReason::Loss) => Cause::RandomLoss,
        What::Dropped(DropReason::Down) => Cause::LinkDown,
        What::Dropped(DropReason::Mtu) => Cause::TooLarge,
        What::Lost => Cause::NoRoute,
        _ => return None,
    })
}

/// Seconds since the start.
pub(super) fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}
