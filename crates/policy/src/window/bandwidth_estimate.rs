//! The threshold from a bandwidth estimate made once per round trip.
//!
//! Source: Cheng, Shih, Ke, Zhou 2011 §III, eq. 1 and 2. A round ends when the packet last sent at its start is
//! acknowledged. Its window over its round-trip time and the rate at which its acknowledgements came in are mixed by
//! how much of the round the sending took; the mean of that, times the smallest round trip, is the threshold after
//! losses and at the end of slow start.
//! Deviations: bytes are counted, not acknowledgements, because a delayed SACK covers several packets; the window of
//! a round is what was in flight at its start; gaps longer than half a round trip are left out. The mean is 0.8/0.2; in
//! slow start a larger sample replaces it.
//! `mu=printed` multiplies by RTTmin/RTT, which understates the rate under queueing. `startup=always` applies the
//! threshold after every round of slow start as printed, which ends it in the first round without a queue; the
//! default waits until all packets of a round show one. No estimate yet: RFC 9260. Not friendly towards flows that halve.
//! The paper lets nothing decay while a path is idle, nor is it done here: what takes over from a path that fell silent
//! would begin with four packets. The first loss brings the window to the estimate.
//! Parameters: `mu`, `startup`, `floor` packets of the threshold.

use super::{AckOnPath, Window, WindowChange, WindowState, after, half, reaction, standard_growth};
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Rate};
use std::collections::VecDeque;

