//! The timer of thin streams: lower floor, no extension, no doubling.
//!
//! Source: Petlund et al. 2009 §5.2 and §5.3. While too few packets are in flight for a fast retransmit the timer is
//! the only repair, so its floor falls to 200 ms, a restart counts from when the now oldest chunk was sent, and an
//! expiry does not double it. Outside that state it is the standard timer at once.
//! Deviations: the sixth thin expiry in a row starts the doubling again, from 1 s. Without a sample the initial
//! timeout stays. `reset=keep_deadline` is the printed arithmetic, which leaves the deadline where it was although
//! its chunk was acknowledged; it repeats needlessly and is there to reproduce the paper.
//! Parameters: `floor`, `linear` and `reset` switch the mechanisms. Not of the paper, and off, are `margin`, `ask` and
//! `learn`, which keep it from repeating what a peer with delayed acknowledgements has; `resume`, which uses a path at
//! once that answers after an expiry; `probe`, packets beyond the window while it does not; `early`, by which the
//! handshake tells both ends the round trip; and `spare`, which leaves in
//! flight at an expiry what cannot have been answered yet (RFC 8985 §6.3): with a low floor that is most of it. `tick` and
//! `karn=0` are clocks and samples of old stacks. The rest are limits in ms.

use super::{Arm, Clock, EARLY, Limits, PROBE, RESUME, RTO_INITIAL, RTO_MAX, Revival, TICK, Timed, TimerPolicy};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::thin::{Needless, Patience, ThinTest};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant};

pub(super) const POLICY: Policy<dyn TimerPolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::Timer,
        name: "thin",
        source: "Petlund et al. 2009 (thin streams), mechanisms 1 to 3",
        file: file!(),
        summary: "While few packets are in flight: lower floor, restart from the oldest chunk, no doubling.",
        params: &[
            ParamInfo::millis("rto_min", 200, 10, 60_000, "floor while thin").not_above("rto_max"),
            ParamInfo::millis("standard_min", 1_000, 10, 60_000, "floor otherwise").not_above("rto_max"),
            RTO_INITIAL,
            RTO_MAX,
            ParamInfo::word("cmp", &["lt", "le"], "thin when packets in flight are lt or le 4/(1 - loss)"),
            ParamInfo::flag("floor", true, "mechanism 1: the lower floor"),
            ParamInfo::word("reset", &["since_sent", "keep_deadline", "standard"], "mechanism 2: what a restart does"),
            ParamInfo::flag("linear", true, "mechanism 3: no doubling"),
            ParamInfo::count("expiries", 6, "", 1, 64, "thin expiries in a row after which doubling starts again"),
            ParamInfo::millis("margin", 0, 0, 1_000, "least time of the timeout above the smoothed round trip"),
            ParamInfo::flag("ask", false, "while thin the peer is asked to answer at once (RFC 7053)"),
            ParamInfo::flag("learn", false, "a repetition that the peer reports as duplicate lengthens the timeout"),
            ParamInfo::flag("spare", false, "an expiry gives up only what should have been answered by then"),
            RESUME,
            PROBE,
            EARLY,
            Clock::TICK,
            Clock::KARN,
        ],
    },
    build: |p| Box::new(Thin::new(p)),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reset {
    SinceSent,
    KeepDeadline,
    Standard,
}

struct Thin {
    test: ThinTest,
    thin_min: Duration,
    limits: Limits,
    linear: bool,
    reset: Reset,
    expiries: u16,
    margin: Duration,
    ask: bool,
    learn: bool,
    spare: bool,
    patience: Patience,
    revival: Revival,
    clock: Clock,
}

impl Thin {
    fn new(p: &Params) -> Self {
        let limits = Limits { min: p.millis("standard_min"), ..Limits::new(p) };
        let lower = p.millis("rto_min");
        Thin {
            test: ThinTest::of(p.word("cmp")),
            thin_min: if p.flag("floor") { lower } else { limits.min },
            limits,
            linear: p.flag("linear"),
            reset: match p.word("reset") {
                "keep_deadline" => Reset::KeepDeadline,
                "standard" => Reset::Standard,
                _ => Reset::SinceSent,
            },
            expiries: p.count("expiries") as u16,
            margin: p.millis("margin"),
            ask: p.flag("ask"),
            learn: p.flag("learn"),
            spare: p.flag("spare"),
            patience: Patience::default(),
            revival: Revival::new(p),
            clock: Clock::new(p),
        }
    }
    /// The limits' base, at least `margin` above the round trip, and patience on top.
    fn base(&self, p: &PathView, floor: Duration) -> Duration {
        let base = self.limits.base(p, floor);
        if p.srtt.is_zero() {
            return base;
        }
        (base.max(p.srtt + self.margin) + self.patience.of(p)).min(self.limits.max)
    }
    fn is_thin(&self, p: &PathView) -> bool {
        self.test.holds(p.packets_in_flight, p.loss)
    }
}

