//! No estimates beyond the engine's. No parameters.

use super::PathQuality;
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn PathQuality> = Policy {
    info: PolicyInfo {
        hook: Hook::PathQuality,
        name: "none",
        source: "none",
        file: file!(),
        summary: "No estimates beyond the engine's.",
        params: &[],
    },
    build: |_| Box::new(NoQuality),
};

struct NoQuality;

impl PathQuality for NoQuality {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;

    #[test]
    fn asks_for_no_clock() {
        assert_eq!(built(&POLICY, "", 0).wakeup(), None);
    }
}
