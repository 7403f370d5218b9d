//! Linked increases: together the paths take no more than one flow on the best of them would.
//!
//! Source: Wischik, Raiciu, Greenhalgh, Handley 2011; RFC 6356. In congestion avoidance a path may grow by
//! min(alpha * acked * MTU / total, acked * MTU / cwnd); slow start and decreases stay the window's.
//! Deviations: the window policy proposes one MTU per window acknowledged, so the granted share of it is
//! min(1, alpha * cwnd / total), which simplifies to cwnd * max(cwnd/rtt^2) / (sum cwnd/rtt)^2; alpha is fresh at every
//! acknowledgement instead of once per window. A path in recovery counts with its threshold, as in the RFC.
//! No parameters.

use super::{Coupling, Growth};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::Ppm;

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "lia",
        source: "RFC 6356",
        file: file!(),
        summary: "Linked increases: all paths together grow like one flow on the best path.",
        params: &[],
    },
    build: |_| Box::new(Lia),
};

struct Lia;

fn window(p: &PathView) -> f64 {
    if p.in_recovery { p.ssthresh.min(p.cwnd) as f64 } else { p.cwnd as f64 }
}

/// A share in parts per million.
pub(super) fn ppm(share: f64) -> Ppm {
    Ppm((share * 1e6 + 0.5) as u32)
}

/// The share of its own increase that `me`, one of `paths`, may take.
pub(super) fn share<'a>(paths: impl Iterator<Item = &'a PathView>, me: &PathView) -> f64 {
    let (mut best, mut sum) = (0.0f64, 0.0f64);
    for p in paths.filter(|p| !p.srtt.is_zero()) {
        let rtt = p.srtt.as_secs_f64();
        best = best.max(window(p) / (rtt * rtt));
        sum += window(p) / rtt;
    }
    if sum > 0.0 { (window(me) * best / (sum * sum)).min(1.0) } else { 1.0 }
}

impl Coupling for Lia {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        match cx.path(g.path) {
            Some(me) if !me.in_slow_start() && !me.srtt.is_zero() => ppm(share(cx.active(), me)),
            _ => Ppm::ONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use anabranch_base::PathId;

    fn scene(windows: &[(u64, u64)]) -> Scene {
        let mut s = Scene::new(windows.len() as u8, 0);
        for (i, &(cwnd, rtt)) in windows.iter().enumerate() {
            let p = s.rtt(i as u8, rtt);
            (p.cwnd, p.ssthresh) = (cwnd, 1);
        }
        s
    }
    fn scale(s: &Scene, path: u8) -> u32 {
        built(&POLICY, "", 0)
            .scale(&s.cx(), &Growth { path: PathId(path), acked: 1_000, grow: 1_000, fully_used: true })
            .0
    }

    #[test]
    fn two_equal_paths_take_a_quarter_each() {
        // alpha = 2w * (w/r^2) / (2w/r)^2 = 1/2, so a path grows by alpha/2 of what it would alone.
        let s = scene(&[(10_000, 100), (10_000, 100)]);
        assert_eq!([scale(&s, 0), scale(&s, 1)], [250_000, 250_000]);
    }

    #[test]
    fn one_path_is_plain() {
        assert_eq!(scale(&scene(&[(10_000, 100)]), 0), 1_000_000);
    }

    #[test]
    fn unequal_paths_follow_the_formula() {
        let s = scene(&[(20_000, 50), (10_000, 200)]);
        // total 30000; best 20000/0.05^2 = 8e6; sum 400000 + 50000; alpha = 30000 * 8e6 / 450000^2 = 1.185
        let alpha = 30_000.0 * 8e6 / (450_000.0f64 * 450_000.0);
        let expect = |w: f64| (alpha * w / 30_000.0 * 1e6) as i64;
        assert!((i64::from(scale(&s, 0)) - expect(20_000.0)).abs() <= 1);
        assert!((i64::from(scale(&s, 1)) - expect(10_000.0)).abs() <= 1);
    }

    #[test]
    fn slow_start_is_not_touched_and_recovery_counts_with_its_threshold() {
        let mut s = scene(&[(10_000, 100), (10_000, 100)]);
        s.paths[0].ssthresh = u64::MAX;
        assert_eq!(scale(&s, 0), 1_000_000);
        s.paths[0].ssthresh = 5_000;
        let before = scale(&s, 1);
        s.paths[0].in_recovery = true;
        assert!(scale(&s, 1) > before);
    }
}
