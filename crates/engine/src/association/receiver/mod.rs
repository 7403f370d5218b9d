//! DATA from the peer.

pub(in crate::association) mod data_in;
pub(in crate::association) mod i_data_in;
