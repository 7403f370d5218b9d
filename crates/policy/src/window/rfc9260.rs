//! The standard congestion window.
//!
//! Source: RFC 9260 §7.2.1 to §7.2.3. Slow start by acknowledged bytes up to one packet, then one packet per window
//! acknowledged, both only while the window is used in full and outside fast recovery; half on a loss, one packet
//! after a timeout. A loss that the cause hook does not put down to congestion leaves the window alone, unless it
//! was noticed by a timeout. The decay of an idle window (§7.2.1) needs a clock and is the engine's.
//! Parameters, for comparison with older implementations: `floor`, packets below which no threshold falls (2 before
//! RFC 4960); `in_recovery` 1 lets the window grow in fast recovery too; `cut_one` 0 leaves the threshold alone when a
//! window that is one packet already times out again; `partial_max` 0 lets `partial_bytes_acked` add up beyond a window
//! that is not used in full; `growth` below 1 is for company that grows less: a TCP that counts acknowledgements has half a
//! packet where each is of two (RFC 5681 §3.1).

use super::{
    AckOnPath, Reaction, Window, WindowChange, WindowState, after, growth, half_above, reaction, standard_growth,
};
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::{PathId, Ppm};

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "rfc9260",
        source: "RFC 9260 §7.2",
        file: file!(),
        summary: "Slow start, one packet per round trip, half on a loss, one packet after a timeout.",
        params: &[
            ParamInfo::count("floor", 4, "packets", 1, 64, "least threshold after a loss"),
            ParamInfo::flag("in_recovery", false, "the window grows in fast recovery too"),
            ParamInfo::flag("cut_one", true, "a timeout with a window of one packet cuts the threshold again"),
            ParamInfo::flag(
                "idle_keeps",
                false,
                "the decay of an idle window leaves the threshold alone (RFC 4960 §7.2.1)",
            ),
            ParamInfo::flag(
                "partial_max",
                true,
                "partial_bytes_acked stays within a window that is not used in full (RFC 9260 §7.2.2)",
            ),
            ParamInfo::number("growth", 1.0, "packets", 0.05, 4.0, "by which a window acknowledged grows it"),
            ParamInfo::count("headers", 0, "bytes", 0, 200, "what a packet is longer than its payload in that window"),
        ],
    },
    build: |p| Box::new(Rfc9260::new(p)),
};

struct Rfc9260 {
    floor: u64,
    in_recovery: bool,
    cut_one: bool,
    idle_keeps: bool,
    partial_max: bool,
    growth: Ppm,
    headers: u64,
}

impl Rfc9260 {
    fn new(p: &Params) -> Self {
        Rfc9260 {
            floor: p.count("floor"),
            in_recovery: p.flag("in_recovery"),
            cut_one: p.flag("cut_one"),
            idle_keeps: p.flag("idle_keeps"),
            partial_max: p.flag("partial_max"),
            growth: Ppm(p.ppm("growth") as u32),
            headers: p.count("headers"),
        }
    }
}

