//! The window of `bbr`, and no more than a standard one where others fill the queue.
//!
//! Source: ours. A model of the path takes the queue of a greedy neighbour for a part of the path, and holds its rate while
//! the neighbour halves its window at each loss. A loss after the start, while a queue has stood for a second that our own
//! packets do not make, is the sign of such a neighbour. It is such a queue when the shortest of recent round trips is
//! `others` times the shortest one known, exceeds it by four mean deviations, and is 20 ms more than either. From then on
//! the window is at most a standard one's (RFC 9260 §7.2): half of what is in flight, then `growth` of a packet for each
//! window acknowledged, half again at the next such loss. Ten seconds without such a queue end it.
//! The shortest round trip is known for `remembers` seconds and up to twice as long, as a queue that others fill may never
//! empty. In a queue that holds less than half of the shortest round trip it sees no neighbour.
//! What the cause hook puts down to radio is no sign of one. The model hears of it as of congestion, so that its own limit
//! of losses works with any cause hook.
//! Parameters: `gain` as of `bbr`, whose other parameters have their defaults; `others`, `growth`, `remembers`.

use super::{AckOnPath, Window, WindowChange, WindowState, bbr};
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Ppm, Rate};

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "bbr_yielding",
        source: "ours",
        file: file!(),
        summary: "bbr, but at most a standard window where losses show that others fill the queue.",
        params: &[
            ParamInfo::number("gain", 1.5, "of what the path holds", 1.0, 8.0, "window"),
            ParamInfo::number("others", 1.5, "of the shortest", 1.0, 100.0, "round trips that a queue of others makes"),
            ParamInfo::number("growth", 0.65, "packets", 0.05, 4.0, "by which a window acknowledged grows it"),
            ParamInfo::number("remembers", 600.0, "s", 1.0, 86_400.0, "for which the shortest round trip is known"),
        ],
    },
    build: |p| {
        p.touch("gain");
        Box::new(BbrYielding {
            model: (bbr::POLICY.build)(&p.of(&bbr::POLICY.info)),
            others: Ppm(p.ppm("others") as u32),
            growth: Ppm(p.ppm("growth") as u32),
            remembers: p.secs("remembers"),
            shortest: [Duration::MAX; 2],
            shortest_since: Instant::ZERO,
            stands_since: None,
            beside: None,
        })
    },
};

/// Least threshold, packets (RFC 9260 §7.2.3).
const FLOOR: u64 = 4;
/// What bursts of ours add on paths of short round trips.
const BURST: Duration = Duration::from_millis(20);
/// Deviations of round trips from their mean that are no queue.
const VARIES: u64 = 4;
/// A queue of ours has left again after so long.
const STANDS: Duration = Duration::from_secs(1);
/// Without a queue of others for so long, they have gone.
const CLEAR: Duration = Duration::from_secs(10);

struct BbrYielding {
    model: Box<dyn Window>,
    others: Ppm,
    growth: Ppm,
    remembers: Duration,
    /// The shortest round trips of this span of time and of the one before, and when it began.
    shortest: [Duration; 2],
    shortest_since: Instant,
    /// Since when round trips show a queue of others.
    stands_since: Option<Instant>,
    /// Others fill the queue.
    beside: Option<Beside>,
}

/// What a standard window would be.
struct Beside {
    window: u64,
    /// `partial_bytes_acked`.
    partial: u64,
    /// When round trips showed a queue of others last.
    queued_at: Instant,
}

impl BbrYielding {
    fn note_rtt(&mut self, now: Instant, rtt: Duration) {
        if now.since(self.shortest_since) > self.remembers {
            (self.shortest, self.shortest_since) = ([Duration::MAX, self.shortest[0]], now);
        }
        self.shortest[0] = self.shortest[0].min(rtt);
    }
    /// Neither our own packets nor what round trips vary by make them as long as they are.
    fn is_of_others(&self, p: &PathView) -> bool {
        let shortest = self.shortest[0].min(self.shortest[1]);
        if shortest == Duration::MAX {
            return false;
        }
        let ours = Duration::from_nanos(self.others.of(shortest.as_nanos())).max(shortest + p.jitter * VARIES);
        p.recent_rtt > ours + BURST
    }
    /// At most a standard window.
    fn bounded(&self, window: u64) -> u64 {
        self.beside.as_ref().map_or(window, |b| window.min(b.window))
    }
}

