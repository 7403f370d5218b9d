//! First come, first served.
//!
//! Source: RFC 8260 §3.1, SCTP_SS_FCFS. Messages leave in the order they were handed over. No parameters.

use super::{Place, StreamScheduler};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;

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
    fn place(&mut self, first: &StreamView, _least: Option<Place>) -> Place {
        Place(0, first.head_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Turns, stream};
    use anabranch_base::StreamId;

    #[test]
    fn earliest_arrival_first() {
        let ready = [stream(0, 7), stream(1, 3), stream(2, 5)];
        assert_eq!(Turns::default().next(&mut Fcfs, &ready), StreamId(1));
    }
}
