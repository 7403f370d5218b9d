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
    fn run(&self, seed: u64, links: [LinkConfig; 2], seconds: u64) -> ([Option<Duration>; 2], Bench) {
        let in_turn = [(Hook::PathScheduler, "round_robin:strict=1")];
        let profile = profile(self.profile, if self.size as u64 / self.gap > ONE_PATH { &[] } else { &in_turn });
        let (mut set, known) = (policies(&profile, 2), Notes::default());
        set.loss_threshold = Box::new(Watched { inner: set.loss_threshold, known: known.clone() });
        let back = LinkConfig::fixed(None, Duration::ZERO);
        let mut b = connected_with(seed, &assoc_config(self.profile), set, &links.map(|l| (l, back.clone())));
        let began = b.now;
        for n in 0..seconds * 1_000 / self.gap {
            let deadline = Some(b.now + ms(self.lifetime));
            b.send(Side::Client, SendOptions { deadline, ..SendOptions::default() }, numbered(0, n as u32, self.size));
            b.run_for(ms(self.gap));
        }
        let known = known.get().map(|t| t.map(|t| t.since(began)));
        (known, b)
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { profile, delays, lifetime, gap, size } = self;
        write!(f, "{profile}, {delays:?} ms, {size} bytes each {gap} ms, for {lifetime} ms")
    }
}

#[test]
fn a_path_whose_packets_overtake_each_other_is_known() {
    let mut bad = vec![];
    for (case, seed) in CASES.iter().flat_map(|c| (1..=3).map(move |seed| (c, seed))) {
        let unsteady = LinkConfig { jitter: Jitter::Uniform(ms(25)), jitter_reorders: true, ..link(4, case.delays[1]) };
        let (known, mut b) = case.run(seed, [link(2, case.delays[0]), unsteady], 5);
        let p = b.path(Side::Client, 1).counters;
        let needless = p.lost_by_report as f64 / p.packets_sent as f64;
        println!("{case}, seed {seed}: {known:?}, {needless:.3} of {} condemned", p.packets_sent);
        let soon = known[1].is_some_and(|t| t < ms(1_500));
        if !soon || known[0].is_some() || needless > 0.1 {
            bad.push(format!("{case}, seed {seed}: {known:?}, {needless:.3}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn a_path_that_loses_packets_is_not_taken_for_one() {
    let mut bad = vec![];
    for (case, seed) in CASES.iter().flat_map(|c| (1..=3).map(move |seed| (c, seed))) {
        for p in [0.005, 0.05, 0.2] {
            let lossy = |mbit, delay| link(mbit, delay).with_loss(LossConfig::Bernoulli { p });
            let (known, _) = case.run(seed, [lossy(2, case.delays[0]), lossy(4, case.delays[1])], 5);
            if known != [None; 2] {
                bad.push(format!("{case}, seed {seed}, {p} lost: {known:?}"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
