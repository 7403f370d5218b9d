//! Shares, bursts and stays of loss models.

use crate::stats::{agrees, parts};
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_sim::loss::{GilbertElliottParams, LossConfig};
use anabranch_sim::{Link, LinkConfig};

/// Share of `n` packets lost, one each `gap`, and the mean length of a run of losses in packets.
fn run(loss: &LossConfig, seed: u64, n: u32, gap: Duration) -> (f64, f64) {
    let mut random = RandomStream::named(seed, "loss");
    let mut model = loss.build(&mut random);
    let (mut lost, mut runs, mut before, mut now) = (0u32, 0u32, false, Instant::ZERO);
    for _ in 0..n {
        let is = model.loses(now, &mut random);
        lost += u32::from(is);
        runs += u32::from(is && !before);
        before = is;
        now += gap;
    }
    (f64::from(lost) / f64::from(n), f64::from(lost) / f64::from(runs.max(1)))
}

fn shares_and_bursts(loss: &LossConfig, n: u32, gap: Duration) -> (Vec<f64>, Vec<f64>) {
    (0..40).map(|seed| run(loss, seed, n, gap)).unzip()
}

/// Fails if losses come too often or too rarely, or not independently: then runs are longer than
/// `1 / (1 - p)`.
#[test]
fn uniform_loss() {
    for (p, precision) in [(0.01, 0.03), (0.1, 0.02), (0.5, 0.01)] {
        let (shares, bursts) = shares_and_bursts(&LossConfig::bernoulli(p), 50_000, Duration::ZERO);
        agrees("share", &shares, p, precision);
        agrees("run", &bursts, 1.0 / (1.0 - p), 0.01);
    }
}

/// Stationary loss p and mean burst b of a Gilbert chain, from P(bad -> good) = 1/b and
/// P(good -> bad) = p / ((1 - p) b). Fails if a transition comes with another probability, or not
/// after every packet. The precision tells bursts of 5 from bursts of 5.2.
#[test]
fn gilbert_loss_and_burst() {
    for (p, b) in [(0.01, 5.0), (0.05, 3.0), (0.2, 10.0)] {
        let (shares, bursts) = shares_and_bursts(&LossConfig::bursts(p, b), 200_000, Duration::ZERO);
        agrees("share", &shares, p, 0.05);
        agrees("burst", &bursts, b, 0.03);
    }
}

/// Loss in both states: share_bad loss_bad + share_good loss_good. Fails if a state's own loss is
/// taken for the other's.
#[test]
fn gilbert_elliott_loss() {
    let params = GilbertElliottParams { to_bad: 0.02, to_good: 0.08, loss_bad: 0.5, loss_good: 0.01 };
    let (shares, _) = shares_and_bursts(&LossConfig::GilbertElliott(params), 100_000, Duration::ZERO);
    agrees("share", &shares, 0.2 * 0.5 + 0.8 * 0.01, 0.03);
}

/// A chain starts in its stationary state: among first packets as many are lost as among all. Fails
/// if runs always start in the good state (no loss at all) or in the bad.
#[test]
fn the_first_packet_is_lost_as_often_as_any() {
    let timed =
        LossConfig::TimedTwoState { mean_good: Duration::from_millis(700), mean_bad: Duration::from_millis(300) };
    for loss in [LossConfig::bursts(0.3, 20.0), timed] {
        let shares = parts(|part| {
            let first = |seed: u64| run(&loss, part * 500 + seed, 1, Duration::ZERO).0;
            (0..500).map(first).sum::<f64>() / 500.0
        });
        agrees("first packets", &shares, 0.3, 0.05);
    }
}

/// Share of time in the bad state and mean stay there: bad / (good + bad), and bad. Packets a time t
/// apart see runs of `1 / P(good at t | bad at 0)` packets, since returns in between are not seen. Fails if stays depend on how many packets there are, or have another mean.
#[test]
fn timed_two_state_share_and_stay() {
    let (good, bad) = (0.45, 0.05);
    let loss =
        LossConfig::TimedTwoState { mean_good: Duration::from_secs_f64(good), mean_bad: Duration::from_secs_f64(bad) };
    for gap in [0.001, 0.02, 0.1] {
        let n = f64::min(300.0 / gap, 300_000.0) as u32;
        let (shares, stays) = shares_and_bursts(&loss, n, Duration::from_secs_f64(gap));
        let leaves = good / (good + bad) * (1.0 - (-(1.0 / good + 1.0 / bad) * gap).exp());
        agrees(&format!("share, a packet each {gap} s"), &shares, bad / (good + bad), 0.1);
        agrees(&format!("stay, a packet each {gap} s"), &stays, 1.0 / leaves, 0.1);
    }
}

/// Two lossy links one after the other: 1 - (1 - p1)(1 - p2). Fails if their losses come from one
/// stream of random numbers: then as much is lost as by the worse alone.
#[test]
fn losses_in_series() {
    let (p1, p2) = (0.2, 0.3);
    let lossy = |p| LinkConfig::ideal().with_loss(LossConfig::bernoulli(p));
    let shares = parts(|seed| {
        let (mut first, mut second) = (Link::new("first", seed, lossy(p1)), Link::new("second", seed, lossy(p2)));
        let n = 10_000;
        for i in 0..n {
            let now = Instant::from_millis(i);
            first.enqueue(now, 100, ());
            if first.poll_deliver(now).is_some() {
                second.enqueue(now, 100, ());
            }
            second.poll_deliver(now);
        }
        1.0 - second.counters().delivered.packets as f64 / n as f64
    });
    agrees("both", &shares, 1.0 - (1.0 - p1) * (1.0 - p2), 0.02);
}
