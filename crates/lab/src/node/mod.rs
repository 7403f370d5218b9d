//! Agents on hosts of the simulated network.
//!
//! [`SctpAgent`] is the engine as one end of one association; [`Watched`] notes what the simulator's own receivers
//! deliver.
//!
//! What it puts on a link are the packets it would put on a wire. The client's `i`-th address and the server's `i`-th
//! are a path; where one side has fewer addresses its last one serves the rest.

mod addresses;
mod application;
mod encoder;
mod headers;
mod packet;
mod pairs;
mod sctp;
mod totals;
mod users;
mod watched;
mod written;

pub(crate) use addresses::ip;
pub use application::{Application, Delivery, Reader, Streams, Unsendable};
pub use encoder::{Dial, Encoder, Follow, Follows};
pub use packet::SctpPacket;
pub use pairs::Pairs;
pub(crate) use sctp::frame_errors;
pub use sctp::{End, SctpAgent, SctpConfig};
pub use totals::Totals;
pub use watched::Watched;
pub use written::{Messages, Writer};

#[cfg(test)]
mod tests;
