//! Watches every packet of a network.

use super::contents::{Contents, Sack};
use super::files::{CsvRow, Files, Outputs, TraceError};
use super::flows::{TracedFlow, TracedRun, on_link};
use super::headers::Headers;
use super::line::{Cause, Line, Why};
use super::probe::{Offer, Probe, Sending};
use super::queue::Queue;
use super::tcp_probe::TcpProbe;
use crate::metrics::FrameRow;
use crate::node::{SctpPacket, ip};
use anabranch_base::Instant;
use anabranch_sim::link::DropReason;
use anabranch_sim::network::{Body, Ecn, Event, LinkId, Observer, Packet, Place, What};
use anabranch_sim::topology::Topology;
use anabranch_sim::transport::tcp::{Segment, TcpConfig};
use anabranch_wire::Direction;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
        let TracedRun { scenario, point, seed } = run.clone();
        files.log(&Line::Run { scenario, point, seed, flows: flows.iter().map(TracedFlow::line).collect() });
        Ok(Tracer { state: Arc::new(Mutex::new(State::new(files, topology, flows))) })
    }

    /// What the network is given.
    pub fn watcher(&self) -> Watcher {
        Watcher(self.state.clone())
    }

    /// What the SCTP sender of the flow of this name is given; none for an unknown flow.
    pub fn probe(&self, flow: &str) -> Option<Probe> {
        Some(Probe::new(self.state.clone(), self.index(flow)?))
    }

    /// What the TCP source of the flow of this name is given.
    pub fn tcp_probe(&self, flow: &str, config: &TcpConfig) -> Option<TcpProbe> {
        let index = self.index(flow)?;
        lock(&self.state).flows.get_mut(index)?.is_tcp = true;
        Some(TcpProbe::new(self.state.clone(), index, config))
    }

    fn index(&self, flow: &str) -> Option<usize> {
        lock(&self.state).flows.iter().position(|f| f.about.name == flow)
    }

    /// Notes what came of the frames of a flow, if a table of them is wanted.
    pub fn frames(&self, flow: &str, rows: impl Iterator<Item = FrameRow>) {
        lock(&self.state).files.frames(flow, rows);
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
    /// One TCP connection, whose sender is watched.
    pub is_tcp: bool,
    /// TCP's window and threshold.
    pub windows: Vec<(u64, Option<u64>)>,
    /// TSNs or segments that were sent: path and number of transmissions.
    sent: BTreeMap<u64, (usize, u32)>,
    /// Of SCTP, the packet in which a TSN left at a time.
    carried: BTreeMap<(u32, Instant), u64>,
    /// Packets that were lost.
    dropped: BTreeMap<u64, Cause>,
}

