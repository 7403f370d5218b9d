//! No probe before T3.
//!
//! Source: RFC 9260 has none. No parameters.

use super::LossTimer;
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn LossTimer> = Policy {
    info: PolicyInfo {
        hook: Hook::LossTimer,
        name: "none",
        source: "RFC 9260",
        file: file!(),
        summary: "Nothing but T3.",
        params: &[],
    },
    build: |_| Box::new(NoTimer),
};

struct NoTimer;

impl LossTimer for NoTimer {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};

    #[test]
    fn never_fires() {
        let s = Scene::new(1, 0);
        assert_eq!(built(&POLICY, "", 0).deadline(&s.cx(), &s.paths[0]), None);
    }
}
