//! Which of our sides have no reports. Who chose policies that use them should know that they go without.

use super::LATER;
use crate::shared::Core;
use anabranch_engine::LocalId;
use anabranch_policy::Asks;
use std::time::Instant;

/// Sides of associations that ask for reports, since when each is waited for, and whether it was named.
#[derive(Debug, Default)]
pub(super) struct Silent {
    sides: Vec<(LocalId, Instant, bool)>,
    next: Option<Instant>,
}

impl Silent {
    /// Says once of each side that its paths have no report a while after they began.
    pub fn look(&mut self, core: &Core, now: Instant) {
        if self.next.is_some_and(|at| now < at) {
            return;
        }
        self.next = Some(now + LATER / 2);
        for local in self.newly(&without(core), now) {
            let Some(side) = core.locals.get(local) else { continue };
            tracing::warn!(local = %side.name, "no reports on frames: policies that use them judge its paths without");
        }
    }

    /// Those of `silent` that have been so for long enough and were not named before; they are from now on.
    fn newly(&mut self, silent: &[LocalId], now: Instant) -> Vec<LocalId> {
        for local in silent {
            if self.sides.iter().all(|s| s.0 != *local) {
                self.sides.push((*local, now, false));
            }
        }
        let due = |s: &&mut (LocalId, Instant, bool)| !s.2 && silent.contains(&s.0) && now >= s.1 + LATER;
        let named = self.sides.iter_mut().filter(due).map(|s| {
            s.2 = true;
            s.0
        });
        named.collect()
    }
}

/// Sides without reports whose paths serve associations that ask for them. Loopback has no link layer that could make any.
fn without(core: &Core) -> Vec<LocalId> {
    let mut silent = Vec::new();
    for a in core.engine.associations().filter_map(|id| core.engine.association(id)) {
        if a.config().profile.asks().any(Asks::LINK_REPORTS) {
            let paths = a.paths().filter(|(_, p)| p.state.usable() && p.frame_errors.is_none());
            silent.extend(paths.map(|(_, p)| LocalId(p.local)));
        }
    }
    silent.retain(|local| core.locals.get(*local).is_some_and(|side| !side.address.ip().is_loopback()));
    silent
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_side_is_named_once_when_it_has_had_its_time() {
        let (a, b) = (LocalId(0), LocalId(1));
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut s = Silent::default();
        assert_eq!(s.newly(&[a], at(0)), []);
        assert_eq!(s.newly(&[a, b], at(600)), []);
        assert_eq!(s.newly(&[a, b], at(1_000)), [a]);
        assert_eq!(s.newly(&[a], at(1_700)), [], "the other one has reports now");
        assert_eq!(s.newly(&[a, b], at(2_000)), [b]);
        assert_eq!(s.newly(&[a, b], at(9_000)), []);
    }
}
