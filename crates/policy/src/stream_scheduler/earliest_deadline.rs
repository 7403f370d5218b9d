//! Earliest deadline first.
//!
//! Source: Liu, Layland 1973, applied to messages. What would be late first leaves first; without a deadline a
//! message comes after all that have one; equal deadlines go by class, then by arrival. No parameters.

use super::{Place, StreamScheduler};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::Instant;

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "earliest_deadline",
        source: "Liu, Layland 1973",
        file: file!(),
        summary: "The message with the earliest deadline, then the most important class.",
        params: &[],
    },
    build: |_| Box::new(EarliestDeadline),
};

struct EarliestDeadline;

impl StreamScheduler for EarliestDeadline {
    fn place(&mut self, first: &StreamView, _least: Option<Place>) -> Place {
        let deadline = first.head_deadline.unwrap_or(Instant::FAR).as_nanos();
        Place(u128::from(deadline) << 8 | u128::from(first.class), first.head_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Turns, stream};
    use anabranch_base::StreamId;

    #[test]
    fn deadline_then_class_then_arrival() {
        let (mut a, mut b, c) = (stream(0, 1), stream(1, 2), stream(2, 0));
        (a.head_deadline, b.head_deadline) = (Some(Instant::from_millis(9)), Some(Instant::from_millis(8)));
        assert_eq!(Turns::default().next(&mut EarliestDeadline, &[a, b, c]), StreamId(1));
        a.head_deadline = b.head_deadline;
        (a.class, b.class) = (1, 0);
        assert_eq!(Turns::default().next(&mut EarliestDeadline, &[a, b, c]), StreamId(1));
        b.class = 1;
        assert_eq!(Turns::default().next(&mut EarliestDeadline, &[a, b, c]), StreamId(0));
    }
}