impl TimerPolicy for Thin {
    fn rto(&self, p: &PathView) -> Duration {
        if !self.is_thin(p) {
            return self.limits.backed_off(self.base(p, self.limits.min), p.backoff);
        }
        let base = self.base(p, self.thin_min);
        if !self.linear {
            return self.limits.backed_off(base, p.backoff);
        }
        // What was doubled before the stream became thin is forgotten; what six silences doubled is not.
        if p.consecutive_timeouts < self.expiries || p.backoff == 0 {
            return base;
        }
        self.limits.backed_off(base.max(Duration::from_secs(1)), p.backoff - 1)
    }
    fn arm(&self, cx: &AssocView<'_>, p: &PathView, why: Arm) -> Instant {
        let standard = cx.now + self.rto(p);
        let Arm::Progress { oldest_sent, old_deadline } = why else { return self.clock.up(standard) };
        if !self.is_thin(p) {
            return self.clock.up(standard);
        }
        let wanted = match self.reset {
            Reset::SinceSent => oldest_sent + self.rto(p),
            Reset::KeepDeadline => old_deadline.unwrap_or(standard),
            Reset::Standard => standard,
        };
        self.clock.up(wanted.max(cx.now + TICK))
    }
    fn timed(&self) -> Timed {
        self.clock.timed
    }
    fn asks_at_once(&self, p: &PathView, last: bool) -> bool {
        // What leaves last of many is alone in flight soon.
        self.ask && (last || p.consecutive_timeouts > 0 || self.is_thin(p))
    }
    fn overdue(&self, p: &PathView) -> Option<Duration> {
        // As much later than usual as reordering or the path's variation may make an answer.
        self.spare.then(|| p.srtt + (p.srtt / 4).max(p.rttvar * 4) + self.patience.of(p))
    }
    fn was_needless(&mut self, p: &PathView, needless: Needless) {
        if self.learn {
            self.patience.learn(p, needless);
        }
    }
    fn expired(&mut self, p: &PathView) -> u8 {
        self.patience.repeat(p);
        // This expiry is not among the counted ones yet.
        if self.linear && self.is_thin(p) && p.consecutive_timeouts + 1 < self.expiries {
            return 0;
        }
        p.backoff.saturating_add(1).min(16)
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
    use crate::testing::{Scene, ms};

    fn policy() -> Thin {
        Thin::new(&Params::defaults(&POLICY.info, 0))
    }
    fn scene(packets: u32) -> Scene {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 100).packets_in_flight = packets;
        s
    }

    #[test]
    fn floor_only_below_the_limit() {
        assert_eq!(policy().rto(&scene(3).paths[0]), ms(200));
        assert_eq!(policy().rto(&scene(4).paths[0]), ms(1_000));
        let mut s = scene(3);
        s.rtt(0, 0);
        assert_eq!(policy().rto(&s.paths[0]), ms(1_000), "no sample, no lower floor");
    }

    /// RFC 7053: of a stream that is thin, of the last of many, and after an expiry.
    #[test]
    fn each_reason_to_ask_at_once_is_enough() {
        let asks = |packets, timeouts, last| {
            let mut s = scene(packets);
            s.paths[0].consecutive_timeouts = timeouts;
            Thin { ask: true, ..policy() }.asks_at_once(&s.paths[0], last)
        };
        assert!(asks(3, 0, false), "thin");
        assert!(asks(40, 1, false), "after an expiry");
        assert!(asks(40, 0, true), "the last of many");
        assert!(!asks(40, 0, false));
    }

    #[test]
    fn a_restart_counts_from_the_oldest() {
        let s = scene(2);
        let arm = |reset, age, old| {
            let why = Arm::Progress { oldest_sent: s.now - ms(age), old_deadline: old };
            Thin { reset, ..policy() }.arm(&s.cx(), &s.paths[0], why)
        };
        assert_eq!(arm(Reset::SinceSent, 150, None), s.now + ms(50));
        assert_eq!(arm(Reset::SinceSent, 900, None), s.now + TICK);
        assert_eq!(arm(Reset::KeepDeadline, 10, Some(s.now + ms(30))), s.now + ms(30));
        assert_eq!(arm(Reset::Standard, 150, None), s.now + ms(200));
        let thick = scene(4);
        let why = Arm::Progress { oldest_sent: thick.now - ms(150), old_deadline: None };
        assert_eq!(policy().arm(&thick.cx(), &thick.paths[0], why), thick.now + ms(1_000));
    }

    #[test]
    fn linear_until_the_sixth_silence_then_doubling_from_one_second() {
        let mut s = scene(1);
        let mut seen = Vec::new();
        for k in 0..9 {
            s.paths[0].consecutive_timeouts = k;
            s.paths[0].backoff = policy().expired(&s.paths[0]);
            s.paths[0].consecutive_timeouts = k + 1;
            seen.push(policy().rto(&s.paths[0]).as_millis());
        }
        assert_eq!(seen, [200, 200, 200, 200, 200, 1_000, 2_000, 4_000, 8_000]);
    }

    #[test]
    fn what_may_be_answered_still_is_spared_where_that_is_chosen() {
        let mut s = scene(2);
        assert_eq!(policy().overdue(&s.paths[0]), None);
        let mut t = Thin { spare: true, learn: true, ..policy() };
        s.paths[0].rttvar = ms(2);
        assert_eq!(t.overdue(&s.paths[0]), Some(ms(125)));
        s.paths[0].rttvar = ms(10);
        assert_eq!(t.overdue(&s.paths[0]), Some(ms(140)));
        for _ in 0..2 {
            s.paths[0].packets_sent += 20;
            t.was_needless(&s.paths[0], Needless::AnsweredLate);
        }
        assert_eq!(t.overdue(&s.paths[0]), Some(ms(190)), "a peer that answers late");
    }

    #[test]
    fn thick_doubles_and_becoming_thin_forgets_it() {
        let mut s = scene(9);
        s.paths[0].backoff = policy().expired(&s.paths[0]);
        assert_eq!(policy().rto(&s.paths[0]), ms(2_000));
        s.paths[0].packets_in_flight = 1;
        assert_eq!(policy().rto(&s.paths[0]), ms(200));
    }
}
