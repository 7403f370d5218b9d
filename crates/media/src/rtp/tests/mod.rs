//! Over ranges: depths of reordering, wraps, loss, repetition, headers of every shape, other sources, hostile bytes.

mod order;
mod packets;
mod running_on;
mod sending;
mod times;

use super::*;
use crate::ts::PACKET_LEN;
use anabranch_base::Instant;
use bytes::Bytes;
use rtp_types::RtpPacketBuilder;

const SSRC: u32 = 0xa1b2_c3d4;

/// `n` packets of a transport stream which say `number`.
fn packets(n: usize, number: u32) -> Vec<u8> {
    let mut all = vec![0; n * PACKET_LEN];
    for packet in all.chunks_mut(PACKET_LEN) {
        packet[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10]);
        packet[4..8].copy_from_slice(&number.to_be_bytes());
    }
    all
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[4..8].try_into().unwrap())
}

/// One RTP packet.
fn rtp(payload_type: u8, ssrc: u32, sequence: u16, payload: &[u8]) -> Bytes {
    let packet = RtpPacketBuilder::<_, &[u8]>::new()
        .payload_type(payload_type)
        .ssrc(ssrc)
        .sequence_number(sequence)
        .payload(payload)
        .write_vec();
    packet.unwrap().into()
}

/// Packet `sequence` of a stream, which contains its number.
fn packet(ssrc: u32, sequence: u16) -> Bytes {
    rtp(PAYLOAD_TYPE, ssrc, sequence, &packets(1, sequence.into()))
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(10_000 + ms)
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn all(receiver: &mut RtpReceiver) -> Vec<Piece> {
    std::iter::from_fn(|| receiver.poll()).collect()
}

fn numbers(pieces: &[Piece]) -> Vec<u32> {
    pieces.iter().map(|p| number(&p.bytes)).collect()
}
