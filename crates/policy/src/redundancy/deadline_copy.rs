//! A copy of what its path will not deliver in time, on one that does, at the last moment.
//!
//! Source: ours. A path whose rate collapses or whose delay jumps holds packets that nothing declares lost: they arrive,
//! but too late. A chunk with a deadline is copied onto another path when its answer is overdue (the mean round trip,
//! `deviations` mean deviations and at least a quarter of it have passed), and waiting longer would leave the other path
//! too little time: its predicted arrival, and `guard` to spare. Where round trips vary so much that the copy is not likely
//! to be in time none leaves: as long as one is under way the chunk is not sent again. Copies leave before new data, which
//! has more time left, and are charged to the window of the path they use. What arrives nevertheless costs the copy, and no
//! frame. All classes are alike to it: what others depend on has no copy before it is overdue.
//! Parameters: `deviations`; `guard` ms.

use super::{Extra, Redundancy};
use crate::asks::Asks;
use crate::predict::{Forecast, luck, uncertainty};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, Ppm, earlier};

pub(super) const POLICY: Policy<dyn Redundancy> = Policy {
    info: PolicyInfo {
        hook: Hook::Redundancy,
        name: "deadline_copy",
        source: "ours",
        file: file!(),
        summary: "Copies what is overdue on one path onto another at the last moment that is in time.",
        params: &[
            ParamInfo::count("deviations", 4, "mean deviations", 0, 100, "by which an answer is overdue"),
            ParamInfo::millis("guard", 60, 0, 10_000, "time to spare before the deadline"),
        ],
    },
    build: |p| Box::new(DeadlineCopy::new(p)),
};

/// Least time by which an answer is overdue.
const LEAST: Duration = Duration::from_millis(20);
/// Mean deviations of round trips that a copy's arrival may be later than predicted.
const LIKELY: Ppm = Ppm(1_000_000);

pub(super) struct DeadlineCopy {
    deviations: u64,
    guard: Duration,
    /// When the next path becomes overdue, or the last moment of a chunk comes.
    due: Option<Instant>,
}

impl DeadlineCopy {
    /// With the values that it has unless others are named.
    pub(super) fn usual() -> Self {
        DeadlineCopy::new(&Params::defaults(&POLICY.info, 0))
    }
    fn new(p: &Params) -> Self {
        DeadlineCopy { deviations: p.count("deviations"), guard: p.millis("guard"), due: None }
    }
    /// How long an answer of `p` may take.
    fn patience(&self, p: &PathView) -> Duration {
        p.mean_rtt + (p.jitter * self.deviations).max(p.mean_rtt / 4).max(LEAST)
    }
    /// The last moment of `c` on `here`, when it is overdue where it is.
    fn wanted(&mut self, cx: &AssocView<'_>, here: &PathView, forecast: &Forecast, c: &ChunkView) -> bool {
        let (Some(from), Some(sent), Some(deadline)) = (c.live_on.iter().next(), c.last_sent, c.deadline) else {
            return false;
        };
        if from == here.id || c.live_copies != 1 {
            return false;
        }
        let Some(p) = cx.path(from).filter(|p| !p.mean_rtt.is_zero()) else { return false };
        let takes = forecast.arrival(c.len);
        if cx.now + takes + uncertainty(cx.now, here, LIKELY) + luck(cx.now, here) > deadline {
            return false;
        }
        let spare = takes + self.guard + here.jitter * 2;
        let last_moment = if deadline > cx.now + spare { deadline - spare } else { cx.now };
        let at = last_moment.max(sent + self.patience(p));
        if at > cx.now {
            self.due = earlier(self.due, Some(at));
        }
        at <= cx.now
    }
}

impl Redundancy for DeadlineCopy {
    fn asks(&self) -> Asks {
        Asks::EXTRA.and(Asks::EXTRA_FIRST)
    }
    fn worth_asking(&mut self, cx: &AssocView<'_>) -> bool {
        if self.due.is_some_and(|t| t > cx.now) {
            return false;
        }
        self.due = None;
        let mut worth = false;
        if cx.active().nth(1).is_some() {
            for p in cx.paths.iter().filter(|p| p.in_flight > 0 && !p.mean_rtt.is_zero()) {
                let Some(overdue) = p.oldest_sent.map(|t| t + self.patience(p)) else { continue };
                worth |= overdue <= cx.now;
                self.due = if overdue > cx.now { earlier(self.due, Some(overdue)) } else { self.due };
            }
        }
        worth
    }
    fn extra(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        let forecast = Forecast::of(cx.now, path);
        for c in outstanding {
            if self.wanted(cx, path, &forecast, &c) {
                // There may be more.
                self.due = None;
                return Some(Extra::Copy { tsn: c.tsn });
            }
        }
        None
    }
    fn wakeup(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};
    use anabranch_base::{PathId, PathSet, Rate, Tsn};

