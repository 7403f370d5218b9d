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
}
