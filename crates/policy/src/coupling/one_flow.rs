//! Paths that share a queue are one flow of RFC 9260 together: they grow by one packet a round trip, and what the queue
//! drops halves all of them, once a round trip.
//!
//! Source: ours; which paths share a queue as `shared_bottleneck` finds it, with its defaults. Linked increases take
//! windows apart path by path, so that a flow of few packets has a least window on each path and together several shares
//! of a narrow bottleneck. Here a path of a group grows by its part of the group's windows. A loss halves every window of
//! the group, down to a packet; a second one within a round trip belongs to the same overflow and leaves the windows as
//! they were. In a group a loss that was taken for radio halves the window of its own path while the newest round trip
//! shows a queue: where a queue is shared, a wrong verdict costs others, and if the radio made all fall together, queues apart
//! would look like one.
//! Windows of a group are whole packets: they fall to whole ones and grow by one when their part of the growth comes to it,
//! as a TCP sends what fits. RFC 9260 §6.1 lets a packet leave while a byte of the window is free, which is half a packet
//! for each path in the mean. What fell does not begin in slow start, as a window equal to its threshold does (§7.2.1):
//! a packet for each path and loss is as much as a group of few packets grows by between two losses.
//! A path without company is not touched, nor is one whose smoothed round trip is within a sixteenth of the shortest: who
//! has no queue shares none, and delays without a queue say nothing about who shares it. After an overflow that empties a
//! queue shorter than its path the group goes on growing as one until its windows are what they were: that queue shows itself
//! again only when it is nearly full. Timeouts of the path itself are the window's.
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

/// What is known of a path.
#[derive(Clone, Copy, Default)]
struct OfPath {
    /// When it fell last with its group.
    fell: Option<Instant>,
    /// Its window then, where that emptied a queue shared by congestion.
    overflowed: u64,
    /// Its part of the group's growth that does not come to a packet yet, millionths of a byte.
    earned: u64,
}

struct OneFlow {
    growth: f64,
    shares: SharedBottleneck,
    before: Before,
    paths: Vec<OfPath>,
    out: Vec<Adjust>,
}

/// Do packets wait on a path whose round trip is `rtt`?
fn shows_queue(p: &PathView, rtt: Duration) -> bool {
    rtt > p.min_rtt + p.min_rtt / 16
}

/// Do packets wait on this path?
fn has_queue(p: &PathView) -> bool {
    shows_queue(p, p.srtt)
}

/// Do they by now? For some round trips after a window fell the smoothed round trip is of the queue before.
fn has_queue_still(p: &PathView) -> bool {
    shows_queue(p, p.srtt.min(p.last_rtt))
}

/// As many whole packets as fit into `bytes`, and one at least.
fn whole(bytes: u64, packet: u64) -> u64 {
    (bytes / packet.max(1)).max(1) * packet.max(1)
}

