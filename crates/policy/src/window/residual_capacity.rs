//! A loss sets threshold and window by measured rates: by the rate sent where it was radio, by the bandwidth where it was
//! congestion.
//!
//! Source: Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §VI.C, eq. 14 to 16. Radio: the threshold is the rate handled times
//! the round trip of the heartbeat pairs, at least half the window and four packets, and the window stays. Congestion: the
//! threshold is the bandwidth times that round trip, with the limits as before, and the window falls to it. Timeouts,
//! growth, and losses before all of this is measured are RFC 9260's.
//! Both are more than RFC 9260 §7.2.3 allows: a window that the bandwidth explains does not fall at all, and a threshold
//! above the window means slow start. With `rfc_strict`, the default, the window is half after every loss that the link
//! layer does not explain by frame errors of the newest interval; one that it does leaves the window as it is.
//! `congestion=half` takes the standard's half for congestion alone, as CMT-QA does.
//! Parameters: `rfc_strict`; `congestion`, without it.

use super::{
    AckOnPath, Reaction, Window, WindowChange, WindowState, after, half, reaction, standard_growth, unchanged,
};
use crate::asks::Asks;
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{PathId, Rate};

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "residual_capacity",
        source: "Xu, Li, Li, Zhang, Muntean 2014 (CMT-CL/FD) §VI.C",
        file: file!(),
        summary: "Growth as RFC 9260; a loss sets threshold and window by the rates measured, according to its cause.",
        params: &[
            ParamInfo::flag("rfc_strict", true, "half the window unless the link layer reports frame errors"),
            ParamInfo::word("congestion", &["rate", "half"], "what congestion leaves of the window without rfc_strict"),
        ],
    },
    build: |p| Box::new(ResidualCapacity::new(p)),
};

struct ResidualCapacity {
    strict: bool,
    half: bool,
}

/// Rate times reference round trip; none while one of them is unknown.
fn pipe(p: &PathView, rate: Rate) -> Option<u64> {
    Some(rate.bytes_in(p.reference_rtt)).filter(|_| rate > Rate::ZERO && !p.reference_rtt.is_zero())
}

impl ResidualCapacity {
    fn new(p: &Params) -> Self {
        ResidualCapacity { strict: p.flag("rfc_strict"), half: p.word("congestion") == "half" }
    }
    /// After a radio loss; none where it counts as congestion.
    fn after_radio(&self, p: &PathView) -> Option<WindowState> {
        if self.strict {
            return (p.signals.frame_errors > 0).then(|| unchanged(p));
        }
        let ssthresh = pipe(p, p.signals.handling_rate)?.max(half(p));
        Some(WindowState { cwnd: p.cwnd, ssthresh, partial_bytes_acked: 0 })
    }
}

impl Window for ResidualCapacity {
    fn asks(&self) -> Asks {
        Asks::ESTIMATES
    }
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        cx.path(me).map_or_else(WindowChange::default, |p| standard_growth(p, ack))
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        let radio = cause == Cause::Radio && e.kind == LossKind::FastRetransmit;
        if radio {
            if !e.new_episode {
                return unchanged(p);
            }
            if let Some(w) = self.after_radio(p) {
                return w;
            }
        }
        let reaction = reaction(e, if radio { Cause::Congestion } else { cause });
        let measured = pipe(p, p.send_rate).filter(|_| !self.strict && !self.half && reaction == Reaction::Cut);
        let ssthresh = measured.map_or_else(|| half(p), |b| b.max(half(p)));
        after(reaction, p, ssthresh, p.cwnd.min(ssthresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, loss, ms};

    const MTU: u64 = 1_172;

    /// A window of 40000, 200000 bytes/s handled and 300000 released, 100 ms.
    fn scene() -> Scene {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 120);
        (p.cwnd, p.ssthresh, p.partial_bytes_acked, p.reference_rtt) = (40_000, 90_000, 700, ms(100));
        p.send_rate = Rate::from_bytes_per_sec(300_000);
        p.signals.handling_rate = Rate::from_bytes_per_sec(200_000);
        s
    }
    fn on(s: &Scene, params: &str, e: LossEvent, cause: Cause) -> (u64, u64, u64) {
        let w = built(&POLICY, params, 0).on_loss(&s.cx(), PathId(0), &e, cause);
        (w.cwnd, w.ssthresh, w.partial_bytes_acked)
    }

    #[test]
    fn as_printed() {
        let mut s = scene();
        let printed = "rfc_strict=0";
        assert_eq!(on(&s, printed, loss(0), Cause::Radio), (40_000, 20_000, 0));
        assert_eq!(on(&s, printed, loss(0), Cause::Congestion), (30_000, 30_000, 0));
        s.paths[0].signals.handling_rate = Rate::from_bytes_per_sec(900_000);
        assert_eq!(on(&s, printed, loss(0), Cause::Radio), (40_000, 90_000, 0), "slow start follows");
        s.paths[0].send_rate = Rate::from_bytes_per_sec(900_000);
        assert_eq!(
            on(&s, printed, loss(0), Cause::Congestion),
            (40_000, 90_000, 0),
            "the bandwidth explains the window"
        );
        (s.paths[0].send_rate, s.paths[0].cwnd) = (Rate::from_bytes_per_sec(1_000), 5_000);
        assert_eq!(on(&s, printed, loss(0), Cause::Congestion), (4 * MTU, 4 * MTU, 0), "four packets");
        assert_eq!(on(&scene(), "rfc_strict=0,congestion=half", loss(0), Cause::Congestion), (20_000, 20_000, 0));
        assert_eq!(on(&scene(), "rfc_strict=0,congestion=half", loss(0), Cause::Radio), (40_000, 20_000, 0));
    }

    #[test]
    fn the_standard_unless_the_link_layer_proves_frame_errors() {
        let mut s = scene();
        assert_eq!(on(&s, "", loss(0), Cause::Radio), (20_000, 20_000, 0));
        assert_eq!(on(&s, "", loss(0), Cause::Congestion), (20_000, 20_000, 0));
        s.paths[0].signals.frame_errors = 1;
        assert_eq!(on(&s, "", loss(0), Cause::Radio), (40_000, 90_000, 700));
        assert_eq!(on(&s, "", loss(0), Cause::Congestion), (20_000, 20_000, 0));
    }

    #[test]
    fn what_is_the_standards_stays() {
        let mut s = scene();
        let again = LossEvent { new_episode: false, ..loss(0) };
        let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        for params in ["", "rfc_strict=0"] {
            assert_eq!(on(&s, params, again, Cause::Congestion), (40_000, 90_000, 700), "once an episode");
            assert_eq!(on(&s, params, again, Cause::Radio), (40_000, 90_000, 700));
            assert_eq!(on(&s, params, timeout, Cause::Radio), (MTU, 20_000, 0));
            assert_eq!(on(&s, params, loss(0), Cause::Reordering), (40_000, 90_000, 700));
        }
        s.paths[0].reference_rtt = ms(0);
        for cause in [Cause::Radio, Cause::Congestion] {
            assert_eq!(on(&s, "rfc_strict=0", loss(0), cause), (20_000, 20_000, 0), "nothing is measured");
        }
        s.paths[0].in_flight = 1;
        let ack = AckOnPath { bytes: 3_000, acked: 3_000, fully_used: true, ..AckOnPath::default() };
        assert_eq!(built(&POLICY, "", 0).on_ack(&s.cx(), PathId(0), &ack).grow, MTU);
    }
}
