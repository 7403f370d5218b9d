//! Xu et al. 2014 §2.3, §2.4, §2.7: rates and residual capacity on the estimator's own clock, published on the board.
//!
//! In miniature: the estimation interval is the distribution period, and the effective SNR is replaced by the share
//! of clean frames.

use super::two_paths::Notes;
use anabranch_base::{Duration, Instant, PathId, PathSet, Rate};
use anabranch_policy::path_quality::{Board, Notice, PathQuality};
use anabranch_policy::view::{AssocView, FrameErrors, PathView, Period};
use std::collections::VecDeque;

/// Xu et al. 2014's beta: the sum of windows may reach it times the aggregate window.
pub const BETA: f64 = 1.5;
/// How often a path is probed by a pair.
pub const PROBE: Duration = Duration::from_millis(500);

/// What a tick saw and published for one path.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    pub at: Instant,
    pub serial: u64,
    pub length: Duration,
    pub path: PathId,
    pub bandwidth: u64,
    pub handled: u64,
    pub spare: i64,
    pub reference_rtt: Duration,
    pub probed: bool,
    /// The send rate that the view showed.
    pub shown_rate: Rate,
}

#[derive(Default)]
pub struct Seen {
    pub published: Vec<Published>,
    pub ticks: Vec<Instant>,
    /// Bytes released at once: time, path, bytes.
    pub released: Vec<(Instant, PathId, u64)>,
    pub sent: u64,
    pub acked: u64,
    pub losses: u32,
    /// Heartbeat pairs that are over: time, path, how many were answered.
    pub pairs: Vec<(Instant, PathId, u8)>,
    /// A notice came with a view that did not show what it reported.
    pub stale: Vec<String>,
}

#[derive(Default)]
struct Estimate {
    mean_len: f64,
    mean_gap: f64,
    last_release: Option<Instant>,
    folded: u64,
    /// BW_e and the variance of its filter.
    bandwidth: f64,
    variance: f64,
    acked: u64,
    handled: f64,
    proven: VecDeque<f64>,
    events: u32,
    probed_at: Option<Instant>,
}

impl Estimate {
    /// Xu et al. 2014 §2.3: smoothed lengths and gaps, then a filter with Q = 0.01, R = 1.
    fn release(&mut self, now: Instant, bytes: u64) {
        let gap = self.last_release.map_or(f64::MAX, |t| now.since(t).as_secs_f64());
        self.last_release = Some(now);
        self.folded += bytes;
        if gap > 1.0 {
            self.folded = 0; // a pause tells nothing
        }
        if !(1e-6..=1.0).contains(&gap) {
            return;
        }
        let len = core::mem::take(&mut self.folded) as f64;
        let first = self.mean_gap == 0.0;
        let mix = |old: f64, new: f64| if first { new } else { 0.99 * old + 0.01 * new };
        (self.mean_len, self.mean_gap) = (mix(self.mean_len, len), mix(self.mean_gap, gap));
        let z = self.mean_len / self.mean_gap;
        if first {
            (self.bandwidth, self.variance) = (z, 1.0);
            return;
        }
        self.variance += 0.01;
        let gain = self.variance / (self.variance + 1.0);
        self.bandwidth += gain * (z - self.bandwidth);
        self.variance *= 1.0 - gain;
    }
    /// C of Xu et al. 2014 §2.4, calibrated: the proven bandwidth, less what the link layer reports, less fresh
    /// penalties.
    fn capacity(&self, p: &PathView, fwnd: Option<u64>, fresh: u32) -> f64 {
        let proven = self.proven.iter().copied().fold(0.0, f64::max);
        let clean = p
            .frame_errors
            .map_or(1.0, |FrameErrors { erroneous, total, .. }| 1.0 - (erroneous as f64 + 0.5) / (total as f64 + 1.0));
        let share = fwnd.map_or(0.0, |f| p.cwnd as f64 / f.max(1) as f64);
        let weight = (share + f64::from(fresh)).max(BETA);
        proven * clean.clamp(0.5, 1.0) / (weight / BETA).max(1.0)
    }
}

pub struct CrossLayer {
    paths: Vec<Estimate>,
    next: Instant,
    ticked: Instant,
    seen: Notes<Seen>,
}

