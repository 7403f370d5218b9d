//! One path carries everything, the others stand by.
//!
//! Source: RFC 9260 §6.4. The primary path, which the user may choose at any time, takes all new data; while it is
//! not active the next active path in list order takes over, and it gets the traffic back as soon as it is active
//! again. No parameters.

use super::{Decision, PathScheduler};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, QueueView};
use anabranch_base::PathId;

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "primary_only",
        source: "RFC 9260 §6.4",
        file: file!(),
        summary: "All new data on the primary path; the next active path while the primary is not active.",
        params: &[],
    },
    build: |_| Box::new(PrimaryOnly),
};

struct PrimaryOnly;

fn chosen(cx: &AssocView<'_>) -> Option<PathId> {
    let from_primary = |id: PathId| id.0.wrapping_sub(cx.primary.0);
    cx.active().map(|p| p.id).min_by_key(|&id| from_primary(id))
}

impl PathScheduler for PrimaryOnly {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn next(&self, cx: &AssocView<'_>, _q: &QueueView<'_>) -> Decision {
        // Without an active path the engine decides which dormant one it opens.
        match chosen(cx).or_else(|| cx.eligible.iter().next()) {
            Some(path) if cx.eligible.has(path) => Decision::Send { index: 0, path },
            _ => Decision::Blocked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use crate::view::PathState;

    #[test]
    fn stays_on_the_primary_even_when_another_is_open() {
        let mut s = Scene::new(2, 3);
        let policy = PrimaryOnly;
        assert_eq!(s.ask(&policy), Decision::Send { index: 0, path: PathId(0) });
        s.close(0);
        assert_eq!(s.ask(&policy), Decision::Blocked);
    }

    #[test]
    fn next_active_path_stands_in_and_gives_way_again() {
        let mut s = Scene::new(3, 1);
        s.primary = PathId(1);
        let policy = PrimaryOnly;
        s.paths[1].state = PathState::Inactive;
        s.close(1);
        assert_eq!(s.ask(&policy), Decision::Send { index: 0, path: PathId(2) });
        s.paths[2].state = PathState::Suspected;
        s.close(2);
        assert_eq!(s.ask(&policy), Decision::Send { index: 0, path: PathId(0) });
        s.paths[1].state = PathState::Active;
        s.open(1);
        assert_eq!(s.ask(&policy), Decision::Send { index: 0, path: PathId(1) });
    }
}
