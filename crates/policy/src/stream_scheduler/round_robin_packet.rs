//! One stream in turn for a packet each.
//!
//! Source: RFC 8260 §3.3, SCTP_SS_RR_PKT. A packet carries messages of one stream; the next packet is another stream's.
//! Deviation: where the path scheduler looks ahead, TSNs are given before it is known which packets they leave in. Then
//! streams take turns by message, and a packet still carries one stream. No parameters.

use super::round_robin::Turn;
use super::{Place, StreamScheduler};
use crate::asks::Asks;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::StreamId;

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "round_robin_packet",
        source: "RFC 8260 §3.3",
        file: file!(),
        summary: "A packet of one stream, then one of the next by number.",
        params: &[],
    },
    build: |_| Box::new(RoundRobinPacket::default()),
};

#[derive(Default)]
struct RoundRobinPacket {
    turn: Turn,
    room: Option<u64>,
}

impl StreamScheduler for RoundRobinPacket {
    fn asks(&self) -> Asks {
        Asks::PACKETS
    }
    fn packet(&mut self, room: Option<u64>) {
        self.room = room;
    }
    fn goes_on(&self, first: &StreamView) -> bool {
        self.room.is_some_and(|r| first.head_len <= r)
    }
    fn place(&mut self, first: &StreamView, _least: Option<Place>) -> Place {
        self.turn.place(first.id)
    }
    fn taken(&mut self, stream: StreamId, _len: u64) {
        self.turn.taken(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Turns, stream};

    #[test]
    fn a_packet_of_each() {
        let ready = [stream(9, 1), StreamView { head_len: 400, ..stream(2, 2) }];
        let mut p = RoundRobinPacket::default();
        let (mut order, mut turns) = (Vec::new(), Turns::default());
        let mut room = None;
        for _ in 0..8 {
            p.packet(room);
            let s = turns.next(&mut p, &ready);
            turns.taken(&mut p, s, 0);
            let len = if s.0 == 9 { 1_000 } else { 400 };
            // A packet of 1000 bytes: another stream's message and what does not fit begin the next one.
            let same = order.last() == Some(&s.0);
            room = Some(room.filter(|r| same && *r >= len).unwrap_or(1_000u64) - len);
            order.push(s.0);
        }
        assert_eq!(order, [2, 2, 9, 2, 2, 9, 2, 2]);
        p.packet(Some(0));
        assert_eq!(turns.next(&mut p, &[stream(9, 1)]), StreamId(9), "alone it goes on");
    }
}
