//! What links did to the packets of SCTP, for metrics that put it beside what senders took it for; and how often the
//! segments of TCP left, which its agents do not tell.

use crate::metrics::{Departure, Repairs, Truth};
use crate::node::SctpPacket;
use anabranch_base::PathId;
use anabranch_engine::TransmissionCause;
use anabranch_sim::network::{AgentId, Body, Event, Observer, What};
use anabranch_sim::transport::tcp::Segment;
use std::collections::BTreeMap;

/// Notes every SCTP packet that a link dropped or damaged: its sender, its number there, and why it was of no use.
#[derive(Default)]
pub(super) struct Fates(pub Vec<(AgentId, u32, Truth)>);

impl Observer<SctpPacket> for Fates {
    fn observe(&mut self, event: Event<'_, SctpPacket>) {
        let why = match (event.what, &event.packet.body) {
            (What::Dropped(why), _) => why.into(),
            (What::Received, Body::Damaged(_)) => Truth::Damaged,
            _ => return,
        };
        if let Body::Other(p) = event.packet.body.as_sent().0 {
            self.0.push((event.packet.from, p.number(), why));
        }
    }
}

/// Follows the segments with data of the first connection of these senders.
#[derive(Default)]
pub(super) struct Segments(pub BTreeMap<AgentId, Repairs>);

impl Segments {
    /// Begins to follow what a sender sends, for `repairs` to count.
    pub fn follow(&mut self, sender: AgentId, repairs: Repairs) {
        self.0.insert(sender, repairs);
    }
}

impl Observer<SctpPacket> for Segments {
    fn observe(&mut self, event: Event<'_, SctpPacket>) {
        let Body::Tcp(Segment::Data(d)) = event.packet.body.as_sent().0 else { return };
        if d.flow != 0 || d.bytes == 0 || !matches!(event.what, What::Sent | What::Received) {
            return;
        }
        let Some(repairs) = self.0.get_mut(&event.packet.from) else { return };
        // A stream of 2^31 segments is longer than any that is looked at.
        let (number, packet, at) = (d.number as u32, event.packet.number as u32, event.at);
        if event.what == What::Received {
            return repairs.came(number, packet, at);
        }
        // Why it left is not known, and no metric asks for that.
        let cause = TransmissionCause::First;
        repairs.left(&Departure { tsn: number, at, path: PathId::default(), packet, cause, class: 0 });
    }
}
