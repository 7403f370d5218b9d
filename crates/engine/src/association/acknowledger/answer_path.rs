//! The path that a SACK takes (RFC 9260 §6.4).

use super::Acknowledger;
use crate::association::Association;
use crate::association::path_table::PathTable;
use crate::association::receiver::data_in::Arrival;
use crate::path::Path;
use anabranch_base::{Instant, PathId};
use anabranch_policy::view::PathState;

/// A path with more errors than this is not asked again by what comes from there: several such must not end an
/// association (§8.1).
const MOST_ASKED: u16 = 3;

impl Acknowledger {
    /// Of answers to repetitions every other one takes the way they came.
    fn turn_back(&mut self, path: PathId) {
        self.took_detour = !self.took_detour;
        self.detour = Some(path).filter(|_| self.took_detour);
    }

    /// SACKs answer where the last DATA came from, as long as that path works; else they leave on one that does
    /// (RFC 9260 §6.4; ARCHITECTURE decision 2). `follows`: wherever that is.
    pub(in crate::association) fn target(&self, paths: &PathTable, follows: bool) -> Option<PathId> {
        // Whatever its state, but never to an address that has not shown to be the peer's (§5.4).
        let is_peers =
            |p: &Path| p.is_confirmed() && p.access.is_known() && !p.access.is_removed() && !p.access.is_disowned();
        if let Some(path) = self.detour
            && paths.get(path.index()).is_some_and(is_peers)
        {
            return Some(path);
        }
        let works = |p: &Path| p.is_in_use() && !p.health.loses_answers();
        if follows || paths.get(self.path.index()).is_some_and(works) {
            return Some(self.path);
        }
        let usable = paths.usable();
        let heard = usable.iter().find(|id| paths.get(id.index()).is_some_and(works));
        if heard.is_some() {
            return heard;
        }
        if usable.has(self.path) { Some(self.path) } else { usable.iter().next() }
    }
}

impl Association {
    /// Nothing but repetitions, and by another path than the one we answer on: perhaps the peer does not hear us there.
    /// Every other such answer goes back by the way they came, and a HEARTBEAT finds out; while it stays unanswered
    /// acknowledgements prefer another path (§6.4). Data by such a path are the moment to ask it again.
    pub(in crate::association) fn doubt_answers(&mut self, now: Instant, path: PathId, seen: &Arrival) {
        if self.config.compatibility.sacks_follow_data {
            return;
        }
        if self.paths.get(path.index()).is_some_and(|p| p.health.loses_answers()) {
            self.ask_for_answer(now, path);
        }
        if seen.new || seen.dropped {
            return;
        }
        self.acknowledger.detour = None;
        let Some(said) = self
            .acknowledger
            .target(&self.paths, self.config.compatibility.sacks_follow_data)
            .filter(|said| *said != path)
        else {
            return;
        };
        self.acknowledger.turn_back(path);
        if self.paths.get(said.index()).is_some_and(|p| !p.health.loses_answers()) {
            self.ask_for_answer(now, said);
        }
    }

    /// A HEARTBEAT on a path that perhaps answers, and perhaps not; less and less often while it does not, and soon no
    /// more than on any other.
    fn ask_for_answer(&mut self, now: Instant, path: PathId) {
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        if p.state() == PathState::Unconfirmed || p.health.errors() > MOST_ASKED {
            return;
        }
        if !p.probing.awaits_answer() && p.health.doubt(now, self.config.timers.rto_initial) {
            self.request_heartbeat(now, path);
        }
    }
}
