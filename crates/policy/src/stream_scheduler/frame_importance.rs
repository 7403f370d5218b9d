//! Most important class first, in order of arrival inside a class.
//!
//! Source: Cheng, Shih, Ke, Zhou 2011 classify I, P and B frames.
//! Deviation: the paper sends new data in display order and reorders retransmissions only; when the paths carry less
//! than the source offers, new data has to be chosen by importance as well. No parameters.

use super::{Place, StreamScheduler};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "frame_importance",
        source: "ours, after Cheng, Shih, Ke, Zhou 2011 (media streams)",
        file: file!(),
        summary: "The most important class first, in order of arrival inside a class.",
        params: &[],
    },
    build: |_| Box::new(FrameImportance),
};

struct FrameImportance;

impl StreamScheduler for FrameImportance {
    fn place(&mut self, first: &StreamView, _least: Option<Place>) -> Place {
        Place(first.class.into(), first.head_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Turns, stream};
    use anabranch_base::StreamId;

    #[test]
    fn class_before_arrival() {
        let (mut i, mut b) = (stream(0, 9), stream(2, 1));
        (i.class, b.class) = (0, 2);
        assert_eq!(Turns::default().next(&mut FrameImportance, &[b, i]), StreamId(0));
        i.class = 2;
        assert_eq!(Turns::default().next(&mut FrameImportance, &[b, i]), StreamId(2));
    }
}
