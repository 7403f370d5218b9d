//! What talks over a [`Network`](crate::network::Network): datagrams and TCP. Transports from outside are agents like
//! these.

mod counters;
mod datagram;
pub mod mptcp;
pub mod tcp;

pub use counters::FlowCounters;
pub use datagram::{DatagramSink, DatagramSource};
