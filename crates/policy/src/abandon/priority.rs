//! What is less important makes room for what is more.
//!
//! Source: RFC 7496 §3.2. When the send buffer is full, messages handed over with a priority are dropped, the least
//! important first, as long as the new one is more important; a message without a priority is more important than all
//! with one. Only what was not sent yet is dropped here: what is on its way costs room for a round trip more, and its
//! copy at the peer is worth more than the room. No parameters.

use super::{Abandon, Reason};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};

pub(super) const POLICY: Policy<dyn Abandon> = Policy {
    info: PolicyInfo {
        hook: Hook::Abandon,
        name: "priority",
        source: "RFC 7496 §3.2",
        file: file!(),
        summary: "Drops unsent messages of lower priority when the send buffer is full.",
        params: &[],
    },
    build: |_| Box::new(Priority),
};

struct Priority;

impl Abandon for Priority {
    fn give_up(&self, _cx: &AssocView<'_>, _c: &ChunkView) -> Option<Reason> {
        None
    }
    fn makes_room(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};

    #[test]
    fn only_for_room() {
        let mut s = Scene::new(1, 1);
        (s.chunks[0].deadline, s.chunks[0].max_retransmissions) = (Some(s.now - ms(1)), Some(0));
        s.chunks[0].transmissions = 9;
        assert_eq!(built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]), None);
        assert!(built(&POLICY, "", 0).makes_room());
    }
}
