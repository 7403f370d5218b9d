//! No copies.
//!
//! Source: RFC 9260 has none. No parameters.

use super::{Extra, Redundancy};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};

pub(super) const POLICY: Policy<dyn Redundancy> = Policy {
    info: PolicyInfo {
        hook: Hook::Redundancy,
        name: "none",
        source: "RFC 9260",
        file: file!(),
        summary: "Nothing is sent twice on purpose.",
        params: &[],
    },
    build: |_| Box::new(NoCopies),
};

struct NoCopies;

impl Redundancy for NoCopies {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn extra(
        &mut self,
        _cx: &AssocView<'_>,
        _path: &PathView,
        _outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};

    #[test]
    fn is_off() {
        let s = Scene::new(1, 1);
        assert_eq!(built(&POLICY, "", 0).asks(), Asks::NOTHING);
        assert_eq!(built(&POLICY, "", 0).extra(&s.cx(), &s.paths[0], &mut s.chunks.iter().copied()), None);
    }
}
