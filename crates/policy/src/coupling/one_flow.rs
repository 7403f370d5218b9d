//! Paths that share a queue are one flow of RFC 9260 together: they grow by one packet a round trip, and what the queue
//! drops halves all of them, once a round trip.
//!
//! Source: ours; which paths share a queue as `shared_bottleneck` finds it, with its defaults. Linked increases take
//! windows apart path by path, so that a flow of few packets has a least window on each path and together several shares
//! of a narrow bottleneck. Here a path of a group grows by its part of the group's windows. A loss halves every window of
//! the group, down to a packet; a second one within a round trip belongs to the same overflow and leaves the windows as
//! they were. In a group a loss that was taken for radio halves the window of its own path: where a queue is shared, a
//! wrong verdict costs others, and if the radio made all fall together, queues apart would look like one.
//! A path without company is not touched, nor is one whose smoothed round trip is within a sixteenth of the shortest: who
//! has no queue shares none, and delays without a queue say nothing about who shares it. Timeouts of the path itself are the window's.
//! Parameter: `growth`, packets a round trip of a group.

use super::shared_bottleneck::SharedBottleneck;
use super::{Adjust, Before, Coupling, Growth};
use crate::asks::Asks;
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use crate::window::WindowState;
use anabranch_base::{Duration, Instant, Ppm};

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "one_flow",
        source: "ours; groups as RFC 8382 with correlation",
        file: file!(),
        summary: "Paths that share a queue grow and fall together as one flow; the others are uncoupled.",
        params: &[ParamInfo::number("growth", 1.0, "packets", 0.01, 4.0, "by which a group grows in a round trip")],
    },
    build: |p| Box::new(OneFlow::new(p)),
};

struct OneFlow {
    growth: f64,
    shares: SharedBottleneck,
    before: Before,
    /// When each path fell last with its group.
    fell: Vec<Option<Instant>>,
    out: Vec<Adjust>,
}

/// Do packets wait on this path?
fn has_queue(p: &PathView) -> bool {
    p.srtt > p.min_rtt + p.min_rtt / 16
}

impl OneFlow {
    fn new(p: &Params) -> Self {
        OneFlow {
            growth: p.number("growth"),
            shares: SharedBottleneck::standard(),
            before: Before::default(),
            fell: Vec::new(),
            out: Vec::new(),
        }
    }
    /// Did `p` fall with its group less than a round trip ago?
    fn has_fallen(&self, p: &PathView, now: Instant) -> bool {
        let srtt = if p.srtt.is_zero() { Duration::from_millis(100) } else { p.srtt };
        self.fell.get(p.id.index()).copied().flatten().is_some_and(|t| now.since(t) < srtt)
    }
    /// The paths that make one flow with `me`.
    fn together<'a>(&'a self, cx: &AssocView<'a>, me: &PathView) -> impl Iterator<Item = &'a PathView> + use<'a> {
        let queued = has_queue(me);
        self.shares.members(cx, me).filter(move |p| queued && has_queue(p))
    }
    fn fall(&mut self, cx: &AssocView<'_>, me: &PathView, e: &LossEvent, alone: bool) {
        let again = self.has_fallen(me, cx.now);
        let members: Vec<PathView> = self.together(cx, me).copied().collect();
        if members.len() < 2 {
            return;
        }
        self.fell.resize(cx.paths.len(), None);
        for p in members {
            let (own, was) = (p.id == me.id, self.before.of(&p));
            if own && e.kind == LossKind::Timeout || (again || alone) && !own {
                continue;
            }
            let cwnd = if again { was } else { (was / 2).max(p.mtu) };
            let ssthresh = if own || !p.in_slow_start() { cwnd } else { cwnd.min(p.ssthresh) };
            self.out.push(Adjust { path: p.id, to: WindowState { cwnd, ssthresh, partial_bytes_acked: 0 } });
            if let Some(fell) = self.fell.get_mut(p.id.index()).filter(|_| !again) {
                *fell = Some(cx.now);
            }
        }
    }
}

