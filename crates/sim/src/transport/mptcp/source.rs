//! The sending end of Multipath TCP on a host.

use super::coupling::{Verdict, View};
use super::filling::Filling;
use super::scheduler::Turns;
use super::stream::Offer;
use super::subflow::Subflow;
use super::{MptcpConfig, MptcpCounters, MptcpSegment, Scheduler};
use crate::network::{Address, Agent, Body, Context, Packet, Peer};
use crate::transport::tcp::{DataSegment, Sender, SenderCounters, Supply, Terms};
use anabranch_base::{Duration, Instant, RandomStream};

/// Called with the number of a subflow and its sender after each of its steps.
pub type MptcpWatch = Box<dyn FnMut(Instant, usize, &Sender)>;

/// What a coder sees of a subflow. Times are in seconds, windows in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathView {
    pub rtt: f64,
    pub rto: f64,
    pub window: f64,
    pub in_flight: u64,
    /// It may take something new.
    pub usable: bool,
}

impl PathView {
    fn of(subflow: &Subflow) -> Self {
        let s = &subflow.sender;
        PathView {
            rtt: s.srtt().map_or(f64::from(u32::MAX), |d| d.as_secs_f64()),
            rto: s.rto().as_secs_f64(),
            window: s.cwnd(),
            in_flight: s.in_flight(),
            usable: subflow.takes(),
        }
    }

    /// Has its window room?
    pub fn has_room(&self) -> bool {
        (self.in_flight as f64) < self.window.floor()
    }
}

/// Sends one connection to a `MptcpSink`.
pub struct MptcpSource {
    config: MptcpConfig,
    subflows: Vec<Subflow>,
    filling: Filling,
    turns: Turns,
    /// What a subflow's sender wants to send, kept for the next time.
    out: Vec<DataSegment>,
    views: Vec<View>,
    paths: Vec<PathView>,
    /// When the application has more.
    wake: Instant,
    watch: Option<MptcpWatch>,
}

impl MptcpSource {
    /// Sends `supply` over subflows, one for each pair of an address here and one of the sink; 64 at most. `random` gives
    /// the phase of each sender's clock.
    pub fn new(config: MptcpConfig, paths: &[(Address, Peer)], supply: Supply, random: &mut RandomStream) -> Self {
        let tick = config.tcp.rto.tick.as_nanos().max(1);
        let mut one = |(number, (source, peer)): (usize, &(Address, Peer))| {
            let phase = Duration::from_nanos(random.below(tick));
            Subflow::new(&config, number as u32, *source, *peer, phase)
        };
        MptcpSource {
            config,
            subflows: paths.iter().take(64).enumerate().map(&mut one).collect(),
            filling: Filling::new(supply, &config, paths.len().min(64)),
            turns: Turns::default(),
            out: Vec::new(),
            views: Vec::new(),
            paths: Vec::new(),
            wake: Instant::FAR,
            watch: None,
        }
    }

    /// Calls `watch` after each step of a subflow from now on.
    pub fn watch(&mut self, watch: MptcpWatch) {
        self.watch = Some(watch);
    }

    /// The senders of its subflows.
    pub fn subflows(&self) -> impl ExactSizeIterator<Item = &Sender> {
        self.subflows.iter().map(|s| &s.sender)
    }

    /// What it did beyond what its subflows count.
    pub fn counters(&self) -> MptcpCounters {
        self.filling.counters()
    }

    /// What the senders of all subflows did.
    pub fn sender_counters(&self) -> SenderCounters {
        self.subflows().fold(SenderCounters::default(), |sum, s| sum.plus(s.counters()))
    }

    /// When the last segment of the connection was acknowledged.
    pub fn done(&self) -> Option<Instant> {
        self.filling.done()
    }

    /// The first segment of the connection that is not acknowledged, and the next to leave.
    pub fn span(&self) -> (u64, u64) {
        self.filling.span()
    }

    /// One step of a subflow's sender, and what it sends.
    fn step<X>(
        &mut self,
        cx: &mut Context<'_, X>,
        on: usize,
        step: impl FnOnce(&mut Sender, &mut dyn FnMut(DataSegment)),
    ) {
        let Some(subflow) = self.subflows.get_mut(on) else { return };
        let out = &mut self.out;
        step(&mut subflow.sender, &mut |segment| out.push(segment));
        for segment in self.out.drain(..) {
            let (segment, content) = self.filling.fill(cx.now(), on, segment, subflow);
            subflow.send(cx, segment, content);
        }
        subflow.forget_acknowledged();
        subflow.note_losses();
        if let Some(watch) = &mut self.watch {
            watch(cx.now(), on, &subflow.sender);
        }
    }

    /// The others join once the first is open (RFC 8684 §3.2).
    fn join<X>(&mut self, cx: &mut Context<'_, X>) {
        let now = cx.now();
        for on in 0..self.subflows.len() {
            if let Some(subflow) = self.subflows.get_mut(on).filter(|s| !s.joined) {
                subflow.joined = true;
                self.step(cx, on, |sender, mut out| sender.start(now, &mut out));
            }
        }
    }

