//! Strict priority of streams.
//!
//! Source: RFC 8260 §3.4, SCTP_SS_PRIO. The stream with the best priority that has something to send goes first.
//! A stream's priority is the value that the user gave it, 0 first; without one its number is, or 0 with `first`, as in
//! Linux. Of equals the one whose message waits longest goes first.
//! Parameters: `first`.

use super::StreamScheduler;
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "priority",
        source: "RFC 8260 §3.4",
        file: file!(),
        summary: "The stream with the lowest value, or else number, that has something to send.",
        params: &[ParamInfo::flag("first", false, "a stream without a value has the value 0")],
    },
    build: |p| Box::new(Priority { first: p.flag("first") }),
};

struct Priority {
    first: bool,
}

impl StreamScheduler for Priority {
    fn next(&mut self, _now: Instant, ready: &[StreamView]) -> StreamId {
        let without = |s: &StreamView| if self.first { 0 } else { s.id.0 };
        super::least(ready, |s| (s.value.unwrap_or(without(s)), s.head_order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stream;

    #[test]
    fn lowest_number_first() {
        let mut p = Priority { first: false };
        assert_eq!(p.next(Instant::ZERO, &[stream(4, 1), stream(3, 2)]), StreamId(3));
        let valued = |id, value| StreamView { value: Some(value), ..stream(id, id.into()) };
        let ready = [valued(4, 1), valued(3, 2), stream(2, 9)];
        assert_eq!(p.next(Instant::ZERO, &ready), StreamId(4));
        assert_eq!(p.next(Instant::ZERO, &[valued(4, 7), valued(3, 7)]), StreamId(3), "the older message");
        let mut p = Priority { first: true };
        assert_eq!(p.next(Instant::ZERO, &[valued(1, 1), stream(9, 2)]), StreamId(9), "without a value it is 0");
    }
}
