//! Copies of what is late on another path, in window that new data left free.
//!
//! Source: Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.A, overlapping retransmission; when a copy is allowed
//! is ours (docs/papers/confluent-scheduling.md). A path with nothing to do walks past the meeting point into what the
//! other side sent.
//! A chunk is copied when it has one live copy, on another path, and is older there than SRTT + 4 RTTVAR; or when
//! the send buffer is half full; or when only the copy can make its deadline. Copies pay from this path's window.
//! `mode=always` copies whatever the other paths have outstanding. Nothing is copied that would be late here too.
//! Deviations: 4 RTTVAR are a millisecond at least; the late ones go oldest first on every path, and only `always`
//! follows the scheduler's direction, from the top where this path descends.
//! Parameters: `mode`; `fill`, share of the send buffer from which everything may be copied.

use super::{Extra, Redundancy};
use crate::asks::Asks;
use crate::predict::Forecast;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, Direction, PathView};
use anabranch_base::{Duration, Instant, Ppm};

pub(super) const POLICY: Policy<dyn Redundancy> = Policy {
    info: PolicyInfo {
        hook: Hook::Redundancy,
        name: "preventive_copy",
        source: "Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 (overlapping retransmission)",
        file: file!(),
        summary: "Copies chunks that are late on another path into window that new data left free.",
        params: &[
            ParamInfo::word("mode", &["late", "always"], "copy what is late, or whatever another path has outstanding"),
            ParamInfo::number("fill", 0.5, "of send buffer", 0.0, 1.0, "from this fill on everything may be copied"),
        ],
    },
    build: |p| Box::new(PreventiveCopy::new(p)),
};

struct PreventiveCopy {
    always: bool,
    fill: Ppm,
    /// When the next chunk seen in this sending opportunity becomes late.
    due: Option<Instant>,
    asked_at: Instant,
}

impl PreventiveCopy {
    fn new(p: &Params) -> Self {
        PreventiveCopy {
            always: p.word("mode") == "always",
            fill: Ppm(p.ppm("fill") as u32),
            due: None,
            asked_at: Instant::ZERO,
        }
    }
    fn wanted(&mut self, cx: &AssocView<'_>, here: &PathView, c: &ChunkView) -> bool {
        let (Some(from), Some(sent)) = (c.live_on.iter().next(), c.last_sent) else { return false };
        if from == here.id || c.live_copies != 1 {
            return false;
        }
        let arrival = cx.now + Forecast::of(cx.now, here).arrival(c.len);
        if c.deadline.is_some_and(|d| arrival > d) {
            return false;
        }
        if self.always || cx.send_buffer_fill >= self.fill {
            return true;
        }
        let Some(p) = cx.path(from) else { return false };
        if late(cx.now, sent, p, c) {
            return true;
        }
        if !p.srtt.is_zero() {
            let due = sent + patience(p) + Duration::from_nanos(1);
            self.due = Some(self.due.map_or(due, |d| d.min(due)));
        }
        false
    }
}

/// What answers differ by at least, however steady a path has been: one packet in front, a HEARTBEAT, or a thread that
/// wakes up (the clock granularity of RFC 6298 §2.3). Without it a path without jitter is copied for microseconds.
const LEAST_SPREAD: Duration = Duration::from_millis(1);

/// How long an answer of `p` may take.
fn patience(p: &PathView) -> Duration {
    p.srtt + (p.rttvar * 4).max(LEAST_SPREAD)
}

/// Overdue on `p`, or not to be there in time.
fn late(now: Instant, sent: Instant, p: &PathView, c: &ChunkView) -> bool {
    let there = sent + p.srtt.saturating_sub(p.min_rtt / 2);
    let overdue = p.srtt > Duration::ZERO && now - sent > patience(p);
    overdue || c.deadline.is_some_and(|d| there > d)
}

impl Redundancy for PreventiveCopy {
    fn asks(&self) -> Asks {
        Asks::EXTRA.and(Asks::LOAD)
    }
    fn extra(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        if cx.now != self.asked_at {
            (self.asked_at, self.due) = (cx.now, None);
        }
        let (always, mut wanted) = (self.always, outstanding.filter(|c| self.wanted(cx, path, c)));
        let from_the_top = always && path.signals.direction == Some(Direction::Descending);
        let chosen = if from_the_top { wanted.last() } else { wanted.next() };
        chosen.map(|c| Extra::Copy { tsn: c.tsn })
    }
    fn wakeup(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};
    use anabranch_base::{PathId, PathSet, Tsn};

