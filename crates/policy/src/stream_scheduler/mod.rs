//! Which stream's message is cut into chunks next.

use crate::registry::Policy;
use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};

/// Chooses among streams (RFC 8260 §3).
pub trait StreamScheduler: Send {
    /// The stream to take the next chunk from; `ready` is never empty.
    fn next(&mut self, now: Instant, ready: &[StreamView]) -> StreamId;
    /// Messages of different streams never share a packet.
    fn one_stream_per_packet(&self) -> bool {
        false
    }
    /// Where [`StreamScheduler::one_stream_per_packet`] holds: payload for which the packet at hand has room, bytes, or
    /// none when the next chunk begins one.
    fn packet(&mut self, _room: Option<u64>) {}
    /// `len` bytes of `stream` were taken.
    fn taken(&mut self, _stream: StreamId, _len: u64) {}
}

/// The stream with the least `key`. `ready` is never empty; stream 0 stands in if it were.
pub(crate) fn least<K: Ord>(ready: &[StreamView], key: impl Fn(&StreamView) -> K) -> StreamId {
    ready.iter().min_by_key(|s| key(s)).map_or(StreamId(0), |s| s.id)
}

pub mod earliest_deadline;
pub mod fair_capacity;
pub mod fcfs;
pub mod frame_importance;
pub mod priority;
pub mod round_robin;
pub mod round_robin_packet;
pub mod weighted_fair;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn StreamScheduler>] = &[
    fcfs::POLICY,
    round_robin::POLICY,
    round_robin_packet::POLICY,
    fair_capacity::POLICY,
    weighted_fair::POLICY,
    priority::POLICY,
    frame_importance::POLICY,
    earliest_deadline::POLICY,
];
