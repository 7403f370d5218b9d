//! One stream in turn for about a packet each.
//!
//! Source: RFC 8260 §3.3, SCTP_SS_RR_PKT. Messages of one stream share packets; the next packet is another stream's.
//! Deviation: a stream stays until it has given `packet` bytes, for which packet a piece leaves in is decided later.
//! Parameters: `packet`.

use super::StreamScheduler;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "round_robin_packet",
        source: "RFC 8260 §3.3",
        file: file!(),
        summary: "A packet's worth of one stream, then of the next by number.",
        params: &[ParamInfo::count("packet", 1_150, "bytes", 1, 65_535, "payload that fills a packet")],
    },
    build: |p| Box::new(RoundRobinPacket::new(p)),
};

struct RoundRobinPacket {
    packet: u64,
    last: StreamId,
    given: u64,
}

impl RoundRobinPacket {
    fn new(p: &Params) -> Self {
        RoundRobinPacket { packet: p.count("packet"), last: StreamId(u16::MAX), given: u64::MAX }
    }
}

impl StreamScheduler for RoundRobinPacket {
    fn next(&mut self, _now: Instant, ready: &[StreamView]) -> StreamId {
        if self.given < self.packet && ready.iter().any(|s| s.id == self.last) {
            return self.last;
        }
        let start = self.last.0.wrapping_add(1);
        super::least(ready, |s| s.id.0.wrapping_sub(start))
    }
    fn taken(&mut self, stream: StreamId, len: u64) {
        let before = if stream == self.last { self.given } else { 0 };
        // A full packet begins anew, also with the same stream.
        let before = if before >= self.packet { 0 } else { before };
        (self.last, self.given) = (stream, before.saturating_add(len));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stream;

    #[test]
    fn a_packet_of_each() {
        let ready = [stream(9, 1), stream(2, 2)];
        let mut p = RoundRobinPacket { packet: 250, last: StreamId(u16::MAX), given: u64::MAX };
        let mut order = Vec::new();
        for _ in 0..8 {
            let s = p.next(Instant::ZERO, &ready);
            p.taken(s, if s.0 == 9 { 300 } else { 100 });
            order.push(s.0);
        }
        assert_eq!(order, [2, 2, 2, 9, 2, 2, 2, 9]);
        assert_eq!(p.next(Instant::ZERO, &[stream(9, 1)]), StreamId(9), "alone it goes on");
    }
}