impl OneFlow {
    fn new(p: &Params) -> Self {
        OneFlow {
            growth: p.number("growth"),
            shares: SharedBottleneck::standard(),
            before: Before::default(),
            paths: Vec::new(),
            out: Vec::new(),
        }
    }
    /// Do packets wait on this path, or would they with the window at which the queue of its group overflowed last?
    fn grows_coupled(&self, p: &PathView) -> bool {
        has_queue(p) || self.paths.get(p.id.index()).is_some_and(|s| p.cwnd < s.overflowed)
    }
    /// Did `p` fall with its group less than a round trip ago?
    fn has_fallen(&self, p: &PathView, now: Instant) -> bool {
        let srtt = if p.srtt.is_zero() { Duration::from_millis(100) } else { p.srtt };
        self.paths.get(p.id.index()).and_then(|s| s.fell).is_some_and(|t| now.since(t) < srtt)
    }
    /// The paths that share the queue of `me` as far as `coupled` holds for both.
    fn together<'a>(
        &'a self,
        cx: &AssocView<'a>,
        me: &PathView,
        coupled: impl Fn(&PathView) -> bool,
    ) -> impl Iterator<Item = &'a PathView> {
        let mine = coupled(me);
        self.shares.members(cx, me).filter(move |p| mine && coupled(p))
    }
    /// The share of `grow` bytes that makes whole packets of what `me` has earned, with `part` of these.
    fn earn(&mut self, me: &PathView, grow: u64, part: Ppm) -> Ppm {
        let (i, packet) = (me.id.index(), me.mtu.max(1) * 1_000_000);
        if self.paths.len() <= i {
            self.paths.resize(i + 1, OfPath::default());
        }
        let Some(path) = self.paths.get_mut(i).filter(|_| grow > 0) else { return Ppm::ONE };
        path.earned = path.earned.saturating_add(grow.saturating_mul(part.0.into()));
        let packets = path.earned - path.earned % packet;
        path.earned -= packets;
        Ppm(u32::try_from(packets / grow).unwrap_or(u32::MAX))
    }
    fn fall(&mut self, cx: &AssocView<'_>, me: &PathView, e: &LossEvent, alone: bool) {
        let again = self.has_fallen(me, cx.now);
        let waits = if alone { has_queue_still } else { has_queue };
        let members: Vec<PathView> = self.together(cx, me, waits).copied().collect();
        if members.len() < 2 {
            return;
        }
        self.paths.resize(cx.paths.len(), OfPath::default());
        for p in members {
            let (own, was) = (p.id == me.id, self.before.of(&p));
            if own && e.kind == LossKind::Timeout || (again || alone) && !own {
                continue;
            }
            let cwnd = if again { was } else { whole(was / 2, p.mtu) };
            let ssthresh = if own || !p.in_slow_start() { cwnd - 1 } else { cwnd.min(p.ssthresh) };
            self.out.push(Adjust { path: p.id, to: WindowState { cwnd, ssthresh, partial_bytes_acked: 0 } });
            if let Some(path) = self.paths.get_mut(p.id.index()).filter(|_| !again) {
                let overflowed = match alone {
                    true => path.overflowed,
                    // Half of a window leaves packets in a queue that is longer than the path: there it shows itself.
                    false if p.srtt >= p.min_rtt * 2 => 0,
                    false => was,
                };
                *path = OfPath { fell: Some(cx.now), overflowed, earned: 0 };
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
        for p in self.together(cx, me, |p| self.grows_coupled(p)) {
            paths += 1;
            windows += p.cwnd;
        }
        if paths < 2 || windows == 0 {
            return Ppm::ONE;
        }
        let part = Ppm((self.growth * me.cwnd as f64 / windows as f64 * 1e6 + 0.5) as u32);
        self.earn(me, g.grow, part)
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

    const MTU: u64 = 1_172;

    fn scene(windows: &[u64]) -> Scene {
        let mut s = Scene::new(windows.len() as u8, 0);
        for (i, &cwnd) in windows.iter().enumerate() {
            let p = s.rtt(i as u8, 100);
            (p.cwnd, p.ssthresh, p.min_rtt) = (cwnd, 1, ms(80));
        }
        s
    }
    /// Packets by which each path grows in a thousand round trips, in each of which its window proposes one.
    fn grown(p: &mut dyn Coupling, s: &Scene) -> Vec<f64> {
        let mut packets = vec![0.0; s.paths.len()];
        for _ in 0..1_000 {
            for (path, packets) in s.paths.iter().zip(&mut packets) {
                let granted = p.scale(&s.cx(), &Growth::of(path.id, MTU)).0;
                assert!(granted.is_multiple_of(1_000_000), "{granted}: a whole packet or none");
                *packets += f64::from(granted) / 1e6;
            }
        }
        packets
    }
    /// Windows after a loss on path 0 of which the window made `cut`, and one on path 1 a moment later.
    fn after(windows: &[u64], cut: [u64; 2]) -> Vec<u64> {
        let mut p = built(&POLICY, "", 0);
        let mut s = scene(windows);
        p.scale(&s.cx(), &Growth::of(PathId(0), 1));
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
    fn a_group_grows_by_whole_packets_and_by_as_many_however_many_paths_it_has() {
        let groups = [&[10_000, 10_000][..], &[1_172, 19_000], &[4_000, 5_000, 6_000, 7_000], &[30_000; 7]];
        for (windows, growth) in groups.iter().flat_map(|w| [0.1, 0.35, 1.0, 2.5].map(|g| (*w, g))) {
            let grown = grown(&mut *built(&POLICY, &format!("growth={growth}"), 0), &scene(windows));
            let all: u64 = windows.iter().sum();
            for (packets, window) in grown.iter().zip(windows) {
                let part = 1_000.0 * growth * *window as f64 / all as f64;
                assert!((packets - part).abs() <= 1.0, "{windows:?} by {growth}: {packets} for {part}");
            }
        }
    }

    /// Whatever steps a window proposes: what they come to is granted a packet at a time.
    #[test]
    fn small_steps_add_up_to_packets() {
        for step in [1, 40, 293, MTU, 3 * MTU] {
            let (mut p, s) = (built(&POLICY, "growth=0.5", 0), scene(&[10_000, 10_000]));
            let (mut bytes, steps) = (0, 200_000 / step);
            for _ in 0..steps {
                let granted = Ppm(p.scale(&s.cx(), &Growth { grow: step, ..Growth::of(PathId(0), MTU) }).0).of(step);
                assert!(granted.is_multiple_of(MTU) || granted % MTU == MTU - 1, "{granted} of {step}");
                bytes += granted;
            }
            let part = steps * step / 4;
            assert!(bytes.abs_diff(part) <= 2 * MTU, "{step}: {bytes} for {part}");
        }
    }

    #[test]
    fn who_has_no_queue_shares_none() {
        let mut s = scene(&[10_000, 10_000, 20_000]);
        for (shortest, packets) in [(80, [250.0, 250.0, 500.0]), (95, [1_000.0, 333.0, 666.0])] {
            s.paths[0].min_rtt = ms(shortest);
            assert_eq!(grown(&mut *built(&POLICY, "", 0), &s), packets, "{shortest}");
        }
    }

    #[test]
    fn one_overflow_takes_every_window_to_whole_packets_below_its_half_once() {
        for n in [2_400, 10_000, 54_321, 1_000_000] {
            assert_eq!(after(&[n, n], [n / 2, n / 4]), [(n / 2 / MTU).max(1) * MTU; 2], "{n}");
        }
        assert_eq!(after(&[2 * MTU, MTU], [2 * MTU, MTU]), [MTU; 2], "a packet is the least");
        assert_eq!(after(&[20_000, 8_000, 6_000], [10_000, 2_000]), [8 * MTU, 3 * MTU, 2 * MTU]);
    }

    /// A window that equals its threshold would.
    #[test]
    fn what_fell_does_not_begin_in_slow_start() {
        for windows in [[3_000, 3_000], [12_345, 9_999], [MTU, 100 * MTU]] {
            let (mut p, s) = (built(&POLICY, "", 0), scene(&windows));
            p.adjust(&s.cx(), &mut Vec::new());
            p.on_loss(&s.cx(), &loss(0), Cause::Congestion);
            let mut out = Vec::new();
            p.adjust(&s.cx(), &mut out);
            assert_eq!(out.len(), 2);
            assert!(out.iter().all(|a| a.to.cwnd > a.to.ssthresh), "{out:?}");
        }
    }

    /// Round trips without a queue after an overflow: a group whose queue was shorter than its path grows as one until its windows
    /// are what they were.
    #[test]
    fn a_short_queue_that_overflowed_couples_until_it_shows_itself_again() {
        for (full, short) in [(90, true), (150, true), (170, false), (400, false)] {
            let mut s = scene(&[10 * MTU, 10 * MTU]);
            let at = |s: &mut Scene, rtt, cwnd| {
                s.paths.iter_mut().for_each(|p| (p.srtt, p.cwnd) = (ms(rtt), cwnd));
            };
            at(&mut s, full, 10 * MTU);
            let mut p = built(&POLICY, "growth=0.5", 0);
            p.adjust(&s.cx(), &mut Vec::new());
            p.on_loss(&s.cx(), &loss(0), Cause::Congestion);
            p.adjust(&s.cx(), &mut Vec::new());
            let one_flow = [250.0, 250.0];
            for (rtt, window, coupled) in [(80, 5, short), (80, 9, short), (80, 10, false), (90, 10, true)] {
                at(&mut s, rtt, window * MTU);
                let grown = grown(&mut *p, &s);
                assert_eq!(grown == one_flow, coupled, "queue up to {full}, now {rtt}, {window} packets: {grown:?}");
            }
        }
    }

    #[test]
    fn where_a_queue_is_shared_the_radio_halves_its_own_path_and_congestion_all() {
        for windows in [&[10_000, 10_000, 9_000][..], &[10_000]] {
            for (cause, adjusted) in [(Cause::Radio, 1), (Cause::Congestion, 3), (Cause::Reordering, 0)] {
                let mut p = built(&POLICY, "", 0);
                let s = scene(windows);
                p.adjust(&s.cx(), &mut Vec::new());
                let mut out = Vec::new();
                p.on_loss(&s.cx(), &LossEvent { new_episode: false, ..loss(0) }, cause);
                p.adjust(&s.cx(), &mut out);
                assert!(out.is_empty(), "the episode goes on");
                p.on_loss(&s.cx(), &loss(0), cause);
                p.adjust(&s.cx(), &mut out);
                assert_eq!(out.len(), if windows.len() > 1 { adjusted } else { 0 }, "{cause:?}");
                assert!(out.iter().all(|a| a.to.cwnd == whole(windows[a.path.index()] / 2, MTU)), "{cause:?}");
            }
        }
    }

    /// The smoothed round trip lags behind a window that fell, and each loss until it is there would halve the window again.
    #[test]
    fn the_radio_halves_no_window_whose_queue_is_gone() {
        for (newest, radio, congestion) in [(100, 1, 2), (86, 1, 2), (84, 0, 2), (80, 0, 2)] {
            for (cause, adjusted) in [(Cause::Radio, radio), (Cause::Congestion, congestion)] {
                let (mut p, mut s) = (built(&POLICY, "", 0), scene(&[10_000, 10_000]));
                s.paths.iter_mut().for_each(|v| v.last_rtt = ms(newest));
                p.adjust(&s.cx(), &mut Vec::new());
                p.on_loss(&s.cx(), &loss(0), cause);
                let mut out = Vec::new();
                p.adjust(&s.cx(), &mut out);
                assert_eq!(out.len(), adjusted, "{cause:?}, newest round trip {newest} ms of 80");
            }
        }
    }
}
