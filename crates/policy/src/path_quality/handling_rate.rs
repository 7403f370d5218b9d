//! What each path has handled, measured at the transport layer alone, and periods as long as the slowest window takes.
//!
//! Source: Xu, Liu, Guan, Zhang, Muntean 2013 (CMT-QA), reconstructed from its abstract and from what Xu et al. 2014 take
//! over from it; the paper itself was not to be had. Bytes acknowledged in an interval over the time from the first to the
//! last that left, smoothed by a half; the interval follows the time between losses. A path that timed out twice in a row
//! takes no part until a heartbeat of a pair was answered.
//! Deviations: a rate is measured over a round trip at least; a path that carried nothing is not probed, and an
//! association that sends nothing has periods of a second at least.
//! No parameters.

use super::cross_layer::{Carried, Interval};
use super::{Board, Notice, PathQuality};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, PathView, Period};
use anabranch_base::{Duration, Instant, PathSet, Rate};

pub(super) const POLICY: Policy<dyn PathQuality> = Policy {
    info: PolicyInfo {
        hook: Hook::PathQuality,
        name: "handling_rate",
        source: "Xu, Liu, Guan, Zhang, Muntean 2013 (CMT-QA, reconstruction)",
        file: file!(),
        summary: "Rate that each path handled; a path that timed out twice is left out until it answers.",
        params: &[],
    },
    build: |_| Box::new(HandlingRate::default()),
};

/// Limits of a period.
const PERIOD: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));
/// Least period of an association that sends nothing.
const IDLE: Duration = Duration::from_secs(1);
/// Timeouts in a row after which a path takes no part.
const TIMEOUTS: u16 = 2;

#[derive(Default)]
struct Estimate {
    interval: Interval,
    due: Option<Instant>,
    carried: Carried,
    rate: f64,
    /// That of the interval before.
    previous: f64,
    sidelined: bool,
    answered: bool,
    /// Timeouts in a row for which the path was left out once.
    forgiven: u16,
}

impl Estimate {
    fn estimate(&mut self, p: &PathView) {
        self.previous = self.rate;
        if let Some(rate) = self.carried.end(p.srtt) {
            self.rate = if self.rate > 0.0 { f64::midpoint(self.rate, rate) } else { rate };
        }
    }
    fn judge(&mut self, p: &PathView) {
        self.forgiven = self.forgiven.min(p.consecutive_timeouts);
        if self.sidelined {
            if self.answered {
                (self.sidelined, self.forgiven) = (false, p.consecutive_timeouts);
            }
        } else if p.consecutive_timeouts >= TIMEOUTS && p.consecutive_timeouts > self.forgiven {
            (self.sidelined, self.answered) = (true, false);
        }
    }
}

#[derive(Default)]
struct HandlingRate {
    paths: Vec<Estimate>,
    next: Option<Instant>,
    period: Period,
    busy: bool,
}

impl HandlingRate {
    fn begin_period(&mut self, cx: &AssocView<'_>, board: &mut Board) {
        let idle = !core::mem::take(&mut self.busy) && cx.unsent == 0 && cx.outstanding == 0;
        let takes = |p: &PathView, e: &Estimate| match (e.rate > 0.0, p.srtt.is_zero()) {
            (true, _) => Duration::from_secs_f64((p.cwnd as f64 / e.rate).min(PERIOD.1.as_secs_f64())),
            (false, true) => IDLE,
            (false, false) => p.srtt,
        };
        let times = cx.active().filter_map(|p| self.paths.get(p.id.index()).map(|e| takes(p, e)));
        let length = times.fold(PERIOD.0, Duration::max).min(PERIOD.1);
        self.period = Period { serial: self.period.serial + 1, start: cx.now, length };
        self.next = Some(cx.now + if idle { length.max(IDLE) } else { length });
        board.period = self.period;
    }
}