    /// How the window of subflow `on` is to grow and fall.
    fn couple(&mut self, on: usize) {
        self.views.clear();
        let mut place = None;
        for (i, s) in self.subflows.iter().enumerate() {
            let (Some(rtt), true) = (s.sender.srtt().filter(|r| !r.is_zero()), s.is_open()) else { continue };
            if i == on {
                place = Some(self.views.len());
            }
            let repaired = s.sender.is_recovering();
            let window = if repaired { s.sender.ssthresh() } else { s.sender.cwnd() }.max(1.0);
            self.views.push(View { window, rtt: rtt.as_secs_f64(), between_losses: s.between_losses() });
        }
        let Some(subflow) = self.subflows.get_mut(on) else { return };
        let verdict = match place {
            Some(place) => self.config.coupling.of(&self.views, place),
            None => Verdict { increase: 1.0 / subflow.sender.cwnd().max(1.0), left: 0.5 },
        };
        // A window that the receiver's or the application's pace has left open says nothing of the network (RFC 7661 §1);
        // as Linux, three segments short of it still count.
        let grows = subflow.sender.in_flight() as f64 + 3.0 >= subflow.sender.cwnd();
        subflow.sender.couple(Terms { grows, increase: verdict.increase, left: verdict.left });
    }

    /// Sends what the windows of subflows and of the receiver allow.
    fn push<X>(&mut self, cx: &mut Context<'_, X>) {
        let now = cx.now();
        let scheduler = self.config.scheduler;
        'again: loop {
            let many = self.turns.order(scheduler, &self.subflows);
            for place in 0..many {
                let Some(on) = self.turns.at(place) else { break };
                while let Some(offer) = self.offer(now, on) {
                    if !self.try_on(cx, on, offer) {
                        break;
                    }
                    if scheduler == Scheduler::RoundRobin {
                        continue 'again;
                    }
                }
                self.optimise(cx, on);
            }
            break;
        }
        self.wake = self.filling.next_at().filter(|at| *at > now).unwrap_or(Instant::FAR);
    }

    /// What subflow `on` would send.
    fn offer(&mut self, now: Instant, on: usize) -> Option<Offer> {
        self.paths.clear();
        if self.filling.plain().is_none() {
            self.paths.extend(self.subflows.iter().map(PathView::of));
        }
        self.filling.offer(now, on, &self.paths)
    }

    /// Offers a segment to subflow `on`; says whether it has left.
    fn try_on<X>(&mut self, cx: &mut Context<'_, X>, on: usize, offer: Offer) -> bool {
        let now = cx.now();
        let Some(subflow) = self.subflows.get_mut(on) else { return false };
        let before = subflow.sender.next_new();
        subflow.hand(offer.number, offer.bytes);
        let out = &mut self.out;
        subflow.sender.resume(now, &mut |segment| out.push(segment));
        let left = subflow.sender.next_new() > before;
        if left {
            self.filling.left(now, on, offer);
            self.turns.took(self.config.scheduler, on);
        } else {
            subflow.take_back();
        }
        self.step(cx, on, |_, _| ());
        left
    }

    /// The receive window has no room and subflow `on` may have: what holds the window up leaves on it too, where the one
    /// that carries it is much slower, and that one's window is halved, at most once in a round trip of `on`. The bounds,
    /// four round trips or a window of four, are those of the MPTCP for Linux of those years.
    fn optimise<X>(&mut self, cx: &mut Context<'_, X>, on: usize) {
        let now = cx.now();
        let Some((offer, slow)) = self.filling.plain().and_then(|s| s.holds_up(on)) else { return };
        let (Some(fast), Some(other)) = (self.subflows.get(on), self.subflows.get(slow)) else { return };
        let (rtt, theirs) = (fast.rtt(), other.rtt());
        if self.config.penalise && rtt < theirs && fast.penalised + rtt <= now && other.sender.is_plain() {
            if let Some(stream) = self.filling.plain() {
                stream.counters.penalties += 1;
            }
            if let Some(other) = self.subflows.get_mut(slow) {
                other.sender.halve();
            }
            if let Some(fast) = self.subflows.get_mut(on) {
                fast.penalised = now;
            }
        }
        let much = self.subflows.get(slow).is_some_and(|s| s.sender.cwnd() <= 4.0 || rtt * 4 < theirs);
        let carried = self.filling.plain().is_none_or(|s| s.was_on(offer.number, on));
        if self.config.opportunistic && much && !carried {
            self.try_on(cx, on, offer);
        }
    }
}

impl<X: 'static> Agent<X> for MptcpSource {
    fn start(&mut self, cx: &mut Context<'_, X>) {
        let now = cx.now();
        self.filling.begin(now);
        if let Some(first) = self.subflows.first_mut() {
            first.joined = true;
        }
        self.step(cx, 0, |sender, mut out| sender.start(now, &mut out));
    }

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        let Body::Mptcp(parcel) = &packet.body else { return };
        let Some(MptcpSegment::Ack(ack)) = parcel.segment() else { return };
        let (ack, now) = (*ack, cx.now());
        let on = ack.segment.flow as usize;
        self.filling.acknowledged(now, on, &ack);
        self.couple(on);
        self.step(cx, on, |sender, mut out| sender.acknowledge(now, &ack.segment, &mut out));
        self.join(cx);
        self.push(cx);
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        let now = cx.now();
        for on in 0..self.subflows.len() {
            let Some(subflow) = self.subflows.get(on) else { break };
            if subflow.sender.next_timeout().is_none_or(|at| at > now) {
                continue;
            }
            let before = subflow.sender.counters().timeouts;
            self.couple(on);
            self.step(cx, on, |sender, mut out| sender.timeout(now, &mut out));
            if let Some(subflow) = self.subflows.get(on)
                && subflow.sender.counters().timeouts > before
            {
                self.filling.timed_out(on, subflow);
            }
        }
        self.push(cx);
    }

    fn next_timeout(&self) -> Option<Instant> {
        let own = (self.wake != Instant::FAR).then_some(self.wake);
        self.subflows.iter().filter_map(|s| s.sender.next_timeout()).chain(own).min()
    }
}
