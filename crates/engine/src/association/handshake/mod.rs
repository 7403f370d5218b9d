//! From INIT to the end: handshake, restart, shutdown, and what both ends agreed on.

pub(crate) mod announced;
pub(in crate::association) mod authentication;
pub(in crate::association) mod birth;
pub(in crate::association) mod control_timer;
pub(in crate::association) mod init;
pub(crate) mod restart;
pub(in crate::association) mod shutdown;
pub(in crate::association) mod state;
