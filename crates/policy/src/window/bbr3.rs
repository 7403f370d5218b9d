//! BBR version 3: the window and the pace from a model of the path, as the Internet-Draft has it.
//!
//! Source: draft-ietf-ccwg-bbr (Cardwell, Swett, Beshay), in its text of 2026, whose names of states and variables are used.
//! The path is probed for more rate in cycles (refill, up, down, cruise), some 2 to 3 s or 63 rounds apart, and for its
//! smallest round trip each 5 s. Losses of more than `loss` of what was in flight while it probes set a long-term bound of
//! what may be in flight; losses at other times lower the rate and the flight of that cycle to what a round delivered, at
//! most to `beta`. [`super::bbr`] is a relative of ours that follows faster and shares worse.
//! Files: `sample` has the delivery rate, `model` the long-term model, `bounds` what losses do, `cycle` the states
//! and the probe for more.
//! Deviations: no burst is planned (the engine paces packet by packet), so that the budget for offloading is what leaves
//! within a millisecond, two packets at least. Losses that one SACK shows are handled together, as one burst. An episode
//! that turns out to be spurious is not undone. Radio losses and reordering, where [`crate::loss_cause`] names them, are no
//! losses. A CE mark counts as a loss that was too many. Recovery from a timeout is over once as much was delivered as it
//! took for lost.
//! Parameters: `loss`, the share that is tolerated while probing; `beta`, how far a round with losses may lower the bounds;
//! `headroom`, what is left free below the long-term bound.

mod bounds;
mod cycle;
mod model;
mod sample;

use super::{AckOnPath, Window, WindowChange, WindowState, unchanged};
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Ppm, RandomStream, Rate};
use bounds::{Bounds, in_flight_at_loss};
use cycle::{Feedback, Probe, State};
use model::{Aggregation, FullBandwidth, MaxBandwidth, MinRtt, Rounds};
use sample::{Sample, Sampler};

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "bbr3",
        source: "draft-ietf-ccwg-bbr",
        file: file!(),
        summary: "BBR version 3 as its draft has it: paced, probing in cycles, bounded by what losses say.",
        params: &[
            ParamInfo::number("loss", 0.02, "of what is in flight", 0.001, 0.5, "loss that is tolerated while probing"),
            ParamInfo::number("beta", 0.7, "of the bounds", 0.1, 1.0, "how far a round with losses may lower them"),
            ParamInfo::number("headroom", 0.15, "of the long-term bound", 0.0, 0.9, "what is left free for others"),
        ],
    },
    build: |p| Box::new(Bbr3::new(p)),
};

/// Least window, packets (MinPipeCwnd).
const FLOOR: u64 = 4;
/// Least time for which the window stays small to see the smallest round trip.
const PROBE_RTT_LASTS: Duration = Duration::from_millis(200);
/// Packets leave a little slower than the rate.
const MARGIN: Ppm = Ppm(990_000);
/// Rounds after which a queue that does not drain is accepted.
const DRAIN_ROUNDS: u64 = 3;
/// Most bytes that offloading takes at once.
const QUANTUM: u64 = 64 * 1_024;

/// The window before something lowered it for a while.
#[derive(Debug, Default)]
struct Saved {
    cwnd: u64,
    /// A timeout's losses are made up for once so much was delivered.
    recovers_at: Option<u64>,
    /// It may be as large again.
    restore: bool,
}

struct Bbr3 {
    loss: Ppm,
    beta: Ppm,
    headroom: Ppm,
    random: RandomStream,
    state: State,
    sampler: Sampler,
    rounds: Rounds,
    max_bw: MaxBandwidth,
    full: FullBandwidth,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    bounds: Bounds,
    probe: Probe,
    saved: Saved,
    drain_round: u64,
    /// The window was full in this round, and in the one before.
    limited: [bool; 2],
    /// When the smallest round trip has been looked for long enough; none before the flight is small.
    probe_rtt_ends: Option<Instant>,
    probe_rtt_round: bool,
    idle_restart: bool,
    begun: bool,
    pace: Rate,
    initial_cwnd: u64,
}

impl Bbr3 {
    fn new(p: &Params) -> Self {
        Bbr3 {
            loss: Ppm(p.ppm("loss") as u32),
            beta: Ppm(p.ppm("beta") as u32),
            headroom: Ppm(p.ppm("headroom") as u32),
            random: p.random("bbr3"),
            state: State::default(),
            sampler: Sampler::default(),
            rounds: Rounds::default(),
            max_bw: MaxBandwidth::default(),
            full: FullBandwidth::default(),
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            bounds: Bounds::default(),
            probe: Probe::default(),
            saved: Saved::default(),
            drain_round: 0,
            limited: [false; 2],
            probe_rtt_ends: None,
            probe_rtt_round: false,
            idle_restart: false,
            begun: false,
            pace: Rate::ZERO,
            initial_cwnd: 0,
        }
    }
    fn begin(&mut self, now: Instant, p: &PathView) {
        if !core::mem::replace(&mut self.begun, true) {
            self.min_rtt.begin(now);
            self.aggregation.restart(now);
            self.initial_cwnd = p.cwnd;
        }
    }

