//! A stream with something to send.

use anabranch_base::{Instant, StreamId};

/// The head of one stream with something to send.
#[derive(Clone, Copy, Debug)]
pub struct StreamView {
    /// Number of the stream.
    pub id: StreamId,
    /// Priority (0 is the best) or weight that the user gave it (RFC 8260 §4.3.3).
    pub value: Option<u16>,
    /// Class of its first message.
    pub class: u8,
    /// Bytes left of its first message.
    pub head_len: u64,
    /// Deadline of its first message.
    pub head_deadline: Option<Instant>,
    /// When its first message was handed over.
    pub head_queued: Instant,
    /// Order of arrival of its first message over all streams.
    pub head_order: u64,
}

impl StreamView {
    /// A stream with one message of 1,000 bytes, the `order`th that the user handed over, as a starting point for tests.
    pub const fn ready(id: StreamId, order: u64) -> Self {
        StreamView {
            id,
            value: None,
            class: 2,
            head_len: 1_000,
            head_deadline: None,
            head_queued: Instant::from_millis(order),
            head_order: order,
        }
    }
}