impl Window for Rfc9260 {
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        let rule = if self.in_recovery { growth } else { standard_growth };
        let Some(p) = cx.path(me) else { return WindowChange::default() };
        let mut change = rule(p, ack);
        if !self.partial_max && !ack.fully_used && !p.in_slow_start() && p.in_flight > 0 {
            change.partial_bytes_acked = p.partial_bytes_acked.saturating_add(ack.bytes);
        }
        if !p.in_slow_start() && self.growth != Ppm::ONE {
            change.grow = self.growth.of(change.grow);
        }
        change
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        let r = reaction(e, cause);
        let spared = r == Reaction::Restart && !self.cut_one && p.cwnd <= p.mtu;
        let ssthresh = if spared { p.ssthresh } else { half_above(p, self.floor) };
        let mut w = after(r, p, ssthresh, ssthresh);
        if r == Reaction::Restart {
            // FreeBSD's window after a timeout is the path's MTU, so that a packet does not fill it.
            w.cwnd += self.headers;
        }
        w
    }
    fn grows_in_recovery(&self) -> bool {
        self.in_recovery
    }
    fn idle_threshold(&self, cwnd: u64, ssthresh: u64) -> u64 {
        if self.idle_keeps { ssthresh } else { cwnd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_cause::LossKind;
    use crate::testing::{Scene, loss};

    const MTU: u64 = 1_172;

    fn standard() -> Rfc9260 {
        Rfc9260::new(&Params::defaults(&POLICY.info, 0))
    }

    fn scene(cwnd: u64, ssthresh: u64, partial: u64) -> Scene {
        let mut s = Scene::new(1, 0);
        let p = &mut s.paths[0];
        (p.cwnd, p.ssthresh, p.partial_bytes_acked, p.in_flight) = (cwnd, ssthresh, partial, 1);
        s
    }
    fn ack(s: &Scene, bytes: u64, fully_used: bool) -> (u64, u64) {
        let ack = AckOnPath { bytes, acked: bytes, fully_used, ..AckOnPath::default() };
        let c = standard().on_ack(&s.cx(), PathId(0), &ack);
        assert_eq!(c.ssthresh, s.paths[0].ssthresh);
        (c.grow, c.partial_bytes_acked)
    }

    #[test]
    fn slow_start_takes_the_lesser_of_bytes_and_one_packet() {
        let s = scene(4_404, 4_404, 0);
        assert_eq!(ack(&s, 500, true), (500, 0), "cwnd equal to ssthresh is slow start");
        assert_eq!(ack(&s, 9_000, true), (MTU, 0));
        assert_eq!(ack(&s, 9_000, false), (0, 0), "window not used in full");
    }

    /// With it, a full packet does not fill the window that a timeout leaves.
    #[test]
    fn after_a_timeout_the_window_may_count_headers() {
        let s = scene(10_000, 5_000, 0);
        let e = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        for headers in [0, 48] {
            let mut w = Rfc9260 { headers, ..standard() };
            assert_eq!(w.on_loss(&s.cx(), PathId(0), &e, Cause::Congestion).cwnd, MTU + headers);
            assert_eq!(w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion).cwnd, 5_000);
        }
    }

    #[test]
    fn nothing_grows_in_recovery() {
        let mut s = scene(4_404, u64::MAX, 0);
        s.paths[0].in_recovery = true;
        assert_eq!(ack(&s, 2_000, true), (0, 0));
        let mut s = scene(9_000, 4_000, 8_000);
        s.paths[0].in_recovery = true;
        assert_eq!(ack(&s, 2_000, true), (0, 8_000));
    }

    #[test]
    fn avoidance_adds_one_packet_per_window() {
        let s = scene(10_000, 5_000, 8_500);
        assert_eq!(ack(&s, 1_000, true), (0, 9_500));
        assert_eq!(ack(&s, 1_500, true), (MTU, 0));
        assert_eq!(ack(&s, 3_000, true), (MTU, 1_500), "the rest is kept");
        assert_eq!(ack(&s, 3_000, false), (0, 10_000), "at most a window is saved up");
        assert_eq!(ack(&s, 0, true), (0, 8_500));
    }

    #[test]
    fn growth_may_be_less_beside_those_that_grow_less() {
        let s = scene(10_000, 5_000, 8_500);
        let ack = AckOnPath { bytes: 1_500, acked: 1_500, fully_used: true, ..AckOnPath::default() };
        let mut w = Rfc9260 { growth: Ppm(500_000), ..standard() };
        let change = w.on_ack(&s.cx(), PathId(0), &ack);
        assert_eq!((change.grow, change.partial_bytes_acked), (MTU / 2, 0));
        assert_eq!(w.on_ack(&scene(4_404, 4_404, 0).cx(), PathId(0), &ack).grow, MTU, "slow start is what it was");
    }

    #[test]
    fn more_than_a_window_may_be_saved_up() {
        let s = scene(10_000, 5_000, 8_500);
        let ack = AckOnPath { bytes: 3_000, acked: 3_000, ..AckOnPath::default() };
        let mut w = Rfc9260 { partial_max: false, ..standard() };
        assert_eq!(w.on_ack(&s.cx(), PathId(0), &ack).partial_bytes_acked, 11_500);
    }

    #[test]
    fn all_acknowledged_forgets_partial_bytes() {
        let mut s = scene(10_000, 5_000, 8_500);
        s.paths[0].in_flight = 0;
        assert_eq!(ack(&s, 1_000, true), (0, 0));
    }

    #[test]
    fn losses() {
        let s = scene(20_000, 50_000, 700);
        let on = |e: LossEvent, cause| {
            let w = standard().on_loss(&s.cx(), PathId(0), &e, cause);
            (w.cwnd, w.ssthresh, w.partial_bytes_acked)
        };
        assert_eq!(on(loss(0), Cause::Congestion), (10_000, 10_000, 0));
        assert_eq!(on(loss(0), Cause::Radio), (20_000, 50_000, 700));
        assert_eq!(on(loss(0), Cause::Reordering), (20_000, 50_000, 700));
        let again = LossEvent { new_episode: false, ..loss(0) };
        assert_eq!(on(again, Cause::Congestion), (20_000, 50_000, 700), "once per episode");
        let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        assert_eq!(on(timeout, Cause::Congestion), (MTU, 10_000, 0));
        assert_eq!(on(timeout, Cause::Radio), (MTU, 10_000, 0));
    }

    #[test]
    fn four_packets_are_the_floor_of_the_threshold() {
        let s = scene(5_000, 50_000, 0);
        let w = standard().on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert_eq!((w.cwnd, w.ssthresh), (4 * MTU, 4 * MTU));
        let w = Rfc9260 { floor: 2, ..standard() }.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert_eq!((w.cwnd, w.ssthresh), (2_500, 2_500), "another floor");
    }

    #[test]
    fn growth_in_recovery_is_a_choice() {
        let mut s = scene(4_404, u64::MAX, 0);
        s.paths[0].in_recovery = true;
        let ack = AckOnPath { bytes: 500, acked: 500, fully_used: true, ..AckOnPath::default() };
        let mut p = Rfc9260 { in_recovery: true, ..standard() };
        assert_eq!((p.on_ack(&s.cx(), PathId(0), &ack).grow, p.grows_in_recovery()), (500, true));
        assert!(!standard().grows_in_recovery());
    }

    #[test]
    fn a_second_timeout_may_spare_the_threshold() {
        let s = scene(MTU, 50_000, 0);
        let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        let after = |mut p: Rfc9260| p.on_loss(&s.cx(), PathId(0), &timeout, Cause::Congestion).ssthresh;
        assert_eq!(after(standard()), 4 * MTU);
        assert_eq!(after(Rfc9260 { cut_one: false, ..standard() }), 50_000);
    }
}
