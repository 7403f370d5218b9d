//! Each message by the policy it was handed over with.
//!
//! Source: RFC 3758 §4.1 and RFC 7496 §3: a deadline, a limit of retransmissions, a priority, or none of them, as the
//! message says. `lifetime`, `retransmissions` and `priority` are its parts. No parameters.

use super::{Abandon, Reason};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};

pub(super) const POLICY: Policy<dyn Abandon> = Policy {
    info: PolicyInfo {
        hook: Hook::Abandon,
        name: "rfc7496",
        source: "RFC 3758 §4.1, RFC 7496 §3",
        file: file!(),
        summary: "Deadline, limit of retransmissions or priority, as each message says.",
        params: &[],
    },
    build: |_| Box::new(Rfc7496),
};

struct Rfc7496;

impl Abandon for Rfc7496 {
    fn give_up(&self, cx: &AssocView<'_>, c: &ChunkView) -> Option<Reason> {
        if c.deadline.is_some_and(|d| cx.now > d) {
            Some(Reason::Lifetime)
        } else {
            c.retransmissions_used_up().then_some(Reason::Retransmissions)
        }
    }
    fn ends_at_deadlines(&self) -> bool {
        true
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
    fn as_the_message_says() {
        let mut s = Scene::new(1, 1);
        s.chunks[0].transmissions = 2;
        assert_eq!(built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]), None, "it says nothing");
        s.chunks[0].max_retransmissions = Some(1);
        assert_eq!(built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]), Some(Reason::Retransmissions));
        s.chunks[0].max_retransmissions = None;
        s.chunks[0].deadline = Some(s.now);
        assert_eq!(built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]), None);
        s.chunks[0].deadline = Some(s.now - ms(1));
        assert_eq!(built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]), Some(Reason::Lifetime));
    }
}
