//! From a plan to a network with agents.

use super::RunError;
use super::fates::{Fates, Segments};
use crate::metrics::{Detail, Dues, Packets, Record, SharedRecord, Timed, Travel, Unasked, Video, Wanted, Window};
use crate::node::{
    Application, Dial, Encoder, End, Messages, Pairs, Reader, SctpAgent, SctpConfig, SctpPacket, Watched,
};
use crate::scenario::{Flow, LARGEST_DATAGRAM, Of, Plan, Sctp, Transport, covers};
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_policy::view::FrameErrors;
use anabranch_sim::network::{Address, AgentId, LinkId, Network, Peer};
use anabranch_sim::traffic::{Bulk, Source, TrafficConfig};
use anabranch_sim::transport::mptcp::{MptcpConfig, MptcpSink, MptcpSource};
use anabranch_sim::transport::tcp::{Supply, TcpConfig, TcpSink, TcpSource, TcpTransfers};
use anabranch_sim::transport::{DatagramSink, DatagramSource};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// A network that is ready to run.
pub(super) struct Scene {
    pub network: Network<SctpPacket>,
    /// In the order of the plan's flows.
    pub flows: Vec<Live>,
    /// What links do to packets is asked for.
    pub truth: bool,
}

/// A flow while it runs.
pub(super) struct Live {
    pub record: SharedRecord,
    pub sender: AgentId,
    pub receiver: AgentId,
    /// Its paths, sender's address first.
    pub pairs: Vec<(Address, Address)>,
    /// When it starts.
    pub start: Instant,
}

impl Live {
    /// What there is of it in a window.
    pub fn within(&self, window: Window) -> Window {
        window.from_start(self.start)
    }
}

/// The flows whose packets are their own, and not those of the flow whose association they share.
pub(super) fn with_associations<'p>(plan: &'p Plan, scene: &'p Scene) -> impl Iterator<Item = (&'p Flow, &'p Live)> {
    plan.flows.iter().zip(&scene.flows).filter(|(f, _)| f.association.is_none())
}

pub(super) fn scene(plan: &Plan, seed: u64) -> Result<Scene, RunError> {
    let network = Network::new(&plan.topology, seed).map_err(|e| RunError(e.to_string()))?;
    let mut s = Scene { network, flows: Vec::with_capacity(plan.flows.len()), truth: false };
    for f in &plan.flows {
        if let Some(live) = s.shared(plan, f, seed) {
            s.flows.push(live);
            continue;
        }
        let mut random = RandomStream::named(seed, &format!("{}.start", f.name));
        let late = Duration::from_nanos(random.below(f.start_within.as_nanos().saturating_add(1)));
        let start = Instant::ZERO + f.start + late;
        let record = Rc::new(RefCell::new(Record::of_windows(&wanted(plan, f, start), plan.bin)));
        let pairs = s.paths(f)?;
        let (sender, receiver) = s.add(f, &pairs, seed, start, &record)?;
        if !f.processing.is_zero() {
            s.network.process(sender, f.processing, RandomStream::named(seed, &format!("{}.processing", f.name)));
        }
        s.truth |= record.borrow().wanted().truth;
        s.flows.push(Live { record, sender, receiver, pairs, start });
    }
    if s.truth {
        s.network.observe(Box::new(Fates::default()));
    }
    let mut segments = Segments::default();
    for (f, live) in plan.flows.iter().zip(&s.flows) {
        if let (Transport::Tcp(_), Some(repairs)) = (&f.transport, live.record.borrow().repairs()) {
            segments.follow(live.sender, repairs.clone());
        }
    }
    if !segments.0.is_empty() {
        s.network.observe(Box::new(segments));
    }
    Ok(s)
}

/// What the metrics and series of a plan are made of, in each of its windows.
fn wanted(plan: &Plan, f: &Flow, start: Instant) -> Vec<(Window, Wanted)> {
    // A share is one of all flows.
    let bins = plan.series.iter().any(|s| s.what.delivered());
    let paths = plan.series.iter().any(|s| s.what.by_path() && s.covers(&f.group));
    let dues = plan.series.iter().any(|s| s.what.due() && s.covers(&f.group));
    let mut all = vec![(plan.measured().from_start(start), Wanted { bins, paths, dues, ..Wanted::NOTHING })];
    all.extend(plan.windows.iter().skip(1).map(|(_, w)| (w.from_start(start), Wanted::NOTHING)));
    for m in plan.parts().chain(&plan.distributions) {
        if let Of::Flow(of, metric) = &m.of
            && covers(of, &f.group)
            && let Some((_, wanted)) = all.get_mut(m.window)
        {
            wanted.ask(*metric);
        }
    }
    all
}

