//! Which paths may carry something.

use super::PathTable;
use crate::path::Path;
use anabranch_base::{PathId, PathSet};
use anabranch_policy::view::PathState;

impl PathTable {
    /// Active paths; when there is none, the best of the others, so that an association never stands still
    /// (RFC 7829 §3.2, RFC 9260 §8.2: dormant state).
    pub fn usable(&self) -> PathSet {
        let (mut active, mut any_standby) = (PathSet::EMPTY, false);
        for p in self.iter().filter(|p| p.is_in_use()) {
            active = active.with(p.id());
            any_standby |= p.access.is_standby();
        }
        if !active.is_empty() {
            return if any_standby { self.without_standby(active) } else { active };
        }
        let rank = |p: &&Path| {
            let state = match p.state() {
                PathState::Active => 0,
                PathState::Suspected => 1,
                PathState::PotentiallyFailed => 2,
                _ => 3,
            };
            // Fewest errors, then the one that answered last (RFC 7829 §3.2).
            (state, p.health.errors(), core::cmp::Reverse(p.health.last_heard()), p.id())
        };
        let confirmed = self.iter().filter(|p| p.is_confirmed() && p.access.is_known());
        confirmed.min_by_key(rank).map_or(PathSet::EMPTY, |p| PathSet::only(p.id()))
    }

    /// These paths take no part in sending from now on, all others do.
    pub fn sideline(&mut self, paths: PathSet) {
        self.uncoupled |= self.sidelined != paths;
        self.sidelined = paths;
    }

    /// The path with this number is another one now.
    pub fn readmit(&mut self, id: PathId) {
        self.sidelined = self.sidelined.without(id);
    }

    /// Paths that take no part in sending; none where no other path could take it over.
    #[inline]
    pub fn aside(&self) -> PathSet {
        if self.sidelined.is_empty() {
            return PathSet::EMPTY;
        }
        if self.usable().except(self.sidelined).is_empty() { PathSet::EMPTY } else { self.sidelined }
    }
}

impl PathTable {
    /// An interface's standby pairs leave when it has a better one, and all but one of them when it has not.
    #[inline(never)]
    fn without_standby(&self, active: PathSet) -> PathSet {
        let of = |id: &PathId| self.get(id.index());
        let preferred = |a: &Path, b: &Path| {
            a.local() == b.local() && (a.access.is_standby(), a.id()) < (b.access.is_standby(), b.id())
        };
        let beaten = |a: &Path| a.access.is_standby() && active.iter().any(|o| of(&o).is_some_and(|b| preferred(b, a)));
        active.iter().filter(|id| of(id).is_some_and(|p| !beaten(p))).collect()
    }
}
