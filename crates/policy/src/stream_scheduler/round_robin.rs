//! One message of each stream in turn.
//!
//! Source: RFC 8260 §3.2, SCTP_SS_RR. No parameters.

use super::StreamScheduler;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "round_robin",
        source: "RFC 8260 §3.2",
        file: file!(),
        summary: "The next stream by number after the one that was served last.",
        params: &[],
    },
    build: |_| Box::new(RoundRobin { last: u16::MAX }),
};

struct RoundRobin {
    last: u16,
}

impl StreamScheduler for RoundRobin {
    fn next(&mut self, _now: Instant, ready: &[StreamView]) -> StreamId {
        let start = self.last.wrapping_add(1);
        super::least(ready, |s| s.id.0.wrapping_sub(start))
    }
    fn taken(&mut self, stream: StreamId, _len: u64) {
        self.last = stream.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stream;

    #[test]
    fn in_turn() {
        let ready = [stream(9, 1), stream(2, 2), stream(5, 3)];
        let mut p = RoundRobin { last: u16::MAX };
        let mut order = Vec::new();
        for _ in 0..4 {
            let s = p.next(Instant::ZERO, &ready);
            p.taken(s, 100);
            order.push(s.0);
        }
        assert_eq!(order, [2, 5, 9, 2]);
    }
}
