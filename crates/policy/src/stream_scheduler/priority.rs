//! Strict priority by stream number.
//!
//! Source: RFC 8260 §3.4, SCTP_SS_PRIO. The stream with the best priority that has something to send goes first.
//! Deviation: a stream's priority is its number, 0 first, because the view carries no separate value; streams
//! of equal importance are better served by `frame_importance`, which reads the class of the message.
//! No parameters.

use super::StreamScheduler;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "priority",
        source: "RFC 8260 §3.4",
        file: file!(),
        summary: "The stream with the lowest number that has something to send.",
        params: &[],
    },
    build: |_| Box::new(Priority),
};

struct Priority;

impl StreamScheduler for Priority {
    fn next(&mut self, _now: Instant, ready: &[StreamView]) -> StreamId {
        super::least(ready, |s| s.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stream;

    #[test]
    fn lowest_number_first() {
        assert_eq!(Priority.next(Instant::ZERO, &[stream(4, 1), stream(3, 2)]), StreamId(3));
    }
}
