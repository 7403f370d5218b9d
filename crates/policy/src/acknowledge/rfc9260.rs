//! Delayed acknowledgement.
//!
//! Source: RFC 9260 §6.2 and RFC 7053. Every second packet, or after the delay; at once for gaps, duplicates and
//! packets that ask for it. Parameters: `every`, packets per SACK; `hurry_fill` 0 lets the packet that closes the last
//! gap wait like any other (RFC 4960 §6.7 does not name it; RFC 5681 §4.2 does for TCP); `bulk`, the delay after a packet
//! whose payload is more than half of an Ethernet frame. A sparse message is answered after the association's delay, which
//! a profile for such messages has short; a stream of large packets that is answered as soon grows faster than its
//! neighbours, and `bulk` takes that from it.

use super::{AckWhen, Acknowledge, ReceiveView};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use anabranch_base::Duration;

pub(super) const POLICY: Policy<dyn Acknowledge> = Policy {
    info: PolicyInfo {
        hook: Hook::Acknowledge,
        name: "rfc9260",
        source: "RFC 9260 §6.2, RFC 7053",
        file: file!(),
        summary: "Every second packet or after a delay; gaps, duplicates and requests at once.",
        params: &[
            ParamInfo::count("every", 2, "packets", 1, 2, "packets per SACK"),
            ParamInfo::flag("hurry_fill", true, "the packet that closes the last gap is answered at once"),
            ParamInfo::millis("bulk", 0, 0, 500, "delay after more than 750 bytes of payload, where that is longer"),
        ],
    },
    build: |p| Box::new(Delayed { hurry_fill: p.flag("hurry_fill"), bulk: p.millis("bulk"), ..Delayed::new(p) }),
};

/// Bytes of payload, above which a packet is one of a stream of large ones.
const BULK: u32 = 750;

pub(super) struct Delayed {
    every: u32,
    hurry_fill: bool,
    bulk: Duration,
}

impl Delayed {
    pub(super) fn new(p: &Params) -> Self {
        Delayed { every: p.count("every") as u32, hurry_fill: true, bulk: Duration::ZERO }
    }
}

impl Acknowledge for Delayed {
    fn decide(&self, v: &ReceiveView) -> AckWhen {
        let gap = if self.hurry_fill { v.gap } else { v.gap_left };
        if gap || v.duplicates_only || v.immediate || v.packets_since_sack >= self.every {
            AckWhen::Now
        } else {
            AckWhen::By(v.now + if v.bytes > BULK { v.delay.max(self.bulk) } else { v.delay })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{built, received};

    #[test]
    fn second_packet_or_delay() {
        let p = built(&POLICY, "", 0);
        let one = received(1);
        assert_eq!(p.decide(&one), AckWhen::By(one.now + one.delay));
        assert_eq!(p.decide(&received(2)), AckWhen::Now);
    }

    #[test]
    fn at_once_for_a_reason() {
        let p = built(&POLICY, "", 0);
        assert_eq!(p.decide(&ReceiveView { gap: true, ..received(1) }), AckWhen::Now);
        assert_eq!(p.decide(&ReceiveView { duplicates_only: true, ..received(1) }), AckWhen::Now);
        assert_eq!(p.decide(&ReceiveView { immediate: true, ..received(1) }), AckWhen::Now);
    }

    #[test]
    fn large_packets_may_wait_longer_and_never_shorter() {
        let wait = |params: &str, bytes| match built(&POLICY, params, 0).decide(&ReceiveView { bytes, ..received(1) }) {
            AckWhen::By(t) => t.since(received(1).now).as_millis(),
            AckWhen::Now => 0,
        };
        assert_eq!([100, 750, 751, 1_452].map(|n| wait("bulk=350", n)), [200, 200, 350, 350]);
        assert_eq!([100, 1_452].map(|n| wait("bulk=20", n)), [200, 200]);
        assert_eq!([100, 1_452].map(|n| wait("", n)), [200, 200]);
        let p = built(&POLICY, "bulk=350", 0);
        assert_eq!(p.decide(&ReceiveView { bytes: 1_452, ..received(2) }), AckWhen::Now);
    }

    #[test]
    fn what_closes_the_last_gap_may_wait() {
        let p = built(&POLICY, "hurry_fill=0", 0);
        let closed = ReceiveView { gap: true, gap_left: false, ..received(1) };
        assert_eq!(p.decide(&closed), AckWhen::By(closed.now + closed.delay));
        assert_eq!(p.decide(&ReceiveView { gap_left: true, ..closed }), AckWhen::Now);
    }
}
