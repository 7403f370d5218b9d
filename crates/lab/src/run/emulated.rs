//! A scenario over the links of the emulator and real sockets: all but the sockets. Who drives it says what time it is and
//! what came; what it measures is what a run in virtual time measures, by the same code.

use super::RunError;
use super::build::{Scene, scene, traffic};
use super::counts::Snapshots;
use super::measure::Measured;
use crate::metrics::{Delay, FlowMetric};
use crate::node::{Application, frame_errors};
use crate::scenario::{Of, Plan, Sctp, Transport};
use anabranch_base::{Duration, Instant, StreamId};
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::view::FrameErrors;
use anabranch_sim::network::Address;
use anabranch_sim::{Frames, LinkConfig, Setting};
use bytes::Bytes;

/// A run that is carried out elsewhere. Its time begins with the links' schedules.
pub struct Emulated {
    plan: Plan,
    scene: Scene,
    seed: u64,
    application: Application,
    association: AssocConfig,
    paths: Vec<EmulatedPath>,
}

/// A path, for datagrams whose headers of IP and UDP the link adds.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedPath {
    /// Name of the cable.
    pub name: String,
    /// From the sender to the receiver.
    pub up: LinkConfig,
    /// And back.
    pub down: LinkConfig,
}

impl EmulatedPath {
    /// How often the link layer reports to the sender, counted from the start of the run; none where it does not.
    pub fn reports_every(&self) -> Option<Duration> {
        self.up.frames.every
    }

    /// The report, when so much was counted of the frames from the sender to the receiver.
    pub fn report(&self, counted: Frames) -> FrameErrors {
        frame_errors(self.up.frames, counted)
    }
}

impl Emulated {
    /// A run of a scenario's point.
    ///
    /// # Errors
    /// What an emulator does not have: a second flow, another transport than SCTP, a reader that takes its time, a way over
    /// more than one link.
    pub fn new(plan: &Plan, seed: u64) -> Result<Self, RunError> {
        let wrong = |what: &str| Err(RunError(format!("on real sockets: {what}")));
        let [flow] = plan.flows.as_slice() else { return wrong("a scenario has exactly one flow") };
        let Transport::Sctp(sctp) = &flow.transport else { return wrong("its flow has transport = \"sctp\"") };
        if sctp.read_rate.is_some() {
            return wrong("there is no read-rate");
        }
        if !flow.processing.is_zero() {
            return wrong("hosts take the time that they take: remove `processing`");
        }
        if sctp.peer.is_some() {
            return wrong("both ends have one profile: remove `peer`");
        }
        let scene = scene(plan, seed)?;
        let live = scene.flows.first().ok_or_else(|| RunError("no flow".to_owned()))?;
        let paths = live.pairs.iter().map(|pair| path(plan, &scene, sctp, *pair));
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let (mut association, _) = sctp.config(seed).map_err(|e| RunError(e.to_string()))?;
        // Relays are address translators: a further path joins as it does behind any of them.
        association.extensions.dynamic_addresses = true;
        // What watches the agents of the virtual network, which never run, now watches this.
        let mut application = Application::new(traffic(flow, seed, &live.record), sctp.delivery);
        application.start(live.start);
        Ok(Emulated { plan: plan.clone(), seed, application, association, paths, scene })
    }

    /// The association of both ends.
    pub fn association(&self) -> &AssocConfig {
        &self.association
    }

    /// The paths, in the sender's order.
    pub fn paths(&self) -> &[EmulatedPath] {
        &self.paths
    }

    /// How long it lasts.
    pub fn duration(&self) -> Duration {
        self.plan.duration
    }

    /// When the next message is made.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.application.next_timeout()
    }

    /// The next message that is due. Its deadline is in the time of the run.
    pub fn due(&mut self, now: Instant) -> Option<(SendOptions, Bytes)> {
        let live = self.scene.flows.first()?;
        self.application.take(now, &mut live.record.borrow_mut())
    }

    /// The receiver was handed a message.
    pub fn delivered(&mut self, now: Instant, ppid: u32, stream: StreamId, len: u64) {
        if let Some(live) = self.scene.flows.first() {
            Application::taken(&mut live.record.borrow_mut(), ppid, stream, len, now);
        }
    }

    /// The values of the plan's metrics, in their order; none for what only a run in virtual time can see.
    pub fn values(&self) -> Vec<Option<f64>> {
        self.scene.tell_unsent(&self.plan);
        let measured = Measured::new(&self.plan, &self.scene, self.seed, &Snapshots::default());
        self.plan.measures.iter().map(|m| seen_outside(&m.of).then(|| measured.value(m)).flatten()).collect()
    }
}

/// Is it made of what was sent and what was handed over, and of nothing inside a stack or a link?
fn seen_outside(of: &Of) -> bool {
    let metric = match of {
        Of::Flow(_, metric) => metric,
        Of::Link(..) | Of::Drawn(_) => return false,
        Of::Derived(d) => return d.parts().all(|part| seen_outside(&part.of)),
    };
    match metric {
        FlowMetric::Goodput | FlowMetric::Picture(_) | FlowMetric::Messages | FlowMetric::DeadlineMisses => true,
        FlowMetric::Due(_) | FlowMetric::Viewed(_) | FlowMetric::Framed(_) => true,
        FlowMetric::Mean(d) | FlowMetric::Percentile(d, _) | FlowMetric::Longest(d) => *d == Delay::Message,
        _ => false,
    }
}

fn path(plan: &Plan, scene: &Scene, sctp: &Sctp, pair: (Address, Address)) -> Result<EmulatedPath, RunError> {
    let link = |from, to| match scene.network.way(from, to).as_deref() {
        Some([id]) => Ok((*id, scene.network.link(*id).map(|l| l.config().clone()).unwrap_or_default())),
        _ => Err(RunError("on real sockets: each path is one link, as in kind = \"disjoint-paths\"".to_owned())),
    };
    let (id, up) = link(pair.0, pair.1)?;
    let (_, down) = link(pair.1, pair.0)?;
    let cable = plan.topology.cables.get(id.cable().0 as usize).map_or_else(String::new, |c| c.name.clone());
    let mut up = beneath(up, sctp.overhead);
    if sctp.reads_true_loss() {
        up.frames.every = None;
    }
    Ok(EmulatedPath { name: cable, up, down: beneath(down, sctp.overhead) })
}

/// This link for packets that come without their headers of IP and UDP.
fn beneath(link: LinkConfig, headers: u32) -> LinkConfig {
    let less = |mtu: Option<u32>| mtu.map(|m| m.saturating_sub(headers));
    let schedule = link.schedule.map(|set| match set {
        Setting::Mtu(mtu) => Setting::Mtu(less(mtu)),
        other => other,
    });
    LinkConfig { overhead: link.overhead + headers, mtu: less(link.mtu), schedule, ..link }
}
