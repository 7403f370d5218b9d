//! Media for a message transport: a transport stream goes in, messages with class and frame come out, and
//! at the other end a play-out buffer turns what arrived in time back into the stream.
//!
//! ```text
//! file -> pacing::PcrPacer --+
//! clip -> looping::LoopedClip+-> Packetiser -> OutMessage ~~ network ~~> playout::PlayoutBuffer -> bytes
//! pipe -> gate::PcrGate ------+      |
//! UDP ------------------------+      |
//! RTP -> rtp::RtpReceiver ----+      |                       rtp::RtpSender <- playout
//!                                   +-> truth::FrameIndex (reports that see both ends)
//! ```
//!
//! With no loss the output is the input byte for byte, whatever the input is. Nothing here reads a clock, a
//! socket or a file; bytes and instants are handed in, and no input makes it panic or grow without bound.
//!
//! ```
//! use anabranch_base::{Duration, Instant};
//! use anabranch_media::{
//!     DEMO_CLIP, HEADER_LEN, MediaHeader, Packetiser, PacketiserConfig, PlayoutBuffer, PlayoutConfig,
//! };
//!
//! let now = Instant::from_millis(1);
//! let (mut packetiser, mut buffer) =
//!     (Packetiser::new(PacketiserConfig::default()), PlayoutBuffer::new(PlayoutConfig::new(Duration::from_millis(300))));
//! packetiser.push(now, DEMO_CLIP);
//! let end = packetiser.finish(now);
//! while let Some(out) = packetiser.poll_message() {
//!     let header = MediaHeader::decode(&out.message)?;
//!     buffer.insert(now, header, out.message.slice(HEADER_LEN..));
//! }
//! buffer.finish(Some(end));
//!
//! let mut played = Vec::new();
//! while let Some(item) = buffer.poll(now + Duration::from_millis(300)) {
//!     played.extend(item.payload);
//! }
//! assert!(played == DEMO_CLIP);
//! # Ok::<(), anabranch_media::HeaderError>(())
//! ```

mod class;
pub mod classify;
pub mod gate;
mod header;
mod hint;
pub mod looping;
pub mod pacing;
mod packetiser;
pub mod picture;
pub mod playout;
pub mod quality;
pub mod rtp;
mod submission;
pub mod truth;
pub mod ts;

pub use class::Class;
pub use header::{HEADER_LEN, HeaderError, MediaHeader, PARTS_MAX};
pub use hint::MediaHint;
pub use packetiser::{OutMessage, Packetiser, PacketiserConfig, PacketiserStats, StreamEnd};
pub use playout::{
    ClockMode, FrameCounts, FrameOutcome, Inserted, PlayoutBuffer, PlayoutConfig, PlayoutItem, PlayoutStats, StartAt,
};
pub use submission::Submission;

/// Some seconds of video as a transport stream, for demonstrations and tests; `clips/README.md` says what is in it.
pub const DEMO_CLIP: &[u8] = include_bytes!("../clips/demo.ts");
