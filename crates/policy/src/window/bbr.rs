//! The window from a model of the path: its rate and its smallest round trip.
//!
//! Source: Cardwell, Cheng, Gunn, Yeganeh, Jacobson 2016 (BBR), with what draft-ietf-ccwg-bbr added: probing that ends
//! by loss, a headroom below what was lost. The rate is the engine's estimate of the path's capacity
//! ([`PathView::capacity`]), which a queue corrects downwards within a few round trips; a source that offers less than
//! the path carries does not lower it. Packets are paced at that rate, at `up` times it while more is probed for, and
//! the window holds `gain` times what the path does.
//! Deviations. The smallest round trip alone is too little where round trips vary: what counts is the mean of those of
//! packets that no queue of ours delayed, and their mean deviation. Probing goes on, each round at `up` times what the
//! last one delivered, until a queue shows; where the path follows, each round doubles. Beside a path whose packets
//! overtake each other, and on such a path alone, a probe ends as soon as a quarter of a round trip of queue stands,
//! and not with its round. A path whose rate fell by half or more a quarter of a minute ago or later is asked at 1.75
//! times its rate after each round without a queue, so that what comes back is used within some six round trips. A path
//! whose queue never emptied for ten seconds is let run dry for a fifth of a second, as in BBR; one that was idle
//! meanwhile is not. After a timeout the window starts with one packet, and the first answer brings the model's window
//! back.
//! What was lost is allowed again little by little, and faster where packets overtake each other and no queue stands.
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
/// A path that carried twice as much so long ago, or less, may do so again at any moment. It is asked by a faster pace,
/// and again as soon as no queue stands.
const REMEMBERED: Duration = Duration::from_secs(15);
const ASKING: Ppm = Ppm(1_750_000);
/// Rounds of a probe that showed more, after which the path follows.
const GROWING: u8 = 2;
/// Pace once the path follows a probe: it has far more.
const FOLLOWING: Ppm = Ppm(2_000_000);
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
    /// The rate when probing began.
    up_rate: u64,
    /// The path delivered what the probe asked for.
    follows: bool,
    /// Rounds of a probe in a row that showed more.
    grown: u8,
    /// The largest rates of this span of time and of the one before, and when it began.
    had: [u64; 2],
    had_since: Instant,
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
            up_rate: 0,
            follows: false,
            grown: 0,
            had: [0; 2],
            had_since: Instant::ZERO,
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
        (self.phase, self.phase_began, self.flat) = (phase, now, 0);
        (self.follows, self.grown) = (false, 0);
    }
    fn probe_up(&mut self, now: Instant, p: &PathView) {
        (self.up_rtt, self.up_rate) = (p.recent_rtt, p.capacity.bytes_per_sec());
        self.enter(now, Phase::Up);
    }
    /// Pace of a probe.
    fn up_pace(&self, p: &PathView) -> Ppm {
        let more = if self.follows { Some(FOLLOWING) } else { self.has_fallen(p).then_some(ASKING) };
        more.map_or(self.up, |m| m.max(self.up))
    }
    /// Notes what the path carries.
    fn remember(&mut self, now: Instant, rate: u64) {
        if now.since(self.had_since) > REMEMBERED {
            (self.had, self.had_since) = ([0, self.had[0]], now);
        }
        self.had[0] = self.had[0].max(rate);
    }
    /// It carried more than twice as much not long ago.
    fn has_fallen(&self, p: &PathView) -> bool {
        self.had[0].max(self.had[1]) / 2 > p.capacity.bytes_per_sec()
    }
    /// After a probe the path is left alone for a while.
    fn has_rested(&self, now: Instant, p: &PathView) -> bool {
        let clear = self.round.queued == Some(false) && !self.round.app_limited;
        clear && self.has_fallen(p) || now.since(self.phase_began) >= self.probe.max(p.min_rtt * 4)
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
                // One round tells where the path had as much before.
                let soon = self.has_fallen(p) && rate >= self.up_rate.saturating_add(self.up_rate / 5);
                self.follows = !queued && (soon || self.grown >= GROWING);
                // Where round trips vary much by themselves, only a queue that grew since then is one.
                let queued = queued && p.recent_rtt > self.up_rtt + self.up_rtt / 4;
                if self.loses(p) || queued || self.flat >= FLAT_ROUNDS {
                    self.enter(now, Phase::Down);
                }
            }
            Phase::Cruise if self.has_rested(now, p) => self.probe_up(now, p),
            Phase::Down if now.since(self.phase_began) > (p.min_rtt * 8).max(DRY) => self.enter(now, Phase::Cruise),
            _ => {}
        }
        self.losses.rounds += 1;
        if self.losses.rounds >= ROUNDS_COUNTED {
            if !self.loses(p) {
                // What did not hurt is allowed again, little by little; faster where packets overtake each other and no queue
                // stands, since some of what was taken for lost was only late.
                let part = if p.reorders(now) && !queued { 2 } else { 8 };
                self.ceiling = self.ceiling.map(|c| c.saturating_add(c / part)).filter(|c| *c < 4 * Self::pipe(p));
            }
            self.losses = Losses::default();
        }
        self.round = Round { rate, ..Round::default() };
    }
    /// Is the queue longer than a probe should make it before the round is over?
    fn is_too_long(&self, cx: &AssocView<'_>, p: &PathView) -> bool {
        // At a faster pace the queue of a whole round would be long.
        let fast = self.up_pace(p) > self.up;
        // What another path would bring too late rides on this one, and nowhere else when its queue overflows. So does all on
        // the only path; where packets overtake each other there, some of a round come early and hide the queue.
        let alone = cx.active().all(|o| o.id == p.id);
        let relied_on = cx.active().any(|o| (alone || o.id != p.id) && o.reorders(cx.now));
        let most = if relied_on { self.up_rtt / 4 } else { self.up_rtt / 2 };
        (fast || relied_on) && p.is_queued(p.last_rtt) && p.last_rtt > self.up_rtt + most
    }
    fn advance(&mut self, cx: &AssocView<'_>, p: &PathView) {
        let now = cx.now;
        let empty = p.in_flight <= Self::pipe(p).max(FLOOR * p.mtu);
        match self.phase {
            Phase::Up if self.is_too_long(cx, p) => self.enter(now, Phase::Down),
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
            self.up_pace(p).of(self.up.of(p.capacity.bytes_in(p.mean_rtt.min(self.up_rtt * 2))))
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
    fn sets_itself(&self) -> bool {
        true
    }
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
        self.remember(cx.now, p.capacity.bytes_per_sec());
        if let Some(rtt) = ack.rtt {
            self.round.queued = Some(self.round.queued.unwrap_or(true) && p.is_queued(rtt));
            self.note_rtt(cx.now, p);
        }
        if ends {
            self.end_round(cx.now, p);
            self.round_ends = self.newest_sent + 1;
        }
        self.advance(cx, p);
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
        // Where that is only the least of it the start goes on from there.
        if self.phase == Phase::Startup && !p.capacity_may_be_more {
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
            Phase::Up => self.up_pace(p).of(pace),
            Phase::Drain => pace / 2,
            Phase::Down => pace - pace / 4,
            Phase::Cruise | Phase::Dry(_) => pace,
        };
        Some(Rate::from_bytes_per_sec(pace.max(at_least)))
    }
}

#[cfg(test)]
#[path = "bbr_tests.rs"]
mod tests;
