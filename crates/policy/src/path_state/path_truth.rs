//! A path that has fallen silent is left at once, and taken back at once.
//!
//! Source: ours. RFC 7829 waits for a whole timeout, a second or more, before it leaves a path; live media cannot wait
//! so long.
//! A path is suspected when two things hold together. An answer is overdue: the oldest packet in flight was sent more
//! than a round trip and `deviations` mean deviations ago (at least `margin`, at most a second round trip), plus the
//! peer's acknowledgement delay. Since a peer acknowledges every second packet at once (RFC 9260 §6.2), that delay ends
//! when the next packet was sent. And the path is silent: nothing that was sent on it alone has been acknowledged for
//! longer than usual between two answers (twice the mean, since one may be lost, and `deviations`), for half a round
//! trip, and for `min_silence`. So one lost packet among others does not make a path suspected.
//! With fewer than `few` packets in flight, or where copies of what was sent arrived by another path, a HEARTBEAT has
//! to be unanswered as well, for as long as a packet. It leaves when the oldest packet is late, or when its copy
//! leaves.
//! A suspected path gets no new data and frequent probes; its window and error count stay. One answer restores it. T3
//! counts the first error when it expires, and RFC 7829's states follow after `pfmr` errors: a failed path restarts
//! with a small window, which would be too much for a short silence.
//! A path is only left while another active one is idle or has been heard of since: without a better path leaving is no
//! use, and acknowledgements of this path may have been lost on their way by the other.
//! What the path held should not wait until the windows of the others have grown: a path that takes over has room for
//! `takeover` packets, the initial window of RFC 6928; one in use, no further than its threshold. Max.Burst still spreads
//! the packets.
//! Parameters: times in ms; `few`, `takeover` and `pfmr`.

use super::PathStatePolicy;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathState, PathView};
use anabranch_base::{Duration, Instant};

pub(super) const POLICY: Policy<dyn PathStatePolicy> = Policy {
    info: PolicyInfo {
        hook: Hook::PathState,
        name: "path_truth",
        source: "ours",
        file: file!(),
        summary: "Suspects a path once an answer is overdue and nothing else is heard; probes it back quickly.",
        params: &[
            ParamInfo::millis("min_silence", 100, 10, 10_000, "least silence that makes a path suspected"),
            ParamInfo::count("deviations", 8, "mean deviations", 0, 100, "by which a silence exceeds the usual gap"),
            ParamInfo::millis("margin", 60, 1, 10_000, "least time by which an answer is overdue"),
            ParamInfo::millis("ack_delay", 200, 0, 500, "time a peer may take to acknowledge a lone packet"),
            ParamInfo::millis("initial", 1_000, 10, 60_000, "silence without a round-trip sample"),
            ParamInfo::millis(
                "probe",
                200,
                10,
                60_000,
                "time between heartbeats of a suspected path, at least its RTT",
            ),
            ParamInfo::millis("revisit", 1_000, 10, 60_000, "longest time between heartbeats of a path out of use"),
            ParamInfo::count("few", 0, "packets", 0, 100, "with fewer in flight a probe must be unanswered too"),
            ParamInfo::count(
                "takeover",
                10,
                "packets",
                0,
                100,
                "least window of an idle path that takes over; 0 leaves it",
            ),
            ParamInfo::count("pfmr", 2, "errors", 0, 255, "errors tolerated before it is potentially failed"),
        ],
    },
    build: |p| Box::new(PathTruth::new(p)),
};

struct PathTruth {
    min_silence: Duration,
    deviations: u64,
    margin: Duration,
    ack_delay: Duration,
    initial: Duration,
    probe: Duration,
    revisit: Duration,
    few: u32,
    takeover: u32,
    pfmr: u16,
}

