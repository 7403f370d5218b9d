//! Associations of our engine with two foreign Rust stacks: `dcsctp` (Google's, for WebRTC) and
//! `sctp-proto` (str0m's). All three keep no clock and no socket, so both ends run in one process, in virtual time,
//! over a network with seeded loss, duplicates and reordering. Each message says what it is ([`content`]), so both
//! ends know what was lost, doubled, out of order or changed; the network notes which chunks it saw ([`network`]), so
//! a test can tell that an extension was used and not only switched on.
//!
//! The foreign stacks draw their tags and first TSNs from the system: a run repeats in its losses, not byte for byte.

pub mod content;
pub mod dcsctp_peer;
pub mod network;
pub mod ours;
pub mod peer;
pub mod sctp_proto_peer;
pub mod world;

pub use dcsctp_peer::Dcsctp;
pub use network::{Network, Wire};
pub use ours::Ours;
pub use peer::{Note, Outgoing, Peer, Setup};
pub use sctp_proto_peer::SctpProto;
pub use world::{Flow, World};
