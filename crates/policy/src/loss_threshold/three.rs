//! Three reports.
//!
//! Source: RFC 9260 §7.2.4. A copy is lost at the third report, and a chunk is fast-retransmitted once; later
//! losses of it wait for the timer. No parameters.

use super::{LossThreshold, Verdict};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, CopyView, SackView};

pub(super) const POLICY: Policy<dyn LossThreshold> = Policy {
    info: PolicyInfo {
        hook: Hook::LossThreshold,
        name: "three",
        source: "RFC 9260 §7.2.4",
        file: file!(),
        summary: "Lost at the third report, once per chunk.",
        params: &[],
    },
    build: |_| Box::new(Three),
};

struct Three;

impl LossThreshold for Three {
    fn judge(&self, _cx: &AssocView<'_>, _sack: &SackView<'_>, copy: &CopyView) -> Verdict {
        super::after_reports(copy, super::STANDARD_REPORTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, copy, sack};

    #[test]
    fn the_third_report_counts_once() {
        let s = Scene::new(1, 0);
        let mut c = copy(44, 0, 4);
        let verdicts = [1, 2, 3].map(|n| {
            c.misses = n;
            Three.judge(&s.cx(), &sack(None), &c)
        });
        assert_eq!(verdicts, [Verdict::Waiting, Verdict::Waiting, Verdict::Lost]);
        c.chunk.fast_retransmitted = true;
        assert_eq!(Three.judge(&s.cx(), &sack(None), &c), Verdict::Waiting);
    }
}