impl Beside {
    /// Growth of RFC 9260 §7.2.2.
    fn acked(&mut self, growth: Ppm, mtu: u64, ack: &AckOnPath) {
        self.partial = self.partial.saturating_add(ack.bytes);
        if !ack.fully_used {
            self.partial = self.partial.min(self.window);
        } else if self.partial >= self.window {
            self.partial -= self.window;
            self.window = self.window.saturating_add(growth.of(mtu));
        }
    }
}

impl Window for BbrYielding {
    fn sets_itself(&self) -> bool {
        true
    }
    fn decays_while_idle(&self) -> bool {
        self.model.decays_while_idle()
    }
    fn grows_in_recovery(&self) -> bool {
        self.model.grows_in_recovery()
    }
    fn on_sent(&mut self, now: Instant, tx_seq: u64, me: &PathView) {
        self.model.on_sent(now, tx_seq, me);
    }
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        let Some(p) = cx.path(me) else { return WindowChange::default() };
        let change = self.model.on_ack(cx, me, ack);
        // Those of the handshake and of HEARTBEATs are among them.
        if !p.min_rtt.is_zero() {
            self.note_rtt(cx.now, p.min_rtt);
        }
        let long = self.is_of_others(p);
        self.stands_since = long.then(|| self.stands_since.unwrap_or(cx.now));
        if let Some(b) = &mut self.beside {
            if long {
                b.queued_at = cx.now;
            }
            if !p.in_recovery {
                b.acked(self.growth, p.mtu, ack);
            }
            if cx.now.since(b.queued_at) > CLEAR {
                self.beside = None;
            }
        }
        WindowChange { set: change.set.map(|w| self.bounded(w)), ..change }
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        let heard = if cause == Cause::Radio { Cause::Congestion } else { cause };
        let mut after = self.model.on_loss(cx, me, e, heard);
        // The start of the model makes a queue of several windows by itself.
        let started = p.ssthresh != u64::MAX;
        let cuts = started && (e.new_episode || e.kind == LossKind::Timeout);
        if cuts && cause != Cause::Radio && self.stands_since.is_some_and(|t| cx.now.since(t) >= STANDS) {
            let now = self.beside.as_ref().map_or(p.in_flight + e.bytes, |b| b.window);
            let window = (now.min(p.cwnd) / 2).max(FLOOR * p.mtu);
            self.beside = Some(Beside { window, partial: 0, queued_at: cx.now });
        }
        after.cwnd = self.bounded(after.cwnd);
        after
    }
    fn wants_train(&self) -> bool {
        self.model.wants_train()
    }
    fn on_train(&mut self, now: Instant, me: &PathView) -> Option<u64> {
        self.model.on_train(now, me)
    }
    fn paces(&self) -> bool {
        self.model.paces()
    }
    fn pace(&self, me: &PathView) -> Option<Rate> {
        self.model.pace(me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, loss, ms};

    const MTU: u64 = 1_172;

    struct Flow {
        s: Scene,
        w: Box<dyn Window>,
        seq: u64,
    }

    /// 1 byte per microsecond over 50 ms, seen without a queue.
    fn started() -> Flow {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, 50);
        (p.mean_rtt, p.unloaded_rtt, p.recent_rtt, p.mtu) = (ms(50), ms(50), ms(50), MTU);
        p.capacity = Rate::from_bytes_per_sec(1_000_000);
        let mut f = Flow { s, w: built(&POLICY, "", 1), seq: 0 };
        f.rounds(10, 50);
        f
    }

    impl Flow {
        /// Rounds of a full window, with the queue that makes round trips of `rtt` ms.
        fn rounds(&mut self, n: u64, rtt: u64) {
            for _ in 0..n {
                self.s.now += ms(rtt);
                let p = &mut self.s.paths[0];
                (p.last_rtt, p.recent_rtt) = (ms(rtt), ms(rtt));
                for _ in 0..50 {
                    self.seq += 1;
                    self.w.on_sent(self.s.now, self.seq, &self.s.paths[0]);
                    let ack = AckOnPath { newest_seq: Some(self.seq), rtt: Some(ms(rtt)), ..AckOnPath::of(1_000) };
                    let change = self.w.on_ack(&self.s.cx(), PathId(0), &ack);
                    let p = &mut self.s.paths[0];
                    (p.cwnd, p.ssthresh) = (change.set.unwrap(), change.ssthresh);
                }
                let p = &mut self.s.paths[0];
                p.in_flight = p.cwnd;
            }
        }
        fn lose(&mut self, cause: Cause) -> u64 {
            let e = LossEvent { bytes: MTU, ..loss(0) };
            self.s.paths[0].cwnd = self.w.on_loss(&self.s.cx(), PathId(0), &e, cause).cwnd;
            self.s.paths[0].cwnd
        }
        /// Does a loss leave the window to the model?
        fn keeps(&mut self, cause: Cause) -> bool {
            let before = self.window();
            self.lose(cause) == before
        }
        fn window(&self) -> u64 {
            self.s.paths[0].cwnd
        }
    }

    #[test]
    fn a_loss_without_a_queue_of_others_is_the_models_alone() {
        for rtt in [50, 60, 90] {
            let mut f = started();
            f.rounds(40, rtt);
            assert!(f.keeps(Cause::Congestion), "{rtt} ms");
        }
    }

    #[test]
    fn a_loss_in_a_queue_that_stands_halves_the_window_and_each_further_one_again() {
        for rtt in [100, 150, 400] {
            let mut f = started();
            f.rounds(1_100 / rtt + 2, rtt);
            let before = f.window();
            assert_eq!(f.lose(Cause::Congestion), before / 2, "{rtt} ms");
            f.rounds(1, rtt);
            assert!(f.window() <= before / 2 + MTU, "{rtt} ms");
            let again = f.window();
            assert_eq!(f.lose(Cause::Congestion), (again / 2).max(FLOOR * MTU));
        }
    }

    #[test]
    fn a_queue_that_has_just_come_may_be_ours() {
        let mut f = started();
        f.rounds(5, 150);
        assert!(f.keeps(Cause::Congestion));
    }

    #[test]
    fn what_the_radio_lost_is_no_sign() {
        let mut f = started();
        f.rounds(10, 150);
        assert!(f.keeps(Cause::Radio));
        assert!(!f.keeps(Cause::Congestion));
    }

    #[test]
    fn what_round_trips_vary_by_is_no_queue() {
        for (jitter, keeps) in [(0, false), (10, false), (30, true), (60, true)] {
            let mut f = started();
            f.s.paths[0].jitter = ms(jitter);
            f.rounds(10, 150);
            assert_eq!(f.keeps(Cause::Congestion), keeps, "{jitter} ms");
        }
    }

    #[test]
    fn the_start_is_not_judged() {
        let mut f = started();
        f.rounds(10, 150);
        f.s.paths[0].ssthresh = u64::MAX;
        assert!(f.keeps(Cause::Congestion));
    }

    #[test]
    fn it_grows_by_a_part_of_a_packet_for_each_window_acknowledged() {
        let mut f = started();
        f.rounds(10, 150);
        let at = f.lose(Cause::Congestion);
        let windows = 50_000 / at;
        f.rounds(1, 150);
        assert_eq!(f.window(), at + windows * Ppm(650_000).of(MTU));
    }

    #[test]
    fn ten_seconds_without_such_a_queue_end_it() {
        let mut f = started();
        f.w = built(&POLICY, "growth=0.05", 1);
        f.rounds(10, 50);
        let alone = f.window();
        f.rounds(10, 150);
        let at = f.lose(Cause::Congestion);
        f.rounds(198, 50);
        assert!(f.window() < alone - 10 * MTU, "{} after {at}, {alone} alone", f.window());
        f.rounds(4, 50);
        assert_eq!(f.window(), alone);
    }

    #[test]
    fn a_shortest_round_trip_is_forgotten_after_two_spans() {
        let mut f = started();
        f.w = built(&POLICY, "remembers=2", 1);
        f.rounds(10, 50);
        f.s.paths[0].min_rtt = ms(150);
        f.rounds(40, 150);
        assert!(f.keeps(Cause::Congestion), "the path is longer now");
    }
}
