//! Stream re-configuration (RFC 6525).

pub(in crate::association) mod again;
pub(in crate::association) mod answer;
pub(in crate::association) mod refused;
pub(in crate::association) mod request;
