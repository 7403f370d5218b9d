//! Round robin over the paths.
//!
//! Source: Iyengar, Amer, Stewart 2006 (CMT) as its reference simulator does it. Each sending opportunity starts with
//! the path after the one that sent last and stays on a path while it has room.
//! Parameters: `strict` 1 gives one chunk to each active path in turn (1:1, the default scheduling that the
//! confluent-scheduling paper compares with) and waits for a full path as long as something is in flight there.

use super::{Decision, Occasion, PathScheduler, Settled};
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, QueueView};
use anabranch_base::PathId;

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "round_robin",
        source: "Iyengar, Amer, Stewart 2006 (CMT); Becke et al. 2013 §3 for strict=1",
        file: file!(),
        summary: "Fills one path's window after the other, starting after the path that sent last.",
        params: &[ParamInfo::flag("strict", false, "one chunk per active path in turn, waiting for a full one")],
    },
    build: |p| Box::new(RoundRobin::new(p)),
};

pub(super) struct RoundRobin {
    strict: bool,
    last: Option<PathId>,
    /// Nothing was sent yet in this sending opportunity.
    fresh: bool,
}

impl RoundRobin {
    fn new(p: &Params) -> Self {
        RoundRobin { strict: p.flag("strict"), last: None, fresh: true }
    }
    /// The one of `open` whose turn it is: the path that sent last goes on within a sending opportunity.
    pub(super) fn among(&self, open: impl Iterator<Item = PathId> + Clone) -> Option<PathId> {
        let stays = self.last.filter(|last| !self.strict && !self.fresh && open.clone().any(|p| p == *last));
        stays.or_else(|| self.after_last(open))
    }
    /// First of `candidates` after the path that sent last, cyclically.
    fn after_last(&self, candidates: impl Iterator<Item = PathId>) -> Option<PathId> {
        let start = self.last.map_or(0, |p| p.0.wrapping_add(1));
        candidates.min_by_key(|p| p.0.wrapping_sub(start))
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        RoundRobin::new(&Params::defaults(&POLICY.info, 0))
    }
}

impl PathScheduler for RoundRobin {
    fn asks(&self) -> Asks {
        Asks::OUTCOMES
    }
    fn next(&self, cx: &AssocView<'_>, _q: &QueueView<'_>) -> Decision {
        let path = if self.strict {
            // A path that can neither send nor be acknowledged would never wake us up.
            let turns = cx.active().filter(|p| cx.eligible.has(p.id) || p.in_flight > 0).map(|p| p.id);
            self.after_last(turns.chain(cx.eligible.iter()))
        } else {
            self.among(cx.eligible.iter())
        };
        match path {
            Some(path) if cx.eligible.has(path) => Decision::Send { index: 0, path },
            _ => Decision::Blocked,
        }
    }
    fn settle(&mut self, _cx: &AssocView<'_>, outcome: &Settled) {
        if let Settled::Sent { path, .. } = outcome {
            self.last = Some(*path);
            self.fresh = false;
        }
    }
    fn observe(&mut self, _cx: &AssocView<'_>, _q: &QueueView<'_>, why: Occasion) {
        if why == Occasion::Opportunity {
            self.fresh = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    fn policy(strict: bool) -> RoundRobin {
        RoundRobin { strict, ..RoundRobin::default() }
    }

    #[test]
    fn fills_a_path_then_goes_on_after_it() {
        let mut s = Scene::new(3, 9);
        let mut p = policy(false);
        assert_eq!(s.send(&mut p), Some((0, PathId(0))));
        assert_eq!(s.send(&mut p), Some((0, PathId(0))));
        s.close(0);
        assert_eq!(s.send(&mut p), Some((0, PathId(1))));
        s.open(0);
        assert_eq!(s.send(&mut p), Some((0, PathId(1))), "stays while there is room");
        s.opportunity(&mut p);
        assert_eq!(s.send(&mut p), Some((0, PathId(2))), "a new opportunity starts after the last path");
        s.close(2);
        assert_eq!(s.send(&mut p), Some((0, PathId(0))));
    }

    #[test]
    fn strict_alternates_and_waits_only_for_a_path_that_can_wake_it() {
        let mut s = Scene::new(2, 9);
        let mut p = policy(true);
        assert_eq!(s.send(&mut p), Some((0, PathId(0))));
        assert_eq!(s.send(&mut p), Some((0, PathId(1))));
        s.close(0);
        assert_eq!(s.ask(&p), Decision::Blocked);
        s.paths[0].in_flight = 0;
        assert_eq!(s.send(&mut p), Some((0, PathId(1))), "closed with nothing in flight: skipped");
    }
}
