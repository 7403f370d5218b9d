//! Path quality across layers: frame errors, heartbeat pairs and rates measured at the sender make a residual capacity.
//!
//! Source: Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §IV and §VI.A. Each path is estimated once in an interval that
//! follows the time between its losses; a path whose losses come faster than its timeout takes no part. Frame errors give
//! an effective signal-to-noise ratio, releases a bandwidth, acknowledgements a transmission rate; once in each
//! distribution period, which is as long as the slowest window takes, capacity less rate is the residual capacity.
//! Deviations. Printed (`capacity=literal`) the capacity is bandwidth / w * log2(1 + ESNR), w = max(cwnd / fwnd + fresh
//! penalties, 1.5), and 1 without a friendliness window. The logarithm is 3 to 9 and falls by a twentieth while errors
//! grow tenfold, so that residual capacity is positive whatever happens. `calibrated`, the default, takes its share of
//! what it is on a clean link (one frame in a thousand is wrong), between a half and one, of the largest bandwidth or
//! delivery rate of the last eight intervals, over max(1, w / 1.5); `neutral` leaves the share out, and so does any mode
//! on a path whose link layer reports nothing, or reported no frame for ten seconds in which the path carried data.
//! `activity=literal` compares with a timeout of a second at least, with its
//! back-off, which switches off most paths of the paper's own scenarios; `raw` with SRTT + 4 RTTVAR. The path farthest
//! from its limit stays. One that was switched off comes back when a pair was answered and it had no loss for longer than
//! the limit; its interval begins anew. But for `literal` a rate is measured over a round trip at least. A path that
//! carried nothing is not probed, and an association that sends nothing has periods of a second at least.
//! Parameters: `capacity`; `activity`.

mod bandwidth;
mod carried;
mod esnr;
mod interval;

pub(crate) use carried::Carried;
pub(crate) use interval::Interval;

use super::{Board, Notice, PathQuality};
use crate::asks::{Asks, Counter};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, FrameErrors, PathView, Period};
use anabranch_base::{Duration, Instant, Modulation, PathId, PathSet, Rate};
use bandwidth::Bandwidth;

pub(super) const POLICY: Policy<dyn PathQuality> = Policy {
    info: PolicyInfo {
        hook: Hook::PathQuality,
        name: "cross_layer",
        source: "Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §IV, §VI.A",
        file: file!(),
        summary: "Residual capacity from frame errors, bandwidth and rate sent; paths with too frequent losses left out.",
        params: &[
            ParamInfo::word("capacity", &["calibrated", "literal", "neutral"], "what a path could carry"),
            ParamInfo::word(
                "activity",
                &["raw", "off", "literal"],
                "timeout below which time between losses is too short",
            ),
        ],
    },
    build: |p| Box::new(CrossLayer::new(p)),
};

/// Sums of windows up to so many times the friendliness window are in order; beta of the paper.
const BETA: f64 = 1.5;
/// Estimation intervals whose largest bandwidth counts as proven.
const PROVEN: usize = 8;
/// Limits of a distribution period.
const PERIOD: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));
/// Least period of an association that sends nothing; timeout before there is a sample.
const SECOND: Duration = Duration::from_secs(1);
/// A path that carried data for so long without a frame of it being reported is one without reports. What it carries
/// nothing of says nothing: then the last report stays.
const SILENCE: Duration = Duration::from_secs(10);
/// Longest timeout (RTO.Max).
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Capacity {
    Literal,
    Calibrated,
    Neutral,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    Off,
    Raw,
    Literal,
}

/// What the link layer's reports say of a path.
#[derive(Clone, Copy)]
struct Air {
    /// log2(1 + ESNR).
    efficiency: f64,
    /// Share of what it is on a clean link.
    share: f64,
}

/// One path.
#[derive(Default)]
struct Estimate {
    interval: Interval,
    /// When the next interval begins; none before the first.
    due: Option<Instant>,
    carried: Carried,
    /// R_e, bytes a second; zero while unknown.
    rate: f64,
    bandwidth: Bandwidth,
    proven: [f64; PROVEN],
    at: usize,
    report: Option<FrameErrors>,
    air: Option<Air>,
    /// How long it carried data since a frame was reported.
    silent: Duration,
    /// Frames of the newest interval that were wrong.
    wrong: u64,
    /// Penalties ever, when the period began.
    penalties: u32,
    sidelined: bool,
    /// A pair was answered since the path was left out.
    answered: bool,
}

/// SRTT + 4 RTTVAR, or a second without a sample.
fn timeout(p: &PathView) -> Duration {
    if p.srtt.is_zero() { SECOND } else { p.srtt + p.rttvar * 4 }
}

