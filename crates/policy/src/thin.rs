//! The thin test: too few packets in flight for a fast retransmit.
//!
//! Petlund et al. 2009 §5.1 and fig. 3; used by the loss threshold and the timer of that name.

use anabranch_base::Ppm;

/// Compares packets in flight with `(3 + 1) / (1 - loss)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThinTest {
    /// `<=` instead of `<`.
    pub or_equal: bool,
}

/// Missing reports a standard fast retransmit needs.
const REPORTS: u64 = 3;

impl ThinTest {
    /// From the parameter `cmp`, `lt` or `le`.
    pub fn of(word: &str) -> Self {
        ThinTest { or_equal: word == "le" }
    }
    /// Is a path with `packets` in flight and this loss rate thin?
    pub fn holds(self, packets: u32, loss: Ppm) -> bool {
        let delivered = 1_000_000 - u64::from(loss.0.min(500_000));
        let (left, right) = (u64::from(packets) * delivered, (REPORTS + 1) * 1_000_000);
        left < right || self.or_equal && left == right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest number of packets that is still thin.
    fn most(t: ThinTest, loss: u32) -> u32 {
        (0..100).take_while(|&k| t.holds(k, Ppm(loss))).last().unwrap()
    }

    #[test]
    fn limits_rise_with_the_loss_rate() {
        // Limits 4.0, 4.21, 4.44 and 8.0 at 0, 5, 10 and 50 % loss|.
        let lt = ThinTest { or_equal: false };
        assert_eq!([0, 50_000, 100_000, 500_000].map(|l| most(lt, l)), [3, 4, 4, 7]);
        assert!(!lt.holds(4, Ppm(0)) && ThinTest { or_equal: true }.holds(4, Ppm(0)));
        assert_eq!(most(lt, 900_000), 7, "the loss rate counts as one half at most");
    }
}
