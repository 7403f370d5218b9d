//! One episode per window of data, path by path; one packet beside the window when it begins.
//!
//! Source: RFC 9260 §7.2.4, §6.1 D. An episode ends when all that had left on its path at its start is acknowledged, or
//! with a timeout; for one path that is the RFC's exit point, and for several what split fast retransmit makes of it.
//! Parameter: `radio` 0 lets what the cause hook puts down to radio begin none: where each window loses a packet to the
//! radio an episode follows the other, in which nothing grows and what a queue drops cuts nothing.

use super::{Loss, Pass, Progress, Recovery};
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Recovery> = Policy {
    info: PolicyInfo {
        hook: Hook::Recovery,
        name: "rfc9260",
        source: "RFC 9260 §7.2.4",
        file: file!(),
        summary: "One episode per window of data, path by path; one packet beside the window when it begins.",
        params: &[ParamInfo::flag("radio", true, "what is put down to radio begins an episode too")],
    },
    build: |p| Box::new(Rfc9260 { radio: p.flag("radio") }),
};

struct Rfc9260 {
    radio: bool,
}

impl Recovery for Rfc9260 {
    fn begins(&self, l: &Loss) -> bool {
        !l.in_episode
    }
    fn radio_begins(&self) -> bool {
        self.radio
    }
    fn over(&self, p: &Progress) -> bool {
        p.own
    }
    fn pass(&self, begins: bool) -> Pass {
        if begins { Pass::Anywhere } else { Pass::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Bursts;
    use crate::testing::built;

    #[test]
    fn one_episode_for_what_had_left_on_the_path() {
        let p = built(&POLICY, "", 0);
        for other in [false, true] {
            assert!(p.begins(&Loss { in_episode: false, beyond: other }));
            assert!(!p.begins(&Loss { in_episode: true, beyond: other }));
            assert!(p.over(&Progress { own: true, all: other }));
            assert!(!p.over(&Progress { own: false, all: other }));
        }
        assert_eq!([p.pass(true), p.pass(false)], [Pass::Anywhere, Pass::No]);
        assert!(p.timeout_ends() && !p.repairs_first() && !p.holds_place());
        assert_eq!(p.bursts(), Bursts::Always);
        assert_eq!([p.radio_begins(), built(&POLICY, "radio=0", 0).radio_begins()], [true, false]);
    }
}
