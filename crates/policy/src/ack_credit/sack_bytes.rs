//! Every newly acknowledged byte counts.
//!
//! Source: RFC 9260 §7.2.1, which dropped RFC 4960's condition on the cumulative TSN. No parameters.

use super::{AckCredit, PathAck};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;

pub(super) const POLICY: Policy<dyn AckCredit> = Policy {
    info: PolicyInfo {
        hook: Hook::AckCredit,
        name: "sack_bytes",
        source: "RFC 9260 §7.2.1",
        file: file!(),
        summary: "Every newly acknowledged byte counts, by gap block or cumulatively.",
        params: &[],
    },
    build: |_| Box::new(SackBytes),
};

struct SackBytes;

impl AckCredit for SackBytes {
    fn credit(&self, _cx: &AssocView<'_>, ack: &PathAck) -> u64 {
        ack.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, acked, built};

    #[test]
    fn unconditional() {
        let s = Scene::new(1, 0);
        assert_eq!(built(&POLICY, "", 0).credit(&s.cx(), &acked(500, false, false)), 500);
    }
}
