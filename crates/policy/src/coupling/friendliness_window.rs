//! A window for the whole association that grows and falls as that of one TCP flow; the sum of the path windows is kept
//! near it by rewards and penalties.
//!
//! Source: Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §V, algorithms 2 and 3. Whatever would open a path's window opens
//! the friendliness window: by the acknowledged bytes up to one packet below its threshold, which begins as the largest of
//! its paths, and by one packet for each friendliness window acknowledged above it, where a path grows by the n-th part of
//! what it would alone. A fast retransmission for congestion halves it, a timeout sets it to n initial windows. When the sum of the windows exceeds 1.5
//! friendliness windows, the path with most penalties (one for a fast retransmission, two for a timeout), of these the one
//! that handled least, is halved and blocked for the period, until the sum is in order; when it is below half of it, the
//! windows are raised to it in proportion to the rates handled.
//! Readings: a path without penalties may be halved where none has any; above the threshold acknowledged bytes of a fully
//! used path add up over all acknowledgements; packets that were late, not lost, change nothing. As no window falls below four packets, the sum may be n times that. A path that is alone and
//! timed out is not rewarded before something is acknowledged. One that comes back begins with the initial window.
//! A reward opens windows that nothing was acknowledged for, more than RFC 9260 §7.2 allows, and is off unless asked for:
//! `at_once` as printed, or `paced`, spread over a round trip and at most four packets an event.
//! The rates handled only rank and divide, so it goes without an estimator of path quality, too: all paths then count as
//! having handled the same, rewards are shared equally, and of the paths with most penalties the first is halved.
//! Parameters: `reward`.

use super::{Adjust, Coupling, Growth};
use crate::asks::Counter;
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView, Signals};
use crate::window::{WindowState, unchanged};
use anabranch_base::{Duration, Instant, PathId, Ppm};

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "friendliness_window",
        source: "Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §V",
        file: file!(),
        summary: "All windows together near one that behaves as TCP's; penalties where they exceed it.",
        params: &[ParamInfo::word(
            "reward",
            &["off", "paced", "at_once"],
            "how windows are raised that are too small together",
        )],
    },
    build: |p| Box::new(FriendlinessWindow::new(p)),
};

/// The sum of windows is kept between these shares of the friendliness window (alpha and beta of the paper).
const ALPHA: f64 = 0.5;
const BETA: f64 = 1.5;
/// No window falls below so many packets.
const FLOOR: u64 = 4;
/// Packets by which a reward that is paced opens a window in one event (Max.Burst).
const BURST: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reward {
    Off,
    Paced,
    AtOnce,
}

/// What is left of a reward.
#[derive(Clone, Copy)]
struct Lift {
    whole: u64,
    left: u64,
    since: Instant,
}

#[derive(Clone, Copy, Default)]
struct Record {
    /// fcount of the paper.
    penalties: u32,
    events: u32,
    penalised_at: Option<Instant>,
    timed_out: bool,
    /// It takes no part.
    away: bool,
    lift: Option<Lift>,
}

struct FriendlinessWindow {
    reward: Reward,
    fwnd: u64,
    fthresh: u64,
    partial: u64,
    paths: Vec<Record>,
    /// Windows of the paths in use, as they are and as they will be.
    windows: Vec<(PathId, WindowState)>,
    counters: [Counter; 2],
}

fn handled(cx: &AssocView<'_>, id: PathId) -> u64 {
    cx.path(id).map_or(0, |p| p.signals.handling_rate.bytes_per_sec())
}

