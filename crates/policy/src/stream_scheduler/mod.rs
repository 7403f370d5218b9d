//! Which stream's message is cut into chunks next.

use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};

/// Chooses among streams (RFC 8260 §3).
pub trait StreamScheduler: Send {
    /// The stream to take the next chunk from; `ready` is never empty.
    fn next(&mut self, now: Instant, ready: &[StreamView]) -> StreamId;
    /// `len` bytes of `stream` were taken.
    fn taken(&mut self, _stream: StreamId, _len: u64) {}
}