impl Scene {
    /// Tells the records of senders what links did to their packets, and those of TCP how often segments left.
    pub fn tell_fates(&mut self) {
        if let Some(segments) = self.network.observer_mut::<Segments>().map(std::mem::take) {
            for (from, repairs) in segments.0 {
                if let Some(live) = self.flows.iter().find(|l| l.sender == from) {
                    live.record.borrow_mut().set_repairs(repairs);
                }
            }
        }
        let Some(fates) = self.network.observer_mut::<Fates>().map(std::mem::take) else { return };
        for (from, packet, why) in fates.0 {
            if let Some(live) = self.flows.iter().find(|l| l.sender == from)
                && let Some(r) = live.record.borrow_mut().repairs_mut()
            {
                r.dropped(packet, why);
            }
        }
    }

    /// Tells the records of flows which frames and messages their sources had made by the end that no transport has asked
    /// for.
    pub fn tell_unsent(&self, plan: &Plan) {
        self.flows.iter().for_each(|live| live.record.borrow().make_rest(live.start, plan.end()));
    }

    /// A flow on the association of another, which was added before it; none of one with its own.
    fn shared(&mut self, plan: &Plan, f: &Flow, seed: u64) -> Option<Live> {
        let (group, Transport::Sctp(s)) = (f.association.as_ref()?, &f.transport) else { return None };
        let before = || plan.flows.iter().take(self.flows.len()).enumerate();
        // Its members join those of the other in their order.
        let member = before().filter(|(_, o)| o.group == f.group).count();
        let (at, _) = before().filter(|(_, o)| o.group == *group).nth(member)?;
        let other = self.flows.get(at)?;
        let (sender, receiver, pairs, start) = (other.sender, other.receiver, other.pairs.clone(), other.start);
        let record = Rc::new(RefCell::new(Record::of_windows(&wanted(plan, f, start), plan.bin)));
        let application = Application::new(traffic(f, seed, &record), s.delivery);
        self.network.agent_mut::<SctpAgent>(sender)?.share(Some(application), record.clone());
        self.network.agent_mut::<SctpAgent>(receiver)?.share(None, record.clone());
        Some(Live { record, sender, receiver, pairs, start })
    }

    /// The paths of a flow, its sender's address first.
    fn paths(&self, f: &Flow) -> Result<Vec<(Address, Address)>, RunError> {
        let most = f.transport.most_paths();
        let pairs: Vec<_> = Pairs::between(&self.network, &f.from, &f.to).iter().take(most).collect();
        if pairs.is_empty() {
            return Err(RunError(format!("flow `{}`: no way leads from `{}` to `{}`", f.name, f.from, f.to)));
        }
        Ok(pairs)
    }

    /// Adds both ends: the receiver, then the sender.
    fn add(
        &mut self,
        f: &Flow,
        pairs: &[(Address, Address)],
        seed: u64,
        start: Instant,
        record: &SharedRecord,
    ) -> Result<(AgentId, AgentId), RunError> {
        let first = pairs.first().copied().unwrap_or((Address(0), Address(0)));
        match &f.transport {
            Transport::Sctp(s) => self.sctp(f, s, Pairs::exactly(pairs.to_vec()), seed, start, record),
            Transport::Tcp(c) => {
                let wanted = record.borrow().wanted();
                let keep_first_sent = wanted.packet.max(wanted.in_order) > Detail::Nothing;
                Ok(self.tcp(f, TcpConfig { keep_first_sent, ..*c }, first, seed, start, record))
            }
            Transport::Udp(header) => Ok(self.udp(f, *header, first, seed, start, record)),
            Transport::Mptcp(m) => Ok(self.mptcp(f, m.config, pairs, seed, start, record)),
        }
    }

