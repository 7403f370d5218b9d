//! One report while the path is thin, three otherwise.
//!
//! Source: Petlund et al. 2009 §5.4. With fewer than four packets in flight three reports can never come in, so the
//! first one is acted upon. The flight is the one before the SACK was accounted.
//! Parameters: `cmp`, how packets in flight are compared with 4/(1 - loss).

use super::{LossThreshold, Verdict};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::thin::ThinTest;
use crate::view::{AssocView, CopyView, SackView};

pub(super) const POLICY: Policy<dyn LossThreshold> = Policy {
    info: PolicyInfo {
        hook: Hook::LossThreshold,
        name: "thin",
        source: "Petlund et al. 2009 (thin streams), fast retransmit on the first report",
        file: file!(),
        summary: "Lost at the first report while too few packets are in flight for three, else at the third.",
        params: &[ParamInfo::word("cmp", &["lt", "le"], "thin when packets in flight are lt or le 4/(1 - loss)")],
    },
    build: |p| Box::new(Thin::new(p)),
};

struct Thin {
    test: ThinTest,
}

impl Thin {
    fn new(p: &Params) -> Self {
        Thin { test: ThinTest::of(p.word("cmp")) }
    }
}

impl LossThreshold for Thin {
    fn judge(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> Verdict {
        let flight = sack.flight_before.get(copy.path.index());
        let thin = match (flight, cx.path(copy.path)) {
            (Some(&packets), Some(p)) => self.test.holds(packets, p.loss),
            _ => false,
        };
        super::after_reports(copy, if thin { 1 } else { super::STANDARD_REPORTS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, copy, sack};
    use anabranch_base::Ppm;

    #[test]
    fn active_only_below_the_limit() {
        let mut s = Scene::new(2, 0);
        let p = built(&POLICY, "", 0);
        let mut c = copy(44, 1, 4);
        c.misses = 1;
        let mut judge = |flight: [u32; 2], loss| {
            s.paths[1].loss = Ppm(loss);
            let mut seen = sack(None);
            seen.flight_before = &flight;
            p.judge(&s.cx(), &crate::view::SackView { ..seen }, &c)
        };
        assert_eq!(judge([9, 3], 0), Verdict::Lost);
        assert_eq!(judge([1, 4], 0), Verdict::Waiting, "another path's flight does not matter");
        assert_eq!(judge([9, 4], 50_000), Verdict::Lost);
        assert_eq!(judge([9, 5], 50_000), Verdict::Waiting);
        assert_eq!(judge([9, 7], 500_000), Verdict::Lost);
        assert_eq!(judge([9, 8], 500_000), Verdict::Waiting);
    }

    #[test]
    fn still_once_per_chunk() {
        let s = Scene::new(1, 0);
        let mut c = copy(44, 0, 4);
        (c.misses, c.chunk.fast_retransmitted) = (1, true);
        let flight = [1];
        let mut seen = sack(None);
        seen.flight_before = &flight;
        assert_eq!(built(&POLICY, "", 0).judge(&s.cx(), &seen, &c), Verdict::Waiting);
    }
}
