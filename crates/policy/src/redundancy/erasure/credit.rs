//! What parity may take of what is sent.

use anabranch_base::{Duration, Instant, Ppm};

/// What was not used for twice as long is no licence for a burst.
const HALF: Duration = Duration::from_millis(50);
const PACKET: u64 = 1_500;

/// Bytes that parity may have: a share of all that is sent. Saved up is the share of what left within the last 50 to 100 ms,
/// which is at least a frame of a film, however large; or a few packets, where that is more.
pub(super) struct Credit {
    rate: Ppm,
    /// So much may be saved up whatever was sent, bytes times a million like all that follows.
    least: u64,
    saved: u64,
    /// Earned since the half began, and in the one before.
    half: Option<Instant>,
    earned: u64,
    before: u64,
}

impl Credit {
    /// At most `rate` of what is sent; a few packets of it may be saved up however little that is.
    pub const fn new(rate: Ppm, packets: u64) -> Self {
        Credit { rate, least: packets * PACKET * 1_000_000, saved: 0, half: None, earned: 0, before: 0 }
    }
    /// So many bytes left.
    pub fn earn(&mut self, bytes: u64, now: Instant) {
        let age = self.half.map_or(Duration::MAX, |h| now.since(h));
        if age >= HALF {
            self.before = if age < HALF * 2 { self.earned } else { 0 };
            (self.half, self.earned) = (Some(now), 0);
        }
        let more = bytes * u64::from(self.rate.0);
        self.earned += more;
        self.saved = (self.saved + more).min(self.least.max(self.before + self.earned));
    }
    /// Is there credit for so many bytes?
    pub const fn has(&self, bytes: u64) -> bool {
        self.saved >= bytes * 1_000_000
    }
    /// For how many packets of this size is there?
    pub fn packets(&self, size: u64) -> u64 {
        self.saved / (size.max(1) * 1_000_000)
    }
    /// Parity of so many bytes leaves.
    pub const fn spend(&mut self, bytes: u64) {
        self.saved = self.saved.saturating_sub(bytes * 1_000_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is sent, and whenever, no more than its share is ever spent, and what is saved up has an end.
    #[test]
    fn a_share_is_never_exceeded_and_is_not_saved_for_long() {
        for rate in [10_000, 100_000, 1_000_000] {
            let (mut c, mut now) = (Credit::new(Ppm(rate), 4), Instant::from_millis(1_000));
            let (mut sent, mut spent) = (0, 0);
            for n in 0..2_000u64 {
                now += Duration::from_millis(n * 7 % 120);
                for _ in 0..n * 13 % 90 {
                    c.earn(1_200, now);
                    sent += 1_200;
                }
                while n % 5 == 0 && c.has(PACKET) {
                    c.spend(1_000);
                    spent += 1_000;
                }
                assert!(spent * 1_000_000 <= sent * u64::from(rate), "{spent} of {sent}");
            }
            // As much as comes in a second, and then a packet after a pause.
            (0..10_000).for_each(|_| c.earn(1_200, now));
            c.earn(1_200, now + Duration::from_millis(200));
            assert!(c.packets(PACKET) <= 4, "{}", c.packets(PACKET));
        }
    }
}
