//! What is given as lost, and how that is found out.

pub(in crate::association) mod detection;
pub(in crate::association) mod expiry;
pub(in crate::association) mod packet_drop;
pub(in crate::association) mod probes;
pub(in crate::association) mod resume;
