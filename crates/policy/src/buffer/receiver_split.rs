//! The peer's receive buffer in equal parts.
//!
//! Source: Dreibholz, Becke, Rathgeb, Tüxen 2010 (receiver-side buffer splitting). Each of n paths may have one n-th of
//! what the peer can hold outstanding: what is outstanding and what its buffer still takes. No parameters.

use super::{Buffer, Share};
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Buffer> = Policy {
    info: PolicyInfo {
        hook: Hook::Buffer,
        name: "receiver_split",
        source: "Dreibholz, Becke, Rathgeb, Tüxen 2010",
        file: file!(),
        summary: "A path may have its part of the peer's receive buffer outstanding.",
        params: &[],
    },
    build: |_| Box::new(ReceiverSplit),
};

struct ReceiverSplit;

impl Buffer for ReceiverSplit {
    fn allows(&self, s: &Share) -> bool {
        s.fits_receiver()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::share;
    use crate::testing::built;

    #[test]
    fn half_of_what_the_peer_holds() {
        assert!(built(&POLICY, "", 0).allows(&share(9_000, 15_000, 5_000)));
        assert!(!built(&POLICY, "", 0).allows(&share(9_001, 15_000, 5_000)));
    }
}
