//! Every loss is congestion.
//!
//! Source: RFC 9260 §7.2.3. No parameters.

use super::{Cause, LossCause, LossEvent};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;

pub(super) const POLICY: Policy<dyn LossCause> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCause,
        name: "always_congestion",
        source: "RFC 9260 §7.2.3",
        file: file!(),
        summary: "Every loss is congestion.",
        params: &[],
    },
    build: |_| Box::new(AlwaysCongestion),
};

struct AlwaysCongestion;

impl LossCause for AlwaysCongestion {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn classify(&mut self, _cx: &AssocView<'_>, _e: &LossEvent) -> Cause {
        Cause::Congestion
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, loss};

    #[test]
    fn is_what_it_says() {
        let s = Scene::new(1, 0);
        assert_eq!(built(&POLICY, "", 0).classify(&s.cx(), &loss(0)), Cause::Congestion);
    }
}
