//! Xu et al. 2014 §2.6 and §2.9: loss cause by residual capacity, windows by measured rates, friendliness with reward
//! and penalty.

use super::cmt_cl_fd_quality::BETA;
use super::two_paths::Notes;
use anabranch_base::{Instant, PathId, Ppm, Rate};
use anabranch_policy::coupling::{Adjust, Coupling, Growth};
use anabranch_policy::loss_cause::{Cause, LossCause, LossEvent, LossKind};
use anabranch_policy::view::{AssocView, PathView, Signals};
use anabranch_policy::window::{AckOnPath, Window, WindowChange, WindowState};

pub const ALPHA: f64 = 0.5;

/// A fast retransmission as the three hooks saw it.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)] // all of it is shown when a test fails
pub struct Cut {
    pub at: Instant,
    pub path: PathId,
    pub cause: Cause,
    pub spare: Option<i64>,
    pub before: u64,
    /// The window that the coupling's view showed afterwards.
    pub after: u64,
    /// The rule of §2.9 decided, not RFC 9260's for want of estimates.
    pub measured: bool,
}

#[derive(Default)]
pub struct Seen {
    pub cuts: Vec<Cut>,
    pub rewards: u32,
    pub penalties: Vec<(Instant, PathId)>,
    pub timeouts: u32,
    /// The aggregate window after the newest adjustment, and the paths it was for.
    pub fwnd: u64,
    pub floor: u64,
    /// Credit was heard of while the path recovered.
    pub in_recovery: u32,
    pub scaled_down: u32,
}

/// Radio while the path has capacity to spare.
pub struct BySpareRate(pub Notes<Seen>);

impl LossCause for BySpareRate {
    fn classify(&mut self, cx: &AssocView<'_>, e: &LossEvent) -> Cause {
        let Some(p) = cx.path(e.path) else { return Cause::Congestion };
        let cause = if p.signals.spare_rate.is_some_and(|r| r > 0) { Cause::Radio } else { Cause::Congestion };
        if e.kind == LossKind::FastRetransmit && e.new_episode {
            self.0.get().cuts.push(Cut {
                at: cx.now,
                path: e.path,
                cause,
                spare: p.signals.spare_rate,
                before: p.cwnd,
                after: 0,
                measured: false,
            });
        }
        cause
    }
}

/// §2.9 around the growth of another controller.
pub struct ByRate {
    pub inner: Box<dyn Window>,
    pub seen: Notes<Seen>,
}

impl Window for ByRate {
    fn on_sent(&mut self, now: Instant, tx_seq: u64, me: &PathView) {
        self.inner.on_sent(now, tx_seq, me);
    }
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        self.inner.on_ack(cx, me, ack)
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let otherwise = self.inner.on_loss(cx, me, e, cause);
        let Some(p) = cx.path(me) else { return otherwise };
        let known = !p.reference_rtt.is_zero() && p.signals.handling_rate > Rate::ZERO && p.send_rate > Rate::ZERO;
        if e.kind == LossKind::Timeout || !e.new_episode || !known {
            return otherwise;
        }
        if let Some(c) = self.seen.get().cuts.last_mut() {
            c.measured = true;
        }
        let floor = (p.cwnd / 2).max(4 * p.mtu);
        let pipe = |r: Rate| r.bytes_in(p.reference_rtt).max(floor);
        let (ssthresh, cwnd) = match cause {
            Cause::Radio => (pipe(p.signals.handling_rate), p.cwnd),
            _ => (pipe(p.send_rate), p.cwnd.min(pipe(p.send_rate))),
        };
        WindowState { cwnd, ssthresh, partial_bytes_acked: 0 }
    }
}

#[derive(Clone, Copy, Default)]
struct Record {
    penalties: u32,
    events: u32,
    at: Option<Instant>,
    timed_out: bool,
}

/// The friendliness window. `enforce` off is the control: it follows the window and never adjusts.
pub struct Friendliness {
    fwnd: u64,
    fthresh: u64,
    fpba: u64,
    paths: Vec<Record>,
    enforce: bool,
    seen: Notes<Seen>,
}

