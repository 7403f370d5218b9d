//! Resource pooling: all paths together are one resource, and each takes the part of it that it has in the rate of all.
//!
//! Source: Dreibholz, Becke, Adhari, Rathgeb 2011 (CMT/RPv1); Becke, Dreibholz, Adhari, Rathgeb 2012 (CMT/RPv2), as
//! their authors' code has it. With `x = cwnd/rtt`, a path of CMT/RPv2 takes the part `x / Σ x` of its growth, in slow
//! start too, and a loss gives half of the rate of all back: `max(1/2, Σ x / 2x)` of the path's window. The threshold is
//! at least that part of four packets, and one packet. CMT/RPv1 takes the parts from the thresholds and gives half of
//! the sum of all windows back.
//! Deviations: growth follows the window policy, which proposes a packet per window acknowledged; in slow start it
//! proposes what was acknowledged, at most a packet. The window policy has cut when a loss is heard of, and what is set
//! here replaces that; a window that it left alone is left alone.
//! Parameter: `version`: `v2`, `v1`, or `freebsd`, which grows as v2 and cuts as v1.

use super::lia::ppm;
use super::{Adjust, Before, Coupling, Growth};
use crate::asks::Asks;
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use crate::window::WindowState;
use anabranch_base::{PathSet, Ppm};

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "resource_pooling",
        source: "Dreibholz, Becke, Adhari, Rathgeb 2011; Becke, Dreibholz, Adhari, Rathgeb 2012",
        file: file!(),
        summary: "CMT/RP: a path grows by its part in the rate of all, and a loss gives half of that rate back.",
        params: &[ParamInfo::word(
            "version",
            &["v2", "v1", "freebsd"],
            "CMT/RPv2, CMT/RPv1, or growth of one and cuts of the other",
        )],
    },
    build: |p| Box::new(ResourcePooling::new(p)),
};

struct ResourcePooling {
    /// Parts are those of rates, otherwise of thresholds.
    by_rate: bool,
    /// A loss gives half of the rate of all back, otherwise half of all windows.
    gives_rate: bool,
    before: Before,
    /// Paths that lost something since the last event; those that timed out.
    cut: PathSet,
    timed_out: PathSet,
}

impl ResourcePooling {
    fn new(p: &Params) -> Self {
        let version = p.word("version");
        ResourcePooling {
            by_rate: version != "v1",
            gives_rate: version == "v2",
            before: Before::default(),
            cut: PathSet::EMPTY,
            timed_out: PathSet::EMPTY,
        }
    }
    /// The part that `me` has.
    fn part(&self, cx: &AssocView<'_>, before: &Before, me: &PathView) -> f64 {
        let (mine, sum) = if self.by_rate {
            (before.rate(me).unwrap_or(0.0), before.rate_sum(cx))
        } else {
            (me.ssthresh as f64, cx.active().map(|p| p.ssthresh as f64).sum())
        };
        if sum > 0.0 && mine > 0.0 { (mine / sum).min(1.0) } else { 1.0 / cx.active().count().max(1) as f64 }
    }
    /// The threshold after a loss.
    fn threshold(&self, cx: &AssocView<'_>, p: &PathView) -> u64 {
        let cwnd = self.before.of(p) as f64;
        let given = if self.gives_rate {
            let all = self.before.rate_sum(cx);
            cwnd * self.before.rate(p).filter(|x| *x > 0.0).map_or(0.5, |x| (all / (2.0 * x)).max(0.5))
        } else {
            cx.active().map(|q| self.before.of(q) as f64).sum::<f64>() / 2.0
        };
        let least = (self.part(cx, &self.before, p) * 4.0 * p.mtu as f64) as u64;
        ((cwnd - given).max(0.0) as u64).max(least).max(p.mtu)
    }
}

