//! No congestion control.
//!
//! Source: Becke et al. 2013 §IV. Their measurements use a protocol of acknowledgements, round trips and counters that
//! sends when the application does; a comparison with them has to do so too. Nothing in flight holds back what follows,
//! and no expiry does. Losses are found, repaired or given up as ever.
//! For the simulator and the emulator alone: `net` refuses it towards any address that is not this machine's own, since
//! nothing would keep it from congesting a network (RFC 8085 §3.1).
//! Deviations: Path.Max.Retrans still ends the use of a path, and Max.Burst still counts packets where it is set. What
//! a window would allow in a round trip is asked of what the path was seen to carry
//! ([`PathView::window_rate`](crate::view::PathView::window_rate)). No parameters.

use super::{AckOnPath, UNLIMITED, Window, WindowChange, WindowState};
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::PathId;

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "none",
        source: "Becke et al. 2013 §IV",
        file: file!(),
        summary: "No congestion control, for comparisons in the simulator and the emulator; refused on a network.",
        params: &[],
    },
    build: |_| Box::new(None),
};

struct None;

impl Window for None {
    fn sets_itself(&self) -> bool {
        true
    }
    fn on_ack(&mut self, _: &AssocView<'_>, _: PathId, _: &AckOnPath) -> WindowChange {
        WindowChange { set: Some(UNLIMITED), ..WindowChange::default() }
    }
    fn on_loss(&mut self, _: &AssocView<'_>, _: PathId, _: &LossEvent, _: Cause) -> WindowState {
        WindowState { cwnd: UNLIMITED, ..WindowState::default() }
    }
    fn controls_congestion(&self) -> bool {
        false
    }
    fn grows_in_recovery(&self) -> bool {
        true
    }
    fn decays_while_idle(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_cause::LossKind;
    use crate::testing::{Scene, built, loss, ms};
    use anabranch_base::Rate;

    #[test]
    fn nothing_makes_it_smaller() {
        let mut s = Scene::new(1, 0);
        s.paths[0].cwnd = UNLIMITED;
        let change =
            built(&POLICY, "", 0).on_ack(&s.cx(), PathId(0), &AckOnPath { bytes: 1_000, ..AckOnPath::default() });
        assert_eq!((change.set, change.ssthresh), (Some(UNLIMITED), 0));
        for kind in [LossKind::FastRetransmit, LossKind::Timeout] {
            for cause in [Cause::Congestion, Cause::Radio, Cause::PathFailure] {
                let e = crate::loss_cause::LossEvent { kind, ..loss(0) };
                assert_eq!(built(&POLICY, "", 0).on_loss(&s.cx(), PathId(0), &e, cause).cwnd, UNLIMITED);
            }
        }
        assert!(
            !built(&POLICY, "", 0).controls_congestion()
                && !built(&POLICY, "", 0).decays_while_idle()
                && !built(&POLICY, "", 0).paces()
        );
    }

    #[test]
    fn the_rate_of_no_window_is_what_the_path_was_seen_to_carry() {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 100);
        p.cwnd = UNLIMITED;
        assert_eq!(p.window_rate(), Rate::of(UNLIMITED, ms(100)), "nothing was seen yet");
        (p.cwnd, p.delivery_rate, p.capacity) = (UNLIMITED, Rate::from_bytes_per_sec(700), Rate::ZERO);
        assert_eq!(p.window_rate(), Rate::from_bytes_per_sec(700));
        p.capacity = Rate::from_bytes_per_sec(900);
        assert_eq!(p.window_rate(), Rate::from_bytes_per_sec(900));
        p.cwnd = 10_000;
        assert_eq!(p.window_rate(), Rate::of(10_000, ms(100)));
    }
}