impl PathTruth {
    fn new(p: &Params) -> Self {
        PathTruth {
            min_silence: p.millis("min_silence"),
            deviations: p.count("deviations"),
            margin: p.millis("margin"),
            ack_delay: p.millis("ack_delay"),
            initial: p.millis("initial"),
            probe: p.millis("probe"),
            revisit: p.millis("revisit"),
            few: p.count("few") as u32,
            takeover: p.count("takeover") as u32,
            pfmr: p.count("pfmr") as u16,
        }
    }
    /// Of a path that is getting longer the newest samples know before the smoothed one, unless the peer may have delayed
    /// them.
    fn round_trip(&self, p: &PathView) -> Duration {
        if self.ack_delay.is_zero() { p.srtt.max(p.mean_rtt) } else { p.srtt }
    }
    /// How long after a packet left its answer is overdue, apart from what the peer may delay it.
    fn overdue(&self, p: &PathView) -> Duration {
        let rtt = self.round_trip(p);
        let most = rtt.max(self.margin * 4 / 3);
        if p.srtt.is_zero() {
            self.initial
        } else {
            rtt + (p.rtt_deviation * self.deviations).min(most).max(self.margin)
        }
    }
    /// The silence from which on a path is suspected.
    fn silence(&self, p: &PathView) -> Duration {
        let usual = p.answer_gap * 2 + p.answer_gap_var * self.deviations;
        if p.srtt.is_zero() {
            self.initial
        } else {
            usual.min(self.overdue(p)).max(self.round_trip(p) / 2).max(self.min_silence)
        }
    }
}