impl PathQuality for HandlingRate {
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
                    let end = cx.now.max(self.period.start + self.period.length);
                    self.next = self.next.map(|t| t.min(end));
                }
            }
            Notice::Released { .. } => {}
            Notice::Acked { bytes, .. } => e.carried.acked(bytes),
            Notice::Lost { .. } => {
                e.interval.lost(cx.now, p.srtt);
                // A path that is left out is asked at once whether it is there.
                if p.consecutive_timeouts >= TIMEOUTS && !e.sidelined {
                    e.due = Some(cx.now);
                }
            }
            Notice::Reference { answers, .. } => e.answered |= answers > 0,
        }
    }
    fn wakeup(&self) -> Option<Instant> {
        self.paths.iter().filter_map(|e| e.due).chain([self.next.unwrap_or(Instant::ZERO)]).min()
    }
    fn tick(&mut self, cx: &AssocView<'_>, board: &mut Board) -> PathSet {
        self.paths.resize_with(cx.paths.len(), Estimate::default);
        let mut probe = PathSet::EMPTY;
        for (p, e) in cx.paths.iter().zip(&mut self.paths) {
            e.judge(p);
            if e.due.is_none_or(|t| t <= cx.now) {
                let first = e.due.is_none();
                e.due = Some(cx.now + e.interval.length(p.srtt));
                if p.state.usable() && (first || e.sidelined || e.carried.is_used()) {
                    probe = probe.with(p.id);
                }
                e.estimate(p);
            }
        }
        if self.next.is_none_or(|t| t <= cx.now) {
            self.begin_period(cx, board);
        }
        for (s, e) in board.signals.iter_mut().zip(&self.paths) {
            s.handling_rate = Rate::from_bytes_per_sec(e.rate as u64);
            s.previous_rate = Rate::from_bytes_per_sec(e.previous as u64);
            s.sidelined = e.sidelined;
        }
        probe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};
    use anabranch_base::PathId;

    const A: PathId = PathId(0);

    fn tick(s: &Scene, q: &mut HandlingRate) -> (Board, PathSet) {
        let mut board = Board { signals: vec![Default::default(); s.paths.len()], ..Board::default() };
        let probe = q.tick(&s.cx(), &mut board);
        (board, probe)
    }
    /// A second in which `bytes` leave and are acknowledged, in steps of 10 ms.
    fn second(s: &mut Scene, q: &mut HandlingRate, bytes: u64) -> Board {
        for _ in 0..100 {
            q.observe(&s.cx(), Notice::Sent { path: A, bytes: bytes / 100 });
            q.observe(&s.cx(), Notice::Acked { path: A, bytes: bytes / 100, sent_at: s.now });
            s.now += ms(10);
        }
        tick(s, q).0
    }

    #[test]
    fn rates_are_smoothed_by_a_half() {
        let mut s = Scene::new(1, 1);
        s.rtt(0, 50);
        let mut q = HandlingRate::default();
        assert_eq!(q.wakeup(), Some(Instant::ZERO), "begins at once");
        tick(&s, &mut q);
        let rate = |b: &Board| b.signals[0].handling_rate.bytes_per_sec();
        let first = rate(&second(&mut s, &mut q, 99_000));
        assert_eq!(first, 100_000);
        let board = second(&mut s, &mut q, 198_000);
        assert_eq!((rate(&board), board.signals[0].previous_rate.bytes_per_sec()), (150_000, 100_000));
        assert!(q.wakeup() > Some(s.now));
    }

    #[test]
    fn a_period_is_as_long_as_the_slowest_window_takes() {
        let mut s = Scene::new(2, 1);
        (s.rtt(0, 50).cwnd, s.rtt(1, 300).cwnd) = (25_000, 10_000);
        let mut q = HandlingRate::default();
        let (board, probe) = tick(&s, &mut q);
        assert_eq!((board.period.length, board.period.serial, probe.len()), (ms(300), 1, 2), "round trips at first");
        s.paths[1].srtt = ms(20);
        let board = second(&mut s, &mut q, 99_000);
        assert_eq!((board.period.length, board.period.serial), (ms(250), 2));
    }

    #[test]
    fn two_timeouts_in_a_row_leave_a_path_out_until_it_answers() {
        let mut s = Scene::new(2, 1);
        let mut q = HandlingRate::default();
        tick(&s, &mut q);
        s.paths[0].consecutive_timeouts = 1;
        assert!(!tick(&s, &mut q).0.signals[0].sidelined);
        s.paths[0].consecutive_timeouts = 2;
        q.observe(&s.cx(), Notice::Lost { path: A });
        assert_eq!(q.wakeup(), Some(s.now));
        let (board, probe) = tick(&s, &mut q);
        assert!(board.signals[0].sidelined && probe.has(A));
        q.observe(&s.cx(), Notice::Reference { path: A, answers: 0 });
        assert!(tick(&s, &mut q).0.signals[0].sidelined);
        q.observe(&s.cx(), Notice::Reference { path: A, answers: 1 });
        assert!(!tick(&s, &mut q).0.signals[0].sidelined);
        assert!(!tick(&s, &mut q).0.signals[0].sidelined, "not again for timeouts before");
        s.paths[0].consecutive_timeouts = 3;
        assert!(tick(&s, &mut q).0.signals[0].sidelined);
    }

    #[test]
    fn an_idle_association_ticks_once_a_second_and_begins_at_once() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 50);
        let mut q = HandlingRate::default();
        tick(&s, &mut q);
        s.now += ms(1_000);
        let (_, probe) = tick(&s, &mut q);
        assert!(probe.is_empty());
        assert_eq!(q.wakeup(), Some(s.now + ms(1_000)));
        s.now += ms(10);
        q.observe(&s.cx(), Notice::Sent { path: A, bytes: 1_000 });
        assert_eq!(q.wakeup(), Some(s.now + ms(40)), "the period that would have been");
    }
}
