//! A message is given up when its deadline has passed.
//!
//! Source: RFC 3758 §4.1, timed reliability. Optionally (ours) it is given up as soon as not even
//! the fastest active path could still deliver it in time: what it sends now passes the queue that the smoothed round
//! trip shows and takes half of the smallest one. Giving up early leaves the capacity to what can still be in time.
//! A message may belong to a group that is only useful whole (a video frame): with `whole`, what is left of a group
//! of which something was given up goes too, and with `drain` the time the rest of the group needs to leave counts.
//! Parameters: `predictive` switches that on; `whole` and `drain` as said; `margin` ms is added to the flight time,
//! for links whose data direction takes more than half of the round trip.

use super::{Abandon, Reason};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};
use anabranch_base::{Duration, Rate};

pub(super) const POLICY: Policy<dyn Abandon> = Policy {
    info: PolicyInfo {
        hook: Hook::Abandon,
        name: "lifetime",
        source: "RFC 3758 §4.1; predictive, whole and drain are ours",
        file: file!(),
        summary: "Gives up a message whose deadline has passed, or can no longer be met.",
        params: &[
            ParamInfo::flag("predictive", false, "give up what not even the fastest path can deliver in time"),
            ParamInfo::flag("whole", false, "give up what is left of a group of which something was given up"),
            ParamInfo::flag("drain", false, "count the time the rest of the group takes, with predictive"),
            ParamInfo::millis("margin", 0, 0, 10_000, "time a delivery needs beyond the flight, with predictive"),
        ],
    },
    build: |p| Box::new(Lifetime::new(p)),
};

struct Lifetime {
    predictive: bool,
    whole: bool,
    drain: bool,
    margin: Duration,
}

impl Lifetime {
    fn new(p: &Params) -> Self {
        Lifetime {
            predictive: p.flag("predictive"),
            whole: p.flag("whole"),
            drain: p.flag("drain"),
            margin: p.millis("margin"),
        }
    }
    /// The least time a delivery takes, as far as is known.
    fn flight(&self, cx: &AssocView<'_>) -> Duration {
        if !self.predictive {
            return Duration::ZERO;
        }
        // A path without a sample might be fast: nothing is known, nothing is given up early.
        let fastest = cx.active().map(|p| p.srtt - p.min_rtt / 2).min().unwrap_or(Duration::ZERO);
        if fastest.is_zero() { Duration::ZERO } else { fastest + self.margin }
    }
    /// Time until the rest of the group has left, at the rate all windows allow together.
    fn rest(&self, cx: &AssocView<'_>, c: &ChunkView) -> Duration {
        let rate: u64 = cx.active().map(|p| p.window_rate().max(p.delivery_rate).bytes_per_sec()).sum();
        if !self.drain || !self.predictive || rate == 0 || c.group_unsent <= c.len {
            return Duration::ZERO;
        }
        Rate::from_bytes_per_sec(rate).time_for(c.group_unsent - c.len)
    }
}

impl Abandon for Lifetime {
    fn give_up(&self, cx: &AssocView<'_>, c: &ChunkView) -> Option<Reason> {
        let deadline = c.deadline?;
        let late = (self.whole && c.group_broken) || cx.now + self.flight(cx) + self.rest(cx, c) > deadline;
        late.then_some(Reason::Lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn at(s: &mut Scene, left: u64, p: &Lifetime) -> bool {
        s.chunks[0].deadline = Some(s.now + ms(left));
        p.give_up(&s.cx(), &s.chunks[0]) == Some(Reason::Lifetime)
    }

    #[test]
    fn after_the_deadline() {
        let mut s = Scene::new(2, 1);
        let p = Lifetime { predictive: false, whole: false, drain: false, margin: Duration::ZERO };
        assert!(p.give_up(&s.cx(), &s.chunks[0]).is_none(), "no deadline");
        assert!(!at(&mut s, 0, &p));
        s.chunks[0].deadline = Some(s.now - ms(1));
        assert!(p.give_up(&s.cx(), &s.chunks[0]).is_some());
    }

    #[test]
    fn predictive_knows_the_fastest_path() {
        let mut s = Scene::new(2, 1);
        let p = Lifetime { predictive: true, whole: false, drain: false, margin: ms(5) };
        s.rtt(1, 200);
        assert!(!at(&mut s, 50, &p), "the other path may be faster");
        s.rtt(0, 40);
        assert!(at(&mut s, 24, &p));
        assert!(!at(&mut s, 25, &p));
        s.paths[0].srtt = ms(60);
        assert!(at(&mut s, 44, &p), "20 ms of queue");
        assert!(!at(&mut s, 45, &p));
        s.paths[0].state = crate::view::PathState::Suspected;
        assert!(at(&mut s, 100, &p), "only the slow path is left");
    }

    #[test]
    fn a_group_goes_as_a_whole() {
        let mut s = Scene::new(1, 1);
        let p = Lifetime { predictive: true, whole: true, drain: true, margin: Duration::ZERO };
        // 100000 bytes a second and 20 ms of flight; 30000 bytes follow in the group.
        s.rtt(0, 40).cwnd = 4_000;
        (s.chunks[0].len, s.chunks[0].group_unsent) = (1_000, 31_000);
        assert!(at(&mut s, 319, &p), "the rest would be late");
        assert!(!at(&mut s, 320, &p));
        assert!(!at(&mut s, 20, &Lifetime { drain: false, ..p }));
        s.chunks[0].group_broken = true;
        let p = Lifetime { predictive: true, whole: true, drain: true, margin: Duration::ZERO };
        assert!(at(&mut s, 5_000, &p));
        assert!(!at(&mut s, 5_000, &Lifetime { whole: false, ..p }));
    }
}
