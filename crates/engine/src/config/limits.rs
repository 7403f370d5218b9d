//! How much an association may hold.

use crate::rx::reassembly::CHUNK_CHARGE;

/// Streams, buffers and paths.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Streams we ask for.
    pub outbound_streams: u16,
    /// Streams we accept.
    pub inbound_streams: u16,
    /// Streams each way that re-configuration may lead to; a peer that wants more is refused (RFC 6525 §5.2.5).
    pub max_streams: u16,
    /// Receive buffer, bytes; announced as a_rwnd. At least 1500 (RFC 9260 §3.3.2).
    pub receive_buffer: usize,
    /// Send buffer, bytes: unsent and outstanding payload, or 256 for each message or chunk where that is more. `send` is
    /// refused above it, and has room again ([`Event::Writable`](crate::Event::Writable)) once a 32nd of it is free, more
    /// than a packet at least; into an empty one goes any message that is not larger.
    pub send_buffer: usize,
    /// Bytes that a received chunk costs the receive buffer beside its payload.
    pub receive_overhead: usize,
    /// Bytes that an outstanding chunk is taken to cost the peer's buffer beside its payload: 0 as in RFC 9260 §6.2.1.
    pub peer_chunk_overhead: u64,
    /// Paths the association may hold; older inactive ones make room.
    pub max_paths: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            outbound_streams: 64,
            inbound_streams: 2_048,
            max_streams: 2_048,
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            receive_overhead: CHUNK_CHARGE,
            peer_chunk_overhead: 0,
            max_paths: 16,
        }
    }
}