    // ---- what the model makes of itself

    fn bw(&self) -> Rate {
        self.bounds.bound(self.max_bw.get())
    }
    /// `gain` times what the path holds at `rate`.
    fn pipe(&self, rate: Rate, gain: Ppm) -> u64 {
        if self.min_rtt.least.is_zero() { self.initial_cwnd } else { gain.of(rate.bytes_in(self.min_rtt.least)) }
    }
    /// With what ends and links collect.
    fn with_budget(&self, p: &PathView, in_flight: u64) -> u64 {
        let quantum = self.pace.bytes_in(Duration::from_millis(1)).min(QUANTUM).max(2 * p.mtu);
        let more = if self.state == State::Up { 2 * p.mtu } else { 0 };
        in_flight.max(quantum).max(FLOOR * p.mtu) + more
    }
    /// The smallest flight that fills the path.
    fn fills(&self, p: &PathView, rate: Rate) -> u64 {
        self.with_budget(p, self.pipe(rate, Ppm::ONE))
    }
    fn target(&self, p: &PathView) -> u64 {
        self.pipe(self.bw(), Ppm::ONE).min(p.cwnd)
    }
    fn with_headroom(&self, p: &PathView) -> u64 {
        self.bounds.with_headroom(self.headroom, p.mtu, FLOOR * p.mtu)
    }
    fn is_cwnd_limited(&self) -> bool {
        self.limited[0] || self.limited[1]
    }
    fn is_too_high(&self, s: &Sample) -> bool {
        s.lost > self.loss.of(s.in_flight)
    }
    fn set_pace(&mut self, gain: Ppm) {
        let rate = Rate::from_bytes_per_sec(MARGIN.of(gain.of(self.bw().bytes_per_sec())));
        if self.full.reached || rate > self.pace {
            self.pace = rate;
        }
    }
    fn restart_round(&mut self) {
        self.rounds.restart(self.sampler.delivered());
    }

    // ---- the start

    fn check_startup(&mut self, p: &PathView, s: &Sample) {
        if self.state != State::Startup {
            return;
        }
        if self.bounds.end_startup(p.in_recovery, self.is_too_high(s)) {
            (self.full.reached, self.full.now) = (true, true);
            self.bounds.long_term = Some(self.pipe(self.bw(), Ppm::ONE).max(self.bounds.latest_delivered()));
        }
        if self.full.reached {
            self.state = State::Drain;
            self.drain_round = self.rounds.count;
        }
    }
    fn check_drain(&mut self, now: Instant, p: &PathView) {
        let drained = p.in_flight <= self.fills(p, self.bw());
        if self.state == State::Drain && (drained || self.rounds.count > self.drain_round + DRAIN_ROUNDS) {
            self.go_down(now);
        }
    }

    // ---- the smallest round trip

    fn check_probe_rtt(&mut self, now: Instant, p: &PathView, s: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.save(p);
            self.state = State::ProbeRtt;
            (self.probe_rtt_ends, self.probe.feedback) = (None, Feedback::Stopping);
            self.restart_round();
        }
        if self.state == State::ProbeRtt {
            self.sampler.hold_back(p.in_flight);
            match self.probe_rtt_ends {
                None if p.in_flight <= self.probe_rtt_window(p) => {
                    (self.probe_rtt_ends, self.probe_rtt_round) = (Some(now + PROBE_RTT_LASTS), false);
                    self.restart_round();
                }
                None => {}
                Some(_) => {
                    self.probe_rtt_round |= self.rounds.begins;
                    if self.probe_rtt_round {
                        self.end_probe_rtt(now);
                    }
                }
            }
        }
        self.idle_restart &= s.delivered == 0;
    }
    fn probe_rtt_window(&self, p: &PathView) -> u64 {
        self.pipe(self.bw(), State::ProbeRtt.cwnd_gain()).max(FLOOR * p.mtu)
    }
    fn end_probe_rtt(&mut self, now: Instant) {
        if self.probe_rtt_ends.is_none_or(|end| now <= end) {
            return;
        }
        self.min_rtt.probed(now);
        self.saved.restore = true;
        self.bounds.forget_short_term();
        if self.full.reached {
            self.go_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    // ---- the window

    fn save(&mut self, p: &PathView) {
        let lowered = self.saved.recovers_at.is_some() || self.state == State::ProbeRtt;
        self.saved.cwnd = if lowered { self.saved.cwnd.max(p.cwnd) } else { p.cwnd };
    }
    fn window(&mut self, p: &PathView, acked: u64) -> u64 {
        let floor = FLOOR * p.mtu;
        let most = self.with_budget(p, self.pipe(self.bw(), self.state.cwnd_gain()) + self.aggregation.extra());
        let restored = if core::mem::take(&mut self.saved.restore) { self.saved.cwnd } else { 0 };
        let mut cwnd = p.cwnd.max(restored);
        if self.full.reached {
            cwnd = (cwnd + acked).min(most);
        } else if cwnd < most || self.sampler.delivered() < self.initial_cwnd {
            cwnd += acked;
        }
        cwnd = cwnd.max(floor);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_window(p));
        }
        let cap = match self.state {
            State::Cruise | State::ProbeRtt => self.with_headroom(p),
            State::Down | State::Refill | State::Up => self.bounds.long_term.unwrap_or(u64::MAX),
            State::Startup | State::Drain => u64::MAX,
        };
        cwnd.min(cap.min(self.bounds.short_term()).max(floor))
    }
    fn update_model(&mut self, now: Instant, p: &PathView, ack: &AckOnPath) -> Sample {
        let s = self.sampler.acked(now, ack, p.packets_in_flight);
        let delivered = self.sampler.delivered();
        self.bounds.update_latest(&s, delivered);
        self.rounds.update(s.prior_delivered, delivered);
        if self.rounds.begins {
            self.probe.rounds_since += 1;
            self.limited = [false, self.limited[0]];
        }
        self.limited[0] |= ack.fully_used;
        self.max_bw.update(&s);
        self.bounds.adapt(self.state.is_probing(), self.max_bw.get(), p.cwnd, self.beta);
        let (bw, begins) = (self.bw(), self.rounds.begins);
        self.aggregation.update(now, &s, bw, p.cwnd, begins, self.full.reached);
        self.full.check(begins, &s);
        s
    }
}

