//! The path on which a retransmission arrives first.
//!
//! Source: ours. A lost chunk has spent its time already, so it goes where flight time and queue let it arrive
//! first; a full path counts with the time until it has room. Paths with an unanswered timeout come last.
//! When the best path is full, another one takes the chunk if it still makes the deadline with `guard` to spare; otherwise
//! the chunk waits for the best one, which has bytes in flight and will be acknowledged. Where the best path waits for its
//! pace alone it is open again in a moment, whatever is acknowledged: then another one needs what its round trips vary by to
//! spare as well, `risk` mean deviations (0: nothing of it).
//! Parameters: `guard` ms; `risk`.

use super::{RetransmissionPolicy, Retransmit, Target, dormant};
use crate::predict::{Forecast, luck, uncertainty};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Ppm};

pub(super) const POLICY: Policy<dyn RetransmissionPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Retransmission,
        name: "predicted_arrival",
        source: "ours",
        file: file!(),
        summary: "The path with the earliest predicted arrival, its queue and window included.",
        params: &[
            ParamInfo::millis("guard", 20, 0, 10_000, "time to spare before a deadline on a path that is not the best"),
            ParamInfo::number(
                "risk",
                2.0,
                "mean deviations",
                0.0,
                100.0,
                "to spare as well where the best only waits for its pace",
            ),
        ],
    },
    build: |p| Box::new(PredictedArrival::new(p)),
};

struct PredictedArrival {
    guard: Duration,
    risk: Ppm,
}

impl PredictedArrival {
    fn new(p: &Params) -> Self {
        PredictedArrival { guard: p.millis("guard"), risk: Ppm(p.ppm("risk") as u32) }
    }
    /// What `p` needs to spare before a deadline where `better` is the best path.
    fn slack(&self, now: Instant, p: &PathView, better: &PathView) -> Duration {
        let varies = || uncertainty(now, p, self.risk) + luck(now, p);
        self.guard + if self.risk > Ppm(0) && better.has_room() { varies() } else { Duration::ZERO }
    }
}

fn key(now: Instant, p: &PathView, len: u64) -> (bool, bool, Duration, PathId) {
    // Without a sample a path looks fast.
    (p.consecutive_timeouts > 0, p.srtt.is_zero(), Forecast::and_luck(now, p).0.arrival(len), p.id)
}

impl RetransmissionPolicy for PredictedArrival {
    fn if_full_next(&self) -> bool {
        true
    }
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
        let len = r.chunk.len;
        let offered = r.candidates.iter().filter_map(|id| cx.path(id));
        let Some(p) = offered.min_by_key(|p| key(cx.now, p, len)) else { return dormant(cx, r) };
        // A path that is missing among the candidates was full.
        let full = cx.active().filter(|o| !r.candidates.has(o.id) && o.in_flight > 0);
        let better = full.min_by_key(|o| key(cx.now, o, len)).filter(|o| key(cx.now, o, len) < key(cx.now, p, len));
        let Some(better) = better else { return Target::On(p.id) };
        let takes = Forecast::of(cx.now, p).arrival(len) + self.slack(cx.now, p, better);
        if r.chunk.deadline.is_some_and(|d| cx.now + takes <= d) { Target::On(p.id) } else { Target::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};
    use anabranch_base::PathSet;

    fn ask(s: &Scene, candidates: PathSet) -> Target {
        let mut p = built(&POLICY, "", 0);
        p.target(&s.cx(), &Retransmit::of(&s.chunks[0], candidates))
    }
    fn scene() -> Scene {
        let mut s = Scene::new(2, 1);
        s.rtt(0, 30).cwnd = 30_000;
        s.rtt(1, 160).cwnd = 80_000;
        s
    }

    #[test]
    fn earliest_arrival_queue_included() {
        let mut s = scene();
        assert_eq!(ask(&s, PathSet::first(2)), Target::On(PathId(0)));
        s.paths[0].in_flight = 30_000 + 100_000;
        assert_eq!(ask(&s, PathSet::first(2)), Target::On(PathId(1)));
    }

    #[test]
    fn a_silent_path_comes_last() {
        let mut s = scene();
        s.paths[0].consecutive_timeouts = 1;
        assert_eq!(ask(&s, PathSet::first(2)), Target::On(PathId(1)));
        assert_eq!(ask(&s, PathSet::only(PathId(0))), Target::On(PathId(0)));
    }

    #[test]
    fn second_best_only_if_the_deadline_allows() {
        let mut s = scene();
        s.close(0);
        let second = PathSet::only(PathId(1));
        assert_eq!(ask(&s, second), Target::Wait, "no deadline: the full path is still earlier");
        s.chunks[0].deadline = Some(s.now + ms(150));
        assert_eq!(ask(&s, second), Target::On(PathId(1)));
        s.chunks[0].deadline = Some(s.now + ms(90));
        assert_eq!(ask(&s, second), Target::Wait);
        s.paths[0].in_flight = 0;
        assert_eq!(ask(&s, second), Target::On(PathId(1)), "nothing would open the other path");
    }

    /// One HEARTBEAT came after 1 ms over a path that takes 160 as a rule.
    #[test]
    fn one_quick_answer_makes_no_fast_path() {
        for (reorders, quickest) in [(true, 1), (true, 20), (false, 1), (false, 20)] {
            let mut s = scene();
            let now = s.now;
            let p = s.rtt(1, quickest);
            (p.mean_rtt, p.unloaded_rtt, p.unloaded_deviation, p.jitter) = (ms(160), ms(160), ms(40), ms(40));
            p.overtaken_at = reorders.then_some(now);
            assert_eq!(ask(&s, PathSet::first(2)), Target::On(PathId(0)), "{quickest} ms");
        }
    }

    /// 80 ms there and 20 to spare: what round trips vary by comes beside it, twice, where the best waits for its pace.
    #[test]
    fn an_unsteady_path_needs_more_to_spare_where_the_best_opens_by_itself() {
        for (jitter, paced, from) in
            [(0, true, 105), (10, true, 125), (30, true, 165), (60, true, 225), (30, false, 105), (60, false, 105)]
        {
            let mut s = scene();
            s.close(0);
            if paced {
                s.paths[0].in_flight = 10_000;
            }
            s.paths[1].jitter = ms(jitter);
            for left in [from - 10, from] {
                s.chunks[0].deadline = Some(s.now + ms(left));
                let at = if left == from { Target::On(PathId(1)) } else { Target::Wait };
                assert_eq!(ask(&s, PathSet::only(PathId(1))), at, "{jitter} ms of jitter, {left} ms left, {paced}");
            }
        }
    }

    #[test]
    fn nothing_left_to_ask() {
        let s = scene();
        assert_eq!(ask(&s, PathSet::EMPTY), Target::Wait);
    }
}
