//! Balanced linked adaptation: between friendliness and a quick answer to what changes.
//!
//! Source: Peng, Walid, Hwang, Low 2016; draft-walid-mptcp-congestion-control-04 §2. With `x = w/rtt` and `α = max x / x`
//! of the path, each packet acknowledged in congestion avoidance adds `(x/rtt) / (Σ x)² · (1 + α)/2 · (4 + α)/5` packets
//! to the window, and a loss takes `w/2 · min(α, 3/2)` off it.
//! Deviations: the window policy proposes one packet per window acknowledged, so the granted share of it is
//! `(x / Σ x)² · (1 + α)/2 · (4 + α)/5`, at most 1 as with LIA, because a path of little rate has a large α. The window
//! policy has cut already when a loss is heard of, to half or whatever its own rule is; here the rest is taken off, down
//! to two packets. A window that it left alone is left alone.
//! No parameters.

use super::lia::ppm;
use super::{Adjust, Before, Coupling, Growth};
use crate::asks::Asks;
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use crate::window::WindowState;
use anabranch_base::{PathSet, Ppm};

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "balia",
        source: "Peng, Walid, Hwang, Low 2016; draft-walid-mptcp-congestion-control-04",
        file: file!(),
        summary: "Balanced linked adaptation: growth and cut by a path's part in the rate of all.",
        params: &[],
    },
    build: |_| Box::<Balia>::default(),
};

#[derive(Default)]
struct Balia {
    before: Before,
    /// Paths that lost something since the last event.
    cut: PathSet,
}

/// The largest of all rates by that of `me`.
fn alpha(cx: &AssocView<'_>, before: &Before, me: &PathView) -> f64 {
    let rates = || cx.active().filter_map(|p| before.rate(p));
    match before.rate(me) {
        Some(rate) if rate > 0.0 => rates().fold(rate, f64::max) / rate,
        _ => 1.0,
    }
}

impl Coupling for Balia {
    fn asks(&self) -> Asks {
        Asks::ADJUST
    }
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        let Some(me) = cx.path(g.path).filter(|p| !p.in_slow_start() && !p.srtt.is_zero()) else { return Ppm::ONE };
        self.before.note(cx);
        let (alpha, sum) = (alpha(cx, &self.before, me), self.before.rate_sum(cx));
        let part = self.before.rate(me).filter(|_| sum > 0.0).map_or(1.0, |x| x / sum);
        ppm((part * part * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0).min(1.0))
    }
    fn on_loss(&mut self, _cx: &AssocView<'_>, e: &LossEvent, cause: Cause) {
        if e.new_episode && e.kind == LossKind::FastRetransmit && cause != Cause::Reordering {
            self.cut = self.cut.with(e.path);
        }
    }
    fn adjust(&mut self, cx: &AssocView<'_>, out: &mut Vec<Adjust>) {
        let mut set = Vec::new();
        for p in self.cut.iter().filter_map(|id| cx.path(id)).filter(|p| p.cwnd < self.before.of(p)) {
            let alpha = alpha(cx, &self.before, p).min(1.5);
            let cwnd = (self.before.of(p) as f64 * (1.0 - alpha / 2.0)) as u64;
            let cwnd = cwnd.max(2 * p.mtu).min(p.cwnd);
            set.push(Adjust { path: p.id, to: WindowState { cwnd, ssthresh: cwnd, partial_bytes_acked: 0 } });
        }
        self.cut = PathSet::EMPTY;
        self.before.note(cx);
        set.iter().for_each(|a| self.before.set(a));
        out.append(&mut set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, loss};
    use anabranch_base::PathId;

    fn scene(windows: &[(u64, u64)]) -> Scene {
        let mut s = Scene::new(windows.len() as u8, 0);
        for (i, &(cwnd, rtt)) in windows.iter().enumerate() {
            let p = s.rtt(i as u8, rtt);
            (p.cwnd, p.ssthresh) = (cwnd, 1);
        }
        s
    }
    fn grow(s: &Scene, path: u8) -> u32 {
        Balia::default().scale(&s.cx(), &Growth { path: PathId(path), acked: 1_000, grow: 1_172, fully_used: true }).0
    }
    /// The window that a loss on `path` leaves, which the window policy had cut to `half`.
    fn lose(s: &mut Scene, path: u8, half: u64) -> Option<WindowState> {
        let (mut b, mut out) = (Balia::default(), Vec::new());
        b.adjust(&s.cx(), &mut out);
        s.paths[usize::from(path)].cwnd = half;
        b.on_loss(&s.cx(), &loss(path), Cause::Congestion);
        b.adjust(&s.cx(), &mut out);
        out.first().map(|a| a.to)
    }

    #[test]
    fn growth_follows_the_formula() {
        // alpha 1: (1/2)^2 of it.
        assert_eq!(grow(&scene(&[(10_000, 100), (10_000, 100)]), 0), 250_000);
        assert_eq!(grow(&scene(&[(10_000, 100)]), 0), 1_000_000, "one path is plain");
        // x is 4:1. Path 0: (4/5)^2. Path 1: (1/5)^2 * 5/2 * 8/5.
        let s = scene(&[(20_000, 50), (10_000, 100)]);
        assert_eq!([grow(&s, 0), grow(&s, 1)], [640_000, 160_000]);
        let mut s = scene(&[(10_000, 100), (10_000, 100)]);
        s.paths[0].ssthresh = u64::MAX;
        assert_eq!(grow(&s, 0), 1_000_000, "slow start");
    }

    #[test]
    fn a_loss_takes_half_to_three_quarters() {
        let two = || scene(&[(20_000, 100), (16_000, 100)]);
        assert_eq!(lose(&mut two(), 0, 10_000).unwrap().cwnd, 10_000, "the largest rate: half");
        // alpha 5/4: 16000 * (1 - 5/8).
        assert_eq!(
            lose(&mut two(), 1, 8_000).unwrap(),
            WindowState { cwnd: 6_000, ssthresh: 6_000, partial_bytes_acked: 0 }
        );
        // alpha 2 counts as 3/2.
        assert_eq!(lose(&mut scene(&[(40_000, 100), (20_000, 100)]), 1, 10_000).unwrap().cwnd, 5_000);
        assert_eq!(lose(&mut scene(&[(40_000, 100), (6_000, 100)]), 1, 3_000).unwrap().cwnd, 2_344, "two packets");
        assert_eq!(lose(&mut two(), 1, 16_000), None, "not taken for congestion");
    }
}
