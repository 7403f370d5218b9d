//! Our send buffer in equal parts.
//!
//! Source: Dreibholz, Becke, Rathgeb, Tüxen 2010 (sender-side buffer splitting). Each of n paths may have one n-th of
//! the send buffer outstanding, so that a slow path cannot keep all of it. No parameters.

use super::{Buffer, Share};
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Buffer> = Policy {
    info: PolicyInfo {
        hook: Hook::Buffer,
        name: "sender_split",
        source: "Dreibholz, Becke, Rathgeb, Tüxen 2010",
        file: file!(),
        summary: "A path may have its part of the send buffer outstanding.",
        params: &[],
    },
    build: |_| Box::new(SenderSplit),
};

struct SenderSplit;

impl Buffer for SenderSplit {
    fn allows(&self, s: &Share) -> bool {
        s.fits_sender()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::share;
    use crate::testing::built;

    #[test]
    fn half_of_the_send_buffer() {
        assert!(built(&POLICY, "", 0).allows(&share(9_000, 9_000, 0)));
        assert!(!built(&POLICY, "", 0).allows(&share(9_001, 9_001, 1_000_000)));
    }
}
