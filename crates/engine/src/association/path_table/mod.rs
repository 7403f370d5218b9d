//! The paths of an association: which there are, how they are probed, and what they carry.

pub(in crate::association) mod heartbeat;
pub(in crate::association) mod members;
pub(in crate::association) mod nonces;
pub(in crate::association) mod path_mtu;
pub(in crate::association) mod rto;
pub(in crate::association) mod silence;
pub(crate) mod train;