    fn sctp(
        &mut self,
        f: &Flow,
        s: &Sctp,
        pairs: Pairs,
        seed: u64,
        start: Instant,
        record: &SharedRecord,
    ) -> Result<(AgentId, AgentId), RunError> {
        let policies = RandomStream::named(seed, &format!("{}.policies", f.name)).u64();
        let (association, _) = s.config(policies).map_err(|e| RunError(e.to_string()))?;
        let answering = s.peer_config(policies).map_err(|e| RunError(e.to_string()))?;
        let answering = answering.unwrap_or_else(|| association.clone());
        let receiver = self.network.next_id();
        let sender = AgentId(receiver.0 + 1);
        let config = |end, association, peer| SctpConfig {
            end,
            association,
            pairs: pairs.clone(),
            peer,
            overhead: s.overhead,
            seed,
            flow: f.name.clone(),
        };
        let reader = s.read_rate.map_or(Reader::at_once(), Reader::at);
        let server = SctpAgent::new(config(End::Server, answering, sender), record.clone()).reading(reader);
        let dial = f.follow.map(|follow| Dial::new(follow.what));
        let app = Application::new(followed(f, seed, record, dial.as_ref()), s.delivery);
        let reports = if s.reads_true_loss() { self.losses(&pairs) } else { Vec::new() };
        let client = SctpAgent::new(config(End::Client, association, receiver), record.clone())
            .sending(app)
            .telling(dial)
            .with_reports(reports);
        self.network.add(Box::new(server), Instant::ZERO);
        self.network.add(Box::new(client), start);
        Ok((sender, receiver))
    }

    /// The true loss rate of each path, in the direction of the data, as a report of its link layer.
    fn losses(&self, pairs: &Pairs) -> Vec<(Address, FrameErrors)> {
        let arrives = |l: &LinkId| self.network.link(*l).map_or(1.0, |l| 1.0 - l.config().loss.mean());
        let of = |(from, to): (Address, Address)| {
            let way = self.network.way(from, to).unwrap_or_default();
            let lost = 1.0 - way.iter().map(arrives).product::<f64>();
            (from, FrameErrors::counted((lost * 1e9).round() as u64, 1_000_000_000))
        };
        pairs.iter().map(of).collect()
    }

    fn tcp(
        &mut self,
        f: &Flow,
        config: TcpConfig,
        (from, to): (Address, Address),
        seed: u64,
        start: Instant,
        record: &SharedRecord,
    ) -> (AgentId, AgentId) {
        let transfers = matches!(f.traffic, TrafficConfig::Web(_));
        // A stream without end has no messages.
        let source = match &f.traffic {
            TrafficConfig::Bulk(_) => None,
            _ => Some(traffic(f, seed, record)),
        };
        let (source, messages) = match source {
            Some(source) if record.borrow().wanted().messages() || transfers && record.borrow().dues().is_some() => {
                let (source, messages) = Messages::of(source, transfers);
                (Some(source), Some(messages))
            }
            source => (source, None),
        };
        let sink = Watched::new(TcpSink::new(config), record.clone()).carrying(messages);
        let receiver = self.network.add(Box::new(sink), Instant::ZERO);
        let peer = Peer { address: to, agent: receiver };
        let mut random = RandomStream::named(seed, &format!("{}.clock", f.name));
        let sender = match (source, &f.traffic) {
            (Some(source), _) if transfers => {
                let transfers = TcpTransfers::new(config, from, peer, source, random);
                self.network.add(Box::new(transfers), start)
            }
            (source, kind) => {
                let supply = match (source, kind) {
                    (Some(source), _) => Supply::Source(source),
                    (None, TrafficConfig::Bulk(Bulk { total: Some(total), .. })) => Supply::Finite(*total),
                    (None, _) => Supply::Endless,
                };
                self.network.add(Box::new(TcpSource::new(config, from, peer, supply, &mut random)), start)
            }
        };
        (sender, receiver)
    }

    fn mptcp(
        &mut self,
        f: &Flow,
        config: MptcpConfig,
        pairs: &[(Address, Address)],
        seed: u64,
        start: Instant,
        record: &SharedRecord,
    ) -> (AgentId, AgentId) {
        let (supply, messages) = match &f.traffic {
            // A stream without end has no messages.
            TrafficConfig::Bulk(Bulk { total: Some(total), .. }) => (Supply::Finite(*total), None),
            TrafficConfig::Bulk(_) => (Supply::Endless, None),
            _ if record.borrow().wanted().messages() => {
                let (source, messages) = Messages::of(traffic(f, seed, record), false);
                (Supply::Source(source), Some(messages))
            }
            _ => (Supply::Source(traffic(f, seed, record)), None),
        };
        let sink = Watched::new(MptcpSink::new(config), record.clone()).carrying(messages);
        let receiver = self.network.add(Box::new(sink), Instant::ZERO);
        let paths: Vec<_> = pairs.iter().map(|(from, to)| (*from, Peer { address: *to, agent: receiver })).collect();
        let mut random = RandomStream::named(seed, &format!("{}.clock", f.name));
        let source = MptcpSource::new(config, &paths, supply, &mut random);
        (self.network.add(Box::new(source), start), receiver)
    }

