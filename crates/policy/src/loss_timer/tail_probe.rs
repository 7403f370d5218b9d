//! The newest chunk once more when a path has been quiet for two round trips.
//!
//! Source: RFC 8985 §7, tail loss probe. The last packets of a burst have nothing behind them that could report
//! their loss; repeating the newest one after two smoothed round trips provokes the report long before T3.
//! Deviations: one probe per silence, where the end of a silence is an unambiguous acknowledgement on that path;
//! none in fast recovery or after a timeout, where T3 and the reports are at work anyway; round trips as the newest
//! samples have them where those are shorter than the smoothed one.
//! Parameters: `ack_delay` ms, the peer's delay for a single packet; `initial` ms, timeout without a sample; `least` ms,
//! shortest timeout, for peers that acknowledge at intervals.

use super::{LossTimer, Probe};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId};

pub(super) const ACK_DELAY: ParamInfo =
    ParamInfo::millis("ack_delay", 200, 0, 500, "added when a single packet is in flight");
pub(super) const INITIAL: ParamInfo =
    ParamInfo::millis("initial", 1_000, 10, 60_000, "timeout without a round-trip sample");
pub(super) const LEAST: ParamInfo = ParamInfo::millis("least", 0, 0, 500, "shortest timeout");

pub(super) const POLICY: Policy<dyn LossTimer> = Policy {
    info: PolicyInfo {
        hook: Hook::LossTimer,
        name: "tail_probe",
        source: "RFC 8985 §7",
        file: file!(),
        summary: "Repeats the newest chunk of a path after two quiet round trips.",
        params: &[ACK_DELAY, INITIAL, LEAST],
    },
    build: |p| Box::new(TailProbe::new(p)),
};

pub(super) struct TailProbe {
    ack_delay: Duration,
    initial: Duration,
    least: Duration,
    /// Paths probed, with what had been heard of them then.
    probed: Vec<(PathId, Option<Instant>)>,
}

impl TailProbe {
    pub fn new(p: &Params) -> Self {
        TailProbe {
            ack_delay: p.millis("ack_delay"),
            initial: p.millis("initial"),
            least: p.millis("least"),
            probed: Vec::new(),
        }
    }
}

/// The smoothed one, or what the newest samples say where that is less: a spike that is over counts no more.
fn round_trip(path: &PathView) -> Duration {
    if path.mean_rtt.is_zero() { path.srtt } else { path.srtt.min(path.mean_rtt) }
}

impl LossTimer for TailProbe {
    fn deadline(&self, cx: &AssocView<'_>, path: &PathView) -> Option<Instant> {
        let probed = self.probed.contains(&(path.id, path.last_heard));
        if path.packets_in_flight == 0 || path.in_recovery || path.consecutive_timeouts > 0 || probed {
            return None;
        }
        let timeout = if path.srtt.is_zero() { self.initial } else { round_trip(path) * 2 };
        let delay = if path.packets_in_flight == 1 { self.ack_delay } else { Duration::ZERO };
        Some(cx.now + (timeout + delay).max(self.least))
    }
    fn expired(
        &mut self,
        _cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Probe {
        if outstanding.next().is_none() {
            return Probe::None;
        }
        self.probed.retain(|(id, _)| *id != path.id);
        self.probed.push((path.id, path.last_heard));
        Probe::Newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn policy() -> TailProbe {
        TailProbe::new(&Params::defaults(&POLICY.info, 0))
    }

    #[test]
    fn two_round_trips_and_the_peers_delay() {
        let mut s = Scene::new(1, 1);
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), None, "nothing in flight");
        s.paths[0].packets_in_flight = 2;
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(1_000)));
        s.rtt(0, 50);
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(100)));
        s.paths[0].packets_in_flight = 1;
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(300)));
        s.paths[0].mean_rtt = ms(10);
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(220)), "it was longer before");
        s.paths[0].in_recovery = true;
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), None);
    }

    #[test]
    fn one_probe_until_something_is_heard() {
        let mut s = Scene::new(2, 1);
        s.rtt(0, 50).packets_in_flight = 1;
        s.rtt(1, 50).packets_in_flight = 1;
        let mut p = policy();
        let chunks = s.chunks.clone();
        assert_eq!(p.expired(&s.cx(), &s.paths[0], &mut chunks.iter().copied()), Probe::Newest);
        assert_eq!(p.deadline(&s.cx(), &s.paths[0]), None);
        assert!(p.deadline(&s.cx(), &s.paths[1]).is_some(), "another path is not affected");
        s.paths[0].last_heard = Some(s.now);
        assert!(p.deadline(&s.cx(), &s.paths[0]).is_some());
        assert_eq!(p.expired(&s.cx(), &s.paths[0], &mut core::iter::empty()), Probe::None);
    }
}