    fn policy() -> DeadlineCopy {
        DeadlineCopy::new(&Params::defaults(&POLICY.info, 0))
    }
    /// Chunks 40 to 42 outstanding on path 0 for 90, 60 and 30 ms, due in 200, 230 and 260 ms; path 1 with 50 ms.
    fn scene() -> Scene {
        let mut s = Scene::new(2, 3);
        for (i, rtt) in [(0, 40), (1, 100)] {
            let p = s.rtt(i, rtt);
            (p.mean_rtt, p.jitter) = (ms(rtt), ms(2));
            p.capacity = Rate::from_bytes_per_sec(10_000_000);
        }
        let now = s.now;
        (s.paths[0].in_flight, s.paths[0].oldest_sent) = (3_000, Some(now - ms(90)));
        for (c, age) in s.chunks.iter_mut().zip([90, 60, 30]) {
            (c.last_path, c.last_sent) = (Some(PathId(0)), Some(now - ms(age)));
            (c.transmissions, c.live_copies, c.live_on) = (1, 1, PathSet::only(PathId(0)));
            c.deadline = Some(now + ms(290 - age));
        }
        s
    }
    fn ask(p: &mut DeadlineCopy, s: &Scene, path: usize) -> Option<u32> {
        match p.extra(&s.cx(), &s.paths[path], &mut s.chunks.iter().copied())? {
            Extra::Copy { tsn } | Extra::Move { tsn, .. } => Some(tsn.0),
            Extra::Parity => unreachable!(),
        }
    }

    #[test]
    fn at_the_last_moment_and_not_before() {
        let (mut s, mut p) = (scene(), policy());
        assert!(p.worth_asking(&s.cx()));
        assert_eq!(ask(&mut p, &s, 1), None);
        // 50 ms of flight, 60 to spare, 4 for its jitter, and what the chunk itself takes.
        let last = p.wakeup().unwrap();
        assert!(last > s.now + ms(85) && last < s.now + ms(87), "{:?}", last - s.now);
        assert!(!p.worth_asking(&s.cx()), "nothing changes before");
        s.now = last;
        assert!(p.worth_asking(&s.cx()));
        assert_eq!(ask(&mut p, &s, 1), Some(40));
        s.chunks[0].live_copies = 2;
        assert_eq!(ask(&mut p, &s, 1), None, "the others have 30 ms more");
        s.now += ms(30);
        assert_eq!(ask(&mut p, &s, 1), Some(41));
        assert_eq!(ask(&mut p, &s, 0), None, "the path it is on");
    }

    /// A copy that comes late keeps the chunk from being sent again.
    #[test]
    fn nothing_is_copied_onto_a_path_that_is_too_unsteady() {
        for (jitter, copied) in [(2, true), (15, true), (30, false), (60, false)] {
            let (mut s, mut p) = (scene(), policy());
            s.paths[1].jitter = ms(jitter);
            // 50 ms of flight, and 75 until the deadline.
            s.chunks[0].deadline = Some(s.now + ms(75));
            assert_eq!(ask(&mut p, &s, 1) == Some(40), copied, "{jitter} ms");
        }
    }

    /// What arrives at its deadline is in time.
    #[test]
    fn to_the_moment() {
        for (early, copied) in [(Duration::from_nanos(0), true), (Duration::from_nanos(1), false)] {
            let (mut s, mut p) = (scene(), policy());
            s.paths[1].jitter = ms(0);
            let takes = Forecast::of(s.now, &s.paths[1]).arrival(s.chunks[0].len);
            s.chunks[0].deadline = Some(s.now + takes - early);
            assert_eq!(ask(&mut p, &s, 1) == Some(40), copied, "{early:?}");
        }
    }

    #[test]
    fn a_path_that_answers_in_time_costs_no_copy() {
        let (mut s, mut p) = (scene(), policy());
        s.paths[0].oldest_sent = Some(s.now - ms(30));
        assert!(!p.worth_asking(&s.cx()));
        assert_eq!(p.wakeup(), Some(s.now + ms(30)), "40 + 20 ms after it left");
    }

    #[test]
    fn nothing_is_copied_that_would_be_late_here_too() {
        let (mut s, mut p) = (scene(), policy());
        s.chunks.truncate(1);
        s.chunks[0].deadline = Some(s.now + ms(40));
        assert_eq!(ask(&mut p, &s, 1), None);
        s.chunks[0].deadline = Some(s.now + ms(60));
        assert_eq!(ask(&mut p, &s, 1), Some(Tsn(40).0));
        s.chunks[0].deadline = None;
        assert_eq!(ask(&mut p, &s, 1), None, "no deadline, no hurry");
    }
}
