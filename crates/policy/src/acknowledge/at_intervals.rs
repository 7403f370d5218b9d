//! At once, but for each path no more often than once in an interval.
//!
//! Source: ours; limiting acknowledgements by time rather than by packets is from Li et al. 2020 (TACK). A SACK for
//! each packet of a fast stream costs the way back several percent of the stream, and both ends more processor time
//! than the data. One in a few milliseconds says as much to a sender that paces and judges losses by time.
//! The first packet after an interval is answered at once, so the newest packet of most SACKs has not waited, and round
//! trips and the rate between two SACKs stay exact. Only when no such packet comes does the last one wait for another
//! half of an interval. A gap waits for `gap_interval` at most. Without gaps, a SACK waits until `packets` have come,
//! as it is large beside a few packets, but no longer than `longest`. Paths whose packets overtake each other leave gaps
//! at every moment, and SACKs that list them all: once SACKs have had their share of what came, they wait for `dear`.
//!
//! Parameters: `interval` ms, least time between two SACKs for data by a path; `gap_interval` ms, the least time while
//! something is missing; `packets` that are worth a SACK where nothing is: with fewer it leaves `longest` ms after the
//! last one; `share` and `gap_share`, bytes of SACKs for a byte of payload without and with gaps, above which one leaves
//! `dear` ms after the last; `quick` ms from the first DATA in which each packet is answered, while the
//! sender finds out what the paths carry.

use super::{AckWhen, Acknowledge, ReceiveView};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use anabranch_base::{Duration, Ppm};

pub(super) const POLICY: Policy<dyn Acknowledge> = Policy {
    info: PolicyInfo {
        hook: Hook::Acknowledge,
        name: "at_intervals",
        source: "ours, after Li et al. 2020",
        file: file!(),
        summary: "At once, but for each path no more often than once in an interval.",
        params: &[
            ParamInfo::millis("interval", 4, 0, 100, "least time between two SACKs for data by a path"),
            ParamInfo::millis("gap_interval", 3, 0, 100, "the same while something is missing"),
            ParamInfo::count("packets", 10, "packets", 1, 1_000, "are worth a SACK where nothing is missing"),
            ParamInfo::millis("longest", 10, 0, 100, "time between two SACKs with fewer"),
            ParamInfo::number("share", 0.008, "of the payload", 0.0, 1.0, "that SACKs may be where nothing is missing"),
            ParamInfo::number("gap_share", 0.022, "of the payload", 0.0, 1.0, "that SACKs may be where something is"),
            ParamInfo::millis("dear", 9, 0, 100, "time between two SACKs once they have had their share"),
            ParamInfo::millis("quick", 2_500, 0, 60_000, "time from the first DATA in which all is answered at once"),
        ],
    },
    build: |p| Box::new(AtIntervals::new(p)),
};

struct AtIntervals {
    interval: Duration,
    gap_interval: Duration,
    packets: u64,
    longest: Duration,
    share: Ppm,
    gap_share: Ppm,
    dear: Duration,
    quick: Duration,
}

impl AtIntervals {
    fn new(p: &Params) -> Self {
        AtIntervals {
            interval: p.millis("interval"),
            gap_interval: p.millis("gap_interval"),
            packets: p.count("packets"),
            longest: p.millis("longest"),
            share: Ppm(p.ppm("share") as u32),
            gap_share: Ppm(p.ppm("gap_share") as u32),
            dear: p.millis("dear"),
            quick: p.millis("quick"),
        }
    }
}