impl Coupling for ResourcePooling {
    fn asks(&self) -> Asks {
        Asks::ADJUST
    }
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        self.before.note(cx);
        cx.path(g.path).map_or(Ppm::ONE, |me| ppm(self.part(cx, &self.before, me)))
    }
    fn on_loss(&mut self, _cx: &AssocView<'_>, e: &LossEvent, cause: Cause) {
        match e.kind {
            LossKind::Timeout => self.timed_out = self.timed_out.with(e.path),
            LossKind::FastRetransmit if e.new_episode && cause != Cause::Reordering => {
                self.cut = self.cut.with(e.path);
            }
            LossKind::FastRetransmit => {}
        }
    }
    fn adjust(&mut self, cx: &AssocView<'_>, out: &mut Vec<Adjust>) {
        let mut set = Vec::new();
        for p in self.cut.or(self.timed_out).iter().filter_map(|id| cx.path(id)) {
            let timed_out = self.timed_out.has(p.id);
            // Where the window policy saw no congestion nothing is given back.
            if timed_out || p.cwnd < self.before.of(p) {
                let ssthresh = self.threshold(cx, p);
                let cwnd = if timed_out { p.cwnd } else { ssthresh };
                set.push(Adjust { path: p.id, to: WindowState { cwnd, ssthresh, partial_bytes_acked: 0 } });
            }
        }
        (self.cut, self.timed_out) = (PathSet::EMPTY, PathSet::EMPTY);
        self.before.note(cx);
        set.iter().for_each(|a| self.before.set(a));
        out.append(&mut set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, loss};
    use anabranch_base::PathId;

    fn scene(windows: &[(u64, u64)]) -> Scene {
        let mut s = Scene::new(windows.len() as u8, 0);
        for (i, &(cwnd, rtt)) in windows.iter().enumerate() {
            let p = s.rtt(i as u8, rtt);
            (p.cwnd, p.ssthresh) = (cwnd, 1_000 * (i as u64 + 1));
        }
        s
    }
    fn grow(s: &Scene, version: &str, path: u8) -> u32 {
        let mut p = built(&POLICY, &format!("version={version}"), 0);
        p.scale(&s.cx(), &Growth { path: PathId(path), acked: 1_000, grow: 1_172, fully_used: true }).0
    }
    fn lose(windows: &[(u64, u64)], version: &str, path: u8, kind: LossKind) -> (u64, u64) {
        let (mut p, mut s, mut out) = (built(&POLICY, &format!("version={version}"), 0), scene(windows), Vec::new());
        p.adjust(&s.cx(), &mut out);
        let cut = &mut s.paths[usize::from(path)];
        cut.cwnd = if kind == LossKind::Timeout { cut.mtu } else { cut.cwnd / 2 };
        p.on_loss(&s.cx(), &LossEvent { kind, ..loss(path) }, Cause::Congestion);
        p.adjust(&s.cx(), &mut out);
        (out[0].to.cwnd, out[0].to.ssthresh)
    }

    #[test]
    fn growth_is_by_parts() {
        let s = scene(&[(20_000, 50), (10_000, 100)]);
        assert_eq!([grow(&s, "v2", 0), grow(&s, "v2", 1)], [800_000, 200_000]);
        assert_eq!([grow(&s, "freebsd", 0), grow(&s, "freebsd", 1)], [800_000, 200_000]);
        // Thresholds of 1000 and 2000.
        assert_eq!([grow(&s, "v1", 0), grow(&s, "v1", 1)], [333_333, 666_667]);
        let mut s = scene(&[(10_000, 100), (10_000, 100)]);
        s.paths.iter_mut().for_each(|p| p.ssthresh = u64::MAX);
        assert_eq!([grow(&s, "v2", 0), grow(&s, "v1", 1)], [500_000; 2], "in slow start too");
        assert_eq!(grow(&scene(&[(9_000, 10)]), "v2", 0), 1_000_000);
    }

    #[test]
    fn a_loss_gives_half_of_all_back() {
        let by = LossKind::FastRetransmit;
        // Rates 4:1, so half of all is 5/8 of path 0 and five halves of path 1, which keeps 1/5 of four packets, or one.
        let windows = [(40_000, 50), (20_000, 100)];
        assert_eq!(lose(&windows, "v2", 0, by), (15_000, 15_000));
        assert_eq!(lose(&windows, "v2", 1, by), (1_172, 1_172));
        // Half of all windows is 30000.
        assert_eq!(lose(&windows, "freebsd", 0, by), (10_000, 10_000));
        assert_eq!(lose(&windows, "v1", 0, by).0, 10_000);
        // 2/3 of four packets by thresholds.
        assert_eq!(lose(&windows, "v1", 1, by).0, 3_125);
        assert_eq!(lose(&[(40_000, 50)], "v2", 0, by).0, 20_000, "one path halves");
        assert_eq!(lose(&windows, "v2", 0, LossKind::Timeout), (1_172, 15_000));
    }
}
