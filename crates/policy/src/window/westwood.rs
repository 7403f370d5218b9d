//! Westwood+: the threshold after a loss is the measured rate times the smallest round trip.
//!
//! Source: Grieco, Mascolo 2004 (Westwood+). Once per round trip, at least 50 ms, the acknowledged bytes give a rate
//! sample, smoothed by 7/8. A loss sets the threshold to rate times smallest round trip instead of half the window, so
//! a random loss on a path without a queue costs nothing; a timeout sets the same threshold.
//! Deviation: a round in which the window was never full cannot lower the estimate, because it measured the
//! application; in slow start, where the rate doubles every round, a larger sample is taken as it is, or the first
//! loss would set the window to a fraction of the pipe. The decay of an idle window lowers no threshold, so that a path
//! in reserve grows by slow start when it takes over. Without an estimate RFC 9260 applies; so it does for growth.
//! Not friendly towards flows that halve: leave it off on shared bottlenecks.
//! Parameters: `floor` packets of the threshold; `round` ms, least length of a round.

use super::{AckOnPath, Reaction, Window, WindowChange, WindowState, after, half, reaction, standard_growth};
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Rate};

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "westwood",
        source: "Grieco, Mascolo 2004 (Westwood+)",
        file: file!(),
        summary: "Growth as RFC 9260; a loss sets the window to measured rate times smallest round trip.",
        params: &[
            ParamInfo::count("floor", 2, "packets", 1, 64, "least threshold"),
            ParamInfo::millis("round", 50, 1, 10_000, "least length of a measuring round"),
        ],
    },
    build: |p| Box::new(Westwood::new(p)),
};

struct Westwood {
    floor: u64,
    least_round: Duration,
    round: Option<Round>,
    rate: Option<Rate>,
}

#[derive(Clone, Copy)]
struct Round {
    start: Instant,
    acked: u64,
    window_was_full: bool,
}

impl Westwood {
    fn new(p: &Params) -> Self {
        Westwood { floor: p.count("floor"), least_round: p.millis("round"), round: None, rate: None }
    }
    fn measure(&mut self, now: Instant, p: &PathView, ack: &AckOnPath) {
        let fresh = Round { start: now, acked: 0, window_was_full: false };
        // The first acknowledgement only starts the clock: its bytes were under way before.
        let Some(mut round) = self.round else {
            self.round = Some(fresh);
            return;
        };
        round.acked = round.acked.saturating_add(ack.acked);
        round.window_was_full |= ack.fully_used;
        let length = now - round.start;
        if length < self.least_round.max(p.srtt) {
            self.round = Some(round);
            return;
        }
        let sample = Rate::of(round.acked, length).bytes_per_sec();
        self.rate = Some(match self.rate.map(Rate::bytes_per_sec) {
            None => Rate::from_bytes_per_sec(sample),
            Some(old) if sample < old && !round.window_was_full => Rate::from_bytes_per_sec(old),
            Some(old) if sample > old && p.in_slow_start() => Rate::from_bytes_per_sec(sample),
            Some(old) => Rate::from_bytes_per_sec(old - old / 8 + sample / 8),
        });
        self.round = Some(fresh);
    }
    fn threshold(&self, p: &PathView) -> u64 {
        let pipe = self.rate.map(|r| r.bytes_in(p.min_rtt)).filter(|&b| b > 0);
        pipe.map_or_else(|| half(p), |b| b.max(self.floor * p.mtu))
    }
}

impl Window for Westwood {
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        let Some(p) = cx.path(me) else { return WindowChange::default() };
        if ack.acked > 0 {
            self.measure(cx.now, p, ack);
        }
        standard_growth(p, ack)
    }
    fn idle_threshold(&self, cwnd: u64, ssthresh: u64) -> u64 {
        // It comes from a measured rate, or for a path that never lost anything.
        cwnd.max(ssthresh)
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        let reaction = reaction(e, cause);
        if reaction == Reaction::Restart {
            self.round = None;
        }
        let ssthresh = self.threshold(p);
        after(reaction, p, ssthresh, p.cwnd.min(ssthresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_cause::LossKind;
    use crate::testing::{Scene, loss, ms};

    fn policy() -> Westwood {
        Westwood::new(&Params::defaults(&POLICY.info, 0))
    }
    /// Acknowledges `bytes` every 10 ms for `n` times.
    fn run(s: &mut Scene, w: &mut Westwood, n: u32, bytes: u64, full: bool) {
        for _ in 0..n {
            s.now += ms(10);
            let ack = AckOnPath { bytes, acked: bytes, fully_used: full, ..AckOnPath::default() };
            w.on_ack(&s.cx(), PathId(0), &ack);
        }
    }
    fn scene() -> Scene {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 100);
        (p.cwnd, p.min_rtt, p.in_flight) = (200_000, ms(80), 1);
        s
    }

    #[test]
    fn a_loss_sets_the_window_to_the_pipe() {
        let (mut s, mut w) = (scene(), policy());
        run(&mut s, &mut w, 31, 10_000, true);
        // 10000 per 10 ms over 80 ms.
        let state = w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert_eq!((state.cwnd, state.ssthresh), (80_000, 80_000));
        s.paths[0].cwnd = 50_000;
        let state = w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert_eq!((state.cwnd, state.ssthresh), (50_000, 80_000), "never upwards");
        let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        let state = w.on_loss(&s.cx(), PathId(0), &timeout, Cause::Congestion);
        assert_eq!((state.cwnd, state.ssthresh), (1_172, 80_000));
    }

    #[test]
    fn before_an_estimate_it_halves_and_the_floor_is_two_packets() {
        let (mut s, mut w) = (scene(), policy());
        let state = w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert_eq!(state.cwnd, 100_000);
        run(&mut s, &mut w, 31, 10, true);
        let state = w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert_eq!(state.cwnd, 2 * 1_172);
    }

    #[test]
    fn smoothing_and_the_application_limit() {
        let (mut s, mut w) = (scene(), policy());
        run(&mut s, &mut w, 11, 10_000, true);
        assert_eq!(w.rate.unwrap().bytes_per_sec(), 1_000_000);
        run(&mut s, &mut w, 10, 2_000, false);
        assert_eq!(w.rate.unwrap().bytes_per_sec(), 1_000_000, "the application was the limit");
        run(&mut s, &mut w, 10, 2_000, true);
        assert_eq!(w.rate.unwrap().bytes_per_sec(), 900_000);
        s.paths[0].ssthresh = 1;
        run(&mut s, &mut w, 10, 20_000, false);
        assert_eq!(w.rate.unwrap().bytes_per_sec(), 900_000 - 112_500 + 250_000, "more is always news");
        s.paths[0].ssthresh = u64::MAX;
        run(&mut s, &mut w, 10, 20_000, true);
        assert_eq!(w.rate.unwrap().bytes_per_sec(), 2_000_000, "slow start outruns the mean");
    }

    #[test]
    fn growth_is_the_standard_one() {
        let (s, mut w) = (scene(), policy());
        let ack = AckOnPath { bytes: 3_000, acked: 3_000, fully_used: true, ..AckOnPath::default() };
        assert_eq!(w.on_ack(&s.cx(), PathId(0), &ack).grow, 1_172);
    }
}
