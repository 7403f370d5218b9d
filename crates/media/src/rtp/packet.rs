//! What a datagram is.

use crate::ts::{PACKET_LEN, SYNC_BYTE};
use rtp_types::RtpPacket;
use std::ops::Range;

/// What a datagram looks like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// RTP around whole packets of a transport stream.
    Stream {
        /// Payload type; 33 by the standard, another one by agreement.
        payload_type: u8,
        /// Who sent it.
        ssrc: u32,
        /// Number of the packet.
        sequence: u16,
        /// Where the transport stream's packets are.
        payload: Range<usize>,
    },
    /// RTP around something else, or around nothing.
    Other {
        /// Payload type.
        payload_type: u8,
        /// Who sent it.
        ssrc: u32,
        /// Number of the packet.
        sequence: u16,
    },
    /// RTCP, which may share the port (RFC 5761 §4).
    Control,
    /// Whole packets of a transport stream, without RTP.
    Plain,
    /// None of these.
    Unknown,
}

/// Whole packets of a transport stream, at least one?
pub fn is_packets(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.len().is_multiple_of(PACKET_LEN)
        && bytes.iter().step_by(PACKET_LEN).all(|b| *b == SYNC_BYTE)
}

/// Looks at a datagram. A transport stream begins with 0x47, which RTP's version 2 never does.
pub fn look(datagram: &[u8]) -> Look {
    if is_packets(datagram) {
        return Look::Plain;
    }
    // RFC 5761 §4: these second bytes are RTCP's.
    if matches!(datagram, [first, 192..=223, ..] if first >> 6 == 2) {
        return Look::Control;
    }
    let Ok(packet) = RtpPacket::parse(datagram) else { return Look::Unknown };
    let (payload_type, ssrc, sequence) = (packet.payload_type(), packet.ssrc(), packet.sequence_number());
    if !is_packets(packet.payload()) {
        return Look::Other { payload_type, ssrc, sequence };
    }
    let from = packet.payload_offset();
    Look::Stream { payload_type, ssrc, sequence, payload: from..from + packet.payload_len() }
}
