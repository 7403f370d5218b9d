//! The standard retransmission timer.
//!
//! Source: RFC 9260 §6.3. SRTT + 4 RTTVAR between floor and ceiling, doubled at every expiry.
//! Parameters: `rto_min`, `rto_initial`, `rto_max` in ms; and, not of the standard and off, `resume`, which uses a path
//! at once that answers after an expiry, `probe`, packets beyond the window while it does not, `early`, by which the
//! handshake tells both ends the round trip, and `ask`, by which one
//! in so many packets on a path that has lost any lately asks a peer that answers late for an answer at once (RFC 7053).
//! `by_tsn` takes §6.3.2 R3 by the letter and `one_timed` §6.3.1 C4; without them T3 is for what left first, and
//! whatever was sent once and is acknowledged gives a sample. `runs_on` is `by_tsn` as Linux has it, where a fast
//! retransmission of the lowest TSN leaves T3 as it is (§7.2.4 rule 4 would start it anew). `tick` and `karn=0` are
//! clocks and samples of old stacks.

use super::{Arm, Clock, Earliest, Timed, TimerPolicy};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::timer::{EARLY, Limits, PROBE, RESUME, RTO_INITIAL, RTO_MAX, RTO_MIN, Revival};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, Ppm};

pub(super) const POLICY: Policy<dyn TimerPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Timer,
        name: "rfc9260",
        source: "RFC 9260 §6.3",
        file: file!(),
        summary: "SRTT + 4 RTTVAR within limits, doubled at every expiry.",
        params: &[
            RTO_MIN,
            RTO_INITIAL,
            RTO_MAX,
            RESUME,
            PROBE,
            EARLY,
            ParamInfo::count(
                "ask",
                0,
                "packets",
                0,
                1_000,
                "of a path that loses, of which one is answered at once; 0 none",
            ),
            ParamInfo::flag(
                "by_tsn",
                false,
                "T3 is for the lowest TSN outstanding on its path, not for what left first",
            ),
            ParamInfo::flag("runs_on", false, "as by_tsn, but what is sent again leaves T3 as it runs"),
            ParamInfo::flag("one_timed", false, "one chunk of a path is timed at a time, until it is sent again"),
            Clock::TICK,
            Clock::KARN,
        ],
    },
    build: |p| Box::new(Rfc9260::new(p)),
};

struct Rfc9260 {
    limits: Limits,
    revival: Revival,
    ask: u64,
    earliest: Earliest,
    clock: Clock,
}

impl Rfc9260 {
    fn new(p: &Params) -> Self {
        let mut clock = Clock::new(p);
        if p.flag("one_timed") {
            clock.timed = Timed::OneAtATime;
        }
        Rfc9260 {
            limits: Limits::new(p),
            revival: Revival::new(p),
            ask: p.count("ask"),
            earliest: match (p.flag("by_tsn"), p.flag("runs_on")) {
                (_, true) => Earliest::Acknowledged,
                (true, false) => Earliest::LowestTsn,
                (false, false) => Earliest::FirstSent,
            },
            clock,
        }
    }
}

impl TimerPolicy for Rfc9260 {
    fn rto(&self, p: &PathView) -> Duration {
        self.limits.backed_off(self.limits.base(p, self.limits.min), p.backoff)
    }
    fn arm(&self, cx: &AssocView<'_>, p: &PathView, _why: Arm) -> Instant {
        self.clock.up(cx.now + self.rto(p))
    }
    fn earliest(&self) -> Earliest {
        self.earliest
    }
    fn timed(&self) -> Timed {
        self.clock.timed
    }
    fn asks_at_once(&self, p: &PathView, _last: bool) -> bool {
        self.ask > 0 && p.loss > Ppm(0) && p.packets_sent.is_multiple_of(self.ask)
    }
    fn early(&self) -> bool {
        self.revival.early
    }
    fn resumes(&self) -> bool {
        self.revival.resume
    }
    fn probe_interval(&self, p: &PathView) -> Option<Duration> {
        self.revival.probe_interval(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};
    use crate::timer::Arm;

    fn policy() -> Box<dyn TimerPolicy> {
        built(&POLICY, "", 0)
    }

    #[test]
    fn one_in_so_many_packets_asks_where_something_was_lost() {
        let mut s = Scene::new(1, 0);
        let asking = built(&POLICY, "ask=2", 0);
        let mut ask = |loss, sent| {
            (s.paths[0].loss, s.paths[0].packets_sent) = (Ppm(loss), sent);
            (asking.asks_at_once(&s.paths[0], true), policy().asks_at_once(&s.paths[0], true))
        };
        assert_eq!(ask(7_813, 6), (true, false));
        assert_eq!([ask(7_813, 7), ask(0, 6)], [(false, false); 2]);
    }

    #[test]
    fn floor_formula_and_ceiling() {
        let mut s = Scene::new(1, 0);
        assert_eq!(policy().rto(&s.paths[0]), ms(1_000), "initial");
        s.rtt(0, 100);
        assert_eq!(policy().rto(&s.paths[0]), ms(1_000), "floor");
        s.rtt(0, 900).rttvar = ms(200);
        assert_eq!(policy().rto(&s.paths[0]), ms(1_700));
        s.paths[0].backoff = 3;
        assert_eq!(policy().rto(&s.paths[0]), ms(13_600));
        s.paths[0].backoff = 16;
        assert_eq!(policy().rto(&s.paths[0]), ms(60_000), "ceiling");
    }

    #[test]
    fn what_t3_is_for_and_what_is_timed_are_choices() {
        assert_eq!((policy().earliest(), policy().timed()), (Earliest::FirstSent, Timed::Every));
        let other = built(&POLICY, "by_tsn=1,one_timed=1", 0);
        assert_eq!((other.earliest(), other.timed()), (Earliest::LowestTsn, Timed::OneAtATime));
        assert_eq!(built(&POLICY, "runs_on=1", 0).earliest(), Earliest::Acknowledged);
    }

    #[test]
    fn a_clock_that_ticks_fires_late_and_samples_may_be_of_repetitions() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 100);
        let ticking = built(&POLICY, "tick=4,karn=0", 0);
        assert_eq!(ticking.timed(), Timed::Repeated);
        let at = ticking.arm(&s.cx(), &s.paths[0], Arm::Started);
        assert!(
            at.as_nanos().is_multiple_of(ms(4).as_nanos()) && at >= s.now + ms(1_000) && at < s.now + ms(1_004),
            "{at:?}"
        );
        s.now = Instant::from_millis(4_001);
        assert_eq!(ticking.arm(&s.cx(), &s.paths[0], Arm::Started), Instant::from_millis(5_004));
    }

    #[test]
    fn restart_takes_a_whole_timeout_and_expiry_doubles() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 100);
        let why = Arm::Progress { oldest_sent: s.now - ms(400), old_deadline: None };
        assert_eq!(policy().arm(&s.cx(), &s.paths[0], why), s.now + ms(1_000));
        s.paths[0].backoff = 2;
        assert_eq!(policy().expired(&s.paths[0]), 3);
        s.paths[0].backoff = 16;
        assert_eq!(policy().expired(&s.paths[0]), 16);
    }
}
