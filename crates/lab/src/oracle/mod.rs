//! An oracle: how many frames of a video come whole and in time over these links, if their future is known.
//!
//! [`possible`] is a bound that nothing can exceed, with its proof. [`offline`] is a plan that reaches what it says: each
//! packet has its time and its path, and losses are known beforehand. What a protocol could do better lies between it and
//! the second of them.

mod fates;
mod line;
mod offline;
mod possible;
mod scene;

#[cfg(test)]
mod tests;

pub use line::Line;
pub use offline::{Plan, Sent, offline};
pub use possible::possible;
pub(crate) use scene::{carriage, lines, narrow};

use crate::metrics::Cut;
use anabranch_base::{Duration, Instant};
use anabranch_sim::traffic::FrameClass;

/// A frame to be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// When it was made; no byte of it leaves before.
    pub at: Instant,
    /// Its class.
    pub class: FrameClass,
    /// Its bytes.
    pub bytes: u64,
}

/// How frames become packets. Bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carriage {
    /// How frames are cut into messages.
    pub cut: Cut,
    /// In front of each message or piece of one, which is filled up to a multiple of four; 0 for none.
    pub chunk: u32,
    /// In front of each packet, from the IP header on.
    pub packet: u32,
    /// Largest packet with all its headers.
    pub largest: u32,
    /// Largest packet that could be tried where it grows.
    pub limit: u32,
}

impl Carriage {
    /// Bytes of a message and its chunk's header.
    fn chunk_of(&self, message: u64) -> u64 {
        if self.chunk == 0 { message } else { u64::from(self.chunk) + message.next_multiple_of(4) }
    }

    /// The chunks of a frame, in bytes.
    fn chunks(self, frame: &Frame) -> impl Iterator<Item = u64> {
        let (bytes, most) = (frame.bytes, u64::from(self.cut.packet.max(1)));
        (0..bytes.div_ceil(most)).map(move |i| self.chunk_of(self.cut.message(most.min(bytes - i * most))))
    }
}

/// A video and how long its viewer waits.
#[derive(Clone, Debug)]
pub struct Film {
    /// In the order they are made.
    pub frames: Vec<Frame>,
    /// Each is of use until so long after it was made.
    pub latency: Duration,
    /// How frames are cut into messages, and messages packed, with the headers of both.
    pub carriage: Carriage,
}
