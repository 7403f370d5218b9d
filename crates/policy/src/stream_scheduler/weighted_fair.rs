//! Bytes in proportion to weights.
//!
//! Source: RFC 8260 §3.6, SCTP_SS_WFQ. Each stream counts the bytes it has sent, divided by its weight; the smallest
//! count goes first. A stream's weight is the value that the user gave it.
//! Deviations: a stream without a value weighs what the class of its message does, each class `factor` times the next
//! (a class of 0 as much as the value 128, where `factor` is 2). A stream that was silent starts with the smallest count
//! of those now waiting, as with `fair_capacity`.
//! Parameters: `factor`.

use super::{Place, StreamScheduler};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::StreamId;
use std::collections::BTreeMap;

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "weighted_fair",
        source: "RFC 8260 §3.6",
        file: file!(),
        summary: "The waiting stream that has sent the fewest bytes for its weight.",
        params: &[ParamInfo::count("factor", 2, "", 1, 16, "weight of a class by that of the next")],
    },
    build: |p| Box::new(WeightedFair::new(p)),
};

/// Classes beyond this one weigh as much as it.
const LAST_CLASS: u32 = 7;
/// The count of one byte at weight 1: nothing is lost to rounding at the largest weight.
const SCALE: u128 = 1 << 28;

struct WeightedFair {
    factor: u64,
    /// Count and weight of the streams that wait.
    sent: BTreeMap<StreamId, (u128, u64)>,
}

impl WeightedFair {
    fn new(p: &Params) -> Self {
        WeightedFair { factor: p.count("factor"), sent: BTreeMap::new() }
    }
    fn weight(&self, s: &StreamView) -> u64 {
        let of_class = || self.factor.pow(LAST_CLASS - u32::from(s.class).min(LAST_CLASS));
        s.value.map_or_else(of_class, u64::from).max(1)
    }
}

impl StreamScheduler for WeightedFair {
    fn place(&mut self, first: &StreamView, least: Option<Place>) -> Place {
        let weight = self.weight(first);
        let known = self.sent.entry(first.id).or_insert_with(|| (least.map_or(0, |place| place.0), weight));
        known.1 = weight;
        Place(known.0, first.head_order)
    }
    fn taken(&mut self, stream: StreamId, len: u64) {
        if let Some((count, weight)) = self.sent.get_mut(&stream) {
            *count += u128::from(len) * SCALE / u128::from(*weight);
        }
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
    fn bytes_by_weight() {
        let ready = [StreamView { class: 0, ..stream(0, 1) }, StreamView { class: 1, ..stream(1, 2) }];
        let (mut p, mut turns) =
            (WeightedFair { factor: 3, ..WeightedFair::new(&Params::defaults(&POLICY.info, 0)) }, Turns::default());
        let mut bytes = [0; 2];
        for _ in 0..4_000 {
            let s = turns.next(&mut p, &ready);
            let len = if s.0 == 0 { 700 } else { 100 };
            turns.taken(&mut p, s, len);
            bytes[usize::from(s.0)] += len;
        }
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert!((2.9..3.1).contains(&ratio), "{bytes:?}");
    }

    #[test]
    fn values_are_weights() {
        let ready = [StreamView { value: Some(30), ..stream(0, 1) }, StreamView { value: Some(10), ..stream(1, 2) }];
        let (mut p, mut turns) =
            (WeightedFair { factor: 2, ..WeightedFair::new(&Params::defaults(&POLICY.info, 0)) }, Turns::default());
        let mut bytes = [0; 2];
        for _ in 0..4_000 {
            let s = turns.next(&mut p, &ready);
            let len = if s.0 == 0 { 100 } else { 1_000 };
            turns.taken(&mut p, s, len);
            bytes[usize::from(s.0)] += len;
        }
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert!((2.9..3.1).contains(&ratio), "{bytes:?}");
    }

    #[test]
    fn no_class_starves_and_none_overflows() {
        let ready = [StreamView { class: 0, ..stream(0, 1) }, StreamView { class: 255, ..stream(1, 2) }];
        let (mut p, mut turns) =
            (WeightedFair { factor: 16, ..WeightedFair::new(&Params::defaults(&POLICY.info, 0)) }, Turns::default());
        let served = (0..1 << 20).filter(|_| {
            let s = turns.next(&mut p, &ready);
            turns.taken(&mut p, s, u64::MAX >> 40);
            s.0 == 1
        });
        assert!(served.count() > 0);
    }
}
