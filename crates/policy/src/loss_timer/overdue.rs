//! What is overdue while few packets are in flight leaves once more, before T3 would say so.
//!
//! Source: ours, after RFC 8985 (time instead of reports) and Petlund et al. 2009 (the thin test). Where messages are
//! rare nothing behind a lost packet reports it, and T3 is a bad judge of a single packet: it has a floor because an
//! expiry says that the path failed, backs off, and shrinks the window. So while the thin test holds each packet has a
//! time of its own, SRTT and two RTTVAR after it left, at least `margin` later than SRTT. When it is over the packet
//! counts as lost and its chunks are sent again, wherever the policy of retransmissions wants them; the window hears of a
//! loss, and neither T3's back-off nor the path's state of a failure. A path of which nothing is heard meanwhile gets
//! this `repeats` times in a row; then it is T3's turn. Answers that come late make the time longer, which is forgotten
//! slowly (`Patience` in `thin.rs`). With more in flight it is the tail probe of RFC 8985 §7.
//! Parameters: `margin` ms, `deviations`, `repeats`, `cmp` of the thin test, and those of `tail_probe`.

use super::tail_probe::TailProbe;
use super::{LossTimer, Probe, tail_probe};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::thin::{Needless, Patience, ThinTest};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId};

pub(super) const POLICY: Policy<dyn LossTimer> = Policy {
    info: PolicyInfo {
        hook: Hook::LossTimer,
        name: "overdue",
        source: "ours, after RFC 8985 and Petlund et al. 2009",
        file: file!(),
        summary: "While few packets are in flight each is sent again one round trip and its variation after it left.",
        params: &[
            ParamInfo::millis("margin", 5, 1, 1_000, "least time above the smoothed round trip"),
            ParamInfo::count("deviations", 2, "RTTVAR", 1, 16, "time above the smoothed round trip where it varies"),
            ParamInfo::count("repeats", 4, "times", 1, 64, "in a row without an answer, before T3 decides"),
            ParamInfo::word("cmp", &["lt", "le"], "thin when packets in flight are lt or le 4/(1 - loss)"),
            tail_probe::ACK_DELAY,
            tail_probe::INITIAL,
            tail_probe::LEAST,
        ],
    },
    build: |p| Box::new(Overdue::new(p)),
};

/// A path that has been silent since something on it was overdue.
#[derive(Clone, Copy, Debug)]
struct Silence {
    path: PathId,
    heard: Option<Instant>,
    times: u64,
}

struct Overdue {
    test: ThinTest,
    margin: Duration,
    deviations: u64,
    repeats: u64,
    tail: TailProbe,
    silent: Vec<Silence>,
    patience: Patience,
}

impl Overdue {
    fn new(p: &Params) -> Self {
        Overdue {
            test: ThinTest::of(p.word("cmp")),
            margin: p.millis("margin"),
            deviations: p.count("deviations"),
            repeats: p.count("repeats"),
            tail: TailProbe::new(p),
            silent: Vec::new(),
            patience: Patience::default(),
        }
    }
    fn is_thin(&self, path: &PathView) -> bool {
        !path.srtt.is_zero() && self.test.holds(path.packets_in_flight, path.loss)
    }
    /// How old a packet is when it is overdue.
    fn age(&self, path: &PathView) -> Duration {
        let margin = self.margin.max(path.rttvar * self.deviations);
        path.srtt + margin + self.patience.of(path)
    }
    fn times(&self, path: &PathView) -> u64 {
        self.silent.iter().find(|s| s.path == path.id && s.heard == path.last_heard).map_or(0, |s| s.times)
    }
}

impl LossTimer for Overdue {
    fn deadline(&self, cx: &AssocView<'_>, path: &PathView) -> Option<Instant> {
        if !self.is_thin(path) {
            return self.tail.deadline(cx, path);
        }
        let oldest = path.oldest_sent.filter(|_| path.packets_in_flight > 0 && path.consecutive_timeouts == 0)?;
        (self.times(path) < self.repeats).then(|| (oldest + self.age(path)).max(cx.now))
    }
    fn expired(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Probe {
        if !self.is_thin(path) {
            return self.tail.expired(cx, path, outstanding);
        }
        let times = self.times(path) + 1;
        self.silent.retain(|s| s.path != path.id);
        self.silent.push(Silence { path: path.id, heard: path.last_heard, times });
        self.patience.repeat(path);
        Probe::MarkOverdue(self.age(path))
    }
    fn was_needless(&mut self, path: &PathView, needless: Needless) {
        self.patience.learn(path, needless);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    fn policy() -> Overdue {
        Overdue::new(&Params::defaults(&POLICY.info, 1))
    }
    /// One packet of 100 ms round trip left 20 ms ago.
    fn scene() -> Scene {
        let mut s = Scene::new(1, 1);
        let left = s.now - ms(20);
        let p = s.rtt(0, 100);
        (p.packets_in_flight, p.in_flight, p.oldest_sent) = (1, 100, Some(left));
        p.rttvar = Duration::ZERO;
        s
    }
    fn fire(p: &mut Overdue, s: &Scene) -> Probe {
        p.expired(&s.cx(), &s.paths[0], &mut s.chunks.clone().into_iter())
    }

    #[test]
    fn a_packet_is_overdue_a_round_trip_and_its_variation_after_it_left() {
        for (rtt, rttvar, expected) in [(100, 0, 105_000), (100, 4, 108_000), (20, 0, 25_000), (300, 3, 306_000)] {
            let mut s = scene();
            s.rtt(0, rtt).rttvar = ms(rttvar);
            let at = s.paths[0].oldest_sent.unwrap() + Duration::from_micros(expected);
            assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(at.max(s.now)), "{rtt} ms, {rttvar} ms");
            assert_eq!(fire(&mut policy(), &s), Probe::MarkOverdue(Duration::from_micros(expected)));
        }
    }

    #[test]
    fn with_more_in_flight_it_is_the_tail_probe() {
        let mut s = scene();
        s.paths[0].packets_in_flight = 4;
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(200)));
        assert_eq!(fire(&mut policy(), &s), Probe::Newest);
        s.paths[0].packets_in_flight = 3;
        assert!(matches!(fire(&mut policy(), &s), Probe::MarkOverdue(_)));
    }

    #[test]
    fn t3_decides_without_a_sample_after_an_expiry_and_after_some_repeats() {
        let mut s = scene();
        s.paths[0].consecutive_timeouts = 1;
        assert_eq!(policy().deadline(&s.cx(), &s.paths[0]), None);
        s.paths[0].consecutive_timeouts = 0;
        let mut p = policy();
        for _ in 0..4 {
            assert!(p.deadline(&s.cx(), &s.paths[0]).is_some());
            fire(&mut p, &s);
        }
        assert_eq!(p.deadline(&s.cx(), &s.paths[0]), None);
        s.paths[0].last_heard = Some(s.now);
        assert!(p.deadline(&s.cx(), &s.paths[0]).is_some(), "the path answers again");
        s.rtt(0, 0);
        assert_eq!(p.deadline(&s.cx(), &s.paths[0]), Some(s.now + ms(1_200)), "the tail probe without a sample");
    }

    #[test]
    fn late_answers_lengthen_it() {
        let mut s = scene();
        let mut p = policy();
        let before = p.age(&s.paths[0]);
        fire(&mut p, &s);
        for _ in 0..2 {
            s.paths[0].packets_sent += 20;
            p.was_needless(&s.paths[0], Needless::AnsweredLate);
        }
        assert_eq!(p.age(&s.paths[0]), before + ms(50));
    }
}
