//! Equal bytes for every stream.
//!
//! Source: RFC 8260 §3.5, SCTP_SS_FC. The stream that has sent the fewest bytes goes first.
//! Deviation: a stream that was silent starts with the smallest count of those now waiting, or it would have the
//! association to itself until it has caught up. No parameters.

use super::{Place, StreamScheduler};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::StreamId;
use std::collections::BTreeMap;

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "fair_capacity",
        source: "RFC 8260 §3.5",
        file: file!(),
        summary: "The waiting stream that has sent the fewest bytes.",
        params: &[],
    },
    build: |_| Box::new(FairCapacity::default()),
};

#[derive(Default)]
struct FairCapacity {
    /// Bytes sent by the streams that wait.
    sent: BTreeMap<StreamId, u128>,
}

impl StreamScheduler for FairCapacity {
    fn place(&mut self, first: &StreamView, least: Option<Place>) -> Place {
        let sent = *self.sent.entry(first.id).or_insert_with(|| least.map_or(0, |place| place.0));
        Place(sent, first.head_order)
    }
    fn taken(&mut self, stream: StreamId, len: u64) {
        *self.sent.entry(stream).or_default() += u128::from(len);
    }
    fn silent(&mut self, stream: StreamId) {
        self.sent.remove(&stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Turns, stream};

    #[test]
    fn bytes_not_messages() {
        let ready = [stream(0, 1), stream(1, 2)];
        let mut p = FairCapacity::default();
        let (mut order, mut turns) = (Vec::new(), Turns::default());
        for _ in 0..6 {
            let s = turns.next(&mut p, &ready);
            turns.taken(&mut p, s, if s.0 == 0 { 300 } else { 100 });
            order.push(s.0);
        }
        assert_eq!(order, [0, 1, 1, 1, 0, 1]);
    }

    #[test]
    fn a_newcomer_gets_no_arrears() {
        let (mut p, mut turns) = (FairCapacity::default(), Turns::default());
        for _ in 0..50 {
            assert_eq!(turns.next(&mut p, &[stream(0, 1)]), StreamId(0));
            turns.taken(&mut p, StreamId(0), 1_000);
        }
        let ready = [stream(0, 1), stream(1, 2)];
        let mut served = [0; 2];
        for _ in 0..20 {
            let s = turns.next(&mut p, &ready);
            turns.taken(&mut p, s, 1_000);
            served[usize::from(s.0)] += 1;
        }
        assert!(served[0] >= 9, "{served:?}");
    }
}
