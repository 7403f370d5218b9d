//! First come, first served.
//!
//! Source: RFC 8260 §3.1, SCTP_SS_FCFS. Messages leave in the order they were handed over. No parameters.

use super::StreamScheduler;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "fcfs",
        source: "RFC 8260 §3.1",
        file: file!(),
        summary: "Messages in the order they were handed over.",
        params: &[],
    },
    build: |_| Box::new(Fcfs),
};

struct Fcfs;

impl StreamScheduler for Fcfs {
    fn next(&mut self, _now: Instant, ready: &[StreamView]) -> StreamId {
        super::least(ready, |s| s.head_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stream;

    #[test]
    fn earliest_arrival_first() {
        let ready = [stream(0, 7), stream(1, 3), stream(2, 5)];
        assert_eq!(Fcfs.next(Instant::ZERO, &ready), StreamId(1));
    }
}
