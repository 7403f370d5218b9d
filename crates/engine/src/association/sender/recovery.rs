//! What the engine keeps for the recovery policy.

use crate::association::Association;
use crate::association::path_table::list::Shown;

impl Association {
    /// What is left of Max.Burst is left for all paths. It is over with the packet that the window would have allowed.
    pub(in crate::association) fn share_burst(&mut self, left: u16) {
        for i in 0..self.paths.len() {
            if let Some(p) = self.paths.get_for(i, Shown::Nothing) {
                p.congestion.allow_burst(left);
            }
        }
        let room =
            self.paths.get(self.paths.primary().index()).is_some_and(|p| p.congestion.has_room(p.flight.bytes()));
        self.sender.burst_armed &= left > 0 || !room;
    }
}