impl Window for Bbr3 {
    fn sets_itself(&self) -> bool {
        true
    }
    fn decays_while_idle(&self) -> bool {
        false
    }
    fn grows_in_recovery(&self) -> bool {
        true
    }
    fn on_sent(&mut self, now: Instant, tx_seq: u64, p: &PathView) {
        self.begin(now, p);
        let alone = p.packets_in_flight <= 1;
        if alone && self.sampler.is_app_limited() {
            self.idle_restart = true;
            self.aggregation.restart(now);
            if self.state.is_in_cycle() {
                self.set_pace(Ppm::ONE);
            } else if self.state == State::ProbeRtt {
                self.end_probe_rtt(now);
            }
        }
        self.sampler.sent(now, tx_seq, p.in_flight, alone);
    }
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        let Some(p) = cx.path(me) else { return WindowChange::default() };
        let now = cx.now;
        self.begin(now, p);
        let s = self.update_model(now, p, ack);
        self.check_startup(p, &s);
        self.check_drain(now, p);
        self.advance_cycle(now, p, &s);
        self.min_rtt.update(now, ack.rtt);
        self.check_probe_rtt(now, p, &s);
        self.bounds.advance_latest(&s);
        if self.saved.recovers_at.is_some_and(|at| self.sampler.delivered() >= at) {
            (self.saved.recovers_at, self.saved.restore) = (None, true);
        }
        if self.pace == Rate::ZERO
            && let Some(rtt) = ack.rtt
        {
            self.pace = first_pace(self.initial_cwnd, rtt);
        }
        self.set_pace(self.state.pacing_gain());
        WindowChange {
            set: Some(self.window(p, ack.acked)),
            // Others read from it that the start is over.
            ssthresh: if self.full.reached { self.pipe(self.bw(), Ppm::ONE).max(FLOOR * p.mtu) } else { u64::MAX },
            ..WindowChange::default()
        }
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        let timeout = e.kind == LossKind::Timeout;
        if !timeout && !matches!(cause, Cause::Congestion | Cause::PathFailure) {
            return unchanged(p);
        }
        let s = self.sampler.lost(e);
        self.bounds.note_loss(self.sampler.delivered());
        let marked = e.bytes == 0 && !timeout;
        if self.probe.is_sampled && (marked || self.is_too_high(&s)) {
            let in_flight = if marked { p.in_flight } else { in_flight_at_loss(&s, e.bytes, self.loss) };
            self.handle_too_high(cx.now, p, &Sample { in_flight, ..s });
        }
        if !timeout {
            return unchanged(p);
        }
        self.save(p);
        self.saved.recovers_at = Some(self.sampler.delivered() + e.bytes);
        WindowState { cwnd: p.mtu, ..unchanged(p) }
    }
    fn paces(&self) -> bool {
        true
    }
    fn pace(&self, p: &PathView) -> Option<Rate> {
        Some(if self.pace > Rate::ZERO { self.pace } else { first_pace(p.cwnd, p.srtt) })
    }
}

/// Pace before anything is known of the rate: the first window over the first round trip, or a millisecond.
fn first_pace(cwnd: u64, rtt: Duration) -> Rate {
    Rate::of(State::Startup.pacing_gain().of(cwnd), rtt.max(Duration::from_millis(1)))
}

#[cfg(test)]
mod tests;
