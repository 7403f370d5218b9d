//! On/off sources, web clients and video against their distributions.

use crate::stats::{agrees, parts, stretches};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_sim::traffic::{Emission, FrameClass, Kind, ParetoOnOff, Redraw, Sizes, TrafficConfig, Video, Web};

fn emissions(config: &TrafficConfig, seed: u64) -> impl Iterator<Item = Emission> {
    let mut source = config.build(seed, "source");
    std::iter::from_fn(move || source.next(Instant::ZERO))
}

/// 100-byte packets 1 ms apart while on.
fn on_off(shape: f64) -> ParetoOnOff {
    ParetoOnOff {
        mean_on: Duration::from_millis(300),
        mean_off: Duration::from_millis(700),
        shape,
        ..ParetoOnOff::half_and_half(Rate::from_bytes_per_sec(100_000), Sizes::Fixed(100))
    }
}

/// Mean rate: peak on / (on + off). Shape 2.5, because the interval needs a variance. Fails if either
/// mean is another, if on and off are exchanged (70 for 30 %), or if what the end of a burst cuts off
/// is lost or sent at once (a packet per burst, 0.3 %, is what the precision can tell).
#[test]
fn pareto_on_off_mean_rate() {
    let config = TrafficConfig::ParetoOnOff(on_off(2.5));
    let end = Instant::from_millis(20_000_000);
    let rates = parts(|seed| {
        let bytes: u64 = emissions(&config, seed).take_while(|e| e.at < end).map(|e| e.size).sum();
        bytes as f64 / 20_000.0
    });
    agrees("bytes per second", &rates, 100_000.0 * 0.3, 0.01);
}

/// Lengths of silences in seconds, and of bursts to the millisecond.
fn lengths(shape: f64, seed: u64, n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut silences, mut bursts) = (Vec::new(), Vec::new());
    let (mut last, mut packets, mut first) = (Instant::ZERO, 0u32, true);
    for e in emissions(&TrafficConfig::ParetoOnOff(on_off(shape)), seed) {
        let gap = e.at.since(last).as_secs_f64();
        if gap > 0.001_5 {
            // The source may have started with this silence, and the burst may be cut.
            if !first {
                silences.push(gap - 0.001);
                bursts.push(f64::from(packets) * 0.001);
            }
            (first, packets) = (false, 0);
        }
        packets += 1;
        last = e.at;
        if silences.len() == n {
            break;
        }
    }
    (silences, bursts)
}

/// The logarithm of a Pareto value over its least one is exponential with mean 1/shape, also where the
/// value itself has no variance. Fails if the shape or the least value is another.
#[test]
fn pareto_on_off_durations() {
    for shape in [1.5, 2.5] {
        let runs: Vec<_> = (0..40).map(|seed| lengths(shape, seed, 400)).collect();
        let log_mean = |values: &[f64], mean: f64| {
            let least = mean * (shape - 1.0) / shape;
            assert!(values.iter().all(|v| *v > least - 0.001_1));
            values.iter().map(|v| (v / least).ln()).sum::<f64>() / values.len() as f64
        };
        let silences = parts(|i| log_mean(&runs[i as usize].0, 0.7));
        agrees(&format!("silences of shape {shape}"), &silences, 1.0 / shape, 0.04);
        let bursts = parts(|i| log_mean(&runs[i as usize].1, 0.3));
        agrees(&format!("bursts of shape {shape}"), &bursts, 1.0 / shape, 0.04);
    }
}

