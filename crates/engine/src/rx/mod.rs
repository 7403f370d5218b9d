//! Receiving side: which TSNs are here, and messages out of fragments and streams.

pub(crate) mod reassembly;
pub(crate) mod tsn_tracker;
