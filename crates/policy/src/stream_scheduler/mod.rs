//! Which stream's message is cut into chunks next.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::StreamView;
use anabranch_base::StreamId;

/// Position of a stream among those that have something to send: the least is next. Two streams never have the same
/// place when the second number is the order of arrival or the number of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub u128, pub u64);

/// Chooses among streams (RFC 8260 §3).
///
/// The engine keeps them in the order of their places, and asks about one when its first message is another one or less
/// of it is left: what a message costs does not depend on how many streams wait.
pub trait StreamScheduler: Send {
    every_policy!();
    /// The place of the stream with this first message; `least` is the least place of the other streams that wait, none
    /// where no other does.
    fn place(&mut self, first: &StreamView, least: Option<Place>) -> Place;
    /// Is the stream that was taken from last taken from again, whatever its place? Asked only with
    /// [`Asks::PACKETS`](crate::Asks::PACKETS).
    fn goes_on(&self, _first: &StreamView) -> bool {
        false
    }
    /// With [`Asks::PACKETS`](crate::Asks::PACKETS): payload for which the packet at hand has room, bytes, or
    /// none when the next chunk begins one.
    fn packet(&mut self, _room: Option<u64>) {}
    /// `len` bytes of `stream` were taken.
    fn taken(&mut self, _stream: StreamId, _len: u64) {}
    /// A stream that had a place has nothing to send any more.
    fn silent(&mut self, _stream: StreamId) {}
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
