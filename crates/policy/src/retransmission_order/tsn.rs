//! Lowest TSN first.
//!
//! Source: RFC 9260 §6.3.3 E3 and §7.2.4 step 3: the earliest marked chunks leave first. No parameters.

use super::RetransmissionOrder;
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn RetransmissionOrder> = Policy {
    info: PolicyInfo {
        hook: Hook::RetransmissionOrder,
        name: "tsn",
        source: "RFC 9260 §6.3.3, §7.2.4",
        file: file!(),
        summary: "The marked chunk with the lowest TSN first.",
        params: &[],
    },
    build: |_| Box::new(ByTsn),
};

struct ByTsn;

/// Of equals the engine takes the lowest TSN.
impl RetransmissionOrder for ByTsn {}

#[cfg(test)]
mod tests {
    use super::super::Rank;
    use super::*;
    use crate::testing::{Scene, built};

    #[test]
    fn all_are_equal_and_nothing_is_bundled() {
        let s = Scene::new(1, 3);
        assert!(s.chunks.iter().all(|c| built(&POLICY, "", 0).rank(&s.cx(), c) == Rank::default()));
        assert!(!built(&POLICY, "", 0).bundles_outstanding(&s.paths[0]));
    }
}
