//! A path that has fallen silent is left at once, and taken back at once.
//!
//! Source: ours. RFC 7829 waits for a whole timeout, a second or more, before it looks elsewhere; live media cannot.
//! Data in flight that nothing unambiguous was heard of for two round trips and four variations, at least
//! `min_silence`, makes the path suspected: no new data, quick probes, windows and error count untouched. One answer
//! restores it. Unanswered probes and T3 lead on to RFC 7829's states, after `pfmr` errors: a failed path starts again
//! from a small window, which a short silence does not deserve.
//! Only while another path is active: with nowhere to go, leaving helps nobody. A single packet in flight gets the
//! peer's acknowledgement delay on top.
//! Parameters: times in ms, and `pfmr`.

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
        summary: "Suspects a silent path after about two round trips and probes it back quickly.",
        params: &[
            ParamInfo::millis("min_silence", 150, 10, 10_000, "least silence that makes a path suspected"),
            ParamInfo::millis("ack_delay", 200, 0, 500, "added when a single packet is in flight"),
            ParamInfo::millis("initial", 1_000, 10, 60_000, "silence without a round-trip sample"),
            ParamInfo::millis(
                "probe",
                200,
                10,
                60_000,
                "time between heartbeats of a suspected path, at least its RTT",
            ),
            ParamInfo::millis("revisit", 1_000, 100, 60_000, "longest time between heartbeats of a path out of use"),
            ParamInfo::count("pfmr", 2, "errors", 0, 255, "errors tolerated before it is potentially failed"),
        ],
    },
    build: |p| Box::new(PathTruth::new(p)),
};

struct PathTruth {
    min_silence: Duration,
    ack_delay: Duration,
    initial: Duration,
    probe: Duration,
    revisit: Duration,
    pfmr: u16,
}

impl PathTruth {
    fn new(p: &Params) -> Self {
        PathTruth {
            min_silence: p.millis("min_silence"),
            ack_delay: p.millis("ack_delay"),
            initial: p.millis("initial"),
            probe: p.millis("probe"),
            revisit: p.millis("revisit"),
            pfmr: p.count("pfmr") as u16,
        }
    }
    fn patience(&self, p: &PathView) -> Duration {
        let usual = if p.srtt.is_zero() { self.initial } else { p.srtt * 2 + p.rttvar * 4 };
        let delay = if p.packets_in_flight <= 1 { self.ack_delay } else { Duration::ZERO };
        usual.max(self.min_silence) + delay
    }
}

impl PathStatePolicy for PathTruth {
    fn after_timeout(&self, p: &PathView, max_retrans: u16) -> PathState {
        super::with_potential_failure(p, self.pfmr, max_retrans)
    }
    fn heartbeat(&self, p: &PathView, rto: Duration, interval: Duration) -> Option<Duration> {
        let standard = super::standard_heartbeat(p, rto, interval);
        Some(match p.state {
            PathState::Suspected => self.probe.max(p.srtt),
            PathState::PotentiallyFailed | PathState::Inactive => standard.min(self.revisit.max(p.srtt)),
            PathState::Active | PathState::Unconfirmed => standard,
        })
    }
    fn suspect_at(&self, cx: &AssocView<'_>, p: &PathView) -> Option<Instant> {
        let oldest = p.oldest_sent.filter(|_| p.in_flight > 0 && p.state.usable())?;
        let elsewhere = cx.active().any(|o| o.id != p.id);
        let progress = p.last_heard.map_or(oldest, |h| h.max(oldest));
        elsewhere.then(|| progress + self.patience(p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn policy() -> PathTruth {
        PathTruth {
            min_silence: ms(150),
            ack_delay: ms(200),
            initial: ms(1_000),
            probe: ms(200),
            revisit: ms(1_000),
            pfmr: 2,
        }
    }
    fn scene() -> Scene {
        let mut s = Scene::new(2, 0);
        let now = s.now;
        let p = s.rtt(0, 100);
        (p.rttvar, p.in_flight, p.packets_in_flight) = (ms(10), 5_000, 5);
        (p.oldest_sent, p.last_heard) = (Some(now - ms(90)), Some(now - ms(30)));
        s
    }

    #[test]
    fn silence_counts_from_the_last_progress() {
        let mut s = scene();
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(210)), "-30 + 2*100 + 4*10");
        s.paths[0].last_heard = Some(s.now - ms(5_000));
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(150)), "idle before it sent");
        s.rtt(0, 20).rttvar = ms(1);
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(60)), "least silence");
        s.paths[0].packets_in_flight = 1;
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), Some(s.now + ms(260)), "the peer may delay its SACK");
    }

    #[test]
    fn never_without_data_in_flight_or_an_alternative() {
        let mut s = scene();
        s.paths[0].in_flight = 0;
        assert_eq!(policy().suspect_at(&s.cx(), &s.paths[0]), None);
        let mut s = scene();
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
