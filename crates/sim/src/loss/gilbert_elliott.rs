//! Two-state Markov loss that moves from packet to packet.
//!
//! Gilbert, E. N.: Capacity of a burst-noise channel, 1960; Elliott, E. O., 1963. In the good state a
//! packet is lost with `loss_good` (0 in Gilbert's simple form), in the bad one with `loss_bad` (1).

use super::LossModel;
use anabranch_base::{Instant, RandomStream};

/// Parameters, as probabilities per packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GilbertElliottParams {
    /// P(good -> bad) after a packet (netem's `p`).
    pub to_bad: f64,
    /// P(bad -> good) after a packet (netem's `r`).
    pub to_good: f64,
    /// Loss in the bad state (netem's `1-h`).
    pub loss_bad: f64,
    /// Loss in the good state (netem's `1-k`).
    pub loss_good: f64,
}

impl GilbertElliottParams {
    /// Mean loss `p` in bursts of mean length `burst` packets: everything is lost in the bad state and
    /// nothing in the good one, so P(bad -> good) = 1/burst and P(good -> bad) = p / ((1 - p) burst).
    /// [`check`](Self::check) tells when no such chain exists (`burst < p / (1 - p)`).
    pub fn from_mean(p: f64, burst: f64) -> Self {
        GilbertElliottParams { to_bad: p / ((1.0 - p) * burst), to_good: 1.0 / burst, loss_bad: 1.0, loss_good: 0.0 }
    }

    /// Share of packets in the bad state in the long run.
    pub fn share_bad(&self) -> f64 {
        let sum = self.to_bad + self.to_good;
        if sum > 0.0 { self.to_bad / sum } else { 0.0 }
    }

    /// Share of packets lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }

    /// What is wrong with the parameters, in words for a user.
    pub fn check(&self) -> Result<(), &'static str> {
        let share = |p: f64| (0.0..=1.0).contains(&p);
        if !share(self.loss_bad) || !share(self.loss_good) {
            return Err("losses in the two states must lie between 0 and 100 %");
        }
        if !share(self.to_good) {
            return Err("the mean burst must be at least one packet");
        }
        if !share(self.to_bad) {
            return Err(
                "no chain of two states has so much loss in bursts this short: lower the loss or lengthen the burst",
            );
        }
        Ok(())
    }
}

/// The chain in motion.
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    params: GilbertElliottParams,
    bad: bool,
}

impl GilbertElliott {
    /// The chain, its state drawn from the stationary distribution.
    pub fn new(params: GilbertElliottParams, random: &mut RandomStream) -> Self {
        GilbertElliott { params, bad: random.chance(params.share_bad()) }
    }
}

impl LossModel for GilbertElliott {
    fn loses(&mut self, _now: Instant, random: &mut RandomStream) -> bool {
        // Two draws per packet whatever the state, so that runs with other parameters stay paired.
        let (fate, step) = (random.unit(), random.unit());
        let p = &self.params;
        let (loss, leave) = if self.bad { (p.loss_bad, p.to_good) } else { (p.loss_good, p.to_bad) };
        self.bad ^= step < leave;
        fate < loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses, and lengths of the runs of lost packets, of `n` packets.
    fn run(params: GilbertElliottParams, seed: u64, n: usize) -> (f64, Vec<f64>) {
        let mut random = RandomStream::named(seed, "ge");
        let mut model = GilbertElliott::new(params, &mut random);
        let (mut lost, mut bursts, mut length) = (0.0, Vec::new(), 0.0);
        for _ in 0..n {
            if model.loses(Instant::ZERO, &mut random) {
                lost += 1.0;
                length += 1.0;
            } else if length > 0.0 {
                bursts.push(length);
                length = 0.0;
            }
        }
        (lost / n as f64, bursts)
    }

    #[test]
    fn parameters_follow_the_closed_form() {
        let p = GilbertElliottParams::from_mean(0.01, 5.0);
        assert!((p.to_bad - 0.00202).abs() < 1e-5 && (p.to_good - 0.2).abs() < 1e-12);
        assert!((p.mean_loss() - 0.01).abs() < 1e-12);
        assert_eq!(p.check(), Ok(()));
        assert!(GilbertElliottParams::from_mean(0.9, 2.0).check().is_err());
        assert!(GilbertElliottParams::from_mean(0.1, 0.5).check().is_err());
        assert!(GilbertElliottParams::from_mean(1.0, 5.0).check().is_err());
        assert!(GilbertElliottParams::from_mean(f64::NAN, 5.0).check().is_err());
    }

    #[test]
    fn mean_loss_and_mean_burst() {
        for (p, burst, seed) in [(0.01, 5.0, 1), (0.05, 3.0, 2), (0.2, 10.0, 3)] {
            let n = 400_000;
            let (share, bursts) = run(GilbertElliottParams::from_mean(p, burst), seed, n);
            let mean = bursts.iter().sum::<f64>() / bursts.len() as f64;
            // A burst is geometric with mean b, so its variance is b(b-1).
            let sd = (burst * (burst - 1.0) / bursts.len() as f64).sqrt();
            assert!((mean - burst).abs() < 4.0 * sd, "burst {mean} for {burst}");
            // Two-state chain: the variance of the mean is p(1-p)(1+c)/(1-c)/n, c = 1 - to_bad - to_good.
            let g = GilbertElliottParams::from_mean(p, burst);
            let c = 1.0 - g.to_bad - g.to_good;
            let sd = (p * (1.0 - p) * (1.0 + c) / (1.0 - c) / n as f64).sqrt();
            assert!((share - p).abs() < 4.0 * sd, "loss {share} for {p}");
        }
    }

    #[test]
    fn both_states_may_lose_in_part() {
        let g = GilbertElliottParams { to_bad: 0.02, to_good: 0.08, loss_bad: 0.5, loss_good: 0.01 };
        assert!((g.mean_loss() - (0.2 * 0.5 + 0.8 * 0.01)).abs() < 1e-12);
        let (share, _) = run(g, 4, 400_000);
        assert!((share - g.mean_loss()).abs() < 0.004, "{share}");
    }

    #[test]
    fn starts_in_the_stationary_state() {
        let g = GilbertElliottParams::from_mean(0.3, 20.0);
        let n = 4_000u32;
        let first = (0..n).filter(|s| run(g, u64::from(*s), 1).0 > 0.5).count() as f64;
        let sd = (f64::from(n) * 0.3 * 0.7).sqrt();
        assert!((first - 0.3 * f64::from(n)).abs() < 4.0 * sd, "{first}");
    }
}
