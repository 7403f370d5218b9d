//! Every path grows independently.
//!
//! Source: RFC 9260 §7.2; plain CMT. On a shared bottleneck n paths take n shares. No parameters.

use super::Coupling;
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "uncoupled",
        source: "RFC 9260 §7.2",
        file: file!(),
        summary: "Every path's window on its own.",
        params: &[],
    },
    build: |_| Box::new(Uncoupled),
};

struct Uncoupled;

impl Coupling for Uncoupled {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn couples(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupling::Growth;
    use crate::testing::{Scene, built};
    use anabranch_base::{PathId, Ppm};

    #[test]
    fn grants_all() {
        let s = Scene::new(2, 0);
        let g = Growth::of(PathId(1), 9);
        assert_eq!(built(&POLICY, "", 0).scale(&s.cx(), &g), Ppm::ONE);
        assert_eq!(built(&POLICY, "", 0).aggregate_window(), None);
    }
}
