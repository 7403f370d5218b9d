//! Media for a message transport: a transport stream goes in, messages with class and frame come out, and
//! at the other end a play-out buffer turns what arrived in time back into the stream.
//!
//! Nothing here reads a clock, a socket or a file; bytes and instants are handed in.

mod class;
pub mod classify;
mod header;
pub mod looping;
pub mod pacing;
mod packetiser;
pub mod playout;
pub mod truth;
pub mod ts;

pub use class::Class;
pub use header::{HEADER_LEN, HeaderError, MediaHeader, PARTS_MAX};
pub use packetiser::{OutMessage, Packetiser, PacketiserConfig, PacketiserStats, StreamEnd};
pub use playout::{
    ClockMode, FrameCounts, FrameOutcome, Inserted, PlayoutBuffer, PlayoutConfig, PlayoutItem, PlayoutStats, StartAt,
};
