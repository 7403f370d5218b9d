//! No path has a part of its own.
//!
//! Source: RFC 9260 §6.1: the buffers are the association's. No parameters.

use super::{Buffer, Share};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Buffer> = Policy {
    info: PolicyInfo {
        hook: Hook::Buffer,
        name: "shared",
        source: "RFC 9260 §6.1",
        file: file!(),
        summary: "All paths share both buffers: first come, first served.",
        params: &[],
    },
    build: |_| Box::new(Shared),
};

struct Shared;

impl Buffer for Shared {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn allows(&self, _s: &Share) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::share;
    use crate::testing::built;

    #[test]
    fn everything_fits() {
        assert!(built(&POLICY, "", 0).allows(&share(20_000, 20_000, 0)));
    }
}