impl Friendliness {
    pub fn new(enforce: bool, seen: Notes<Seen>) -> Self {
        Friendliness { fwnd: 0, fthresh: u64::MAX, fpba: 0, paths: vec![], enforce, seen }
    }
    fn least(cx: &AssocView<'_>) -> u64 {
        cx.active().count().max(1) as u64 * cx.initial_cwnd
    }
    fn prepare(&mut self, cx: &AssocView<'_>) {
        self.paths.resize(cx.paths.len(), Record::default());
        self.fwnd = self.fwnd.max(Self::least(cx));
    }
    /// Lifts the windows to the aggregate when they are too small together.
    fn reward(&self, cx: &AssocView<'_>, windows: &mut [(PathId, WindowState)]) -> bool {
        let sum: u64 = windows.iter().map(|w| w.1.cwnd).sum();
        let alone = windows.len() == 1 && self.paths[windows[0].0.index()].timed_out;
        if sum as f64 >= ALPHA * self.fwnd as f64 || alone {
            return false;
        }
        let handled = |id: PathId| cx.path(id).map_or(0, |p| p.signals.handling_rate.bytes_per_sec());
        let all: u64 = windows.iter().map(|w| handled(w.0)).sum();
        let n = windows.len() as u64;
        for (id, w) in windows.iter_mut() {
            let missing = self.fwnd - sum;
            w.cwnd += (missing * handled(*id)).checked_div(all).unwrap_or(missing / n);
        }
        true
    }
    /// Halves the window of the path with most penalties until the sum is within bounds.
    fn penalise(&mut self, cx: &AssocView<'_>, windows: &mut [(PathId, WindowState)], floor: u64) {
        loop {
            let sum: u64 = windows.iter().map(|w| w.1.cwnd).sum();
            if sum <= ((BETA * self.fwnd as f64) as u64).max(floor) {
                return;
            }
            let view = |id: PathId| cx.path(id);
            let mtu = |id: PathId| view(id).map_or(0, |p| p.mtu);
            let handled = |id: PathId| view(id).map_or(0, |p| p.signals.handling_rate.bytes_per_sec());
            let worst = windows.iter_mut().filter(|(id, w)| w.cwnd > 4 * mtu(*id));
            let worst = worst.min_by_key(|(id, _)| (u32::MAX - self.paths[id.index()].penalties, handled(*id), *id));
            let Some((id, w)) = worst else { return };
            w.ssthresh = (w.cwnd / 2).max(4 * mtu(*id));
            w.cwnd = w.ssthresh;
            w.partial_bytes_acked = 0;
            let record = &mut self.paths[id.index()];
            record.penalties = record.penalties.saturating_sub(1);
            record.at = Some(cx.now);
            self.seen.get().penalties.push((cx.now, *id));
        }
    }
}

impl Coupling for Friendliness {
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        self.prepare(cx);
        let Some(p) = cx.path(g.path) else { return Ppm::ONE };
        self.paths[g.path.index()].timed_out &= g.acked == 0;
        if p.in_recovery {
            self.seen.get().in_recovery += 1;
            return Ppm::ONE;
        }
        if !g.fully_used {
            return Ppm::ONE;
        }
        if self.fwnd < self.fthresh {
            self.fwnd += g.acked.min(p.mtu);
            return Ppm::ONE;
        }
        self.fpba += g.acked;
        if self.fpba >= self.fwnd {
            self.fpba -= self.fwnd;
            self.fwnd += p.mtu;
        }
        let n = cx.active().count().max(1) as u32;
        self.seen.get().scaled_down += u32::from(n > 1 && g.grow > 0);
        Ppm(1_000_000 / n)
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, e: &LossEvent, cause: Cause) {
        self.prepare(cx);
        let least = Self::least(cx);
        let half = (self.fwnd / 2).max(least);
        let now_at = cx.path(e.path).map_or(0, |p| p.cwnd);
        let record = &mut self.paths[e.path.index()];
        match e.kind {
            LossKind::FastRetransmit if e.new_episode => {
                record.penalties += 1;
                record.events += 1;
                if cause == Cause::Congestion {
                    (self.fthresh, self.fwnd, self.fpba) = (half, half, 0);
                }
                if let Some(c) = self.seen.get().cuts.last_mut() {
                    c.after = now_at;
                }
            }
            LossKind::FastRetransmit => {}
            LossKind::Timeout => {
                record.penalties += 2;
                record.events += 2;
                record.timed_out = true;
                (self.fthresh, self.fwnd, self.fpba) = (half, least, 0);
                self.seen.get().timeouts += 1;
            }
        }
    }
    fn adjust(&mut self, cx: &AssocView<'_>, out: &mut Vec<Adjust>) {
        self.prepare(cx);
        let state = |p: &PathView| WindowState {
            cwnd: p.cwnd,
            ssthresh: p.ssthresh,
            partial_bytes_acked: p.partial_bytes_acked,
        };
        let before: Vec<_> = cx.active().map(|p| (p.id, state(p))).collect();
        let mut windows = before.clone();
        let floor: u64 = cx.active().map(|p| 4 * p.mtu).sum();
        if self.enforce && !windows.is_empty() {
            self.seen.get().rewards += u32::from(self.reward(cx, &mut windows));
            self.penalise(cx, &mut windows, floor);
        }
        let changed = windows.iter().zip(&before).filter(|(a, b)| a != b);
        out.extend(changed.map(|(&(path, to), _)| Adjust { path, to }));
        let mut seen = self.seen.get();
        (seen.fwnd, seen.floor) = (self.fwnd, floor);
    }
    fn aggregate_window(&self) -> Option<u64> {
        (self.fwnd > 0).then_some(self.fwnd)
    }
    fn publish(&self, p: PathId, board: &mut Signals) {
        if let Some(r) = self.paths.get(p.index()) {
            (board.penalties, board.penalty_events, board.penalised_at) = (r.penalties, r.events, r.at);
        }
    }
}
