//! The states of BBR and the cycle in which it probes for more: refill, up, down, cruise (draft-ietf-ccwg-bbr "ProbeBW").

use super::Bbr3;
use super::sample::Sample;
use crate::view::PathView;
use anabranch_base::{Duration, Instant, Ppm};

/// Most rounds between two probes where Reno would need no more to have its window back.
const RENO_ROUNDS: u64 = 63;
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    pub fn pacing_gain(self) -> Ppm {
        Ppm(match self {
            State::Startup => 2_770_000,
            State::Drain => 500_000,
            State::Down => 900_000,
            State::Up => 1_250_000,
            State::Cruise | State::Refill | State::ProbeRtt => 1_000_000,
        })
    }
    pub fn cwnd_gain(self) -> Ppm {
        Ppm(match self {
            State::Up => 2_250_000,
            State::ProbeRtt => 500_000,
            _ => 2_000_000,
        })
    }
    /// One of the four states of a cycle.
    pub fn is_in_cycle(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }
    pub fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// What acknowledgements say about the newest probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Arriving,
    Stopping,
}

/// The probe for more rate.
#[derive(Debug, Default)]
pub(super) struct Probe {
    pub feedback: Feedback,
    /// Losses are of packets that the probe sent.
    pub is_sampled: bool,
    /// Acknowledged since the long-term bound was raised, and how much raises it by a packet; none while it is not raised.
    pub up_acked: u64,
    pub up_acked_each: Option<u64>,
    pub up_rounds: u32,
    pub rounds_since: u64,
    /// The cycle began then, and the next probe comes so much later at most.
    pub began: Instant,
    pub wait: Duration,
    /// The last probe lost too much.
    pub was_too_high: bool,
    /// The last one ended where the one before had lost too much.
    pub was_precautionary: bool,
}

impl Bbr3 {
    pub(super) fn go_down(&mut self, now: Instant) {
        self.bounds.forget_signals();
        let p = &mut self.probe;
        p.up_acked_each = None;
        p.rounds_since = self.random.below(2);
        p.wait = Duration::from_secs(2) + Duration::from_millis(self.random.below(1_000));
        (p.began, p.feedback) = (now, Feedback::Stopping);
        self.restart_round();
        self.state = State::Down;
    }
    fn refill(&mut self) {
        self.bounds.forget_short_term();
        let p = &mut self.probe;
        (p.up_rounds, p.up_acked, p.was_precautionary) = (0, 0, false);
        p.feedback = Feedback::Refilling;
        self.restart_round();
        self.state = State::Refill;
    }
    fn go_up(&mut self, p: &PathView, s: &Sample) {
        (self.probe.is_sampled, self.probe.feedback) = (true, Feedback::Starting);
        self.restart_round();
        self.full.look_anew(s.rate);
        self.state = State::Up;
        self.raise_slope(p);
    }
    fn is_time_to_probe(&self, now: Instant, p: &PathView) -> bool {
        let reno = (self.target(p) / p.mtu.max(1)).min(RENO_ROUNDS);
        now > self.probe.began + self.probe.wait || self.probe.rounds_since >= reno
    }
    fn is_time_to_go_down(&mut self, p: &PathView, s: &Sample) -> bool {
        let bound = self.bounds.long_term.unwrap_or(u64::MAX);
        // What was in flight before this acknowledgement: after it there is always room.
        if self.probe.was_too_high && p.in_flight + s.acked >= bound {
            self.probe.was_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && p.cwnd >= bound {
            // The bound is what limits the rate.
            self.full.look_anew(s.rate);
            return false;
        }
        self.full.now
    }
    pub(super) fn advance_cycle(&mut self, now: Instant, p: &PathView, s: &Sample) {
        if !self.full.reached || self.adapt_long_term(p, s) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(now, p) => self.refill(),
            State::Down if p.in_flight <= self.with_headroom(p).min(self.fills(p, self.max_bw.get())) => {
                self.state = State::Cruise;
            }
            State::Refill if self.rounds.begins => self.go_up(p, s),
            State::Up if self.is_time_to_go_down(p, s) => {
                self.probe.was_too_high = false;
                self.go_down(now);
            }
            _ => {}
        }
    }
    /// What the probe showed. True when it led to another state.
    fn adapt_long_term(&mut self, p: &PathView, s: &Sample) -> bool {
        if self.rounds.begins {
            match self.probe.feedback {
                Feedback::Starting => self.probe.feedback = Feedback::Arriving,
                Feedback::Stopping => {
                    (self.probe.is_sampled, self.probe.feedback) = (false, Feedback::None);
                    if self.state.is_in_cycle() && !s.app_limited {
                        self.max_bw.advance();
                    }
                    if self.state.is_in_cycle() && self.probe.was_precautionary && !self.probe.was_too_high {
                        self.refill();
                        return true;
                    }
                }
                _ => {}
            }
        }
        if !self.is_too_high(s)
            && let Some(bound) = self.bounds.long_term
        {
            self.bounds.long_term = Some(bound.max(s.in_flight));
            if self.state == State::Up {
                self.raise_bound(p, s);
            }
        }
        false
    }
    fn raise_slope(&mut self, p: &PathView) {
        let growth = 1u64 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.up_acked_each = Some((p.cwnd / growth).max(p.mtu));
    }
    fn raise_bound(&mut self, p: &PathView, s: &Sample) {
        let (Some(bound), Some(each)) = (self.bounds.long_term, self.probe.up_acked_each) else { return };
        if !self.is_cwnd_limited() || p.cwnd < bound {
            return;
        }
        self.probe.up_acked += s.acked;
        let steps = self.probe.up_acked / each.max(1);
        self.probe.up_acked -= steps * each;
        self.bounds.long_term = Some(bound + steps * p.mtu);
        if self.rounds.begins {
            self.raise_slope(p);
        }
    }
    pub(super) fn handle_too_high(&mut self, now: Instant, p: &PathView, s: &Sample) {
        (self.probe.was_too_high, self.probe.is_sampled) = (true, false);
        if !s.app_limited {
            self.bounds.long_term = Some(s.in_flight.max(self.beta.of(self.target(p))));
        }
        if self.state == State::Up {
            self.go_down(now);
        }
    }
}
