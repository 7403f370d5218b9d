//! Nothing is restored.
//!
//! Source: RFC 9260 has no parity. No parameters.

use super::Repair;
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use anabranch_base::Instant;

pub(super) const POLICY: Policy<dyn Repair> = Policy {
    info: PolicyInfo {
        hook: Hook::Repair,
        name: "none",
        source: "RFC 9260",
        file: file!(),
        summary: "What is missing is sent again; parity is not asked for.",
        params: &[],
    },
    build: |_| Box::new(NoRepair),
};

struct NoRepair;

impl Repair for NoRepair {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn arrived(&mut self, _number: u64, _pieces: &[&[u8]]) {}
    fn parity(&mut self, _now: Instant, _number: u64, _record: &[u8]) {}
    fn restored(&mut self) -> Option<(u64, &[u8])> {
        None
    }
    fn settle_below(&mut self, _number: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_off() {
        let mut none = NoRepair;
        none.parity(Instant::ZERO, 4, b"anything");
        assert_eq!(none.restored(), None);
        assert_eq!((none.asks(), none.held_bytes()), (Asks::NOTHING, 0));
    }
}
