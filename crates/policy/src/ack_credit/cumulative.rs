//! Credit only when the cumulative TSN advances.
//!
//! Source: RFC 4960 §7.2.1. Bytes acknowledged by a SACK that does not advance the cumulative TSN open nothing. On
//! several paths every hole of one path stops the others, which is what CUC was made against. No parameters.

use super::{AckCredit, PathAck};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;

pub(super) const POLICY: Policy<dyn AckCredit> = Policy {
    info: PolicyInfo {
        hook: Hook::AckCredit,
        name: "cumulative",
        source: "RFC 4960 §7.2.1",
        file: file!(),
        summary: "Acknowledged bytes count when the cumulative TSN advances.",
        params: &[],
    },
    build: |_| Box::new(Cumulative),
};

struct Cumulative;

impl AckCredit for Cumulative {
    fn credit(&self, _cx: &AssocView<'_>, ack: &PathAck) -> u64 {
        if ack.cumulative_advanced { ack.bytes } else { 0 }
    }
    fn needs_order(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, acked};

    #[test]
    fn follows_the_cumulative_tsn() {
        let s = Scene::new(1, 0);
        assert_eq!(Cumulative.credit(&s.cx(), &acked(500, true, false)), 0);
        assert_eq!(Cumulative.credit(&s.cx(), &acked(500, false, true)), 500);
    }
}
