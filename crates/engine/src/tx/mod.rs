//! Sending side: messages that wait, and chunks that have a TSN.

mod by_stream;
pub(crate) mod carried;
mod chunk;
pub(crate) mod groups;
pub(crate) mod load;
mod marked;
pub(crate) mod scoreboard;
pub(crate) mod send_queue;
mod sorted;
mod turns;
