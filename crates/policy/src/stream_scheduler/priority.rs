//! Strict priority of streams.
//!
//! Source: RFC 8260 §3.4, SCTP_SS_PRIO. The stream with the best priority that has something to send goes first.
//! A stream's priority is the value that the user gave it, 0 first; without one its number is, or 0 with `first`, as in
//! Linux. Of equals the one whose message waits longest goes first.
//! Parameters: `first`.

use super::{Place, StreamScheduler};
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::StreamView;

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
    fn place(&mut self, first: &StreamView, _least: Option<Place>) -> Place {
        let without = if self.first { 0 } else { first.id.0 };
        Place(first.value.unwrap_or(without).into(), first.head_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Turns, built, stream};
    use anabranch_base::StreamId;

    #[test]
    fn lowest_number_first() {
        let mut p = built(&POLICY, "", 0);
        assert_eq!(Turns::default().next(&mut *p, &[stream(4, 1), stream(3, 2)]), StreamId(3));
        let valued = |id, value| StreamView { value: Some(value), ..stream(id, id.into()) };
        let ready = [valued(4, 1), valued(3, 2), stream(2, 9)];
        assert_eq!(Turns::default().next(&mut *p, &ready), StreamId(4));
        assert_eq!(Turns::default().next(&mut *p, &[valued(4, 7), valued(3, 7)]), StreamId(3), "the older message");
        let mut p = built(&POLICY, "first=1", 0);
        assert_eq!(
            Turns::default().next(&mut *p, &[valued(1, 1), stream(9, 2)]),
            StreamId(9),
            "without a value it is 0"
        );
    }
}
