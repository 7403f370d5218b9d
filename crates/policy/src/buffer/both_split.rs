//! Both buffers in equal parts.
//!
//! Source: Dreibholz, Becke, Rathgeb, Tüxen 2010: `sender_split` and `receiver_split` together. No parameters.

use super::{Buffer, Share};
use crate::registry::{Hook, Policy, PolicyInfo};

pub(super) const POLICY: Policy<dyn Buffer> = Policy {
    info: PolicyInfo {
        hook: Hook::Buffer,
        name: "both_split",
        source: "Dreibholz, Becke, Rathgeb, Tüxen 2010",
        file: file!(),
        summary: "A path may have its part of both buffers outstanding.",
        params: &[],
    },
    build: |_| Box::new(BothSplit),
};

struct BothSplit;

impl Buffer for BothSplit {
    fn allows(&self, s: &Share) -> bool {
        s.fits_sender() && s.fits_receiver()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::share;
    use crate::testing::built;

    #[test]
    fn whichever_is_smaller() {
        assert!(built(&POLICY, "", 0).allows(&share(9_000, 15_000, 5_000)));
        assert!(!built(&POLICY, "", 0).allows(&share(9_001, 15_000, 1_000_000)));
        assert!(!built(&POLICY, "", 0).allows(&share(5_000, 5_000, 5_000)));
    }
}
