//! Packets with DATA.

pub(in crate::association) mod copies;
pub(in crate::association) mod data;
pub(in crate::association) mod forward_tsn;
pub(in crate::association) mod new;
pub(in crate::association) mod parity;