/// Transfers come as a Poisson process of clients / mean_gap; the logarithm of their size over the
/// least is exponential, cut at the largest: `(1 - (min/max)^a) / a`. Fails if the gap is taken for
/// that of all clients together, or the shape is another.
#[test]
fn web_transfers() {
    let web = Web::P2;
    let all: Vec<Emission> = emissions(&TrafficConfig::Web(web), 1).take(400_000).collect();
    let gaps: Vec<f64> = all.windows(2).map(|w| w[1].at.since(w[0].at).as_secs_f64()).collect();
    let mean = 0.655 / 81.0;
    agrees("gap", &stretches(&gaps), mean, 0.01);
    // Exponential: the second moment is twice the square of the mean.
    let squares: Vec<f64> = gaps.iter().map(|g| g * g).collect();
    agrees("gap squared", &stretches(&squares), 2.0 * mean * mean, 0.02);
    let logs: Vec<f64> = all.iter().map(|e| (e.size as f64 / 1_000.0).ln()).collect();
    let cut = 64_000f64.powf(-web.shape);
    agrees("logarithm of sizes", &stretches(&logs), (1.0 - cut) / web.shape, 0.01);
}

/// Mean rate and mean size of each class. Fails if the variation of sizes shifts their mean (by
/// 2 % at 0.2), or classes do not come as the group says.
#[test]
fn video_rate_and_sizes() {
    let all: Vec<Emission> = emissions(&TrafficConfig::Video(Video::STANDARD), 1).take(480_000).collect();
    let sizes: Vec<f64> = all.iter().map(|e| e.size as f64).collect();
    agrees("rate", &stretches(&sizes), 125_000.0 / 25.0, 0.002);
    for class in [FrameClass::I, FrameClass::P, FrameClass::B] {
        let of = |e: &&Emission| matches!(e.kind, Kind::Frame { class: c, .. } if c == class);
        let sizes: Vec<f64> = all.iter().filter(of).map(|e| e.size as f64).collect();
        agrees(&format!("{class:?} frames"), &stretches(&sizes), Video::STANDARD.mean_size(class), 0.01);
    }
}

/// A mean that is drawn evenly between two rates again and again: the bytes of whole periods have the mean (a + b) / 2
/// and the variance (b - a)^2 / 12 of the draws, beside what bursts and silences add. These are short here and of little
/// variance, so that a period is long against them. Fails if a mean holds for another time, if the first is drawn from
/// elsewhere, or if a packet that a period cuts keeps the old rate.
#[test]
fn means_drawn_again_and_again() {
    let (from, to, every) = (20_000u64, 180_000u64, Duration::from_secs(4));
    let rate = Rate::from_bytes_per_sec;
    let short = Duration::from_millis(2);
    let redraw = Some(Redraw { from: rate(from), to: rate(to), every });
    let config = ParetoOnOff { mean_on: short, mean_off: short, shape: 6.0, redraw, ..on_off(6.0) };
    let config = TrafficConfig::ParetoOnOff(config);
    const PERIODS: usize = 200;
    let runs: Vec<Vec<f64>> = (0..40)
        .map(|seed| {
            let end = Instant::ZERO + every * PERIODS as u64;
            let mut rates = vec![0.0; PERIODS];
            for e in emissions(&config, seed).take_while(|e| e.at < end) {
                rates[(e.at.as_nanos() / every.as_nanos()) as usize] += e.size as f64 / every.as_secs_f64();
            }
            rates
        })
        .collect();
    let mean = |of: &dyn Fn(&[f64]) -> f64| parts(|seed| of(&runs[seed as usize]));
    agrees("mean rate", &mean(&|r| r.iter().sum::<f64>() / r.len() as f64), 100_000.0, 0.03);
    let spread = |r: &[f64]| {
        let mean = r.iter().sum::<f64>() / r.len() as f64;
        r.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (r.len() - 1) as f64
    };
    agrees("variance over periods", &mean(&|r| spread(r)), 160_000.0f64.powi(2) / 12.0, 0.06);
    // Means of periods that follow each other have nothing to do with each other: half of the square of the difference
    // is the variance again.
    let steps =
        |r: &[f64]| r.windows(2).map(|w| (w[1] - w[0]) * (w[1] - w[0]) / 2.0).sum::<f64>() / (r.len() - 1) as f64;
    agrees("steps", &mean(&|r| steps(r)), 160_000.0f64.powi(2) / 12.0, 0.06);
    let within = |r: &f64| (from as f64 * 0.9..to as f64 * 1.1).contains(r);
    assert!(runs.iter().flatten().all(within));
}
