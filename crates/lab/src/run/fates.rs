//! What links did to the packets of SCTP, for metrics that put it beside what senders took it for.

use crate::node::SctpPacket;
use anabranch_sim::link::DropReason;
use anabranch_sim::network::{AgentId, Body, Event, Observer, What};

/// Notes every SCTP packet that a link dropped: its sender, its number there, and why.
#[derive(Default)]
pub(super) struct Fates(pub Vec<(AgentId, u32, DropReason)>);

impl Observer<SctpPacket> for Fates {
    fn observe(&mut self, event: Event<'_, SctpPacket>) {
        if let (What::Dropped(why), Body::Other(p)) = (event.what, &event.packet.body) {
            self.0.push((event.packet.from, p.number(), why));
        }
    }
}
