//! FreeBSD's early fast retransmit.
//!
//! Source: FreeBSD's SCTP stack. While less than a window is in flight a timer of SRTT + 2 RTTVAR, at least 250 ms,
//! runs; when it fires, the newest chunks older than that are sent again, as many as the window allows.
//! Deviation: the original takes one MTU off the window and leaves slow start; here the loss is an ordinary loss and
//! the window policy reacts to it.
//! Parameters: `floor` ms; `initial` ms without a sample (a quarter of the initial timeout).

use super::{LossTimer, Probe};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant};

pub(super) const POLICY: Policy<dyn LossTimer> = Policy {
    info: PolicyInfo {
        hook: Hook::LossTimer,
        name: "early_fast_retransmit",
        source: "FreeBSD SCTP, early fast retransmit timer",
        file: file!(),
        summary: "Marks the newest chunks as lost after SRTT + 2 RTTVAR of silence while the window is not full.",
        params: &[
            ParamInfo::millis("floor", 250, 1, 60_000, "least interval"),
            ParamInfo::millis("initial", 250, 1, 60_000, "interval without a round-trip sample"),
        ],
    },
    build: |p| Box::new(EarlyFastRetransmit::new(p)),
};

struct EarlyFastRetransmit {
    floor: Duration,
    initial: Duration,
}

impl EarlyFastRetransmit {
    fn new(p: &Params) -> Self {
        EarlyFastRetransmit { floor: p.millis("floor"), initial: p.millis("initial") }
    }
    fn interval(&self, path: &PathView) -> Duration {
        if path.srtt.is_zero() { self.initial } else { (path.srtt + path.rttvar * 2).max(self.floor) }
    }
}

impl LossTimer for EarlyFastRetransmit {
    fn deadline(&self, cx: &AssocView<'_>, path: &PathView) -> Option<Instant> {
        (path.in_flight > 0 && path.has_room()).then(|| cx.now + self.interval(path))
    }
    fn expired(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Probe {
        let interval = self.interval(path);
        let (mut bytes, mut n) = (0u64, 0u16);
        for c in outstanding {
            let young = c.last_sent.is_none_or(|t| cx.now - t < interval);
            if young || bytes + path.in_flight > path.cwnd {
                break;
            }
            bytes += c.len;
            n = n.saturating_add(1);
        }
        if n == 0 { Probe::None } else { Probe::MarkNewest(n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};

    fn policy() -> Box<dyn LossTimer> {
        built(&POLICY, "", 0)
    }

    #[test]
    fn interval_and_condition() {
        let mut s = Scene::new(1, 0);
        s.rtt(0, 300).rttvar = ms(20);
        s.paths[0].in_flight = 100;
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(340)));
        s.rtt(0, 30);
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(250)));
        s.close(0);
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), None, "the window is full");
    }

    #[test]
    fn marks_newest_first_within_the_window() {
        let mut s = Scene::new(1, 4);
        for c in &mut s.chunks {
            c.last_sent = Some(s.now - ms(260));
        }
        s.rtt(0, 30).in_flight = 4 * 1_144;
        s.paths[0].cwnd = 6 * 1_144;
        let newest_first = |s: &Scene| s.chunks.clone().into_iter().rev();
        let fire = |s: &Scene| policy().expired(&s.cx(), &s.paths[0], &mut newest_first(s));
        assert_eq!(fire(&s), Probe::MarkNewest(3), "marked and flight exceed the window at the third");
        s.chunks[3].last_sent = Some(s.now - ms(249));
        assert_eq!(fire(&s), Probe::None, "the newest is too young");
    }
}