pub(super) struct State {
    pub files: Files,
    pub flows: Vec<Flow>,
    nodes: Vec<String>,
    headers: Headers,
    /// A packet for a capture.
    scratch: Vec<u8>,
    /// Per link: its name, the nodes at its ends.
    links: Vec<(String, String, String)>,
    /// Per link.
    queues: Vec<Queue>,
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
            let (sending, windows, sent) = (VecDeque::new(), Vec::new(), BTreeMap::new());
            let (carried, dropped) = (BTreeMap::new(), BTreeMap::new());
            Flow { about, sending, last_loss, is_tcp: false, windows, sent, carried, dropped }
        };
        State {
            files,
            headers: Headers::default(),
            scratch: Vec::new(),
            nodes: topology.nodes.iter().map(|n| n.name.clone()).collect(),
            queues: links.iter().zip(0..).map(|(l, i)| Queue::new(&l.0, on_link(&flows, LinkId(i)))).collect(),
            flows: flows.into_iter().map(flow).collect(),
            links,
        }
    }

    fn observe(&mut self, e: &Event<'_, SctpPacket>) {
        let contents = Contents::of(&e.packet.body);
        let flow = self.flows.iter().position(|f| f.about.sender == e.packet.from || f.about.receiver == e.packet.from);
        let path = flow.and_then(|f| self.flows.get(f)?.about.path(e.packet));
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
            What::Rejected => "rejected",
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
        let Place::Node(n) = e.place else { return };
        let (direction, own) = match e.what {
            What::Sent => (Direction::Out, e.packet.source),
            What::Received => (Direction::In, e.packet.destination),
            _ => return,
        };
        let Some(host) = self.nodes.get(n.0 as usize).filter(|_| self.files.wants().pcap) else { return };
        let length = self.headers.write(e.packet, e.what == What::Sent, &mut self.scratch);
        self.files.capture(host, &ip(own).to_string(), e.at, direction, &self.scratch, length);
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
            if let Some(f) = self.flows.get_mut(flow) {
                f.dropped.insert(e.packet.number, cause);
            }
            let (packet, place, kind) = (e.packet.number, place.unwrap_or_default(), c.kind.to_owned());
            let (tsn, segment) = (c.tsns(), c.segment());
            self.files.log(&Line::Lost { t, flow: name, path, packet, place, cause, tsn, segment, kind });
            return;
        }
        let Some(f) = self.flows.get(flow) else { return };
        let from_sender = f.about.sender == e.packet.from;
        match (e.what, &e.packet.body) {
            (What::Sent, Body::Other(_)) if from_sender => {
                if let Some(f) = self.flows.get_mut(flow) {
                    f.carried.extend(c.sent().iter().map(|n| ((*n as u32, e.at), e.packet.number)));
                }
                self.sent(t, e.packet, c, flow, path);
            }
            (What::Sent, Body::Tcp(_)) if from_sender && f.is_tcp => self.sent(t, e.packet, c, flow, path),
            (What::Received, Body::Other(_)) if !from_sender => {
                if let Some(Sack { cumulative, window, gaps }) = c.sack.clone() {
                    let flow = self.name(flow);
                    self.files.log(&Line::Sack { t, flow, path, cumulative, gaps, window });
                }
            }
            (What::Received, Body::Tcp(Segment::Ack(a))) if !from_sender && f.is_tcp => {
                let sacked = a.sacked().map(|(first, end)| (first, end - 1)).collect();
                let flow = self.name(flow);
                self.files.log(&Line::Ack { t, flow, path, next: a.next, sacked });
            }
            _ => {}
        }
    }

    fn name(&self, flow: usize) -> String {
        self.flows.get(flow).map_or(String::new(), |f| f.about.name.clone())
    }

    /// A packet with DATA or a segment: what is new, and what is sent again, with the reasons.
    fn sent(&mut self, t: f64, p: &Packet<SctpPacket>, c: &Contents, flow: usize, path: usize) {
        let name = self.name(flow);
        let Some(f) = self.flows.get_mut(flow) else { return };
        let sending = match f.is_tcp {
            true => Sending { windows: f.windows.clone(), ..Sending::default() },
            false => f.sending.pop_front().unwrap_or_default(),
        };
        let (mut new, mut again) = (Vec::new(), Vec::new());
        for &number in c.sent() {
            let entry = f.sent.entry(number).or_insert((path, 0));
            entry.1 += 1;
            let (was_on, transmission) = *entry;
            entry.0 = path;
            if transmission == 1 {
                new.push(number);
                continue;
            }
            let of_chunk = sending.causes.iter().find(|(tsn, _)| *tsn == number as u32).map(|(_, why)| *why);
            let why = of_chunk.or(f.last_loss.get(was_on).copied()).unwrap_or(Why::Other);
            let dormant = sending.offer.dormant.then_some("dormant");
            again.push(Line::Retransmission {
                t,
                flow: name.clone(),
                path,
                packet: p.number,
                tsn: (!f.is_tcp).then_some(number as u32),
                segment: f.is_tcp.then_some(number),
                transmission,
                was_on,
                why,
                decided_by: sending.decided_by.or(dormant).map(str::to_owned),
                windows: sending.windows.clone(),
            });
        }
        if !new.is_empty() {
            let segment = new.first().copied().filter(|_| f.is_tcp);
            let tsn = if f.is_tcp { Vec::new() } else { new.iter().map(|n| *n as u32).collect() };
            let decided_by = f.chosen_by(&sending.offer);
            let Offer { open, rooms, .. } = sending.offer;
            let (packet, bytes) = (p.number, p.size);
            self.files.log(&Line::Data { t, flow: name, path, packet, bytes, tsn, segment, decided_by, open, rooms });
        }
        again.iter().for_each(|line| self.files.log(line));
    }

    /// What waits at a link.
    fn queue(&mut self, e: &Event<'_, SctpPacket>) {
        let Place::Link(id) = e.place else { return };
        if let Some(line) = self.queues.get_mut(id.0 as usize).and_then(|q| q.note(e)) {
            self.files.log(&line);
        }
    }
}

impl Flow {
    /// What became of the chunk that left at this time.
    pub(super) fn truth(&mut self, tsn: u32, sent: Instant) -> Option<Cause> {
        self.dropped.get(self.carried.get(&(tsn, sent))?).copied()
    }

    /// Who chose the path of new data.
    fn chosen_by(&self, offer: &Offer) -> Option<String> {
        let (scheduler, _) = self.about.policies.as_ref()?;
        Some(if offer.dormant {
            "dormant".to_owned()
        } else if offer.open.len() == 1 {
            "alone".to_owned()
        } else {
            scheduler.clone()
        })
    }
}

fn cause(what: What) -> Option<Cause> {
    Some(match what {
        What::Dropped(DropReason::Queue) => Cause::Queue,
        What::Dropped(DropReason::Loss) => Cause::RandomLoss,
        What::Dropped(DropReason::Repeats) => Cause::RepeatsLost,
        What::Dropped(DropReason::Down) => Cause::LinkDown,
        What::Dropped(DropReason::Mtu) => Cause::TooLarge,
        What::Lost => Cause::NoRoute,
        What::Rejected => Cause::Damaged,
        _ => return None,
    })
}

/// Seconds since the start.
pub(super) fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}