pub(super) const POLICY: Policy<dyn Window> = Policy {
    info: PolicyInfo {
        hook: Hook::Window,
        name: "bandwidth_estimate",
        source: "Cheng, Shih, Ke, Zhou 2011 (media streams), bandwidth estimation",
        file: file!(),
        summary: "Growth as RFC 9260; the threshold is a bandwidth estimate times the smallest round trip.",
        params: &[
            ParamInfo::word("mu", &["w_over_t", "printed"], "rate of the window: w/t, or w*RTTmin/t^2 as printed"),
            ParamInfo::word("startup", &["queue", "always", "never"], "when slow start takes the threshold"),
            ParamInfo::count("floor", 2, "packets", 1, 64, "least threshold"),
        ],
    },
    build: |p| Box::new(BandwidthEstimate::new(p)),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Startup {
    Queue,
    Always,
    Never,
}

/// One measuring round.
#[derive(Clone, Copy)]
struct Round {
    /// The packet whose acknowledgement ends it.
    until: u64,
    /// Bytes in flight at its start.
    window: u64,
    first_sent: Option<Instant>,
    last_sent: Instant,
    acked: u64,
    gaps: Duration,
    /// Smallest round trip of a packet that was acknowledged in it.
    least: Option<Duration>,
}

struct BandwidthEstimate {
    printed: bool,
    startup: Startup,
    floor: u64,
    newest_sent: Option<u64>,
    last_ack: Option<Instant>,
    round: Option<Round>,
    /// w/t of the last ten rounds, bytes/s, against acknowledgement compression.
    plain: VecDeque<u64>,
    /// Bytes per second.
    estimate: Option<u64>,
}

impl BandwidthEstimate {
    fn new(p: &Params) -> Self {
        BandwidthEstimate {
            printed: p.word("mu") == "printed",
            startup: match p.word("startup") {
                "always" => Startup::Always,
                "never" => Startup::Never,
                _ => Startup::Queue,
            },
            floor: p.count("floor"),
            newest_sent: None,
            last_ack: None,
            round: None,
            plain: VecDeque::with_capacity(11),
            estimate: None,
        }
    }
    fn start_round(&mut self, now: Instant, window: u64) {
        self.round = self.newest_sent.map(|until| Round {
            until,
            window,
            first_sent: None,
            last_sent: now,
            acked: 0,
            gaps: Duration::ZERO,
            least: None,
        });
    }
    /// Bytes per second measured by a finished round of length `t`; none leaves the estimate.
    fn sample(&mut self, r: &Round, t: Duration, p: &PathView) -> Option<u64> {
        let plain = Rate::of(r.window, t).bytes_per_sec();
        if self.plain.len() == 10 {
            self.plain.pop_front();
        }
        self.plain.push_back(plain);
        if r.gaps.is_zero() || r.acked == 0 {
            return None;
        }
        let scale = |n: u64, a: Duration, b: Duration| {
            (u128::from(n) * u128::from(a.as_nanos()) / u128::from(b.as_nanos().max(1))) as u64
        };
        let mu = if self.printed { scale(plain, p.min_rtt.min(t), t) } else { plain };
        let cap = self.plain.iter().copied().max().unwrap_or(0).saturating_mul(2);
        let by_acks = Rate::of(r.acked, r.gaps).bytes_per_sec().min(cap);
        // Share of the round that sending took.
        let spent = r.first_sent.map_or(Duration::ZERO, |f| r.last_sent - f).min(t);
        Some(scale(mu, spent, t) + scale(by_acks, t - spent, t))
    }
    fn end_round(&mut self, r: &Round, t: Duration, p: &PathView) {
        if let Some(new) = self.sample(r, t, p) {
            self.estimate = Some(match self.estimate {
                Some(old) if new < old || !p.in_slow_start() => old - old / 5 + new / 5,
                _ => new,
            });
        }
    }
    /// The estimated pipe, bytes.
    fn pipe(&self, p: &PathView) -> Option<u64> {
        let bytes = Rate::from_bytes_per_sec(self.estimate?).bytes_in(p.min_rtt);
        (bytes > 0).then(|| bytes.max(self.floor * p.mtu))
    }
}

impl Window for BandwidthEstimate {
    fn decays_while_idle(&self) -> bool {
        false
    }
    fn on_sent(&mut self, now: Instant, tx_seq: u64, me: &PathView) {
        self.newest_sent = Some(tx_seq);
        match &mut self.round {
            Some(r) => {
                r.first_sent.get_or_insert(now);
                r.last_sent = now;
            }
            None => self.start_round(now, me.in_flight),
        }
    }
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange {
        let Some(p) = cx.path(me) else { return WindowChange::default() };
        let mut change = standard_growth(p, ack);
        if ack.acked == 0 {
            return change;
        }
        let gap = self.last_ack.map(|t| cx.now - t);
        self.last_ack = Some(cx.now);
        let Some(mut r) = self.round else { return change };
        r.least = r.least.into_iter().chain(ack.rtt).min();
        if let Some(gap) = gap.filter(|&g| g <= p.srtt / 2) {
            r.acked += ack.acked;
            r.gaps += gap;
        }
        self.round = Some(r);
        if ack.newest_seq.is_none_or(|s| s < r.until) {
            return change;
        }
        let t = ack.rtt.unwrap_or(p.last_rtt);
        if !t.is_zero() && !p.min_rtt.is_zero() {
            self.end_round(&r, t, p);
            // Of all its packets: the answer to the last one may have waited for a companion.
            let queue = r.least.unwrap_or(t) > p.min_rtt + p.min_rtt / 4;
            let applies = self.startup == Startup::Always || self.startup == Startup::Queue && queue;
            if let Some(pipe) = self.pipe(p).filter(|_| p.in_slow_start() && applies) {
                change.ssthresh = pipe;
            }
        }
        self.start_round(cx.now, p.in_flight);
        change
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        let Some(p) = cx.path(me) else { return WindowState::default() };
        match self.pipe(p) {
            Some(pipe) => after(reaction(e, cause), p, pipe, p.cwnd.min(pipe)),
            None => after(reaction(e, cause), p, half(p), half(p)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_cause::LossKind;
    use crate::testing::{Scene, loss, ms};

    const CHUNK: u64 = 1_000;

    fn policy(printed: bool, startup: Startup) -> BandwidthEstimate {
        let mut w = BandwidthEstimate::new(&Params::defaults(&POLICY.info, 1));
        (w.printed, w.startup) = (printed, startup);
        w
    }
    /// A path that always has `flight` packets out and gets one acknowledged every `every` ms, which releases the
    /// next; `n` acknowledgements with a round trip of `rtt`.
    fn smooth(s: &mut Scene, w: &mut BandwidthEstimate, n: u64, flight: u64, every: u64, rtt: u64) {
        s.paths[0].in_flight = flight * CHUNK;
        s.paths[0].last_rtt = ms(rtt);
        let first = w.newest_sent.map_or(0, |s| s + 1);
        for seq in first..first + flight {
            w.on_sent(s.now, seq, &s.paths[0]);
        }
        for seq in first..first + n {
            s.now += ms(every);
            let ack = AckOnPath { bytes: CHUNK, acked: CHUNK, newest_seq: Some(seq), ..AckOnPath::default() };
            w.on_ack(&s.cx(), PathId(0), &ack);
            w.on_sent(s.now, seq + flight, &s.paths[0]);
        }
    }
    fn scene(rtt: u64) -> Scene {
        let mut s = Scene::new(1, 0);
        let p = s.rtt(0, rtt);
        (p.cwnd, p.ssthresh) = (60_000, 50_000);
        s
    }

    #[test]
    fn finds_the_rate_of_a_steady_path() {
        // 20 packets in flight, one every 5 ms, 100 ms: 200 kB/s; the pipe is 20 kB.
        let (mut s, mut w) = (scene(100), policy(false, Startup::Queue));
        smooth(&mut s, &mut w, 400, 20, 5, 100);
        let got = w.estimate.unwrap();
        assert!((190_000..=210_000).contains(&got), "{got}");
        let state = w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert!((19_000..=21_000).contains(&state.cwnd) && state.cwnd == state.ssthresh, "{state:?}");
        let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
        assert_eq!(w.on_loss(&s.cx(), PathId(0), &timeout, Cause::Congestion).cwnd, 1_172);
        assert_eq!(w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Radio).cwnd, 60_000);
    }

    #[test]
    fn printed_mu_understates_under_queueing() {
        // 40 packets at the same rate: the round trip is 200 ms, half of it queue.
        let run = |printed| {
            let (mut s, mut w) = (scene(100), policy(printed, Startup::Queue));
            smooth(&mut s, &mut w, 800, 40, 5, 200);
            w.estimate.unwrap()
        };
        let (plain, printed) = (run(false), run(true));
        assert!((190_000..=210_000).contains(&plain), "{plain}");
        assert!(printed < 130_000, "{printed}");
    }

    #[test]
    fn without_an_estimate_rfc_9260_holds() {
        let (s, mut w) = (scene(100), policy(false, Startup::Queue));
        let state = w.on_loss(&s.cx(), PathId(0), &loss(0), Cause::Congestion);
        assert_eq!((state.cwnd, state.ssthresh), (30_000, 30_000));
    }

    #[test]
    fn slow_start_ends_by_a_queue_or_as_printed() {
        let threshold = |startup, rtt, last| {
            let (mut s, mut w) = (scene(100), policy(false, startup));
            (s.paths[0].cwnd, s.paths[0].ssthresh) = (10_000, u64::MAX);
            smooth(&mut s, &mut w, 60, 20, 5, rtt);
            let until = w.round.unwrap().until;
            let ack = |seq, rtt| {
                let ack = AckOnPath { bytes: CHUNK, acked: CHUNK, newest_seq: Some(seq), ..AckOnPath::default() };
                AckOnPath { rtt: Some(ms(rtt)), ..ack }
            };
            w.on_ack(&s.cx(), PathId(0), &ack(until - 1, rtt));
            s.now += ms(5);
            w.on_ack(&s.cx(), PathId(0), &ack(until, rtt + last)).ssthresh
        };
        assert_eq!(threshold(Startup::Queue, 100, 0), u64::MAX);
        assert_eq!(threshold(Startup::Queue, 100, 200), u64::MAX, "a delayed SACK is no queue");
        assert!(threshold(Startup::Queue, 130, 0) < 30_000);
        assert!(threshold(Startup::Always, 100, 0) < 30_000);
        assert_eq!(threshold(Startup::Never, 200, 0), u64::MAX);
    }

    #[test]
    fn compressed_acknowledgements_do_not_inflate_it() {
        let (mut s, mut w) = (scene(100), policy(false, Startup::Queue));
        smooth(&mut s, &mut w, 400, 20, 5, 100);
        let before = w.estimate.unwrap();
        // One round whose acknowledgements all come within 2 ms.
        for seq in 400..420 {
            s.now += Duration::from_micros(100);
            let ack = AckOnPath { bytes: CHUNK, acked: CHUNK, newest_seq: Some(seq), ..AckOnPath::default() };
            w.on_ack(&s.cx(), PathId(0), &ack);
        }
        assert!(w.estimate.unwrap() <= before * 3 / 2, "{before} {:?}", w.estimate);
    }
}
