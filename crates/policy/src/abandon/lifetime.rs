//! A message is given up when its deadline has passed.
//!
//! Source: RFC 3758 §4.1, timed reliability: a deadline says until when a message may leave, not when it arrives; see
//! [`super::arrival`] for the latter. Optionally (ours) a message may belong to a group that is only useful whole (a
//! video frame): with `whole`, what is left of a group goes once part of it was given up.
//! Parameter: `whole`.

use super::{Abandon, Reason};
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView};

pub(super) const POLICY: Policy<dyn Abandon> = Policy {
    info: PolicyInfo {
        hook: Hook::Abandon,
        name: "lifetime",
        source: "RFC 3758 §4.1; whole is ours",
        file: file!(),
        summary: "Gives up a message whose deadline has passed.",
        params: &[ParamInfo::flag("whole", false, "give up what is left of a group of which something was given up")],
    },
    build: |p| Box::new(Lifetime { whole: p.flag("whole") }),
};

struct Lifetime {
    whole: bool,
}

impl Abandon for Lifetime {
    fn give_up(&self, cx: &AssocView<'_>, c: &ChunkView) -> Option<Reason> {
        let deadline = c.deadline?;
        (self.whole && c.group_broken || cx.now > deadline).then_some(Reason::Lifetime)
    }
    fn ends_at_deadlines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};

    #[test]
    fn after_the_deadline() {
        let mut s = Scene::new(2, 1);
        let p = built(&POLICY, "", 0);
        assert!(p.give_up(&s.cx(), &s.chunks[0]).is_none(), "no deadline");
        s.chunks[0].deadline = Some(s.now);
        assert!(p.give_up(&s.cx(), &s.chunks[0]).is_none());
        s.chunks[0].deadline = Some(s.now - ms(1));
        assert_eq!(p.give_up(&s.cx(), &s.chunks[0]), Some(Reason::Lifetime));
    }

    #[test]
    fn a_group_goes_as_a_whole() {
        let mut s = Scene::new(1, 1);
        (s.chunks[0].deadline, s.chunks[0].group_broken) = (Some(s.now + ms(5_000)), true);
        assert!(built(&POLICY, "whole=1", 0).give_up(&s.cx(), &s.chunks[0]).is_some());
        assert!(built(&POLICY, "", 0).give_up(&s.cx(), &s.chunks[0]).is_none());
    }
}
