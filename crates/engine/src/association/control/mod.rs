//! Control chunks that wait to leave, and those of the peer that end or complain.

pub(in crate::association) mod control_in;
pub(in crate::association) mod control_out;
