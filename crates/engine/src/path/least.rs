//! The least of what was sampled within a sliding window.

use anabranch_base::{Duration, Instant};

/// Two halves: the minimum is exact over the newer half and at most two halves old. Zero without a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Least {
    now: Duration,
    before: Duration,
    began: Instant,
}

impl Least {
    /// Takes a sample; a half of the window lasts `half`.
    pub fn update(&mut self, now: Instant, sample: Duration, half: Duration) {
        let age = now.since(self.began);
        if self.now.is_zero() || age > half {
            self.before = if age > half * 2 { Duration::ZERO } else { self.now };
            self.now = sample;
            self.began = now;
        }
        self.now = self.now.min(sample);
    }

    pub fn get(&self) -> Duration {
        if self.before.is_zero() { self.now } else { self.now.min(self.before) }
    }
}
