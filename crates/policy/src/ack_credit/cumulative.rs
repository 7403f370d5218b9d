//! Credit only when the cumulative TSN advances.
//!
//! Source: RFC 4960 §7.2.1. Bytes acknowledged by a SACK that does not advance the cumulative TSN open nothing. On
//! several paths every hole of one path stops the others, which is what CUC was made against. Parameter `when_full` 1 leaves
//! out what is acknowledged cumulatively beyond the threshold while the window is not used in full.

use super::{AckCredit, PathAck, WHEN_FULL, counted};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;

pub(super) const POLICY: Policy<dyn AckCredit> = Policy {
    info: PolicyInfo {
        hook: Hook::AckCredit,
        name: "cumulative",
        source: "RFC 4960 §7.2.1",
        file: file!(),
        summary: "Acknowledged bytes count when the cumulative TSN advances.",
        params: &[WHEN_FULL],
    },
    build: |p| Box::new(Cumulative { when_full: p.flag("when_full") }),
};

struct Cumulative {
    when_full: bool,
}

impl AckCredit for Cumulative {
    fn credit(&self, cx: &AssocView<'_>, ack: &PathAck) -> u64 {
        if ack.cumulative_advanced { counted(self.when_full, cx, ack) } else { 0 }
    }
    fn needs_order(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, acked, built};

    #[test]
    fn follows_the_cumulative_tsn() {
        let (s, p) = (Scene::new(1, 0), built(&POLICY, "", 0));
        assert_eq!(p.credit(&s.cx(), &acked(500, true, false)), 0);
        assert_eq!(p.credit(&s.cx(), &acked(500, false, true)), 500);
    }
}
