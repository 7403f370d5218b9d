//! A message is given up when it would be sent again more often than it is worth.
//!
//! Source: RFC 7496 §3.1, limited retransmissions. The limit is the message's own; 0 is never sent again. One chunk
//! over the limit takes its message along. No parameters.

use super::{Abandon, Reason};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};

pub(super) const POLICY: Policy<dyn Abandon> = Policy {
    info: PolicyInfo {
        hook: Hook::Abandon,
        name: "retransmissions",
        source: "RFC 7496 §3.1",
        file: file!(),
        summary: "Gives up a message that was sent again as often as it is worth.",
        params: &[],
    },
    build: |_| Box::new(Retransmissions),
};

struct Retransmissions;

impl Abandon for Retransmissions {
    fn give_up(&self, _cx: &AssocView<'_>, c: &ChunkView) -> Option<Reason> {
        c.retransmissions_used_up().then_some(Reason::Retransmissions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};

    #[test]
    fn so_often_and_not_once_more() {
        let mut s = Scene::new(1, 1);
        let mut after = |sent, most| {
            (s.chunks[0].transmissions, s.chunks[0].max_retransmissions) = (sent, most);
            built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]).is_some()
        };
        assert_eq!([after(0, Some(0)), after(1, Some(0))], [false, true]);
        assert_eq!([after(2, Some(2)), after(3, Some(2))], [false, true]);
        assert!(!after(9, None), "no limit");
    }
}
