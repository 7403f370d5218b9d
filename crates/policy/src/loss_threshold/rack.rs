//! Lost by time: something sent later was acknowledged, and a reordering window has passed.
//!
//! Source: RFC 8985, adapted to copies on paths. A copy that was overtaken on its path is lost one round trip plus
//! a quarter of the smallest round trip after it left; enough reports shorten the wait to one round trip.
//! Deviations: no adaptive reordering window (no DSACK counting); the round trip is the newest sample, at least the
//! smoothed one, because one packet's sample can be short of the path's queue. A chunk may be repeated by it again.
//! Where round trips vary, packets overtake each other on the way: with `deviations` the round trip is the mean of the
//! newest samples and the window at least so many of their mean deviations, both of which follow the path within a
//! round trip, down as well as up.
//! On a path that keeps the order of packets, however its round trips vary, one that was overtaken is lost: `in_order`
//! reports suffice there without any wait, until ten seconds after a packet came late (RFC 8985 §6.2 step 4 has three and
//! gives up after the first).
//! Parameters: `window` share of the smallest round trip; `reports` that end the extra wait, 0 never; `deviations`;
//! `in_order` reports, 0 never.

use super::{LossThreshold, Verdict};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, CopyView, SackView};
use anabranch_base::{Duration, Ppm};

pub(super) const POLICY: Policy<dyn LossThreshold> = Policy {
    info: PolicyInfo {
        hook: Hook::LossThreshold,
        name: "rack",
        source: "RFC 8985",
        file: file!(),
        summary: "Lost when overtaken and older than a round trip plus a reordering window.",
        params: &[
            ParamInfo::number("window", 0.25, "of min RTT", 0.0, 4.0, "reordering window"),
            ParamInfo::count("reports", 3, "", 0, 255, "reports after which the window is not waited for; 0: never"),
            ParamInfo::count(
                "deviations",
                0,
                "mean deviations",
                0,
                100,
                "least window, beyond the newest mean; 0: none",
            ),
            ParamInfo::count("in_order", 0, "", 0, 255, "reports that suffice where packets keep their order; 0: none"),
        ],
    },
    build: |p| Box::new(Rack::new(p)),
};

struct Rack {
    window: Ppm,
    reports: u8,
    deviations: u64,
    in_order: u8,
}

impl Rack {
    fn new(p: &Params) -> Self {
        Rack {
            window: Ppm(p.ppm("window") as u32),
            reports: p.count("reports") as u8,
            deviations: p.count("deviations"),
            in_order: p.count("in_order") as u8,
        }
    }
}

impl LossThreshold for Rack {
    fn judge(&self, cx: &AssocView<'_>, _sack: &SackView<'_>, copy: &CopyView) -> Verdict {
        let Some(p) = cx.path(copy.path) else { return Verdict::Waiting };
        if self.in_order > 0 && copy.misses >= self.in_order && !p.reorders(cx.now) {
            return Verdict::Lost;
        }
        let enough = self.reports > 0 && copy.misses >= self.reports;
        let rtt = p.last_rtt.max(if self.deviations > 0 { p.mean_rtt } else { p.srtt });
        if rtt.is_zero() {
            return if enough { Verdict::Lost } else { Verdict::Waiting };
        }
        let window = if enough { Duration::ZERO } else { Duration::from_nanos(self.window.of(p.min_rtt.as_nanos())) };
        let window = window.min(p.srtt.max(p.min_rtt)).max(p.jitter * self.deviations);
        let due = copy.sent_at + rtt + window;
        if cx.now >= due { Verdict::Lost } else { Verdict::LostAt(due) }
    }
    fn repeats(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, copy, ms, sack};

    fn rack() -> Rack {
        Rack::new(&Params::defaults(&POLICY.info, 0))
    }

    #[test]
    fn waits_a_quarter_of_the_smallest_round_trip() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 80);
        let mut c = copy(44, 0, 4);
        (c.misses, c.sent_at) = (1, s.now - ms(90));
        assert_eq!(rack().judge(&s.cx(), &sack(None), &c), Verdict::LostAt(s.now + ms(10)));
        c.sent_at = s.now - ms(100);
        assert_eq!(rack().judge(&s.cx(), &sack(None), &c), Verdict::Lost);
    }

    #[test]
    fn three_reports_end_the_extra_wait() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 80);
        let mut c = copy(44, 0, 4);
        (c.misses, c.sent_at) = (3, s.now - ms(80));
        assert_eq!(rack().judge(&s.cx(), &sack(None), &c), Verdict::Lost);
        let patient = Rack { reports: 0, ..rack() };
        assert_eq!(patient.judge(&s.cx(), &sack(None), &c), Verdict::LostAt(s.now + ms(20)));
    }

    #[test]
    fn where_round_trips_vary_it_waits_for_as_long_as_they_do() {
        let longer = Rack { deviations: 4, reports: 0, ..rack() };
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 80);
        // A spike that is over: the smoothed round trip still shows it.
        (p.srtt, p.mean_rtt, p.jitter) = (ms(600), ms(90), ms(10));
        let mut c = copy(44, 0, 4);
        (c.misses, c.sent_at) = (9, s.now - ms(129));
        assert_eq!(longer.judge(&s.cx(), &sack(None), &c), Verdict::LostAt(s.now + ms(1)), "90 + 4 * 10");
        s.paths[0].jitter = ms(1);
        assert_eq!(longer.judge(&s.cx(), &sack(None), &c), Verdict::Lost, "90 + 80 / 4");
    }

    #[test]
    fn a_path_that_keeps_the_order_needs_no_wait_until_it_does_not() {
        let quick = Rack { deviations: 4, reports: 0, in_order: 1, ..rack() };
        let mut s = Scene::new(1, 0);
        s.rtt(0, 80).jitter = ms(10);
        let mut c = copy(44, 0, 4);
        (c.misses, c.sent_at) = (0, s.now - ms(50));
        assert!(matches!(quick.judge(&s.cx(), &sack(None), &c), Verdict::LostAt(_)), "no report");
        c.misses = 1;
        assert_eq!(quick.judge(&s.cx(), &sack(None), &c), Verdict::Lost);
        for (ago, waits) in [(0, true), (9_000, true), (10_000, false)] {
            s.paths[0].overtaken_at = Some(s.now - ms(ago));
            assert_eq!(quick.judge(&s.cx(), &sack(None), &c) != Verdict::Lost, waits, "{ago} ms ago");
        }
    }

    #[test]
    fn without_a_sample_reports_decide() {
        let s = Scene::new(1, 0);
        let mut c = copy(44, 0, 4);
        c.misses = 1;
        assert_eq!(rack().judge(&s.cx(), &sack(None), &c), Verdict::Waiting);
        assert!(rack().repeats());
        (c.misses, c.chunk.fast_retransmitted) = (3, true);
        assert_eq!(rack().judge(&s.cx(), &sack(None), &c), Verdict::Lost);
    }
}
