//! CUBIC: in congestion avoidance the window is a cubic function of the time since its last cut.
//!
//! Source: RFC 9438; HyStart++ of RFC 9406 for the first slow start. After a cut to 0.7 of it the window grows fast, slowly
//! around the size it had, then fast again, whatever the round trip; where Reno would have more, it has that.
//! Deviations: windows are bytes of payload, a segment is one packet of it. Time in which the window was no limit does not
//! count (§5.8). The window moves towards its target with each byte acknowledged, as Linux has it. Slow start counts at
//! most a packet for each SACK (RFC 9260 §7.2.1). A cut is one of the window (§4.6's `cwnd`), not of what is in flight,
//! because growth needs a full window. Growth is what coupling may scale down; the next target is then taken from what
//! was granted.
//! Parameters: `fast_convergence` gives way to new flows (§4.7); `hystart` ends the first slow start when round trips
//! become longer; `floor`, packets below which no threshold falls (§4.6).

use super::{AckOnPath, Reaction, Window, WindowChange, WindowState, after, reaction, standard_growth};
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId};

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "cubic",
        source: "RFC 9438; RFC 9406",
        file: file!(),
        summary: "CUBIC: growth by the time since the last cut, to 0.7 of the window on a loss.",
        params: &[
            ParamInfo::flag("fast_convergence", true, "a window that was cut again before it was back gives way"),
            ParamInfo::flag("hystart", true, "the first slow start ends when round trips become longer (RFC 9406)"),
            ParamInfo::count("floor", 2, "packets", 1, 64, "least threshold after a loss"),
        ],
    },
    build: |p| Box::new(Cubic::new(p)),
};

/// Multiplicative decrease (§4.6).
const BETA: f64 = 0.7;
/// Packets per cubic second (§5).
const C: f64 = 0.4;
/// Additive increase where Reno would have more (§4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Newton's method from an exponent divided by three. The library's own differs between machines.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut y = f64::from_bits(x.to_bits() / 3 + 0x2a9f_84fe_36d2_2425);
    for _ in 0..4 {
        y = (2.0 * y + x / (y * y)) / 3.0;
    }
    y
}

struct Cubic {
    fast_convergence: bool,
    floor: u64,
    hystart: Option<HyStart>,
    newest_sent: u64,
    /// Window before the last cut, packets, or less by fast convergence; zero while undefined.
    w_max: f64,
    /// Window when the threshold was set last.
    prior: f64,
    stage: Option<Stage>,
    acked_at: Instant,
    /// Part of a byte that growth left over.
    rest: f64,
}

/// A stage of congestion avoidance. Windows are packets.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// Seconds until the window is back at `w_max`.
    k: f64,
    w_max: f64,
    /// Reno's window.
    reno: f64,
    /// Time in which the window was the limit.
    elapsed: Duration,
}

impl Stage {
    fn new(cwnd: f64, w_max: f64) -> Self {
        let w_max = w_max.max(cwnd);
        Stage { k: cube_root((w_max - cwnd) / C), w_max, reno: cwnd, elapsed: Duration::ZERO }
    }
    /// W_cubic at `t` seconds (§4.2).
    fn window(&self, t: f64) -> f64 {
        let d = t - self.k;
        C * d * d * d + self.w_max
    }
}

