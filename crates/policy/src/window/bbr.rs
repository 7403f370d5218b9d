//! The window from a model of the path: its rate and its smallest round trip.
//!
//! Source: Cardwell, Cheng, Gunn, Yeganeh, Jacobson 2016 (BBR), with what draft-ietf-ccwg-bbr added: probing that ends
//! by loss, a headroom below what was lost. The rate is the engine's estimate of the path's capacity
//! ([`PathView::capacity`]), which a queue corrects downwards within a few round trips; a source that offers less than
//! the path carries does not lower it. Packets are paced at that rate, at `up` times it while more is probed for, and
//! the window holds `gain` times what the path does.
//! Deviations. The smallest round trip alone is too little where round trips vary: what counts is the mean of those of
//! packets that no queue of ours delayed, and their mean deviation. Probing goes on, each round at `up` times what the last one delivered, until a queue shows, so a path whose
//! rate came back is full again within some ten round trips. A path whose queue never emptied for ten seconds is let
//! run dry for a fifth of a second, as in BBR; one that was idle meanwhile is not. After a timeout the window starts
//! with one packet, and the first answer brings the model's window back.
//! Losses below `loss` of a round say nothing: radio loses some, and each loss halving the window is what makes
//! loss-based windows useless there. Beside flows that halve it takes more than its share of a shared queue.
//! Parameters: `gain`, `up`, `startup` of rates; `loss` share of a round; `probe` ms from one probe to the next;
//! `ack_interval` ms that a peer collects packets for one SACK: the window holds what the path carries meanwhile.

use super::{AckOnPath, Reaction, Window, WindowChange, WindowState, reaction, unchanged};
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Ppm, Rate};

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "bbr",
        source: "Cardwell, Cheng, Gunn, Yeganeh, Jacobson 2016; draft-ietf-ccwg-bbr",
        file: file!(),
        summary: "Paced at the path's measured rate; the window is a multiple of what it holds. Random loss costs nothing.",
        params: &[
            ParamInfo::number("gain", 2.0, "of what the path holds", 1.0, 8.0, "window"),
            ParamInfo::number("up", 1.25, "of the rate", 1.01, 4.0, "pace while more is probed for"),
            ParamInfo::number("startup", 2.77, "of the rate", 1.1, 4.0, "pace and window until the rate stops growing"),
            ParamInfo::number("loss", 0.1, "of a round", 0.001, 1.0, "loss that ends probing and lowers the window"),
            ParamInfo::millis("probe", 1_000, 50, 60_000, "time from one probe for more to the next"),
            ParamInfo::millis("ack_interval", 0, 0, 500, "longest time that a peer collects packets for one SACK"),
        ],
    },
    build: |p| Box::new(Bbr::new(p)),
};

/// Least window, packets.
const FLOOR: u64 = 4;
/// A smallest round trip this old is looked for again.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
/// How long the path runs dry for it.
const DRY: Duration = Duration::from_millis(200);
/// Largest window, in packets, on the word of a train alone.
const TRAIN_SHOWS: u64 = 256;
/// Packets that must be lost before their share counts, and rounds over which they are counted.
const SOME: u64 = 6;
const ROUNDS_COUNTED: u8 = 4;
/// Rounds of a probe that showed more, after which it doubles.
const GROWING: u8 = 2;
/// Rounds without growth that end the start.
const FLAT_ROUNDS: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The rate doubles each round.
    Startup,
    /// What the start put into the queue leaves.
    Drain,
    Cruise,
    /// Probing for more.
    Up,
    /// What the probe put into the queue leaves.
    Down,
    /// The queue empties until then, to see the smallest round trip.
    Dry(Instant),
}

struct Bbr {
    gain: Ppm,
    ack_interval: Duration,
    up: Ppm,
    startup: Ppm,
    loss: Ppm,
    probe: Duration,
    phase: Phase,
    newest_sent: u64,
    /// Rounds of a probe in a row that showed more.
    grown: u8,
    /// The packet whose acknowledgement ends the round.
    round_ends: u64,
    /// Of this round.
    round: Round,
    /// The largest rate at the end of a round of the start, and rounds since it grew.
    full: u64,
    flat: u8,
    phase_began: Instant,
    /// Smallest round trip when probing began.
    up_rtt: Duration,
    least_rtt: Duration,
    least_rtt_at: Instant,
    /// Nothing above this may be in flight after losses.
    ceiling: Option<u64>,
    losses: Losses,
}

/// What was acknowledged and what was lost over some rounds, bytes.
#[derive(Clone, Copy, Default)]
struct Losses {
    acked: u64,
    lost: u64,
    rounds: u8,
}

