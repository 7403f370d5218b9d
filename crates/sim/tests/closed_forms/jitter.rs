//! Delays and overtaking under jitter.

use crate::stats::{agrees, parts};
use anabranch_base::{Duration, Instant};
use anabranch_sim::{Jitter, Link, LinkConfig};

const DELAY: u64 = 100;

/// Numbers and delays in ms of 5000 packets `gap` apart, in the order they arrive.
fn arrivals(jitter: Jitter, reorders: bool, gap: Duration, seed: u64) -> Vec<(u64, f64)> {
    let config =
        LinkConfig { jitter, jitter_reorders: reorders, ..LinkConfig::fixed(None, Duration::from_millis(DELAY)) };
    let mut link = Link::new("jitter", seed, config);
    let n = 5_000;
    (0..n).for_each(|i| {
        link.enqueue(Instant::ZERO + gap * i, 100, i);
    });
    let out: Vec<_> = std::iter::from_fn(|| link.poll_delivery(Instant::from_millis(1_000_000)))
        .map(|d| (d.payload, d.at.since(d.entered).as_millis_f64()))
        .collect();
    assert_eq!(out.len() as u64, n);
    out
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(s, n), x| (s + x, n + 1.0));
    sum / n
}

/// Share of packets that arrive before the one sent just before them.
fn overtakers(mut arrivals: Vec<(u64, f64)>, gap: f64) -> f64 {
    arrivals.sort_by_key(|a| a.0);
    mean(arrivals.windows(2).map(|w| f64::from(u8::from(w[1].1 + gap < w[0].1))))
}

/// Mean and variance of the delay: those of the distribution. Fails if the span is taken for the
/// width, the deviation for the variance, or one side is cut.
#[test]
fn moments() {
    let ms = Duration::from_millis;
    let shapes = [
        ("uniform", Jitter::Uniform(ms(12)), 100.0, 24.0 * 24.0 / 12.0),
        ("normal", Jitter::Normal(ms(7)), 100.0, 49.0),
        ("exponential", Jitter::Exponential(ms(20)), 120.0, 400.0),
    ];
    for (name, jitter, mean_delay, variance) in shapes {
        let delays = |seed| arrivals(jitter, true, ms(1), seed).into_iter().map(|a| a.1);
        agrees(name, &parts(|seed| mean(delays(seed))), mean_delay, 0.01);
        let squares = |seed| mean(delays(seed).map(|d| (d - mean_delay).powi(2)));
        agrees(name, &parts(squares), variance, 0.05);
    }
}

/// Share of packets that overtake the one before, sent `g` earlier: for uniform jitter of width w
/// `(w - g)^2 / (2 w^2)`, for normal `P(Z > g / (sd sqrt 2))`, for exponential `e^(-g/m) / 2`. Fails
/// if successive delays are not independent, or where order is kept although it need not be.
#[test]
fn overtaking() {
    let ms = Duration::from_millis;
    let share = |jitter, gap: u64| parts(|seed| overtakers(arrivals(jitter, true, ms(gap), seed), gap as f64));
    agrees("uniform", &share(Jitter::Uniform(ms(20)), 10), 30.0 * 30.0 / (2.0 * 40.0 * 40.0), 0.02);
    // g / (sd sqrt 2) = 1 for 10 ms and sd 7.0711 ms: 15.866 % lie above.
    let sd = Duration::from_secs_f64(0.01 / std::f64::consts::SQRT_2);
    agrees("normal", &share(Jitter::Normal(sd), 10), 0.158_655_254, 0.02);
    agrees("exponential", &share(Jitter::Exponential(ms(10)), 5), 0.5 * (-0.5f64).exp(), 0.02);
}

/// Where order is kept, a packet arrives no earlier than any before it. With exponential jitter of
/// mean m and packets g apart, the time by which the running maximum exceeds a packet's own arrival
/// is at most t with probability `F(t) = product over k >= 0 of (1 - e^(-(t + k g)/m))`, so the mean
/// extra delay is the integral of `1 - F`. Fails if order is not kept, or later packets are held for
/// anything but the earlier ones' arrivals.
#[test]
fn kept_order_costs_what_the_running_maximum_says() {
    let (m, g) = (10.0, 5.0);
    let beyond = |t: f64| 1.0 - (0..200).map(|k| 1.0 - (-(t + f64::from(k) * g) / m).exp()).product::<f64>();
    let step = 0.001;
    let want: f64 = (0..400_000).map(|i| beyond((f64::from(i) + 0.5) * step) * step).sum();
    let jitter = Jitter::Exponential(Duration::from_millis(10));
    let delays = parts(|seed| {
        let all = arrivals(jitter, false, Duration::from_millis(5), seed);
        assert!(all.windows(2).all(|w| w[0].0 < w[1].0));
        // The first packets have none before them.
        mean(all[100..].iter().map(|a| a.1)) - DELAY as f64
    });
    agrees("extra delay", &delays, want, 0.02);
}
