//! Addresses of either end that come and go: lists of the handshake, and ASCONF (RFC 5061).

pub(in crate::association) mod asconf;
pub(in crate::association) mod asconf_in;
pub(in crate::association) mod listed;
pub(in crate::association) mod own;
