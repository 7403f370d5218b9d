//! Thin streams of Petlund et al. 2009 §3.2: games and interactive programs that send little and rarely.
//!
//! The paper prints mean, median, bounds and outer percentiles of the gaps. They are drawn from a
//! quantile function through these points, log-linear in between; its inner points (0.9 and 0.999)
//! are chosen so that the printed mean comes out. Sizes are log-normal within the printed bounds,
//! with the printed mean. The correlation of successive gaps is ours: the paper says nothing of it.

use super::{Emission, Sizes, packet};
use crate::draw::{normal, normal_cdf};
use anabranch_base::{Duration, Instant, RandomStream};

/// Packets with gaps and sizes of their own distributions.
#[derive(Clone, PartialEq, Debug)]
pub struct Thin {
    /// Time from one packet to the next.
    pub gaps: Gaps,
    /// Bytes of payload per packet.
    pub sizes: Sizes,
    /// Correlation of the normal values behind successive gaps (a copula of order one), from -1 to 1;
    /// 0 draws them independently.
    pub correlation: f64,
    /// The first packet leaves evenly within this time from the start.
    pub start_within: Duration,
}

/// Time from one packet to the next.
#[derive(Clone, PartialEq, Debug)]
pub enum Gaps {
    /// Points of the quantile function, probability and milliseconds, both rising, from 0 to 1.
    Quantiles(Vec<(f64, f64)>),
    /// Bursts of `count` packets `gap` apart, one burst each `period`.
    Bursts {
        /// Packets in a burst.
        count: u32,
        /// Time between two packets of a burst.
        gap: Duration,
        /// Time from the start of one burst to that of the next.
        period: Duration,
    },
}

/// The programs whose traces Petlund et al. 2009 describe (table 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThinApp {
    /// A role-playing game.
    AnarchyOnline,
    /// A remote desktop.
    RemoteDesktop,
    /// Text in a remote shell.
    Ssh,
    /// A role-playing game.
    WorldOfWarcraft,
    /// A call between two.
    Skype,
    /// Control of a radar.
    Casa,
}

impl ThinApp {
    /// All of them.
    pub const ALL: [ThinApp; 6] = [
        ThinApp::AnarchyOnline,
        ThinApp::RemoteDesktop,
        ThinApp::Ssh,
        ThinApp::WorldOfWarcraft,
        ThinApp::Skype,
        ThinApp::Casa,
    ];
}

type Knots = [(f64, f64); 7];
const ANARCHY_ONLINE: Knots =
    [(0.0, 7.0), (0.01, 83.0), (0.5, 449.0), (0.9, 926.8), (0.99, 4195.0), (0.999, 8453.0), (1.0, 17032.0)];
const REMOTE_DESKTOP: Knots =
    [(0.0, 1.0), (0.01, 2.0), (0.5, 159.0), (0.9, 404.4), (0.99, 3892.0), (0.999, 6906.0), (1.0, 12254.0)];
const SSH: Knots =
    [(0.0, 0.5), (0.01, 32.0), (0.5, 159.0), (0.9, 322.6), (0.99, 3616.0), (0.999, 5786.0), (1.0, 76610.0)];
const WORLD_OF_WARCRAFT: Knots =
    [(0.0, 0.5), (0.01, 0.9), (0.5, 133.0), (0.9, 435.4), (0.99, 3785.0), (0.999, 7498.0), (1.0, 14855.0)];
const SKYPE: Knots = [(0.0, 0.5), (0.01, 4.0), (0.5, 40.0), (0.9, 50.4), (0.99, 80.0), (0.999, 365.6), (1.0, 1671.0)];

impl Thin {
    /// One of these programs, gaps independent, starting at once.
    pub fn app(app: ThinApp) -> Self {
        let casa = Gaps::Bursts { count: 4, gap: Duration::from_millis(305), period: Duration::from_secs(30) };
        let quantiles = |knots: Knots| Gaps::Quantiles(knots.to_vec());
        let sizes = |mu, sigma, min, max| Sizes::LogNormal { mu, sigma, min, max };
        let (gaps, sizes) = match app {
            ThinApp::AnarchyOnline => (quantiles(ANARCHY_ONLINE), sizes(4.177, 0.9, 8, 1_333)),
            ThinApp::RemoteDesktop => (quantiles(REMOTE_DESKTOP), sizes(4.213, 1.0, 8, 1_417)),
            ThinApp::Ssh => (quantiles(SSH), sizes(3.634, 0.6, 16, 752)),
            ThinApp::WorldOfWarcraft => (quantiles(WORLD_OF_WARCRAFT), sizes(2.859, 0.8, 6, 1_228)),
            ThinApp::Skype => (quantiles(SKYPE), sizes(5.289, 0.6, 14, 1_267)),
            ThinApp::Casa => (casa, sizes(4.897, 0.5, 93, 572)),
        };
        Thin { gaps, sizes, correlation: 0.0, start_within: Duration::ZERO }
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.sizes.check()?;
        if !(-1.0..=1.0).contains(&self.correlation) {
            return Err("the correlation of gaps must lie between -1 and 1");
        }
        match &self.gaps {
            Gaps::Quantiles(knots) => check_knots(knots),
            Gaps::Bursts { count, gap, period } if *count == 0 || *gap * u64::from(*count - 1) > *period => {
                Err("a burst needs at least one packet and must fit into its period")
            }
            Gaps::Bursts { period, .. } if period.is_zero() => Err("the period of bursts must be longer than zero"),
            Gaps::Bursts { .. } => Ok(()),
        }
    }
}

