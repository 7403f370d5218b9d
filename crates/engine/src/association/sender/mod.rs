//! Everything about the DATA that we send: waiting, in flight, acknowledged, lost, given up.

pub(in crate::association) mod carried;
pub(in crate::association) mod era;
pub(in crate::association) mod give_up;
pub(in crate::association) mod invariants;
pub(in crate::association) mod loss;
pub(in crate::association) mod peer_window;
pub(in crate::association) mod sack;
pub(in crate::association) mod transmit;
pub(in crate::association) mod undelivered;