#[derive(Clone, Copy, Default)]
struct Round {
    /// All its round trips showed a queue.
    queued: Option<bool>,
    /// The sender had less to send than the path takes at some time of it.
    app_limited: bool,
    /// The rate at its start.
    rate: u64,
}

impl Bbr {
    fn new(p: &Params) -> Self {
        Bbr {
            gain: Ppm(p.ppm("gain") as u32),
            ack_interval: p.millis("ack_interval"),
            up: Ppm(p.ppm("up") as u32),
            startup: Ppm(p.ppm("startup") as u32),
            loss: Ppm(p.ppm("loss") as u32),
            probe: p.millis("probe"),
            phase: Phase::Startup,
            newest_sent: 0,
            grown: 0,
            round_ends: 0,
            round: Round::default(),
            full: 0,
            flat: 0,
            phase_began: Instant::ZERO,
            up_rtt: Duration::ZERO,
            least_rtt: Duration::ZERO,
            least_rtt_at: Instant::ZERO,
            ceiling: None,
            losses: Losses::default(),
        }
    }
    /// Bytes that the path holds without a queue of ours.
    fn pipe(p: &PathView) -> u64 {
        p.capacity.bytes_in(p.without_queue().usual() + p.unloaded_deviation)
    }
    fn enter(&mut self, now: Instant, phase: Phase) {
        (self.phase, self.phase_began, self.flat, self.grown) = (phase, now, 0, 0);
    }
    fn probe_up(&mut self, now: Instant, p: &PathView) {
        self.up_rtt = p.recent_rtt;
        self.enter(now, Phase::Up);
    }
    /// Where round after round shows more, the path has far more: the rate doubles, as at the start.
    fn up_pace(&self) -> Ppm {
        if self.grown >= GROWING { self.up.max(Ppm(2_000_000)) } else { self.up }
    }
    fn note_rtt(&mut self, now: Instant, p: &PathView) {
        let older = now.since(self.least_rtt_at) > MIN_RTT_LASTS;
        let near = p.last_rtt <= self.least_rtt + (self.least_rtt / 16).max(p.jitter);
        if self.least_rtt.is_zero() || near || p.in_flight == 0 {
            let anew = older || self.least_rtt.is_zero();
            self.least_rtt = if anew { p.last_rtt } else { self.least_rtt.min(p.last_rtt) };
            self.least_rtt_at = now;
        } else if older && !self.round.app_limited && !matches!(self.phase, Phase::Dry(_) | Phase::Startup) {
            self.enter(now, Phase::Dry(now + DRY.max(p.min_rtt)));
            self.least_rtt_at = now;
            self.least_rtt = p.last_rtt;
        }
    }
    /// More was lost in the last rounds than a path loses by itself.
    fn loses(&self, p: &PathView) -> bool {
        let sent = self.losses.acked + self.losses.lost;
        self.losses.lost >= SOME * p.mtu && self.losses.lost > self.loss.of(sent)
    }
    fn end_round(&mut self, now: Instant, p: &PathView) {
        let rate = p.capacity.bytes_per_sec();
        let (r, queued) = (self.round, self.round.queued == Some(true));
        match self.phase {
            Phase::Startup => {
                if rate >= self.full.saturating_add(self.full / 4) {
                    (self.full, self.flat) = (rate, 0);
                } else if !r.app_limited || queued {
                    self.flat += 1;
                }
                if self.flat >= FLAT_ROUNDS || self.loses(p) || queued && self.flat > 0 {
                    self.enter(now, Phase::Drain);
                }
            }
            Phase::Up => {
                // What a round's pace shows, its acknowledgements say one round later.
                let grows = rate > r.rate.saturating_add(r.rate / 16) || r.app_limited;
                self.flat = if grows { 0 } else { self.flat + 1 };
                let more = rate > r.rate.saturating_add(r.rate / 8) && !queued;
                self.grown = if more { self.grown.saturating_add(1) } else { 0 };
                // Where round trips vary much by themselves, only a queue that grew since then is one.
                let queued = queued && p.recent_rtt > self.up_rtt + self.up_rtt / 4;
                if self.loses(p) || queued || self.flat >= FLAT_ROUNDS {
                    self.enter(now, Phase::Down);
                }
            }
            Phase::Cruise if now.since(self.phase_began) >= self.probe.max(p.min_rtt * 4) => self.probe_up(now, p),
            Phase::Down if now.since(self.phase_began) > (p.min_rtt * 8).max(DRY) => self.enter(now, Phase::Cruise),
            _ => {}
        }
        self.losses.rounds += 1;
        if self.losses.rounds >= ROUNDS_COUNTED {
            if !self.loses(p) {
                // What did not hurt is allowed again, little by little.
                self.ceiling = self.ceiling.map(|c| c.saturating_add(c / 8)).filter(|c| *c < 4 * Self::pipe(p));
            }
            self.losses = Losses::default();
        }
        self.round = Round { rate, ..Round::default() };
    }
    fn advance(&mut self, now: Instant, p: &PathView) {
        let empty = p.in_flight <= Self::pipe(p).max(FLOOR * p.mtu);
        match self.phase {
            Phase::Drain | Phase::Down if empty => self.enter(now, Phase::Cruise),
            Phase::Dry(until) if now >= until => self.enter(now, Phase::Cruise),
            _ => {}
        }
    }
    fn window(&self, p: &PathView, acked: u64) -> u64 {
        let pipe = Self::pipe(p);
        let least = FLOOR * p.mtu;
        let (gain, burst) = (if self.phase == Phase::Startup { self.startup } else { self.gain }, 3 * p.mtu);
        // What arrived and waits for its SACK is under way no more, and counts as if it were.
        let collected = pipe + p.capacity.bytes_in(self.ack_interval);
        let target = (gain.of(pipe).max(collected) + burst).max(least);
        // A window below what is under way at the rate probed for would find itself.
        let under_way = if self.phase == Phase::Up {
            self.up_pace().of(self.up.of(p.capacity.bytes_in(p.mean_rtt.min(self.up_rtt * 2))))
        } else {
            0
        };
        let target = target.max(under_way);
        let target = self.ceiling.map_or(target, |c| target.min(c.max(pipe)).max(least));
        match self.phase {
            Phase::Dry(_) => (pipe / 2).max(least),
            // What the first window showed is no measure yet.
            Phase::Startup => p.cwnd.max(target.min(p.cwnd.saturating_add(acked))),
            _ if p.cwnd > target => target,
            _ => target.min(p.cwnd.saturating_add(acked.max(p.mtu * FLOOR))),
        }
    }
}

