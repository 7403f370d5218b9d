//! A transport stream as RTP packets (RFC 2250 §2).
//!
//! - Up to seven whole packets of the stream go into one of RTP: with its headers that fits 1,500 bytes. Bytes that
//!   are no whole packet have no place in RTP and are left out.
//! - The time stamp, 90 kHz, is the instant at which the bytes are played out: the time at which the packet is meant
//!   to leave, as §2 has it. It never falls.
//! - The marker bit says that time stamps do not continue the earlier ones. That is so where another source begins:
//!   at the first packet, and wherever [`RtpSender::begin`] is called.
//! - RTCP is not sent. Receivers need it to relate several RTP streams, or for the sender's wall clock; this stream
//!   is alone and has its clock inside.

use super::PAYLOAD_TYPE;
use crate::ts::{PACKET_LEN, Piece, Splitter};
use anabranch_base::Instant;
use bytes::{Buf, BytesMut};
use rtp_types::RtpPacketBuilder;

/// Transport stream packets in one of RTP.
const MOST: usize = 7;

/// Settings of an [`RtpSender`]. RFC 3550 §5.1 wants source, first number and first time stamp to be random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpSenderConfig {
    /// Payload type, below 128. By the standard 33.
    pub payload_type: u8,
    /// Name of the source.
    pub ssrc: u32,
    /// Number of the first packet.
    pub sequence: u16,
    /// Time stamp of instant zero.
    pub timestamp: u32,
}

impl Default for RtpSenderConfig {
    fn default() -> Self {
        RtpSenderConfig { payload_type: PAYLOAD_TYPE, ssrc: 0, sequence: 0, timestamp: 0 }
    }
}

/// Makes RTP packets. Feed it with [`push`](RtpSender::push) and then take packets until there is none.
pub struct RtpSender {
    config: RtpSenderConfig,
    sequence: u16,
    due: Instant,
    marker: bool,
    splitter: Splitter,
    stream: BytesMut,
    packet: Vec<u8>,
    left_out: u64,
}

impl RtpSender {
    /// One that has sent nothing.
    pub fn new(config: RtpSenderConfig) -> Self {
        RtpSender {
            config,
            sequence: config.sequence,
            due: Instant::ZERO,
            marker: true,
            splitter: Splitter::new(),
            stream: BytesMut::new(),
            packet: Vec::new(),
            left_out: 0,
        }
    }

    /// What comes now is another stream.
    pub fn begin(&mut self) {
        self.marker = true;
        self.left_out += self.splitter.pending() as u64;
        self.splitter = Splitter::new();
    }

    /// Takes in the next bytes of the stream, which are played out at `due`.
    pub fn push(&mut self, due: Instant, bytes: &[u8]) {
        self.due = self.due.max(due);
        if self.splitter.pending() == 0 && super::is_packets(bytes) {
            self.stream.extend_from_slice(bytes);
            return;
        }
        self.splitter.push(bytes);
        while let Some(piece) = self.splitter.poll_now() {
            match piece {
                Piece::Packet(packet) => self.stream.extend_from_slice(&packet),
                Piece::Raw(bytes) => self.left_out += bytes.len() as u64,
            }
        }
    }

    /// The next packet to send.
    pub fn poll(&mut self) -> Option<&[u8]> {
        if self.stream.is_empty() {
            return None;
        }
        let len = self.stream.len().min(MOST * PACKET_LEN);
        self.packet.clear();
        let written = RtpPacketBuilder::<_, &[u8]>::new()
            .payload_type(self.config.payload_type & 0x7f)
            .ssrc(self.config.ssrc)
            .sequence_number(self.sequence)
            .timestamp(self.timestamp())
            .marker_bit(self.marker)
            .payload(self.stream.get(..len).unwrap_or(&[]))
            .write_into_vec(&mut self.packet);
        self.stream.advance(len);
        debug_assert!(written.is_ok(), "every field is in range");
        self.sequence = self.sequence.wrapping_add(1);
        self.marker = false;
        Some(&self.packet)
    }

    /// Bytes that were no whole packet.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn timestamp(&self) -> u32 {
        let ticks = u128::from(self.due.as_nanos()) * 9 / 100_000;
        self.config.timestamp.wrapping_add(ticks as u32)
    }
}
