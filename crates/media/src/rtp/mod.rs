//! Transport streams in RTP (RFC 3550), payload type 33 (RFC 3551 §6, RFC 2250 §2): received in order and with even
//! times, and sent.
//!
//! ```text
//! datagrams -> recognise::Recogniser (what are they?)
//! datagrams -> RtpReceiver [ packet::look -> reorder::Reorder -> steady::Steadier ] -> Packetiser
//! playout::PlayoutBuffer -> RtpSender -> datagrams
//! ```

mod packet;
mod receiver;
mod recognise;
mod reorder;
mod run_on;
mod sender;
mod steady;

#[cfg(test)]
mod tests;

pub use packet::{Look, is_packets, look};
pub use receiver::{Piece, RtpReceiver, RtpStats};
pub use recognise::{Recogniser, Verdict};
pub use reorder::{Reorder, ReorderStats};
pub use run_on::{RunOn, wider_packets};
pub use sender::{RtpSender, RtpSenderConfig};
pub use steady::Steadier;

use anabranch_base::Duration;

/// Payload type of an MPEG transport stream (RFC 3551 §6, table 5).
pub const PAYLOAD_TYPE: u8 = 33;

/// The port of a session that names none (RFC 3551 §8).
pub const DEFAULT_PORT: u16 = 5_004;

/// How long a missing packet is waited for unless the user names another time.
pub const DEFAULT_WINDOW: Duration = Duration::from_millis(30);

/// Longest time that may be set.
pub const WINDOW_MAX: Duration = Duration::from_secs(2);
