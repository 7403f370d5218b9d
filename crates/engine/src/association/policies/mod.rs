//! The policies of an association, and what they are shown.

pub(in crate::association) mod facts;
pub(in crate::association) mod scratch;
pub(in crate::association) mod set;
mod timeouts;
pub(in crate::association) mod views;
