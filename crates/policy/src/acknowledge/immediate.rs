//! Every packet is acknowledged at once.
//!
//! Source: the behaviour RFC 7053 lets a sender ask for, taken by the receiver on its own. Costs one SACK per
//! packet and removes up to 200 ms from loss detection of sparse traffic. No parameters.

use super::{AckWhen, Acknowledge, ReceiveView};
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Acknowledge> = Policy {
    info: PolicyInfo {
        hook: Hook::Acknowledge,
        name: "immediate",
        source: "RFC 7053",
        file: file!(),
        summary: "Every packet at once.",
        params: &[],
    },
    build: |_| Box::new(Immediate),
};

struct Immediate;

impl Acknowledge for Immediate {
    fn decide(&self, _v: &ReceiveView) -> AckWhen {
        AckWhen::Now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{built, received};

    #[test]
    fn the_first_packet_already() {
        assert_eq!(built(&POLICY, "", 0).decide(&received(1)), AckWhen::Now);
    }
}
