//! What became of a stream: two recordings of it, one from before the network and one from behind, compared frame
//! by frame.
//!
//! ```text
//! SENT ------> Recording::push --> Recording ----+
//!                                                +--> Comparison (frames, classes) --> shown() --> Shown (stalls)
//! RECEIVED --> Recording::push --> Recording ----+
//! ```
//!
//! Packets of a transport stream cross the network unchanged, so they are found again by what is in them: a frame is
//! whole when all of its packets came, wherever else the two recordings differ.

mod clock;
#[cfg(test)]
mod clock_tests;
mod compare;
mod recording;
mod stalls;
#[cfg(test)]
mod tests;

pub use compare::{CompareError, Comparison, FrameResult, FrameState};
pub use recording::{Frame, Recording};
pub use stalls::{Shown, Stall};
