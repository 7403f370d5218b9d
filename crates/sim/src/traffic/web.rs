//! Web clients of Petlund et al. 2009 §6.2: each starts transfers of heavy-tailed size after exponential times.

use super::{Emission, Kind};
use crate::draw::{exponential, pareto};
use anabranch_base::{Duration, Instant, RandomStream};

/// Clients that ask again whether or not the last transfer has ended. Each emission is one transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Web {
    /// How many clients.
    pub clients: u32,
    /// Mean time between two transfers of one client.
    pub mean_gap: Duration,
    /// Smallest transfer, in bytes.
    pub min_size: u64,
    /// Larger transfers count as this, in bytes.
    pub max_size: u64,
    /// Pareto shape of the sizes.
    pub shape: f64,
}

impl Web {
    /// As in Petlund et al. 2009 §6.2: 81 clients, 655 ms, 1000 bytes to 64 MB. The paper prints a mean of 9200 bytes
    /// and no shape; 1.057 gives that mean once larger sizes are cut to 64 MB.
    pub const P2: Web =
        Web { clients: 81, mean_gap: Duration::from_millis(655), min_size: 1_000, max_size: 64_000_000, shape: 1.057 };

    /// RTT of a client's path where they are spread evenly from `from` to `to` (with [`Web::P2`] 10 to 400 ms).
    pub fn rtt(&self, client: u32, from: Duration, to: Duration) -> Duration {
        let last = u64::from(self.clients.saturating_sub(1).max(1));
        from + to.saturating_sub(from) * u64::from(client) / last
    }

    /// Mean size of a transfer in bytes.
    pub fn mean_size(&self) -> f64 {
        let (min, max, a) = (self.min_size as f64, self.max_size as f64, self.shape);
        // The integral up to the cut, and the cut times what lies beyond it.
        let beyond = libm::pow(min / max, a);
        let below = if a == 1.0 { min * libm::log(max / min) } else { a / (a - 1.0) * (min - max * beyond) };
        below + max * beyond
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.clients == 0 || self.mean_gap.is_zero() {
            return Err("web traffic needs at least one client and a mean gap longer than zero");
        }
        if self.min_size == 0 || self.max_size < self.min_size {
            return Err("web transfers must be at least one byte, the largest no smaller than the smallest");
        }
        if !(self.shape > 0.0 && self.shape.is_finite()) {
            return Err("the Pareto shape of web transfers must be above 0");
        }
        Ok(())
    }
}

pub(super) struct Source {
    config: Web,
    random: RandomStream,
    next: Option<Instant>,
}

impl Source {
    pub(super) fn new(config: Web, random: RandomStream) -> Self {
        Source { config, random, next: None }
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        // Poisson processes of equal rates are one of their sum, in which each event is of any client.
        let mean = self.config.mean_gap.as_secs_f64() / f64::from(self.config.clients);
        let gap = Duration::from_secs_f64(exponential(&mut self.random, mean));
        let at = self.next.unwrap_or(now) + gap;
        self.next = Some(at);
        let client = self.random.below(u64::from(self.config.clients)) as u32;
        let size = pareto(&mut self.random, self.config.min_size as f64, self.config.shape) as u64;
        Some(Emission { at, size: size.min(self.config.max_size), kind: Kind::Transfer { client } })
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrafficConfig;
    use super::*;

    #[test]
    fn the_papers_mean_size() {
        assert!((Web::P2.mean_size() - 9_200.0).abs() < 50.0, "{}", Web::P2.mean_size());
        // Shape 1 has a closed form of its own: min (1 + ln(max / min)).
        let one = Web { shape: 1.0, ..Web::P2 };
        let near = Web { shape: 1.0 + 1e-7, ..Web::P2 };
        assert!((one.mean_size() - 1_000.0 * (1.0 + 64_000f64.ln())).abs() < 1e-6);
        assert!((one.mean_size() - near.mean_size()).abs() < 0.1);
    }

    #[test]
    fn every_client_asks_and_sizes_keep_the_bounds() {
        let mut source = TrafficConfig::Web(Web::P2).build(1, "web");
        let mut asked = vec![0u32; 81];
        for _ in 0..20_000 {
            let e = source.next(Instant::ZERO).unwrap();
            let Kind::Transfer { client } = e.kind else { panic!("{e:?}") };
            asked[client as usize] += 1;
            assert!((1_000..=64_000_000).contains(&e.size));
        }
        // Each about 247 times; five standard deviations for the worst of 81.
        assert!(asked.iter().all(|n| f64::from(n.abs_diff(247)) < 5.0 * 247f64.sqrt()), "{asked:?}");
    }

    #[test]
    fn rtts_are_spread_evenly() {
        let ms = Duration::from_millis;
        let rtt = |client| Web::P2.rtt(client, ms(10), ms(400));
        assert_eq!((rtt(0), rtt(40), rtt(80)), (ms(10), ms(205), ms(400)));
        assert_eq!(Web { clients: 1, ..Web::P2 }.rtt(0, ms(10), ms(400)), ms(10));
    }

    #[test]
    fn nonsense_is_named() {
        let bad = |w: Web| TrafficConfig::Web(w).check().is_err();
        assert!(!bad(Web::P2));
        assert!(bad(Web { clients: 0, ..Web::P2 }) && bad(Web { max_size: 999, ..Web::P2 }));
        assert!(bad(Web { shape: 0.0, ..Web::P2 }) && bad(Web { mean_gap: Duration::ZERO, ..Web::P2 }));
    }
}