impl Coupling for OneFlow {
    fn asks(&self) -> Asks {
        Asks::ADJUST
    }
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        self.shares.acknowledged(cx, g);
        let Some(me) = cx.path(g.path).filter(|p| !p.in_slow_start()) else { return Ppm::ONE };
        let (mut paths, mut windows) = (0, 0);
        for p in self.together(cx, me) {
            paths += 1;
            windows += p.cwnd;
        }
        if paths < 2 || windows == 0 {
            return Ppm::ONE;
        }
        Ppm((self.growth * me.cwnd as f64 / windows as f64 * 1e6 + 0.5) as u32)
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, e: &LossEvent, cause: Cause) {
        self.shares.on_loss(cx, e, cause);
        if let Some(me) = cx.path(e.path).filter(|_| e.new_episode && cause != Cause::Reordering) {
            self.fall(cx, me, e, cause == Cause::Radio);
        }
    }
    fn adjust(&mut self, cx: &AssocView<'_>, out: &mut Vec<Adjust>) {
        self.before.note(cx);
        for a in self.out.drain(..) {
            self.before.set(&a);
            out.push(a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, loss, ms};
    use anabranch_base::PathId;

    fn scene(windows: &[u64]) -> Scene {
        let mut s = Scene::new(windows.len() as u8, 0);
        for (i, &cwnd) in windows.iter().enumerate() {
            let p = s.rtt(i as u8, 100);
            (p.cwnd, p.ssthresh, p.min_rtt) = (cwnd, 1, ms(80));
        }
        s
    }
    fn share(p: &mut dyn Coupling, s: &Scene, path: u8) -> u32 {
        p.scale(&s.cx(), &Growth::of(PathId(path), 1_000)).0
    }
    /// Windows after a loss on path 0 of which the window made `cut`, and one on path 1 a moment later.
    fn after(windows: &[u64], cut: [u64; 2]) -> Vec<u64> {
        let mut p = built(&POLICY, "", 0);
        let mut s = scene(windows);
        share(&mut *p, &s, 0);
        p.adjust(&s.cx(), &mut Vec::new());
        for (i, cut) in cut.into_iter().enumerate() {
            s.paths[i].cwnd = cut;
            p.on_loss(&s.cx(), &loss(i as u8), Cause::Congestion);
            let mut out = Vec::new();
            p.adjust(&s.cx(), &mut out);
            out.iter().for_each(|a| s.paths[a.path.index()].cwnd = a.to.cwnd);
        }
        s.paths.iter().map(|p| p.cwnd).collect()
    }

    #[test]
    fn a_group_grows_by_one_packet_however_many_paths_it_has() {
        for windows in [&[10_000][..], &[10_000, 10_000], &[1_000, 19_000], &[4_000, 5_000, 6_000, 7_000]] {
            let mut p = built(&POLICY, "", 0);
            let s = scene(windows);
            let all: u32 = (0..windows.len() as u8).map(|i| share(&mut *p, &s, i)).sum();
            assert!((999_990..=1_000_010).contains(&all), "{windows:?}: {all}");
        }
    }

    #[test]
    fn who_has_no_queue_shares_none() {
        let mut s = scene(&[10_000, 10_000, 20_000]);
        for (shortest, shares) in [(80, [250_000, 250_000, 500_000]), (95, [1_000_000, 333_333, 666_667])] {
            s.paths[0].min_rtt = ms(shortest);
            let mut p = built(&POLICY, "", 0);
            assert_eq!([0, 1, 2].map(|i| share(&mut *p, &s, i)), shares, "{shortest}");
        }
    }

    #[test]
    fn one_overflow_halves_every_window_once() {
        for n in [2_400, 10_000, 54_321, 1_000_000] {
            assert_eq!(after(&[n, n], [n / 2, n / 4]), [(n / 2).max(1_172); 2], "{n}");
        }
        assert_eq!(after(&[2_344, 1_172], [2_344, 1_172]), [1_172; 2], "a packet is the least");
        assert_eq!(after(&[20_000, 8_000, 6_000], [10_000, 2_000]), [10_000, 4_000, 3_000]);
    }

    #[test]
    fn where_a_queue_is_shared_the_radio_halves_its_own_path_and_congestion_all() {
        for windows in [&[10_000, 10_000, 9_000][..], &[10_000]] {
            for (cause, adjusted) in [(Cause::Radio, 1), (Cause::Congestion, 3), (Cause::Reordering, 0)] {
                let mut p = built(&POLICY, "", 0);
                let s = scene(windows);
                share(&mut *p, &s, 0);
                let mut out = Vec::new();
                p.on_loss(&s.cx(), &LossEvent { new_episode: false, ..loss(0) }, cause);
                p.adjust(&s.cx(), &mut out);
                assert!(out.is_empty(), "the episode goes on");
                p.on_loss(&s.cx(), &loss(0), cause);
                p.adjust(&s.cx(), &mut out);
                assert_eq!(out.len(), if windows.len() > 1 { adjusted } else { 0 }, "{cause:?}");
                assert!(out.iter().all(|a| a.to.cwnd == windows[a.path.index()] / 2), "{cause:?}");
            }
        }
    }
}