impl PathStatePolicy for PathTruth {
    fn after_timeout(&self, p: &PathView, max_retrans: u16) -> PathState {
        // T3 may be quicker than silence; it says no less where the answer was overdue too.
        let least = self.silence(p).max(self.overdue(p));
        let silent = |t: Instant| p.last_heard.is_none_or(|h| t.since(h) >= least);
        match super::with_potential_failure(p, self.pfmr, max_retrans) {
            PathState::Active if p.last_timeout.is_some_and(silent) => PathState::Suspected,
            state => state,
        }
    }
    fn leaves_above(&self, max_retrans: u16) -> u16 {
        self.pfmr.min(max_retrans)
    }
    fn heartbeat(&self, p: &PathView, rto: Duration, interval: Duration) -> Option<Duration> {
        let standard = super::standard_heartbeat(p, rto, interval);
        Some(match p.state {
            // Of a path that is silent the newest round trips may be those of a bad moment that is over.
            PathState::Suspected => self.probe.max(p.min_rtt),
            PathState::PotentiallyFailed | PathState::Inactive => standard.min(self.revisit.max(p.min_rtt)),
            PathState::Active | PathState::Unconfirmed => standard,
        })
    }
    fn suspect_at(&self, cx: &AssocView<'_>, p: &PathView) -> Option<Instant> {
        let in_flight = p.oldest_sent.filter(|_| p.in_flight > 0);
        let oldest = in_flight.into_iter().chain(p.unanswered_since).min().filter(|_| p.state.usable())?;
        let better = |o: &PathView| o.in_flight == 0 || o.last_heard.max(o.last_shared) > p.last_heard;
        if !cx.active().any(|o| o.id != p.id && better(o)) {
            return None;
        }
        let lone = oldest + self.ack_delay;
        let acknowledged = p.second_sent.map_or(lone, |s| s.max(oldest).min(lone));
        let overdue = acknowledged + self.overdue(p);
        let silent = p.last_heard.map_or(overdue, |h| overdue.max(h + self.silence(p)));
        let asked = p.asked_at.filter(|_| self.needs_probe(p));
        Some(asked.map_or(silent, |asked| silent.max(asked + self.overdue(p))))
    }
    fn needs_probe(&self, p: &PathView) -> bool {
        let oldest = p.oldest_sent.filter(|_| p.in_flight > 0);
        // What is in flight says nothing where it left later: what left before came, but perhaps by another path.
        let hidden = p.unanswered_since.is_some_and(|u| oldest.is_none_or(|o| u < o));
        hidden || p.packets_in_flight < self.few
    }
    fn ask_at(&self, p: &PathView) -> Option<Instant> {
        let oldest =
            p.oldest_sent.filter(|_| p.in_flight > 0 && p.packets_in_flight < self.few && !p.srtt.is_zero())?;
        let since = p.last_heard.map_or(oldest, |h| oldest.max(h));
        Some(since + self.round_trip(p) + (p.rtt_deviation * 2).max(self.margin / 4))
    }
    fn takeover_packets(&self) -> u32 {
        self.takeover
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn policy() -> PathTruth {
        PathTruth::new(&Params::defaults(&POLICY.info, 0))
    }
    fn scene() -> Scene {
        let mut s = Scene::new(2, 0);
        let now = s.now;
        let p = s.rtt(0, 100);
        (p.rttvar, p.in_flight, p.packets_in_flight) = (ms(10), 5_000, 5);
        (p.oldest_sent, p.second_sent, p.last_heard) = (Some(now - ms(90)), Some(now - ms(80)), Some(now - ms(30)));
        s
    }

    #[test]
    fn an_answer_is_overdue_and_nothing_else_was_heard() {
        let mut s = scene();
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(80)), "overdue: -80 + 100 + 60");
        (s.paths[0].answer_gap, s.paths[0].answer_gap_var) = (ms(40), ms(20));
        assert_eq!(
            policy().suspect_at(&s.cx(), &s.paths[0]),
            Some(s.now + ms(130)),
            "silence: -30 + 100 + 60, less than 2*40 + 8*20"
        );
        s.paths[0].last_heard = Some(s.now - ms(5_000));
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(80)), "overdue: -80 + 100 + 60");
        s.paths[0].rtt_deviation = ms(10);
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(100)), "overdue: -80 + 100 + 8*10");
        s.paths[0].rtt_deviation = ms(30);
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(120)), "overdue: -80 + 2*100");
        s.paths[0].last_heard = None;
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(120)), "never heard");
        s.paths[0].in_flight = 0;
        s.paths[0].unanswered_since = Some(s.now - ms(70));
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(130)), "copies came by the other path");
    }

    #[test]
    fn a_short_round_trip_is_no_reason_to_hurry() {
        let mut s = scene();
        s.rtt(0, 20).rttvar = ms(1);
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(70)), "least silence: -30 + 100");
        s.paths[0].last_heard = Some(s.now - ms(200));
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now), "margin: -80 + 20 + 60");
    }

    #[test]
    fn the_peer_may_delay_its_acknowledgement_of_a_lone_packet() {
        let mut s = scene();
        (s.paths[0].second_sent, s.paths[0].packets_in_flight) = (None, 1);
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(270)), "-90 + 200 + 100 + 60");
        s.paths[0].second_sent = Some(s.now + ms(500));
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(270)), "its timer was quicker");
    }

    #[test]
    fn never_without_data_in_flight_or_an_alternative() {
        let mut s = scene();
        s.paths[0].in_flight = 0;
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), None);
        let mut s = scene();
        s.paths[1].in_flight = 1_000;
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), None, "the other one was heard of less");
        s.paths[1].last_heard = Some(s.now - ms(29));
        assert!(policy().suspect_at(&s.cx(), &s.paths[0]).is_some());
        s.paths[1].state = PathState::PotentiallyFailed;
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), None);
    }

    #[test]
    fn a_short_silence_is_no_failure() {
        let mut s = scene();
        let mut after = |errors| {
            (s.paths[0].state, s.paths[0].errors) = (PathState::Suspected, errors);
            policy().after_timeout(&s.paths[0], 5)
        };
        assert_eq!(after(2), PathState::Suspected);
        assert_eq!(after(3), PathState::PotentiallyFailed);
        assert_eq!(after(6), PathState::Inactive);
    }

    #[test]
    fn a_hasty_timeout_is_no_silence() {
        let mut s = scene();
        s.paths[0].errors = 1;
        assert_eq!(policy().after_timeout(&s.paths[0], 5), PathState::Active, "a heartbeat of an idle path");
        s.paths[0].last_timeout = Some(s.now);
        s.paths[0].last_heard = Some(s.now - ms(159));
        assert_eq!(policy().after_timeout(&s.paths[0], 5), PathState::Active, "100 + 60 were not over");
        s.paths[0].last_heard = Some(s.now - ms(160));
        assert_eq!(policy().after_timeout(&s.paths[0], 5), PathState::Suspected);
    }

    #[test]
    fn quick_probes_while_out_of_use() {
        let mut s = scene();
        let mut beat = |state, rto| {
            s.paths[0].state = state;
            policy().heartbeat(&s.paths[0], ms(rto), ms(30_000)).unwrap().as_millis()
        };
        assert_eq!(beat(PathState::Suspected, 1_000), 200);
        assert_eq!(beat(PathState::PotentiallyFailed, 400), 400);
        assert_eq!(beat(PathState::PotentiallyFailed, 8_000), 1_000);
        assert_eq!(beat(PathState::Inactive, 1_000), 1_000);
        assert_eq!(beat(PathState::Active, 1_000), 31_000);
    }
}