    /// Chunks 40 to 42 outstanding on path 0 for 90, 60 and 30 ms; path 1 has room.
    fn scene() -> Scene {
        let mut s = Scene::new(2, 3);
        s.rtt(0, 40).rttvar = ms(5);
        s.rtt(1, 100);
        for (c, age) in s.chunks.iter_mut().zip([90, 60, 30]) {
            (c.last_path, c.last_sent) = (Some(PathId(0)), Some(s.now - ms(age)));
            (c.transmissions, c.live_copies, c.live_on) = (1, 1, PathSet::only(PathId(0)));
        }
        s
    }
    fn ask(s: &Scene, always: bool, path: usize) -> Option<u32> {
        let mut p = PreventiveCopy { always, ..PreventiveCopy::new(&Params::defaults(&POLICY.info, 0)) };
        let extra = p.extra(&s.cx(), &s.paths[path], &mut s.chunks.iter().copied());
        extra.map(|e| match e {
            Extra::Copy { tsn } | Extra::Move { tsn, .. } => tsn.0,
            Extra::Parity => unreachable!(),
        })
    }

    #[test]
    fn only_what_is_late_and_only_elsewhere() {
        let mut s = scene();
        assert_eq!(ask(&s, false, 1), Some(40), "90 > 40 + 4 * 5");
        assert_eq!(ask(&s, false, 0), None, "the same path");
        s.chunks[0].live_copies = 2;
        assert_eq!(ask(&s, false, 1), None, "60 is not more than 60");
        s.now += ms(1);
        assert_eq!(ask(&s, false, 1), Some(41));
    }

    #[test]
    fn a_path_without_jitter_is_not_late_for_microseconds() {
        for rtt in [2, 20, 100, 300] {
            let mut s = scene();
            s.rtt(0, rtt).rttvar = Duration::ZERO;
            s.chunks.truncate(1);
            for (micros_more, copied) in [(4, false), (900, false), (1_001, true)] {
                s.chunks[0].last_sent = Some(s.now - ms(rtt) - Duration::from_micros(micros_more));
                assert_eq!(ask(&s, false, 1).is_some(), copied, "round trip {rtt} ms, {micros_more} us more");
            }
        }
    }

    #[test]
    fn a_copy_that_was_lost_here_leaves_the_live_one_there() {
        let mut s = scene();
        // Sent on path 0, copied to path 1, and the copy was lost.
        (s.chunks[0].last_path, s.chunks[0].transmissions) = (Some(PathId(1)), 2);
        assert_eq!(ask(&s, true, 1), Some(40));
        assert_eq!(ask(&s, true, 0), None, "it is still under way on path 0");
    }

    #[test]
    fn it_asks_to_be_woken_when_the_next_chunk_becomes_late() {
        let mut s = scene();
        let mut p = PreventiveCopy::new(&Params::defaults(&POLICY.info, 0));
        s.chunks.remove(0);
        assert_eq!(p.extra(&s.cx(), &s.paths[1], &mut s.chunks.iter().copied()), None);
        let due = s.now + Duration::from_nanos(1);
        assert_eq!(p.wakeup(), Some(due), "sent 60 ms ago on a path with 40 + 4 * 5 ms");
        s.now = due;
        let extra = p.extra(&s.cx(), &s.paths[1], &mut s.chunks.iter().copied());
        assert_eq!(extra, Some(Extra::Copy { tsn: Tsn(41) }));
        s.chunks.clear();
        s.now = due + ms(1);
        assert_eq!(p.extra(&s.cx(), &s.paths[1], &mut s.chunks.iter().copied()), None);
        assert_eq!(p.wakeup(), None);
    }

    #[test]
    fn a_full_buffer_or_a_deadline_lets_more_through() {
        let mut s = scene();
        s.chunks.remove(0);
        assert_eq!(ask(&s, false, 1), None);
        s.fill = Ppm(500_000);
        assert_eq!(ask(&s, false, 1), Some(41));
        s.fill = Ppm(0);
        // Over path 0 it would need until 40 - 20 ms after it left.
        s.rtt(0, 300).min_rtt = ms(100);
        s.rtt(1, 50);
        s.paths[1].cwnd = 80_000;
        s.chunks[0].deadline = Some(s.now + ms(180));
        assert_eq!(ask(&s, false, 1), Some(41), "sent 60 ms ago, 250 ms under way");
        s.chunks[0].deadline = Some(s.now + ms(200));
        assert_eq!(ask(&s, false, 1), None);
        s.chunks[0].deadline = Some(s.now + ms(10));
        assert_eq!(ask(&s, false, 1), None, "late here as well");
    }

    #[test]
    fn always_follows_the_direction() {
        let mut s = scene();
        assert_eq!(ask(&s, true, 1), Some(40));
        s.paths[1].signals.direction = Some(Direction::Descending);
        assert_eq!(ask(&s, true, 1), Some(42));
        s.chunks.iter_mut().for_each(|c| c.live_copies = 2);
        assert_eq!(ask(&s, true, 1), None);
        assert_eq!(s.chunks[0].tsn, Tsn(40));
    }
}
