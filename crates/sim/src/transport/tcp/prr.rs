//! Proportional Rate Reduction (RFC 9937, before it RFC 6937): in a recovery segments leave in proportion to those that
//! arrive, so that the window comes down to the threshold over a round trip.

/// One recovery. Counts are in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    delivered: u64,
    out: u64,
    /// `RecoverFS`: what may be delivered in the course of the recovery.
    flight: u64,
}

impl Prr {
    /// A recovery begins (§6.1). `flight` are the segments in flight, those lost and those that the acknowledgement
    /// which began it says have arrived.
    pub fn new(flight: u64) -> Self {
        Prr { delivered: 0, out: 0, flight: flight.max(1) }
    }

    /// The window after an acknowledgement that says of `delivered` segments that they arrived (§6.2). `safe` says that
    /// it advanced and showed no further loss.
    pub fn window(&mut self, delivered: u64, in_flight: u64, ssthresh: u64, safe: bool) -> u64 {
        self.delivered += delivered;
        let mut count = if in_flight > ssthresh {
            (self.delivered * ssthresh).div_ceil(self.flight).saturating_sub(self.out)
        } else {
            let conserves = self.delivered.saturating_sub(self.out).max(delivered);
            (conserves + u64::from(safe)).min(ssthresh - in_flight)
        };
        if self.out == 0 {
            count = count.max(1);
        }
        in_flight + count
    }

    /// A segment leaves (§6.3).
    pub fn leaves(&mut self) {
        self.out += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leaves on each of these acknowledgements of one segment each.
    fn sent(prr: &mut Prr, acks: u64, mut in_flight: u64, ssthresh: u64, safe: bool) -> Vec<u64> {
        let one = |_| {
            in_flight -= 1;
            let window = prr.window(1, in_flight, ssthresh, safe);
            let count = window - in_flight;
            (0..count).for_each(|_| prr.leaves());
            in_flight = window;
            count
        };
        (0..acks).map(one).collect()
    }

    /// RFC 9937 §8, figure 1: of 20 segments the first is lost, and half is the target. From the third duplicate on one
    /// leaves for two that arrive. By the steps of §6.2 the one of ACK 19, when just the target is in flight, leaves an
    /// acknowledgement later than in the figure.
    #[test]
    fn one_for_two_that_arrive() {
        let mut prr = Prr::new(20);
        let all = sent(&mut prr, 19, 19, 10, false);
        let alternate: Vec<u64> = (0..16).map(|n| u64::from(n % 2 == 0)).collect();
        assert_eq!(all[..16], alternate);
        assert_eq!(all[16..], [0, 1, 1]);
    }

    /// Figure 2: 15 of the 20 are lost, so that fewer are in flight than the target. One leaves for each that arrives
    /// (PRR-CRB), two where the recovery makes progress (PRR-SSRB), until the target is reached.
    #[test]
    fn heavy_losses_conserve_packets() {
        let mut prr = Prr::new(20);
        assert_eq!(sent(&mut prr, 3, 5, 10, false), [1, 1, 1]);
        let mut prr = Prr::new(20);
        assert_eq!(sent(&mut prr, 3, 5, 10, true), [2, 2, 2]);
        // No further than the target.
        let mut prr = Prr::new(20);
        assert_eq!(prr.window(8, 5, 10, true), 10);
    }

    #[test]
    fn the_first_retransmission_leaves_at_once() {
        let mut prr = Prr::new(100);
        assert_eq!(prr.window(0, 99, 10, false), 100);
        prr.leaves();
        assert_eq!(prr.window(0, 99, 10, false), 99);
    }
}
