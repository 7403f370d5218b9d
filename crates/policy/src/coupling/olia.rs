//! Opportunistic linked increases: as LIA where paths are alike, and windows move towards the paths that lose least.
//!
//! Source: Khalili, Gast, Popovic, Le Boudec 2013; draft-khalili-mptcp-congestion-control-05 §3. In congestion avoidance
//! each packet acknowledged adds `(w/rtt²) / (Σ w/rtt)² + α/w` packets to the window. `l` is what a path carried between
//! its last two losses or since the last one, whichever is more. Paths whose `l²/rtt` is the largest without having the
//! largest window share an α of `1/n`, which those with the largest window lose.
//! Deviations: the window policy proposes one packet per window acknowledged, so the granted share of it is
//! `(w/rtt)² / (Σ w/rtt)² + α`; what that is below zero is taken off the window once it is a byte. What a path carried is
//! counted in bytes acknowledged. The draft's threshold of one packet stays with the window policy (`floor` there).
//! No parameters.

use super::lia::ppm;
use super::{Adjust, Coupling, Growth};
use crate::asks::Asks;
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use crate::window::WindowState;
use anabranch_base::Ppm;

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "olia",
        source: "Khalili, Gast, Popovic, Le Boudec 2013; draft-khalili-mptcp-congestion-control-05",
        file: file!(),
        summary: "Opportunistic linked increases: as lia, and traffic moves towards the paths that lose least.",
        params: &[],
    },
    build: |_| Box::<Olia>::default(),
};

#[derive(Default)]
struct Olia {
    paths: Vec<Carried>,
}

/// What a path carried, and what it owes.
#[derive(Clone, Copy, Default)]
struct Carried {
    /// Bytes acknowledged since the last loss, and between the last two.
    since: u64,
    between: u64,
    /// Bytes to take off the window.
    owed: f64,
}

impl Olia {
    fn at(&mut self, cx: &AssocView<'_>, path: usize) -> Option<&mut Carried> {
        self.paths.resize(cx.paths.len(), Carried::default());
        self.paths.get_mut(path)
    }
    /// `l²/rtt`.
    fn quality(&self, p: &PathView) -> f64 {
        let l = self.paths.get(p.id.index()).map_or(0, |c| c.since.max(c.between)) as f64;
        l * l / p.srtt.as_secs_f64()
    }
    fn alpha(&self, cx: &AssocView<'_>, me: &PathView) -> f64 {
        let paths = || cx.active().filter(|p| !p.srtt.is_zero());
        let best = paths().map(|p| self.quality(p)).fold(0.0, f64::max);
        let widest = paths().map(|p| p.cwnd).max().unwrap_or(0);
        let is_collected = |p: &PathView| self.quality(p) >= best && p.cwnd < widest;
        let collected = paths().filter(|p| is_collected(p)).count();
        let n = paths().count() as f64;
        if collected == 0 {
            0.0
        } else if is_collected(me) {
            1.0 / (n * collected as f64)
        } else if me.cwnd == widest {
            -1.0 / (n * paths().filter(|p| p.cwnd == widest).count() as f64)
        } else {
            0.0
        }
    }
    /// What `me` may take of its own increase; below zero it gives that part back.
    fn share(&self, cx: &AssocView<'_>, me: &PathView) -> f64 {
        let rate = |p: &PathView| p.cwnd as f64 / p.srtt.as_secs_f64();
        let sum: f64 = cx.active().filter(|p| !p.srtt.is_zero()).map(rate).sum();
        let part = if sum > 0.0 { rate(me) / sum } else { 1.0 };
        part * part + self.alpha(cx, me)
    }
}