impl Estimate {
    /// An interval of the path ends.
    fn estimate(&mut self, p: &PathView, mode: Capacity) {
        let least = if mode == Capacity::Literal { Duration::ZERO } else { p.srtt };
        if let Some(rate) = self.carried.end(least) {
            self.rate = rate;
        } else if self.rate == 0.0 {
            let rtt = p.srtt.max(p.reference_rtt).max(Duration::from_millis(1));
            self.rate = p.cwnd as f64 / rtt.as_secs_f64();
        }
        self.at = (self.at + 1) % PROVEN;
        if let Some(slot) = self.proven.get_mut(self.at) {
            *slot = self.bandwidth.get().max(p.delivery_rate.bytes_per_sec() as f64);
        }
        if let Some(report) = p.frame_errors {
            self.read(report);
        }
    }
    /// An interval ends: reports that do not come any more lapse.
    fn age(&mut self, p: &PathView, length: Duration) {
        let reported = |r: FrameErrors| self.report.is_none_or(|before| r.since(before).total > 0);
        if p.frame_errors.is_some_and(reported) {
            self.silent = Duration::ZERO;
        } else if self.carried.is_used() {
            self.silent = (self.silent + length).min(SILENCE);
        }
        if self.silent >= SILENCE {
            self.air = None;
        }
        if p.frame_errors.is_none() {
            self.wrong = 0;
        }
    }
    /// Frames of the interval.
    fn read(&mut self, report: FrameErrors) {
        let frames = self.report.map_or(report, |before| report.since(before));
        self.report = Some(report);
        self.wrong = frames.erroneous;
        if frames.total == 0 {
            return;
        }
        let modulation = match (report.modulation, report.technology.usual_modulation()) {
            (Modulation::Unknown, Modulation::Unknown) => Modulation::Qpsk,
            (Modulation::Unknown, usual) => usual,
            (known, _) => known,
        };
        let fer = esnr::frame_error_rate(frames.erroneous, frames.total);
        let now = esnr::efficiency(modulation, fer, report.frame);
        let clean = esnr::clean_efficiency(modulation, report.frame);
        self.air = now.zip(clean).map(|(now, clean)| Air { efficiency: now, share: (now / clean).clamp(0.5, 1.0) });
    }
    /// C of eq. 8, bytes a second; `weight` is w of eq. 9.
    fn capacity(&self, mode: Capacity, weight: f64) -> f64 {
        match (mode, self.air) {
            (Capacity::Literal, Some(air)) => self.bandwidth.get() / weight * air.efficiency,
            (_, air) => {
                let share = air.filter(|_| mode == Capacity::Calibrated).map_or(1.0, |a| a.share);
                self.proven.iter().copied().fold(self.bandwidth.get(), f64::max) * share / (weight / BETA).max(1.0)
            }
        }
    }
    /// How long the window takes at the measured bandwidth.
    fn handling_time(&self, p: &PathView) -> Duration {
        let bandwidth = self.bandwidth.get();
        if bandwidth > 0.0 {
            Duration::from_secs_f64((p.cwnd as f64 / bandwidth).min(PERIOD.1.as_secs_f64()))
        } else if p.srtt.is_zero() {
            SECOND
        } else {
            p.srtt
        }
    }
}

struct CrossLayer {
    capacity: Capacity,
    activity: Activity,
    paths: Vec<Estimate>,
    next: Instant,
    period: Period,
    /// Something left in this period.
    busy: bool,
    counters: [Counter; 1],
}