impl Window for Bbr {
    fn decays_while_idle(&self) -> bool {
        false
    }
    fn grows_in_recovery(&self) -> bool {
        true
    }
    fn on_sent(&mut self, _now: Instant, tx_seq: u64, _me: &PathView) {
        self.newest_sent = tx_seq;
    }
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        let Some(p) = cx.path(me) else { return WindowChange::default() };
        let ends = ack.newest_seq.is_some_and(|s| s >= self.round_ends);
        self.losses.acked += ack.acked;
        self.round.app_limited |= ack.app_limited;
        if let Some(rtt) = ack.rtt {
            self.round.queued = Some(self.round.queued.unwrap_or(true) && p.is_queued(rtt));
            self.note_rtt(cx.now, p);
        }
        if ends {
            self.end_round(cx.now, p);
            self.round_ends = self.newest_sent + 1;
        }
        self.advance(cx.now, p);
        let started = self.phase != Phase::Startup;
        WindowChange {
            set: Some(self.window(p, ack.acked)),
            // Others read from it that startup is over.
            ssthresh: if started { Self::pipe(p).max(FLOOR * p.mtu) } else { u64::MAX },
            ..WindowChange::default()
        }
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        if reaction(e, cause) == Reaction::Restart {
            return WindowState { cwnd: p.mtu, ..unchanged(p) };
        }
        if e.bytes == 0 && e.new_episode {
            // A mark: the queue itself says that it is building up.
            let ceiling = p.cwnd - p.cwnd / 8;
            self.ceiling = Some(ceiling.max(Self::pipe(p)).max(FLOOR * p.mtu));
            self.enter(cx.now, Phase::Down);
            return WindowState { cwnd: self.ceiling.map_or(p.cwnd, |c| c.min(p.cwnd)), ..unchanged(p) };
        }
        if matches!(cause, Cause::Congestion | Cause::PathFailure) {
            self.losses.lost += e.bytes;
            if self.loses(p) {
                let now = self.ceiling.unwrap_or(u64::MAX).min(p.in_flight + e.bytes);
                self.ceiling = Some((now - now / 8).max(Self::pipe(p)));
                self.losses = Losses::default();
                match self.phase {
                    Phase::Startup => self.enter(cx.now, Phase::Drain),
                    Phase::Up => self.enter(cx.now, Phase::Down),
                    _ => {}
                }
            }
        }
        unchanged(p)
    }
    fn wants_train(&self) -> bool {
        true
    }
    fn on_train(&mut self, now: Instant, p: &PathView) -> Option<u64> {
        if self.phase == Phase::Startup {
            self.probe_up(now, p);
        }
        Some((self.gain.of(Self::pipe(p)) + 3 * p.mtu).min(TRAIN_SHOWS * p.mtu))
    }
    fn paces(&self) -> bool {
        true
    }
    fn pace(&self, p: &PathView) -> Option<Rate> {
        if p.capacity == Rate::ZERO {
            // The first window over the first round trip.
            let rtt = if p.min_rtt.is_zero() { return None } else { p.min_rtt };
            return Some(Rate::of(self.startup.of(p.cwnd), rtt));
        }
        let pace = p.capacity.bytes_per_sec();
        let at_least = Rate::of(FLOOR * p.mtu, p.srtt.max(Duration::from_millis(1))).bytes_per_sec();
        let pace = match self.phase {
            Phase::Startup => {
                self.startup.of(pace).max(Rate::of(p.cwnd, p.min_rtt.max(Duration::from_millis(1))).bytes_per_sec())
            }
            Phase::Up => self.up_pace().of(pace),
            Phase::Drain => pace / 2,
            Phase::Down => pace - pace / 4,
            Phase::Cruise | Phase::Dry(_) => pace,
        };
        Some(Rate::from_bytes_per_sec(pace.max(at_least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_cause::LossKind;
    use crate::testing::{Scene, loss, ms};

    const MTU: u64 = 1_172;

    fn policy() -> Bbr {
        Bbr::new(&Params::defaults(&POLICY.info, 1))
    }
    /// 1 byte per microsecond over 50 ms.
    fn scene() -> Scene {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 50);
        (p.mean_rtt, p.unloaded_rtt) = (ms(50), ms(50));
        p.capacity = Rate::from_bytes_per_sec(1_000_000);
        s
    }
    /// One round of `packets`, whose last acknowledgement shows `rtt` ms.
    fn round(s: &mut Scene, w: &mut Bbr, packets: u64, rtt: u64, app_limited: bool) {
        let first = w.newest_sent + 1;
        (first..first + packets).for_each(|seq| w.on_sent(s.now, seq, &s.paths[0]));
        s.now += ms(rtt);
        s.paths[0].last_rtt = ms(rtt);
        for seq in first..first + packets {
            let ack = AckOnPath {
                acked: 1_000,
                bytes: 1_000,
                newest_seq: Some(seq),
                rtt: Some(ms(rtt)),
                app_limited,
                ..AckOnPath::default()
            };
            let change = w.on_ack(&s.cx(), PathId(0), &ack);
            (s.paths[0].cwnd, s.paths[0].ssthresh) = (change.set.unwrap(), change.ssthresh);
        }
    }
    fn started() -> (Scene, Bbr) {
        let (mut s, mut w) = (scene(), policy());
        (0..6).for_each(|_| round(&mut s, &mut w, 50, 50, false));
        (s, w)
    }
    fn share(s: &Scene, w: &Bbr) -> f64 {
        w.pace(&s.paths[0]).unwrap().bytes_per_sec() as f64 / 1e6
    }

    #[test]
    fn the_start_ends_when_the_rate_stops_growing_and_the_window_is_twice_the_pipe() {
        let (mut s, mut w) = (scene(), policy());
        round(&mut s, &mut w, 10, 50, false);
        assert_eq!((w.phase, s.paths[0].ssthresh), (Phase::Startup, u64::MAX));
        assert!(share(&s, &w) > 2.5);
        (0..6).for_each(|_| round(&mut s, &mut w, 50, 50, false));
        assert_eq!((w.phase, s.paths[0].cwnd, s.paths[0].ssthresh), (Phase::Cruise, 100_000 + 3 * MTU, 50_000));
        assert_eq!(share(&s, &w), 1.0);
    }

    #[test]
    fn a_source_that_offers_less_does_not_end_the_start() {
        let (mut s, mut w) = (scene(), policy());
        (0..20).for_each(|_| round(&mut s, &mut w, 10, 50, true));
        assert_eq!(w.phase, Phase::Startup);
        assert!(s.paths[0].cwnd <= 139_000 + 3 * MTU, "bounded all the same: {}", s.paths[0].cwnd);
    }

    #[test]
    fn random_loss_costs_nothing_and_much_loss_does() {
        let (mut s, mut w) = started();
        let before = s.paths[0].cwnd;
        for _ in 0..40 {
            round(&mut s, &mut w, 50, 50, true);
            let e = LossEvent { bytes: 2_500, ..loss(0) };
            assert_eq!(w.on_loss(&s.cx(), PathId(0), &e, Cause::Congestion).cwnd, s.paths[0].cwnd);
        }
        assert_eq!((s.paths[0].cwnd, w.ceiling), (before, None), "5 % of each round");
        s.paths[0].in_flight = 80_000;
        for _ in 0..3 {
            let e = LossEvent { bytes: 20_000, ..loss(0) };
            w.on_loss(&s.cx(), PathId(0), &e, Cause::Congestion);
            round(&mut s, &mut w, 50, 50, true);
        }
        assert!(s.paths[0].cwnd < 90_000 && s.paths[0].cwnd >= 50_000, "{}", s.paths[0].cwnd);
        (0..40).for_each(|_| round(&mut s, &mut w, 50, 50, true));
        assert_eq!(s.paths[0].cwnd, before, "what does not hurt is allowed again");
        let radio = LossEvent { bytes: 50_000, ..loss(0) };
        w.on_loss(&s.cx(), PathId(0), &radio, Cause::Radio);
        assert_eq!(w.ceiling, None);
    }

    #[test]
    fn probing_goes_on_while_the_rate_grows_and_ends_with_a_queue() {
        let (mut s, mut w) = started();
        let begun = s.now;
        while w.phase != Phase::Up {
            round(&mut s, &mut w, 10, 50, false);
            assert!(s.now - begun < ms(1_100), "after a second");
        }
        for _ in 0..8 {
            let grown = s.paths[0].capacity.bytes_per_sec() * 5 / 4;
            s.paths[0].capacity = Rate::from_bytes_per_sec(grown);
            round(&mut s, &mut w, 10, 50, false);
        }
        assert_eq!(w.phase, Phase::Up);
        assert!(s.paths[0].cwnd > 300_000, "{}", s.paths[0].cwnd);
        let (pace, capacity) = (share(&s, &w) * 1e6, s.paths[0].capacity.bytes_per_sec() as f64);
        assert!((pace / capacity - 2.0).abs() < 0.01, "far more is there: twice as fast as the last round");
        s.paths[0].in_flight = 2_000_000;
        s.paths[0].recent_rtt = ms(90);
        (0..2).for_each(|_| round(&mut s, &mut w, 10, 90, false));
        assert_eq!(w.phase, Phase::Down);
        s.paths[0].in_flight = 0;
        round(&mut s, &mut w, 10, 50, false);
        assert_eq!(w.phase, Phase::Cruise);
    }

    #[test]
    fn a_queue_does_not_let_a_probe_grow() {
        let (mut s, mut w) = started();
        while w.phase != Phase::Up {
            round(&mut s, &mut w, 10, 50, false);
        }
        // The rate fell to a tenth, and nothing says so yet but the round trips.
        s.paths[0].mean_rtt = ms(500);
        round(&mut s, &mut w, 10, 50, false);
        assert!(s.paths[0].cwnd <= 160_000, "what two round trips hold while probing, not ten: {}", s.paths[0].cwnd);
    }

    #[test]
    fn a_mark_lowers_the_window() {
        let (mut s, mut w) = started();
        let before = s.paths[0].cwnd;
        let mark = LossEvent { bytes: 0, ..loss(0) };
        let state = w.on_loss(&s.cx(), PathId(0), &mark, Cause::Congestion);
        assert_eq!((state.cwnd, w.phase), (before - before / 8, Phase::Down));
        s.paths[0].cwnd = state.cwnd;
        round(&mut s, &mut w, 10, 50, false);
        assert!(s.paths[0].cwnd < before);
    }

    #[test]
    fn after_a_timeout_the_first_answer_brings_the_window_back() {
        let (mut s, mut w) = started();
        let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        let state = w.on_loss(&s.cx(), PathId(0), &timeout, Cause::Congestion);
        assert_eq!(state.cwnd, MTU);
        s.paths[0].cwnd = state.cwnd;
        round(&mut s, &mut w, 1, 50, true);
        assert!(s.paths[0].cwnd >= 5 * MTU);
        round(&mut s, &mut w, 25, 50, true);
        assert_eq!(s.paths[0].cwnd, 100_000 + 3 * MTU);
    }

    #[test]
    fn a_path_that_never_empties_runs_dry_now_and_then() {
        let (mut s, mut w) = started();
        s.paths[0].in_flight = 100_000;
        for _ in 0..130 {
            round(&mut s, &mut w, 10, 90, false);
            if matches!(w.phase, Phase::Dry(_)) {
                assert_eq!(s.paths[0].cwnd, 25_000);
                return;
            }
        }
        panic!("ten seconds with a queue: {:?}", w.phase);
    }
}
