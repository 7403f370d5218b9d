//! What a SACK says about our DATA.

pub(in crate::association) mod ecn;
pub(in crate::association) mod gap_memory;
pub(in crate::association) mod growth;
pub(in crate::association) mod sack_in;
pub(in crate::association) mod t3;
pub(in crate::association) mod tally;
pub(in crate::association) mod verdicts;
