//! Three reports.
//!
//! Source: RFC 9260 §7.2.4. A copy is lost at the third report, and a chunk is fast-retransmitted once; later
//! losses of it wait for the timer. Parameter `once` 1 leaves everything that was sent again to the timer, whatever it was
//! sent again for.

use super::{LossThreshold, Verdict};
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::{AssocView, CopyView, SackView};

pub(super) const POLICY: Policy<dyn LossThreshold> = Policy {
    info: PolicyInfo {
        hook: Hook::LossThreshold,
        name: "three",
        source: "RFC 9260 §7.2.4",
        file: file!(),
        summary: "Lost at the third report, once per chunk.",
        params: &[ParamInfo::flag("once", false, "what was sent again is lost by the timer only")],
    },
    build: |p| Box::new(Three { once: p.flag("once") }),
};

struct Three {
    once: bool,
}

impl LossThreshold for Three {
    fn judge(&self, _cx: &AssocView<'_>, _sack: &SackView<'_>, copy: &CopyView) -> Verdict {
        if self.once && copy.chunk.transmissions > 1 {
            return Verdict::Waiting;
        }
        super::after_reports(copy, super::STANDARD_REPORTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, copy, sack};

    #[test]
    fn the_third_report_counts_once() {
        let (s, three) = (Scene::new(1, 0), built(&POLICY, "", 0));
        let mut c = copy(44, 0, 4);
        let verdicts = [1, 2, 3].map(|n| {
            c.misses = n;
            three.judge(&s.cx(), &sack(None), &c)
        });
        assert_eq!(verdicts, [Verdict::Waiting, Verdict::Waiting, Verdict::Lost]);
        c.chunk.fast_retransmitted = true;
        assert_eq!(three.judge(&s.cx(), &sack(None), &c), Verdict::Waiting);
    }

    #[test]
    fn what_was_sent_again_may_be_left_to_the_timer() {
        let s = Scene::new(1, 0);
        let mut c = copy(44, 0, 4);
        (c.misses, c.chunk.transmissions, c.chunk.timed_out) = (3, 2, true);
        assert_eq!(built(&POLICY, "", 0).judge(&s.cx(), &sack(None), &c), Verdict::Lost);
        assert_eq!(built(&POLICY, "once=1", 0).judge(&s.cx(), &sack(None), &c), Verdict::Waiting);
        c.chunk.transmissions = 1;
        assert_eq!(built(&POLICY, "once=1", 0).judge(&s.cx(), &sack(None), &c), Verdict::Lost);
    }
}