impl FriendlinessWindow {
    fn new(p: &Params) -> Self {
        FriendlinessWindow {
            reward: match p.word("reward") {
                "paced" => Reward::Paced,
                "at_once" => Reward::AtOnce,
                _ => Reward::Off,
            },
            fwnd: 0,
            fthresh: u64::MAX,
            partial: 0,
            paths: Vec::new(),
            windows: Vec::new(),
            counters: [("penalties", 0), ("rewards", 0)],
        }
    }
    /// n initial windows.
    fn least(cx: &AssocView<'_>) -> u64 {
        cx.active().count().max(1) as u64 * cx.initial_cwnd
    }
    fn prepare(&mut self, cx: &AssocView<'_>) {
        self.paths.resize(cx.paths.len(), Record::default());
        if self.fwnd == 0 {
            // Nothing was lost yet: these are the initial ones.
            self.fthresh = cx.active().map(|p| p.ssthresh).max().unwrap_or(self.fthresh);
        }
        self.fwnd = self.fwnd.max(Self::least(cx));
    }
    fn sum(&self) -> u64 {
        self.windows.iter().map(|(_, w)| w.cwnd).sum()
    }
    fn record(&mut self, id: PathId) -> Option<&mut Record> {
        self.paths.get_mut(id.index())
    }
    /// Windows too small together are to be raised to the friendliness window.
    fn begin_reward(&mut self, cx: &AssocView<'_>) {
        let coming: u64 = self.paths.iter().filter_map(|r| r.lift).map(|l| l.left).sum();
        let sum = self.sum() + coming;
        let alone = |r: &Record| r.timed_out;
        let timed_out = |(id, _): &(PathId, WindowState)| self.paths.get(id.index()).is_some_and(alone);
        if sum as f64 >= ALPHA * self.fwnd as f64 || self.windows.len() == 1 && self.windows.iter().all(timed_out) {
            return;
        }
        self.counters[1].1 += 1;
        let (missing, n) = (self.fwnd - sum, self.windows.len().max(1) as u64);
        let all: u64 = self.windows.iter().map(|(id, _)| handled(cx, *id)).sum();
        for i in 0..self.windows.len() {
            let Some(&(id, _)) = self.windows.get(i) else { return };
            let share = u128::from(missing) * u128::from(handled(cx, id));
            let whole = share.checked_div(u128::from(all)).map_or(missing / n, |s| s as u64);
            if let Some(r) = self.record(id) {
                let left = whole + r.lift.map_or(0, |l| l.left);
                r.lift = Some(Lift { whole: left, left, since: cx.now });
            }
        }
    }
    /// What of the rewards is due.
    fn lift(&mut self, cx: &AssocView<'_>) {
        let enough = self.sum() >= self.fwnd;
        for (id, w) in &mut self.windows {
            let (Some(p), Some(r)) = (cx.path(*id), self.paths.get_mut(id.index())) else { continue };
            let Some(mut l) = r.lift.take().filter(|_| !enough) else { continue };
            let due = if self.reward == Reward::AtOnce {
                l.left
            } else {
                let (time, rtt) = (cx.now.since(l.since), p.srtt.max(Duration::from_millis(1)));
                let share = u128::from(l.whole) * u128::from(time.as_nanos()) / u128::from(rtt.as_nanos());
                l.left.min(share.min(u128::from(BURST * p.mtu)) as u64)
            };
            w.cwnd += due;
            l.left -= due;
            if due > 0 {
                l.since = cx.now;
            }
            r.lift = Some(l).filter(|l| l.left > 0);
        }
    }
    /// Halves windows until their sum is in order.
    fn penalise(&mut self, cx: &AssocView<'_>) {
        let floor: u64 = cx.active().map(|p| FLOOR * p.mtu).sum();
        let most = ((BETA * self.fwnd as f64) as u64).max(floor);
        while self.sum() > most {
            let paths = &self.paths;
            let least = |id: PathId| FLOOR * cx.path(id).map_or(0, |p| p.mtu);
            let penalties = |id: PathId| paths.get(id.index()).map_or(0, |r| r.penalties);
            let fallible = self.windows.iter_mut().filter(|(id, w)| w.cwnd > least(*id));
            let worst = fallible.min_by_key(|(id, _)| (u32::MAX - penalties(*id), handled(cx, *id), *id));
            let Some((id, w)) = worst else { return };
            w.ssthresh = (w.cwnd / 2).max(least(*id));
            w.cwnd = w.ssthresh;
            w.partial_bytes_acked = 0;
            let id = *id;
            self.counters[0].1 += 1;
            if let Some(r) = self.record(id) {
                r.penalties = r.penalties.saturating_sub(1);
                (r.penalised_at, r.lift) = (Some(cx.now), None);
            }
        }
    }
    /// Windows as they are; those of paths that came back are at most initial ones.
    fn gather(&mut self, cx: &AssocView<'_>) {
        self.windows.clear();
        for (p, r) in cx.paths.iter().zip(&mut self.paths) {
            let takes_part = p.state.usable() && !cx.aside.has(p.id);
            let back = takes_part && core::mem::replace(&mut r.away, !takes_part);
            if !takes_part {
                (r.away, r.lift) = (true, None);
                continue;
            }
            let mut w = unchanged(p);
            if back {
                w.cwnd = w.cwnd.min(cx.initial_cwnd);
            }
            self.windows.push((p.id, w));
        }
    }
}

impl Coupling for FriendlinessWindow {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        self.prepare(cx);
        let Some(p) = cx.path(g.path) else { return Ppm::ONE };
        if let Some(r) = self.record(g.path) {
            r.timed_out &= g.acked == 0;
        }
        if p.in_recovery || !g.fully_used {
            return Ppm::ONE;
        }
        if self.fwnd < self.fthresh {
            if g.grow > 0 {
                self.fwnd += g.acked.min(p.mtu);
            }
            return Ppm::ONE;
        }
        self.partial += g.acked;
        if self.partial >= self.fwnd {
            self.partial -= self.fwnd;
            self.fwnd += p.mtu;
        }
        Ppm(1_000_000 / cx.active().count().max(1) as u32)
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, e: &LossEvent, cause: Cause) {
        self.prepare(cx);
        let least = Self::least(cx);
        let half = (self.fwnd / 2).max(least);
        let count = match e.kind {
            LossKind::FastRetransmit if !e.new_episode || cause == Cause::Reordering => return,
            LossKind::FastRetransmit => {
                if cause == Cause::Congestion {
                    (self.fthresh, self.fwnd, self.partial) = (half, half, 0);
                }
                1
            }
            LossKind::Timeout => {
                (self.fthresh, self.fwnd, self.partial) = (half, least, 0);
                2
            }
        };
        if let Some(r) = self.record(e.path) {
            r.penalties = r.penalties.saturating_add(count);
            r.events = r.events.wrapping_add(count);
            r.timed_out |= e.kind == LossKind::Timeout;
            r.lift = None;
        }
    }
    fn adjust(&mut self, cx: &AssocView<'_>, out: &mut Vec<Adjust>) {
        self.prepare(cx);
        self.gather(cx);
        if self.reward != Reward::Off && !self.windows.is_empty() {
            self.begin_reward(cx);
            self.lift(cx);
        }
        self.penalise(cx);
        let is_new = |(id, w): &&(PathId, WindowState)| cx.path(*id).is_some_and(|p: &PathView| unchanged(p) != *w);
        out.extend(self.windows.iter().filter(is_new).map(|&(path, to)| Adjust { path, to }));
    }
    fn aggregate_window(&self) -> Option<u64> {
        (self.fwnd > 0).then_some(self.fwnd)
    }
    fn publish(&self, p: PathId, board: &mut Signals) {
        if let Some(r) = self.paths.get(p.index()) {
            (board.penalties, board.penalty_events, board.penalised_at) = (r.penalties, r.events, r.penalised_at);
        }
    }
}

#[cfg(test)]
#[path = "friendliness_window_tests.rs"]
mod tests;