impl Cubic {
    fn new(p: &Params) -> Self {
        Cubic {
            fast_convergence: p.flag("fast_convergence"),
            floor: p.count("floor"),
            hystart: p.flag("hystart").then(HyStart::default),
            newest_sent: 0,
            w_max: 0.0,
            prior: 0.0,
            stage: None,
            acked_at: Instant::ZERO,
            rest: 0.0,
        }
    }
    /// The window after `acked` packets more, all in packets (§4.2 to 4.5).
    fn avoid(&mut self, cwnd: f64, acked: f64, rtt: Duration, since: Duration) -> f64 {
        if self.stage.is_none() && self.w_max == 0.0 {
            // Slow start ended without a loss (§4.10).
            self.prior = self.prior.max(cwnd);
        }
        let w_max = self.w_max;
        let begins = self.stage.is_none();
        let stage = self.stage.get_or_insert_with(|| Stage::new(cwnd, w_max));
        if !begins {
            stage.elapsed += since;
        }
        let alpha = if stage.reno >= self.prior { 1.0 } else { ALPHA };
        stage.reno += alpha * acked / cwnd;
        let t = stage.elapsed.as_secs_f64();
        if stage.window(t) < stage.reno {
            return cwnd.max(stage.reno);
        }
        let target = stage.window(t + rtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
        (cwnd + (target - cwnd) / cwnd * acked).min(target)
    }
    /// Slow start; `None` once it is over.
    fn start(&mut self, p: &PathView, ack: &AckOnPath) -> Option<WindowChange> {
        let mut change = standard_growth(p, ack);
        let Some(h) = self.hystart.as_mut().filter(|_| p.ssthresh == u64::MAX) else { return Some(change) };
        h.acknowledged(ack, self.newest_sent);
        if h.is_over() {
            return None;
        }
        change.grow /= if h.is_slow() { CSS_GROWTH_DIVISOR } else { 1 };
        Some(change)
    }
}

impl Window for Cubic {
    fn on_sent(&mut self, _now: Instant, tx_seq: u64, _me: &PathView) {
        self.newest_sent = tx_seq;
    }
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        let Some(p) = cx.path(me) else { return WindowChange::default() };
        let since = cx.now.since(self.acked_at);
        self.acked_at = cx.now;
        let mut change = WindowChange { ssthresh: p.ssthresh, ..WindowChange::default() };
        if p.in_slow_start() {
            (self.stage, self.rest) = (None, 0.0);
            if let Some(grows) = self.start(p, ack) {
                return WindowChange { partial_bytes_acked: 0, ..grows };
            }
            change.ssthresh = p.cwnd - 1;
        }
        if p.in_recovery || !ack.fully_used || ack.bytes == 0 {
            return change;
        }
        let packet = p.mtu.max(1) as f64;
        let cwnd = p.cwnd as f64 / packet;
        let grown = self.avoid(cwnd, ack.bytes as f64 / packet, p.srtt, since);
        let bytes = (grown - cwnd).max(0.0) * packet + self.rest;
        change.grow = bytes as u64;
        self.rest = bytes - change.grow as f64;
        change
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        let r = reaction(e, cause);
        let cwnd = p.cwnd as f64 / p.mtu.max(1) as f64;
        match r {
            Reaction::Keep => {}
            Reaction::Cut => {
                let converges = self.fast_convergence && cwnd < self.w_max;
                self.w_max = if converges { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
            }
            // The next stage begins where slow start ends (§4.8).
            Reaction::Restart => self.w_max = 0.0,
        }
        if r != Reaction::Keep {
            (self.stage, self.prior, self.rest, self.hystart) = (None, cwnd, 0.0, None);
        }
        let ssthresh = ((p.cwnd as f64 * BETA + 0.5) as u64).max(self.floor * p.mtu);
        after(r, p, ssthresh, ssthresh)
    }
    fn idle_threshold(&self, cwnd: u64, ssthresh: u64) -> u64 {
        // What was reached is remembered (§4.2.3): a path in reserve comes back by slow start.
        if ssthresh == u64::MAX { cwnd } else { cwnd.max(ssthresh) }
    }
}

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// HyStart++ (RFC 9406 §4.2): slow start goes on at a quarter of its growth once round trips are longer than in the
/// round before, and is over after five such rounds.
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    last: Option<Duration>,
    this: Option<Duration>,
    samples: u32,
    /// The packet whose acknowledgement ends the round.
    ends: u64,
    /// Round trip that ended the fast part, and rounds since.
    slow: Option<(Duration, u32)>,
}

impl HyStart {
    fn acknowledged(&mut self, ack: &AckOnPath, newest_sent: u64) {
        if let Some(rtt) = ack.rtt {
            self.this = Some(self.this.map_or(rtt, |t| t.min(rtt)));
            self.samples += 1;
        }
        if let (Some(this), true) = (self.this, self.samples >= N_RTT_SAMPLE) {
            match (self.slow, self.last) {
                // It was no queue.
                (Some((baseline, _)), _) if this < baseline => self.slow = None,
                (None, Some(last)) if this >= last + (last / 8).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH) => {
                    self.slow = Some((this, 0));
                }
                _ => {}
            }
        }
        if ack.newest_seq.is_some_and(|s| s >= self.ends) {
            self.slow = self.slow.map(|(rtt, n)| (rtt, n + 1));
            (self.last, self.this, self.samples, self.ends) = (self.this.or(self.last), None, 0, newest_sent + 1);
        }
    }
    fn is_slow(&self) -> bool {
        self.slow.is_some()
    }
    fn is_over(&self) -> bool {
        self.slow.is_some_and(|(_, rounds)| rounds >= CSS_ROUNDS)
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
