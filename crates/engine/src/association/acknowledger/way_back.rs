//! What acknowledging costs the way back.

use anabranch_base::Ppm;

/// Older bytes count half each time that so many have come: a second or less of a stream of 4 Mbit/s and more.
const LATELY: u64 = 256 * 1024;

/// Bytes of SACKs beside bytes of payload, lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayBack {
    sacks: u64,
    payload: u64,
}

impl WayBack {
    /// So many bytes of payload came.
    pub fn received(&mut self, bytes: usize) {
        self.payload += bytes as u64;
        if self.payload >= 2 * LATELY {
            self.payload /= 2;
            self.sacks /= 2;
        }
    }

    /// A SACK of so many bytes left. It never counts more than the payload, or a burst of duplicates, each answered,
    /// would be held against what comes after it.
    pub fn sent(&mut self, bytes: usize) {
        self.sacks = (self.sacks + bytes as u64).min(self.payload);
    }

    /// SACKs as a share of the payload.
    pub fn share(&self) -> Ppm {
        Ppm((self.sacks * 1_000_000).checked_div(self.payload).unwrap_or(0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_last_bytes() {
        let mut w = WayBack::default();
        assert_eq!(w.share(), Ppm(0));
        let mut run = |packets: usize, every: usize| {
            for n in 0..packets {
                w.received(1_000);
                if n % every == 0 {
                    w.sent(50);
                }
            }
            w.share().0
        };
        assert_eq!(run(100, 1), 50_000);
        let later = run(3_000, 5);
        assert!((9_900..10_300).contains(&later), "{later}");
    }

    #[test]
    fn sacks_without_payload_do_not_count() {
        let mut w = WayBack::default();
        (0..1_000).for_each(|_| w.sent(usize::MAX >> 16));
        assert_eq!(w.share(), Ppm(0));
        w.received(1);
        w.sent(1_000);
        assert_eq!(w.share(), Ppm::ONE);
        (0..10).for_each(|_| w.received(1 << 20));
        assert!(w.share() < Ppm(10));
    }
}
