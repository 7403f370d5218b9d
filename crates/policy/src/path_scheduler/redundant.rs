//! Every chunk on every path with room.
//!
//! Source: Frommgen et al. 2016 (redundant multipath scheduling). The earliest copy counts. A path without room misses
//! the chunk and is not waited for, so together they carry what the best of them does and some more: 4.3 Mbit/s over two
//! paths of 4 with 20 and 25 ms, 4.07 with 3 Mbit/s on the second. Paths of equal rate and delay find room by turns, and
//! carry nearly the sum with next to no copies (7.7 of 8 Mbit/s). No parameters.

use super::{Decision, PathScheduler};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, QueueView};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "redundant",
        source: "Frommgen, Erbshäußer, Buchmann, Zimmermann, Wehrle 2016",
        file: file!(),
        summary: "A copy of every chunk on every path with room.",
        params: &[],
    },
    build: |_| Box::new(Redundant),
};

struct Redundant;

impl PathScheduler for Redundant {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn next(&self, cx: &AssocView<'_>, _q: &QueueView<'_>) -> Decision {
        let mut open = cx.eligible.iter();
        match (open.next(), open.next()) {
            (Some(path), None) => Decision::Send { index: 0, path },
            (Some(_), Some(_)) => Decision::Copies { index: 0, paths: cx.eligible },
            _ => Decision::Blocked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use anabranch_base::{PathId, PathSet};

    #[test]
    fn copies_on_all_open_paths() {
        let mut s = Scene::new(3, 1);
        s.close(1);
        let paths = PathSet::only(PathId(0)).with(PathId(2));
        assert_eq!(s.ask(&Redundant), Decision::Copies { index: 0, paths });
        s.close(0);
        assert_eq!(s.ask(&Redundant), Decision::Send { index: 0, path: PathId(2) });
    }
}