impl Acknowledge for AtIntervals {
    fn decide(&self, v: &ReceiveView) -> AckWhen {
        let quick = v.first_data.is_some_and(|first| v.now.since(first) < self.quick);
        let (interval, share, slack) = if v.gap {
            (self.gap_interval.min(self.interval), self.gap_share, Duration::ZERO)
        } else {
            let few = u64::from(v.packets_since_sack) < self.packets;
            (if few { self.interval.max(self.longest) } else { self.interval }, self.share, self.interval / 2)
        };
        let interval = if v.way_back > share { interval.max(self.dear) } else { interval };
        match v.last_sack.map(|at| at + interval).filter(|next| *next > v.now) {
            Some(next) if !v.duplicates_only && !v.immediate && !quick => AckWhen::By(next + slack),
            _ => AckWhen::Now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::received;
    use anabranch_base::Instant;

    fn policy() -> AtIntervals {
        AtIntervals::new(&Params::defaults(&POLICY.info, 0))
    }

    /// SACKs for 1,000 packets, one in so many microseconds.
    fn sacks(every: u64) -> u64 {
        let (mut sacks, mut last_sack, mut due, mut packets) = (0, None, None, 0);
        for i in 0..1_000 {
            let now = Instant::from_nanos(i * every * 1_000);
            if let Some(at) = due.filter(|at| *at < now) {
                (sacks, last_sack, packets) = (sacks + 1, Some(at), 0);
            }
            packets += 1;
            match policy().decide(&ReceiveView { now, last_sack, ..received(packets) }) {
                AckWhen::Now => (sacks, last_sack, due, packets) = (sacks + 1, Some(now), None, 0),
                AckWhen::By(at) => due = Some(at),
            }
        }
        sacks
    }

    #[test]
    fn sparse_packets_are_answered_at_once_and_dense_ones_in_groups() {
        for every in [10, 100, 300, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 7_000, 12_000, 50_000] {
            let (sacks, span) = (sacks(every), 1_000 * every);
            // Ten packets, but no sooner than 4 ms; or 10 ms, and none later than 12.
            let most = (span / 4_000).min((1_000 / 10).max(span / 10_000)).min(1_000) + 2;
            let least = (span / 12_000).min(1_000).min(span / 4_000).saturating_sub(2);
            assert!((least..=most).contains(&sacks), "every {every} us: {sacks} of {least} to {most}");
        }
    }

    #[test]
    fn what_cannot_wait_does_not() {
        let (p, v) = (policy(), ReceiveView { now: Instant::from_millis(9_000), ..received(1) });
        let soon = ReceiveView { last_sack: Some(v.now), ..v };
        assert_eq!(p.decide(&ReceiveView { last_sack: None, ..v }), AckWhen::Now, "the first");
        assert_eq!(p.decide(&soon), AckWhen::By(v.now + Duration::from_millis(12)));
        assert_eq!(
            p.decide(&ReceiveView { packets_since_sack: 10, ..soon }),
            AckWhen::By(v.now + Duration::from_millis(6))
        );
        assert_eq!(p.decide(&ReceiveView { gap: true, ..soon }), AckWhen::By(v.now + Duration::from_millis(3)));
        assert_eq!(p.decide(&ReceiveView { immediate: true, ..soon }), AckWhen::Now);
        let dear = ReceiveView { way_back: Ppm(10_000), packets_since_sack: 10, ..soon };
        assert_eq!(p.decide(&dear), AckWhen::By(v.now + Duration::from_millis(11)), "more than their share");
        let gap = ReceiveView { gap: true, ..dear };
        assert_eq!(p.decide(&gap), AckWhen::By(v.now + Duration::from_millis(3)), "there they may be more");
        let gap = ReceiveView { way_back: Ppm(30_000), ..gap };
        assert_eq!(p.decide(&gap), AckWhen::By(v.now + Duration::from_millis(9)));
        let first = |ms| Some(v.now - Duration::from_millis(ms));
        assert_eq!(
            p.decide(&ReceiveView { first_data: first(2_499), ..soon }),
            AckWhen::Now,
            "it learns what there is"
        );
        assert_ne!(p.decide(&ReceiveView { first_data: first(2_500), ..soon }), AckWhen::Now);
        assert_eq!(p.decide(&ReceiveView { duplicates_only: true, ..soon }), AckWhen::Now);
    }
}
