//! Reordering between paths hurries no SACK.
//!
//! Source: Iyengar, Amer, Stewart 2006, delayed acknowledgement for CMT (DAC). With several paths gaps are the normal
//! case, and a SACK for each packet would undo delayed acknowledgement. So a gap alone is no reason; the SACK says how
//! many packets it answers, and the sender's counting makes up for it. Only towards a peer that announced to read the
//! count, else as RFC 9260 §6.2. Deviation: the two bits and their announcement are our own, the draft leaves them
//! open. Parameters: `every`, packets per SACK.

use super::rfc9260::Delayed;
use super::{AckWhen, Acknowledge, ReceiveView};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Acknowledge> = Policy {
    info: PolicyInfo {
        hook: Hook::Acknowledge,
        name: "delayed_ack_cmt",
        source: "Iyengar, Amer, Stewart 2006 (DAC)",
        file: file!(),
        summary: "As rfc9260, but gaps alone hurry nothing towards a peer that counts packets.",
        params: &[ParamInfo::count("every", 2, "packets", 1, 2, "packets per SACK")],
    },
    build: |p| Box::new(DelayedAckCmt::new(p)),
};

struct DelayedAckCmt(Delayed);

impl DelayedAckCmt {
    fn new(p: &Params) -> Self {
        DelayedAckCmt(Delayed::new(p))
    }
}

impl Acknowledge for DelayedAckCmt {
    fn decide(&self, v: &ReceiveView) -> AckWhen {
        self.0.decide(&ReceiveView { gap: v.gap && !v.counted, ..*v })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{built, received};

    #[test]
    fn a_gap_waits_for_the_second_packet_when_it_is_counted() {
        let p = built(&POLICY, "", 0);
        let one = ReceiveView { gap: true, counted: true, ..received(1) };
        assert_eq!(p.decide(&one), AckWhen::By(one.now + one.delay));
        assert_eq!(p.decide(&ReceiveView { packets_since_sack: 2, ..one }), AckWhen::Now);
        assert_eq!(p.decide(&ReceiveView { counted: false, ..one }), AckWhen::Now, "a peer that does not count");
        assert_eq!(p.decide(&ReceiveView { duplicates_only: true, ..one }), AckWhen::Now);
        assert_eq!(p.decide(&ReceiveView { immediate: true, ..one }), AckWhen::Now);
    }
}
