//! Lowest TSN first.
//!
//! Source: RFC 9260 §6.3.3 E3 and §7.2.4 step 3: the earliest marked chunks leave first. No parameters.

use super::RetransmissionOrder;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};

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

impl RetransmissionOrder for ByTsn {
    fn first(&self, _cx: &AssocView<'_>, _marked: &[ChunkView]) -> usize {
        // They come in TSN order.
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn the_lowest_leads_and_nothing_is_bundled() {
        let s = Scene::new(1, 3);
        assert_eq!(ByTsn.first(&s.cx(), &s.chunks), 0);
        assert!(!ByTsn.bundles_outstanding(&s.paths[0]));
    }
}