impl CrossLayer {
    pub fn new(seen: Notes<Seen>) -> Self {
        CrossLayer { paths: vec![], next: Instant::ZERO, ticked: Instant::ZERO, seen }
    }
    fn of(&mut self, p: PathId) -> &mut Estimate {
        if self.paths.len() <= p.index() {
            self.paths.resize_with(p.index() + 1, Estimate::default);
        }
        &mut self.paths[p.index()]
    }
}

impl PathQuality for CrossLayer {
    fn observe(&mut self, cx: &AssocView<'_>, n: Notice) {
        let path = n.path();
        let own = self.of(path).bandwidth as u64;
        let mut seen = self.seen.get();
        let Some(p) = cx.path(path) else { return seen.stale.push(format!("{n:?}: no view")) };
        let true_view = match n {
            Notice::Sent { bytes, .. } => p.in_flight >= bytes,
            Notice::Acked { sent_at, .. } => !p.srtt.is_zero() && sent_at < cx.now,
            Notice::Released { .. } | Notice::Lost { .. } | Notice::Reference { .. } => {
                own == 0 || p.send_rate.bytes_per_sec() == own
            }
        };
        if !true_view {
            seen.stale.push(format!("{n:?}: {own} {p:?}"));
        }
        match n {
            Notice::Sent { bytes, .. } => seen.sent += bytes,
            Notice::Lost { .. } => seen.losses += 1,
            Notice::Reference { answers, .. } => seen.pairs.push((cx.now, path, answers)),
            Notice::Released { bytes, .. } => {
                seen.released.push((cx.now, path, bytes));
                drop(seen);
                self.of(path).release(cx.now, bytes);
            }
            Notice::Acked { bytes, .. } => {
                seen.acked += bytes;
                drop(seen);
                self.of(path).acked += bytes;
            }
        }
    }
    fn wakeup(&self) -> Option<Instant> {
        Some(self.next)
    }
    fn tick(&mut self, cx: &AssocView<'_>, board: &mut Board) -> PathSet {
        let (now, interval) = (cx.now, cx.now - self.ticked);
        let seen = self.seen.clone();
        let mut longest = Duration::from_millis(10);
        let mut probe = PathSet::EMPTY;
        for p in cx.active() {
            let e = self.of(p.id);
            let handling = if e.bandwidth > 0.0 { p.cwnd as f64 / e.bandwidth } else { 0.0 };
            longest = longest.max(Duration::from_secs_f64(handling.min(2.0)));
        }
        let serial = cx.period.serial + 1;
        for p in cx.active() {
            let e = self.of(p.id);
            if e.acked > 0 && interval >= Duration::from_millis(1) {
                e.handled = core::mem::take(&mut e.acked) as f64 / interval.as_secs_f64();
            }
            e.proven.push_back(e.bandwidth.max(p.delivery_rate.bytes_per_sec() as f64));
            if e.proven.len() > 8 {
                e.proven.pop_front();
            }
            let events = p.signals.penalty_events;
            let fresh = events - core::mem::replace(&mut e.events, events);
            let spare = (e.capacity(p, cx.aggregate_window, fresh) - e.handled) as i64;
            let due = e.probed_at.is_none_or(|t| now - t >= PROBE);
            if due {
                e.probed_at = Some(now);
                probe = probe.with(p.id);
            }
            let (bandwidth, handled) = (e.bandwidth as u64, e.handled as u64);
            if let Some(s) = board.signals.get_mut(p.id.index()) {
                s.spare_rate = Some(spare);
                s.handling_rate = Rate::from_bytes_per_sec(handled);
            }
            seen.get().published.push(Published {
                at: now,
                serial,
                length: longest,
                path: p.id,
                bandwidth,
                handled,
                spare,
                reference_rtt: p.reference_rtt,
                probed: due,
                shown_rate: p.send_rate,
            });
        }
        seen.get().ticks.push(now);
        board.period = Period { serial, start: now, length: longest };
        self.ticked = now;
        self.next = now + longest;
        probe
    }
    fn send_rate(&self, p: PathId) -> Rate {
        Rate::from_bytes_per_sec(self.paths.get(p.index()).map_or(0, |e| e.bandwidth as u64))
    }
}
