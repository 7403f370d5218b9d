//! Equal bytes for every stream.
//!
//! Source: RFC 8260 §3.5, SCTP_SS_FC. The stream that has sent the fewest bytes goes first.
//! Deviation: a stream that was silent starts with the smallest count of those now waiting, or it would have the
//! association to itself until it has caught up. No parameters.

use super::StreamScheduler;
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::{Instant, StreamId};
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
    /// Bytes sent by the streams that were waiting at the last decision.
    sent: BTreeMap<StreamId, u64>,
}

impl StreamScheduler for FairCapacity {
    fn next(&mut self, _now: Instant, ready: &[StreamView]) -> StreamId {
        let known = |s: &StreamView| self.sent.get(&s.id).copied();
        let least = ready.iter().filter_map(known).min().unwrap_or(0);
        self.sent = ready.iter().map(|s| (s.id, known(s).unwrap_or(least) - least)).collect();
        super::least(ready, |s| (self.sent.get(&s.id).copied(), s.head_order))
    }
    fn taken(&mut self, stream: StreamId, len: u64) {
        *self.sent.entry(stream).or_default() += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stream;

    #[test]
    fn bytes_not_messages() {
        let ready = [stream(0, 1), stream(1, 2)];
        let mut p = FairCapacity::default();
        let mut order = Vec::new();
        for _ in 0..6 {
            let s = p.next(Instant::ZERO, &ready);
            p.taken(s, if s.0 == 0 { 300 } else { 100 });
            order.push(s.0);
        }
        assert_eq!(order, [0, 1, 1, 1, 0, 1]);
    }

    #[test]
    fn a_newcomer_gets_no_arrears() {
        let mut p = FairCapacity::default();
        for _ in 0..50 {
            assert_eq!(p.next(Instant::ZERO, &[stream(0, 1)]), StreamId(0));
            p.taken(StreamId(0), 1_000);
        }
        let ready = [stream(0, 1), stream(1, 2)];
        let mut served = [0; 2];
        for _ in 0..20 {
            let s = p.next(Instant::ZERO, &ready);
            p.taken(s, 1_000);
            served[usize::from(s.0)] += 1;
        }
        assert!(served[0] >= 9, "{served:?}");
    }
}