impl Coupling for Olia {
    fn asks(&self) -> Asks {
        Asks::ADJUST
    }
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        if let Some(c) = self.at(cx, g.path.index()) {
            c.since = c.since.saturating_add(g.acked);
        }
        let Some(me) = cx.path(g.path).filter(|p| !p.in_slow_start() && !p.srtt.is_zero()) else { return Ppm::ONE };
        let share = self.share(cx, me);
        if share >= 0.0 {
            return ppm(share);
        }
        if let Some(c) = self.at(cx, g.path.index()) {
            c.owed -= share * g.grow as f64;
        }
        Ppm(0)
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, e: &LossEvent, cause: Cause) {
        if !e.new_episode || cause == Cause::Reordering {
            return;
        }
        if let Some(c) = self.at(cx, e.path.index()) {
            *c = Carried { between: c.since, ..Carried::default() };
        }
    }
    fn adjust(&mut self, cx: &AssocView<'_>, out: &mut Vec<Adjust>) {
        for (c, p) in self.paths.iter_mut().zip(cx.paths).filter(|(c, _)| c.owed >= 1.0) {
            let cwnd = p.cwnd.saturating_sub(c.owed as u64).max(2 * p.mtu).min(p.cwnd);
            c.owed -= c.owed as u64 as f64;
            // Below its threshold it would begin slow start.
            let ssthresh = p.ssthresh.min(cwnd - 1);
            out.push(Adjust {
                path: p.id,
                to: WindowState { cwnd, ssthresh, partial_bytes_acked: p.partial_bytes_acked },
            });
        }
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
    fn grow(o: &mut Olia, s: &Scene, path: u8, acked: u64) -> u32 {
        o.scale(&s.cx(), &Growth { path: PathId(path), acked, grow: 1_172, fully_used: true }).0
    }

    #[test]
    fn alike_paths_share_as_with_lia() {
        // alpha is 0: both have the largest window. (1/2)^2 each.
        let (s, mut o) = (scene(&[(10_000, 100), (10_000, 100)]), Olia::default());
        assert_eq!([grow(&mut o, &s, 0, 500), grow(&mut o, &s, 1, 500)], [250_000; 2]);
        assert_eq!(grow(&mut Olia::default(), &scene(&[(9_000, 10)]), 0, 1), 1_000_000, "one path is plain");
        // 20000/0.05 of 400000 + 50000.
        let (s, mut o) = (scene(&[(20_000, 50), (10_000, 200)]), Olia::default());
        grow(&mut o, &s, 0, 5_000);
        assert_eq!(grow(&mut o, &s, 0, 5_000), 790_123);
        assert_eq!(grow(&mut o, &s, 1, 0), 12_346);
    }

    #[test]
    fn the_best_path_gains_what_the_widest_loses() {
        let (mut s, mut o) = (scene(&[(30_000, 100), (10_000, 100)]), Olia::default());
        grow(&mut o, &s, 0, 50_000);
        grow(&mut o, &s, 1, 90_000);
        // Path 1 carried most and has not the largest window: (1/4)^2 + 1/2. Path 0: (3/4)^2 - 1/2.
        assert_eq!([grow(&mut o, &s, 1, 0), grow(&mut o, &s, 0, 0)], [562_500, 62_500]);
        // A loss begins to count anew, but what lay between the last two still does.
        o.on_loss(&s.cx(), &loss(1), Cause::Congestion);
        assert_eq!(grow(&mut o, &s, 1, 10_000), 562_500);
        o.on_loss(&s.cx(), &loss(1), Cause::Congestion);
        assert_eq!(grow(&mut o, &s, 1, 0), 62_500, "10 kB beside 50 kB");
        // A late packet is no loss.
        s.paths[0].cwnd = 10_000;
        o.on_loss(&s.cx(), &loss(0), Cause::Reordering);
        assert_eq!(grow(&mut o, &s, 0, 0), 250_000);
    }

    #[test]
    fn below_zero_the_window_falls() {
        let (s, mut o) = (scene(&[(11_000, 100), (10_000, 100)]), Olia::default());
        grow(&mut o, &s, 1, 90_000);
        let mut out = Vec::new();
        o.adjust(&s.cx(), &mut out);
        assert!(out.is_empty());
        // (11/21)^2 - 1/2 = -0.2256 of 1172 bytes.
        assert_eq!(grow(&mut o, &s, 0, 1_000), 0);
        o.adjust(&s.cx(), &mut out);
        assert_eq!(out[0].to, WindowState { cwnd: 11_000 - 264, ssthresh: 1, partial_bytes_acked: 0 });
        o.adjust(&s.cx(), &mut out);
        assert_eq!(out.len(), 1, "once");
    }

    #[test]
    fn slow_start_is_not_touched() {
        let (mut s, mut o) = (scene(&[(10_000, 100), (10_000, 100)]), Olia::default());
        s.paths[0].ssthresh = u64::MAX;
        assert_eq!(grow(&mut o, &s, 0, 100), 1_000_000);
    }
}
