//! Packets that reports condemned and that came nevertheless show that their path lets packets overtake each other,
//! whichever way the engine repairs them, and even where it does not.

use super::two_paths::*;
use anabranch_base::{Duration, Instant};
use anabranch_engine::SendOptions;
use anabranch_policy::loss_threshold::{LossThreshold, Verdict};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::{AssocView, CopyView, SackView};
use anabranch_sim::{Jitter, LinkConfig, LossConfig};

/// When each path first passed for one on which packets overtake each other.
struct Watched {
    inner: Box<dyn LossThreshold>,
    known: Notes<[Option<Instant>; 2]>,
}

impl LossThreshold for Watched {
    fn judge(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> Verdict {
        for (known, p) in self.known.get().iter_mut().zip(cx.paths) {
            *known = known.or(p.overtaken_at);
        }
        self.inner.judge(cx, sack, copy)
    }
    fn repeats(&self) -> bool {
        self.inner.repeats()
    }
}

/// Messages of `size` bytes, one each `gap` ms, that are worth nothing after `lifetime` ms.
struct Case {
    profile: &'static str,
    delays: [u64; 2],
    lifetime: u64,
    gap: u64,
    size: usize,
}

/// As many bytes per millisecond one path carries: every second message takes the other.
const ONE_PATH: u64 = 200;

const CASES: [Case; 12] = [
    // Given up before they could be sent again.
    Case { profile: "low-latency", delays: [30, 100], lifetime: 150, gap: 2, size: 1_000 },
    Case { profile: "low-latency", delays: [90, 100], lifetime: 150, gap: 2, size: 1_000 },
    Case { profile: "low-latency", delays: [30, 100], lifetime: 150, gap: 12, size: 1_000 },
    // Sent again, and by the other path.
    Case { profile: "low-latency", delays: [70, 100], lifetime: 1_000, gap: 12, size: 1_000 },
    Case { profile: "low-latency", delays: [30, 100], lifetime: 1_000, gap: 2, size: 1_000 },
    Case { profile: "low-latency", delays: [90, 100], lifetime: 1_000, gap: 3, size: 1_000 },
    Case { profile: "live", delays: [30, 100], lifetime: 250, gap: 2, size: 1_000 },
    Case { profile: "live", delays: [90, 100], lifetime: 1_000, gap: 2, size: 1_000 },
    // Of many pieces.
    Case { profile: "live", delays: [30, 160], lifetime: 300, gap: 40, size: 24_000 },
    Case { profile: "live", delays: [30, 160], lifetime: 250, gap: 40, size: 28_000 },
    Case { profile: "live-parity", delays: [30, 100], lifetime: 250, gap: 40, size: 20_000 },
    Case { profile: "low-latency", delays: [30, 100], lifetime: 250, gap: 40, size: 20_000 },
];

impl Case {
    /// When each path first passed for one that reorders, in five seconds over these ways there and back.
    fn run(&self, seed: u64, links: [LinkConfig; 2], back: &LinkConfig) -> ([Option<Duration>; 2], Bench) {
        let in_turn = [(Hook::PathScheduler, "round_robin:strict=1")];
        let profile = profile(self.profile, if self.size as u64 / self.gap > ONE_PATH { &[] } else { &in_turn });
        let (mut set, known) = (policies(&profile, 2), Notes::default());
        set.loss_threshold = Box::new(Watched { inner: set.loss_threshold, known: known.clone() });
        let mut b = connected_with(seed, &assoc_config(self.profile), set, &links.map(|l| (l, back.clone())));
        let began = b.now;
        for n in 0..5_000 / self.gap {
            let deadline = Some(b.now + ms(self.lifetime));
            b.send(Side::Client, SendOptions { deadline, ..SendOptions::default() }, numbered(0, n as u32, self.size));
            b.run_for(ms(self.gap));
        }
        let known = known.get().map(|t| t.map(|t| t.since(began)));
        (known, b)
    }
}

/// Ways back on which nothing happens, and on which acknowledgements are lost and overtake each other.
fn ways_back() -> [LinkConfig; 2] {
    let steady = LinkConfig::fixed(None, Duration::ZERO);
    let unsteady = LinkConfig { jitter: Jitter::Uniform(ms(10)), jitter_reorders: true, ..link(50, 10) };
    [steady, unsteady.with_loss(LossConfig::Bernoulli { p: 0.1 })]
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { profile, delays, lifetime, gap, size } = self;
        write!(f, "{profile}, {delays:?} ms, {size} bytes each {gap} ms, for {lifetime} ms")
    }
}

#[test]
fn a_path_whose_packets_overtake_each_other_is_known_and_no_other() {
    let mut bad = vec![];
    for (case, seed) in CASES.iter().flat_map(|c| (1..=3).map(move |seed| (c, seed))) {
        for (jitter, p) in [(Jitter::Uniform(ms(25)), 0.0), (Jitter::Normal(ms(50)), 0.05)] {
            let lossy = LossConfig::Bernoulli { p };
            let unsteady = LinkConfig { jitter, jitter_reorders: true, ..link(4, case.delays[1]) };
            let (known, mut b) = case.run(seed, [link(2, case.delays[0]).with_loss(lossy), unsteady], &ways_back()[0]);
            let c = b.path(Side::Client, 1).counters;
            let needless = c.lost_by_report as f64 / c.packets_sent as f64;
            println!("{case}, {p} lost, seed {seed}: {known:?}, {needless:.3} of {} condemned", c.packets_sent);
            // Frames that nearly fill both paths are given up at first, and few of their pieces leave by the slow one.
            let within = if case.size > 1_000 { ms(3_000) } else { ms(1_500) };
            let soon = known[1].is_some_and(|t| t < within);
            if !soon || known[0].is_some() || p == 0.0 && needless > 0.03 {
                bad.push(format!("{case}, {p} lost, seed {seed}: {known:?}, {needless:.3}"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn a_path_that_loses_packets_is_not_taken_to_reorder() {
    let mut bad = vec![];
    for (case, seed) in CASES.iter().flat_map(|c| (1..=3).map(move |seed| (c, seed))) {
        for (p, back) in [0.005, 0.05, 0.2].into_iter().flat_map(|p| ways_back().map(|back| (p, back))) {
            let lossy = |mbit, delay| link(mbit, delay).with_loss(LossConfig::Bernoulli { p });
            let (known, _) = case.run(seed, [lossy(2, case.delays[0]), lossy(4, case.delays[1])], &back);
            if known != [None; 2] {
                bad.push(format!("{case}, seed {seed}, {p} lost, back {:?}: {known:?}", back.jitter));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