impl CrossLayer {
    fn new(p: &Params) -> Self {
        CrossLayer {
            capacity: match p.word("capacity") {
                "literal" => Capacity::Literal,
                "neutral" => Capacity::Neutral,
                _ => Capacity::Calibrated,
            },
            activity: match p.word("activity") {
                "off" => Activity::Off,
                "literal" => Activity::Literal,
                _ => Activity::Raw,
            },
            paths: Vec::new(),
            next: Instant::ZERO,
            period: Period::default(),
            busy: false,
            counters: [("sidelined", 0)],
        }
    }
    /// The time between losses below which a path takes no part; none where all do.
    fn limit(&self, p: &PathView) -> Option<Duration> {
        let raw = timeout(p);
        match self.activity {
            Activity::Off => None,
            Activity::Raw => Some(raw),
            Activity::Literal => Some((raw.max(SECOND) * (1 << p.backoff.min(6))).min(LONGEST)),
        }
    }
    /// Which paths take part.
    fn judge(&mut self, cx: &AssocView<'_>) {
        // The one farthest from its limit stays whatever happens.
        let distance = |e: &Estimate, p: &PathView, limit: Duration| {
            e.interval.length(p.srtt).as_secs_f64() / limit.as_secs_f64().max(1e-9)
        };
        let mut farthest: Option<(f64, PathId)> = None;
        for p in cx.in_use() {
            let (Some(e), Some(limit)) = (self.paths.get(p.id.index()), self.limit(p)) else { return };
            let d = distance(e, p, limit);
            if !e.sidelined && farthest.is_none_or(|(best, _)| d > best) {
                farthest = Some((d, p.id));
            }
        }
        for p in cx.in_use() {
            let Some(limit) = self.limit(p) else { return };
            let Some(e) = self.paths.get_mut(p.id.index()) else { return };
            if e.sidelined {
                if e.answered && e.interval.without_loss(cx.now, p.srtt) > limit {
                    e.interval.begin_anew(cx.now, p.srtt);
                    e.sidelined = false;
                }
            } else if e.interval.is_measured()
                && e.interval.length(p.srtt) <= limit
                && farthest.is_some_and(|(_, id)| id != p.id)
            {
                (e.sidelined, e.answered) = (true, false);
                self.counters[0].1 += 1;
            }
        }
    }
    /// A distribution period begins.
    fn begin_period(&mut self, cx: &AssocView<'_>, board: &mut Board) {
        let idle = !core::mem::take(&mut self.busy) && cx.unsent == 0 && cx.outstanding == 0;
        let mut length = PERIOD.0;
        for p in cx.in_use() {
            let Some(e) = self.paths.get_mut(p.id.index()) else { continue };
            let fresh = p.signals.penalty_events.wrapping_sub(e.penalties);
            e.penalties = p.signals.penalty_events;
            let weight = cx
                .aggregate_window
                .map_or(1.0, |fwnd| (p.cwnd as f64 / fwnd.max(1) as f64 + f64::from(fresh)).max(BETA));
            let capacity = e.capacity(self.capacity, weight);
            if let Some(s) = board.signals.get_mut(p.id.index()) {
                s.spare_rate = (capacity > 0.0 && e.rate > 0.0).then_some((capacity - e.rate) as i64);
            }
            if !e.sidelined {
                length = length.max(e.handling_time(p));
            }
        }
        let length = length.min(PERIOD.1);
        self.period = Period { serial: self.period.serial + 1, start: cx.now, length };
        self.next = cx.now + if idle { length.max(SECOND) } else { length };
        board.period = self.period;
    }
}

impl PathQuality for CrossLayer {
    fn asks(&self) -> Asks {
        Asks::QUALITY.and(Asks::LINK_REPORTS)
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn observe(&mut self, cx: &AssocView<'_>, n: Notice) {
        let path = n.path();
        let Some(p) = cx.path(path) else { return };
        if self.paths.len() <= path.index() {
            self.paths.resize_with(path.index() + 1, Estimate::default);
        }
        let Some(e) = self.paths.get_mut(path.index()) else { return };
        match n {
            Notice::Sent { .. } => {
                e.carried.sent(cx.now);
                if !core::mem::replace(&mut self.busy, true) {
                    self.next = self.next.min(cx.now.max(self.period.start + self.period.length));
                }
            }
            Notice::Released { bytes, .. } => e.bandwidth.released(cx.now, bytes, timeout(p).max(SECOND)),
            Notice::Acked { bytes, .. } => e.carried.acked(bytes),
            Notice::Lost { .. } => e.interval.lost(cx.now, p.srtt),
            Notice::Reference { answers, .. } => e.answered |= answers > 0,
        }
    }
    fn wakeup(&self) -> Option<Instant> {
        self.paths.iter().filter_map(|e| e.due).chain([self.next]).min()
    }
    fn tick(&mut self, cx: &AssocView<'_>, board: &mut Board) -> PathSet {
        self.paths.resize_with(cx.paths.len(), Estimate::default);
        let mut probe = PathSet::EMPTY;
        for (p, e) in cx.paths.iter().zip(&mut self.paths) {
            if e.due.is_some_and(|t| t > cx.now) {
                continue;
            }
            let first = e.due.is_none();
            let length = e.interval.length(p.srtt);
            e.due = Some(cx.now + length);
            if p.state.usable() {
                if first || e.sidelined || e.carried.is_used() {
                    probe = probe.with(p.id);
                }
                e.age(p, length);
                e.estimate(p, self.capacity);
            }
        }
        self.judge(cx);
        if cx.now >= self.next {
            self.begin_period(cx, board);
        }
        for (s, e) in board.signals.iter_mut().zip(&self.paths) {
            s.handling_rate = Rate::from_bytes_per_sec(e.rate as u64);
            s.frame_errors = e.wrong;
            s.sidelined = e.sidelined;
        }
        probe
    }
    fn send_rate(&self, p: PathId) -> Rate {
        Rate::from_bytes_per_sec(self.paths.get(p.index()).map_or(0, |e| e.bandwidth.get() as u64))
    }
}

#[cfg(test)]
#[path = "cross_layer/tests.rs"]
mod tests;