    fn udp(
        &mut self,
        f: &Flow,
        header: u32,
        (from, to): (Address, Address),
        seed: u64,
        start: Instant,
        record: &SharedRecord,
    ) -> (AgentId, AgentId) {
        let sink = Watched::new(DatagramSink::new(), record.clone());
        let receiver = self.network.add(Box::new(sink), Instant::ZERO);
        let peer = Peer { address: to, agent: receiver };
        let source = DatagramSource::new(from, peer, traffic(f, seed, record)).with_sizes(header, LARGEST_DATAGRAM);
        (self.network.add(Box::new(source), start), receiver)
    }
}

/// What a flow sends. Frames that are watched are cut into packets that `record` knows.
pub(super) fn traffic(f: &Flow, seed: u64, record: &SharedRecord) -> Box<dyn Source> {
    followed(f, seed, record, None)
}

/// [`traffic`] from an encoder that follows what `dial` shows.
fn followed(f: &Flow, seed: u64, record: &SharedRecord, dial: Option<&Dial>) -> Box<dyn Source> {
    let source = timed(f, record, watched(f, seed, record, dial));
    // What is made when a transport asks for it was not made before, and nothing notes what has no deadline.
    let noted = record.borrow().dues().is_some() || record.borrow().video().is_some();
    if matches!(f.traffic, TrafficConfig::Bulk(_)) || !noted {
        return source;
    }
    let source = Unasked::new(source);
    record.borrow_mut().ask(source.clone());
    Box::new(source)
}

/// `source` with its messages noted where they have a deadline that is asked for.
fn timed(f: &Flow, record: &SharedRecord, source: Box<dyn Source>) -> Box<dyn Source> {
    let Some(deadline) = f.deadline.filter(|_| record.borrow().wanted().dues) else { return source };
    let travel = match (&f.transport, &f.traffic) {
        (Transport::Udp(_), _) => Travel::Datagrams(LARGEST_DATAGRAM),
        (Transport::Tcp(_), TrafficConfig::Web(_)) | (Transport::Sctp(_), _) => Travel::Alone,
        (Transport::Tcp(_) | Transport::Mptcp(_), _) => Travel::Stream,
    };
    let dues = Arc::new(Mutex::new(Dues::new(deadline, travel)));
    record.borrow_mut().expect(dues.clone());
    Box::new(Timed::new(source, dues))
}

fn watched(f: &Flow, seed: u64, record: &SharedRecord, dial: Option<&Dial>) -> Box<dyn Source> {
    let mut source = f.traffic.build(seed, &f.name);
    let Some(cut) = f.cut else { return source };
    if let (Some(follow), Some(dial), TrafficConfig::Video(video)) = (f.follow, dial, &f.traffic) {
        source = Box::new(Encoder::new(source, video.rate, follow, dial.clone(), cut));
    }
    let watched = f.playout.as_ref().map(|p| {
        let video = Arc::new(Mutex::new(Video::new(p.after, p.fps, cut.packet).depending(p.dependence.clone())));
        record.borrow_mut().watch(video.clone());
        video
    });
    Box::new(Packets::new(source, cut, watched))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const LOSSY: &str = r#"
name = "lossy"
duration = "20s"
metrics = ["main.goodput"]
[topology]
kind = "disjoint-paths"
delay = "10ms"
limit = "50p"
path1 = { rate = "4mbit", up.loss = "5%" }
path2 = { rate = "4mbit" }
[[flow]]
name = "main"
transport = "sctp"
profile = "cmt"
path-state = "rfc9260"
retransmission = "POLICY"
"#;

    /// Bytes sent again on each path.
    fn again(policy: &str) -> Vec<u64> {
        let s = Scenario::parse("lossy.toml", &LOSSY.replace("POLICY", policy), &|_| Err(String::new())).unwrap();
        let plan = s.points().unwrap().remove(0).plan;
        let mut scene = scene(&plan, 1).unwrap();
        scene.network.run_until(Instant::ZERO + plan.duration);
        let association = scene.network.agent::<SctpAgent>(scene.flows[0].sender).unwrap().association().unwrap();
        association.paths().map(|(_, p)| p.counters.data_retransmitted).collect()
    }

    #[test]
    fn an_oracle_knows_the_links_from_the_first_loss_on() {
        let sent = again("rtx_loss_rate:oracle=1");
        assert!(sent[0] == 0 && sent[1] > 50_000, "{sent:?}");
        // The estimate needs packets first, and counts what queues drop.
        let estimated = again("rtx_loss_rate");
        assert!(estimated[0] > 20_000 && estimated[1] > 20_000, "{estimated:?}");
    }
}
