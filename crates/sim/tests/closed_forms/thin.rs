//! Thin streams against the integrals of their distributions, and those against the paper's table.

use crate::stats::{agrees, parts};
use anabranch_base::Instant;
use anabranch_sim::traffic::{Gaps, Sizes, Thin, ThinApp, TrafficConfig};

/// Gaps in ms and sizes in bytes of `n` packets.
fn drawn(config: &Thin, seed: u64, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut source = TrafficConfig::Thin(config.clone()).build(seed, "thin");
    let mut last = source.next(Instant::ZERO).unwrap().at;
    let one = |_| {
        let e = source.next(Instant::ZERO).unwrap();
        let gap = e.at.since(last).as_millis_f64();
        last = e.at;
        (gap, e.size as f64)
    };
    (0..n).map(one).unzip()
}

/// Mean of a quantile function that is log-linear between its points.
fn mean_gap(knots: &[(f64, f64)]) -> f64 {
    let piece = |w: &[(f64, f64)]| {
        let ((q0, v0), (q1, v1)) = (w[0], w[1]);
        (q1 - q0) * if v1 > v0 { (v1 - v0) / (v1 / v0).ln() } else { v0 }
    };
    knots.windows(2).map(piece).sum()
}

/// Mean of log-normal sizes rounded to whole bytes and redrawn until within the bounds.
fn mean_size(sizes: &Sizes) -> f64 {
    let Sizes::LogNormal { mu, sigma, min, max } = *sizes else { panic!("log-normal sizes") };
    let below = |x: f64| 0.5 * libm::erfc(-(x.ln() - mu) / (sigma * std::f64::consts::SQRT_2));
    let (mut sum, mut mass) = (0.0, 0.0);
    for size in min..=max {
        let p = below(f64::from(size) + 0.5) - below(f64::from(size) - 0.5);
        sum += p * f64::from(size);
        mass += p;
    }
    sum / mass
}

/// Fails if gaps or sizes do not follow the function they are drawn from, or if that function has not
/// the paper's mean (to half of its last digit).
#[test]
fn means_of_gaps_and_sizes() {
    let table = [
        (ThinApp::AnarchyOnline, Some(632.0), 98.0),
        (ThinApp::RemoteDesktop, Some(318.0), 111.0),
        (ThinApp::Ssh, Some(323.0), 48.0),
        (ThinApp::WorldOfWarcraft, Some(314.0), 26.0),
        (ThinApp::Skype, Some(34.0), 236.0),
        (ThinApp::Casa, None, 175.0),
    ];
    for (app, gap, size) in table {
        let config = Thin::app(app);
        let what = format!("{app:?}");
        let runs: Vec<_> = (0..40).map(|seed| drawn(&config, seed, 50_000)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (gaps, sizes): (Vec<f64>, Vec<f64>) = runs.iter().map(|r| (mean(&r.0), mean(&r.1))).unzip();
        if let (Gaps::Quantiles(knots), Some(printed)) = (&config.gaps, gap) {
            let mean = mean_gap(knots);
            assert!((mean - printed).abs() <= 0.5, "{what}: the points give {mean} ms, not {printed} ms");
            agrees(&what, &gaps, mean, 0.02);
        }
        let mean = mean_size(&config.sizes);
        assert!((mean - size).abs() <= 0.5, "{what}: sizes have a mean of {mean}, not {size}");
        agrees(&what, &sizes, mean, 0.01);
    }
}

/// Rank correlation of successive values.
fn spearman(values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut rank = vec![0.0; values.len()];
    order.iter().enumerate().for_each(|(r, i)| rank[*i] = r as f64);
    let n = rank.len() as f64;
    let centre = (n - 1.0) / 2.0;
    let variance = (n * n - 1.0) / 12.0;
    rank.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum::<f64>() / (n - 1.0) / variance
}

/// A normal copula of correlation r has a rank correlation of `6/pi asin(r/2)`, and leaves the
/// distribution of each gap as it is. Fails if it is applied to the gaps themselves, or not at all.
#[test]
fn correlation_of_successive_gaps() {
    for r in [0.3, -0.5] {
        let config = Thin { correlation: r, ..Thin::app(ThinApp::Skype) };
        let Gaps::Quantiles(knots) = &config.gaps else { panic!("quantiles") };
        let runs: Vec<Vec<f64>> = (0..40).map(|seed| drawn(&config, seed, 10_000).0).collect();
        let ranks = parts(|seed| spearman(&runs[seed as usize]));
        agrees("rank correlation", &ranks, 6.0 / std::f64::consts::PI * (r / 2.0f64).asin(), 0.05);
        let means = parts(|seed| runs[seed as usize].iter().sum::<f64>() / 10_000.0);
        agrees("mean", &means, mean_gap(knots), 0.02);
    }
}
