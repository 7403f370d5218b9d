//! Lowest TSN first, and the rest of the packet filled with chunks that are still outstanding.
//!
//! Source: Petlund et al. 2009 §5 and §6.2 on bundling; the Linux stack does it. A retransmission packet of a sparse
//! stream is mostly empty, and what it carries in addition arrives even if its own packet was lost too.
//! No parameters.

use super::RetransmissionOrder;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::PathView;

pub(super) const POLICY: Policy<dyn RetransmissionOrder> = Policy {
    info: PolicyInfo {
        hook: Hook::RetransmissionOrder,
        name: "bundle_outstanding",
        source: "Petlund et al. 2009 (thin streams), bundling",
        file: file!(),
        summary: "Lowest TSN first; spare room of a retransmission packet carries outstanding chunks of its path.",
        params: &[],
    },
    build: |_| Box::new(BundleOutstanding),
};

struct BundleOutstanding;

impl RetransmissionOrder for BundleOutstanding {
    fn bundles_outstanding(&self, _path: &PathView) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rank;
    use super::*;
    use crate::testing::{Scene, built};

    #[test]
    fn bundles_in_tsn_order() {
        let s = Scene::new(1, 3);
        assert!(s.chunks.iter().all(|c| built(&POLICY, "", 0).rank(&s.cx(), c) == Rank::default()));
        assert!(built(&POLICY, "", 0).bundles_outstanding(&s.paths[0]));
    }
}
