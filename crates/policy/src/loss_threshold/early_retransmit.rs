//! Fewer reports when few packets are outstanding and nothing new can be sent.
//!
//! Source: RFC 5827, the packet-counting variant. With fewer than four packets outstanding and no new data to
//! provoke further reports, all but one of them suffice.
//! Deviation: packets acknowledged by gap blocks have left the flight; those that reported this copy are added
//! back to get the outstanding count the RFC means. Counted per path. No parameters.

use super::{LossThreshold, Verdict};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::{AssocView, CopyView, SackView};

pub(super) const POLICY: Policy<dyn LossThreshold> = Policy {
    info: PolicyInfo {
        hook: Hook::LossThreshold,
        name: "early_retransmit",
        source: "RFC 5827",
        file: file!(),
        summary: "All but one of the outstanding packets suffice as reports when fewer than four are outstanding.",
        params: &[],
    },
    build: |_| Box::new(EarlyRetransmit),
};

struct EarlyRetransmit;

impl LossThreshold for EarlyRetransmit {
    fn judge(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> Verdict {
        let flight = sack.flight_before.get(copy.path.index()).copied().unwrap_or(u32::MAX);
        let outstanding = flight.saturating_add(u32::from(copy.misses.saturating_sub(1)));
        let nothing_to_send = cx.unsent == 0 || cx.peer_rwnd == 0;
        let needed = match outstanding {
            n if n < 4 && nothing_to_send => n.saturating_sub(1).max(1) as u8,
            _ => super::STANDARD_REPORTS,
        };
        super::after_reports(copy, needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, copy, sack};

    fn judge(s: &Scene, flight: u32, misses: u8) -> Verdict {
        let flight = [flight];
        let mut seen = sack(None);
        seen.flight_before = &flight;
        let mut c = copy(44, 0, 4);
        c.misses = misses;
        built(&POLICY, "", 0).judge(&s.cx(), &seen, &c)
    }

    #[test]
    fn all_but_one_of_few() {
        let s = Scene::new(1, 0);
        assert_eq!(judge(&s, 2, 1), Verdict::Lost, "two outstanding: one report");
        assert_eq!(judge(&s, 3, 1), Verdict::Waiting);
        assert_eq!(judge(&s, 2, 2), Verdict::Lost, "three outstanding: two reports");
        assert_eq!(judge(&s, 3, 2), Verdict::Waiting, "four outstanding: the standard rule");
        assert_eq!(judge(&s, 2, 3), Verdict::Lost);
    }

    #[test]
    fn not_while_new_data_can_leave() {
        let mut s = Scene::new(1, 1);
        assert_eq!(judge(&s, 2, 1), Verdict::Waiting);
        s.peer_rwnd = 0;
        assert_eq!(judge(&s, 2, 1), Verdict::Lost);
    }
}