fn check_knots(knots: &[(f64, f64)]) -> Result<(), &'static str> {
    let ends = knots.first().map(|k| k.0) == Some(0.0) && knots.last().map(|k| k.0) == Some(1.0);
    let rising = knots.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
    if !ends || !rising {
        return Err("quantiles of gaps must rise from probability 0 to 1");
    }
    if !knots.iter().all(|k| k.1 > 0.0 && k.1.is_finite()) {
        return Err("gaps must be above zero milliseconds");
    }
    Ok(())
}

/// The quantile of `u`, log-linear between the points.
fn quantile(knots: &[(f64, f64)], u: f64) -> f64 {
    let above = knots.partition_point(|k| k.0 <= u).clamp(1, knots.len().saturating_sub(1).max(1));
    match knots.get(above - 1..=above) {
        Some(&[(q0, v0), (q1, v1)]) => v0 * libm::pow(v1 / v0, (u - q0) / (q1 - q0)),
        _ => 0.0,
    }
}

pub(super) struct Source {
    config: Thin,
    random: RandomStream,
    next: Option<Instant>,
    sent: u64,
    /// The normal value behind the last gap.
    last: Option<f64>,
}

impl Source {
    pub(super) fn new(config: Thin, random: RandomStream) -> Self {
        Source { config, random, next: None, sent: 0, last: None }
    }

    fn uniform(&mut self) -> f64 {
        let rho = self.config.correlation;
        if rho == 0.0 {
            return self.random.unit();
        }
        let fresh = normal(&mut self.random);
        let z = self.last.map_or(fresh, |last| rho * last + libm::sqrt(1.0 - rho * rho) * fresh);
        self.last = Some(z);
        normal_cdf(z)
    }

    fn gap(&mut self) -> Duration {
        let u = if matches!(self.config.gaps, Gaps::Quantiles(_)) { self.uniform() } else { 0.0 };
        match &self.config.gaps {
            Gaps::Quantiles(knots) => Duration::from_secs_f64(quantile(knots, u) / 1_000.0),
            Gaps::Bursts { count, gap, period } => {
                let count = u64::from(*count).max(1);
                if self.sent.is_multiple_of(count) { period.saturating_sub(*gap * (count - 1)) } else { *gap }
            }
        }
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let at = match self.next {
            Some(before) => before + self.gap(),
            None => now + Duration::from_nanos(self.random.below(self.config.start_within.as_nanos().max(1))),
        };
        self.next = Some(at);
        self.sent += 1;
        let size = self.config.sizes.draw(&mut self.random);
        Some(packet(at, u64::from(size)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrafficConfig;
    use super::*;

    #[test]
    fn quantiles_pass_through_the_points() {
        for knots in [ANARCHY_ONLINE, REMOTE_DESKTOP, SSH, WORLD_OF_WARCRAFT, SKYPE] {
            assert!(knots.iter().all(|k| (quantile(&knots, k.0) - k.1).abs() < 1e-9 * k.1));
        }
        // Half way in probability is half way in the logarithm.
        assert!((quantile(&[(0.0, 1.0), (1.0, 100.0)], 0.5) - 10.0).abs() < 1e-12);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn casa_sends_four_each_half_minute() {
        let mut source = TrafficConfig::Thin(Thin::app(ThinApp::Casa)).build(1, "casa");
        let ms: Vec<u64> = (0..9).map(|_| source.next(Instant::ZERO).unwrap().at.as_nanos() / 1_000_000).collect();
        assert_eq!(ms, [0, 305, 610, 915, 30_000, 30_305, 30_610, 30_915, 60_000]);
    }

    #[test]
    fn starts_are_spread() {
        let config = TrafficConfig::Thin(Thin { start_within: Duration::from_secs(60), ..Thin::app(ThinApp::Skype) });
        let first = |player: u64| config.build(player, "player").next(Instant::from_millis(7)).unwrap().at;
        let starts: Vec<f64> = (0..170).map(|p| first(p).as_secs_f64()).collect();
        assert!(starts.iter().all(|s| (0.007..60.007).contains(s)));
        // Uniform: standard deviation 60 / sqrt(12) s.
        let mean = starts.iter().sum::<f64>() / 170.0;
        assert!((mean - 30.0).abs() < 4.0 * 17.32 / 170f64.sqrt(), "{mean}");
    }

    #[test]
    fn nonsense_is_named() {
        let good = Thin::app(ThinApp::Ssh);
        let gaps = |gaps| Thin { gaps, ..good.clone() }.check().is_err();
        assert!(ThinApp::ALL.iter().all(|app| Thin::app(*app).check() == Ok(())));
        assert!(gaps(Gaps::Quantiles(vec![])) && gaps(Gaps::Quantiles(vec![(0.0, 1.0), (0.9, 2.0)])));
        assert!(gaps(Gaps::Quantiles(vec![(0.0, 0.0), (1.0, 2.0)])));
        assert!(gaps(Gaps::Quantiles(vec![(0.0, 3.0), (1.0, 2.0)])));
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        assert!(gaps(Gaps::Bursts { count: 4, gap: s(1), period: ms(2_999) }));
        assert!(gaps(Gaps::Bursts { count: 1, gap: s(0), period: s(0) }));
        assert!(Thin { correlation: 1.5, ..good.clone() }.check().is_err());
    }
}
