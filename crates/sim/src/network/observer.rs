//! An observer sees every packet: the hook for traces and captures.

use super::{LinkId, Packet};
use crate::link::DropReason;
use crate::topology::NodeId;
use anabranch_base::Instant;
use core::any::Any;

/// Where something happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// On a link: one direction of a cable.
    Link(LinkId),
    /// At a host or router.
    Node(NodeId),
}

/// What happened to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// An agent of this host sent it.
    Sent,
    /// It was offered to this link.
    Enqueued,
    /// It left this link's queue and its transmission began.
    Dequeued,
    /// This link dropped it.
    Dropped(DropReason),
    /// It left this link at the far end.
    Arrived,
    /// It reached its agent on this host.
    Received,
    /// Its host dropped it, because it is damaged and a checksum says so.
    Rejected,
    /// No way leads on from this node, or no such agent is here.
    Lost,
}

/// Something that happened to a packet.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a, X> {
    /// Time of the event.
    pub at: Instant,
    /// Link or node where it happened.
    pub place: Place,
    /// Stage of the packet's way that the event marks.
    pub what: What,
    /// The packet.
    pub packet: &'a Packet<X>,
}

/// Watches a [`Network`](super::Network). Watching changes nothing of what happens.
pub trait Observer<X>: Any + Send {
    /// Called for each event, in the order of their times.
    fn observe(&mut self, event: Event<'_, X>);
}
