//! Nothing is given up.
//!
//! Source: RFC 9260: every message is delivered, however late. No parameters.

use super::{Abandon, Reason};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};

pub(super) const POLICY: Policy<dyn Abandon> = Policy {
    info: PolicyInfo {
        hook: Hook::Abandon,
        name: "never",
        source: "RFC 9260",
        file: file!(),
        summary: "Every message is delivered, however late.",
        params: &[],
    },
    build: |_| Box::new(Never),
};

struct Never;

impl Abandon for Never {
    fn give_up(&self, _cx: &AssocView<'_>, _c: &ChunkView) -> Option<Reason> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};

    #[test]
    fn not_even_late() {
        let mut s = Scene::new(1, 1);
        s.chunks[0].deadline = Some(s.now - ms(1));
        assert_eq!(built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]), None);
    }
}
