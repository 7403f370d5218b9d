//! An encoder whose bit rate follows what the association says its paths carry.
//!
//! The pictures are those of its source; their sizes are scaled. A new target is not met by the next picture: the rate
//! nears it exponentially, and 95 % of a step are made after [`Follow::lag`]. An x264 with a buffer model of half a second
//! makes a step down within 0.4 s, one with a second's the same a fifth of a second later.

use crate::metrics::Cut;
use anabranch_base::{Duration, Instant, Rate};
use anabranch_engine::UsableRate;
use anabranch_sim::traffic::{Emission, Kind, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which of the two rates it follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follows {
    /// [`UsableRate::low`].
    Low,
    /// [`UsableRate::middle`].
    Middle,
}

/// How an encoder follows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Follow {
    /// The estimate that it follows.
    pub what: Follows,
    /// It never makes less.
    pub least: Rate,
    /// After so long 95 % of a step are made.
    pub lag: Duration,
}

/// What an association says, where the encoder of its source reads it.
#[derive(Clone, Debug)]
pub struct Dial {
    what: Follows,
    /// Bytes of messages a second; the largest number before anything is known.
    rate: Arc<AtomicU64>,
}

impl Dial {
    /// Nothing is known yet.
    pub fn new(what: Follows) -> Self {
        Dial { what, rate: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// What the association says now.
    pub(super) fn set(&self, now: UsableRate) {
        if now.changes > 0 {
            let rate = if self.what == Follows::Low { now.low } else { now.middle };
            self.rate.store(rate.bytes_per_sec(), Ordering::Relaxed);
        }
    }

    fn get(&self) -> f64 {
        self.rate.load(Ordering::Relaxed) as f64
    }
}

/// See the module's description.
pub struct Encoder {
    inner: Box<dyn Source>,
    dial: Dial,
    /// Bytes a second of the source, and the least.
    full: f64,
    least: f64,
    /// Frame bytes for each byte of messages.
    part: f64,
    /// Seconds in which the rate makes 63 % of a step.
    nears: f64,
    now: f64,
    last: Option<Instant>,
}

impl Encoder {
    /// The pictures of `inner`, which has `full` in the mean, at what `dial` shows of messages that `cut` makes.
    pub fn new(inner: Box<dyn Source>, full: Rate, follow: Follow, dial: Dial, cut: Cut) -> Self {
        let [full, least] = [full, follow.least].map(|r| r.bytes_per_sec().max(1) as f64);
        let packet = u64::from(cut.packet.max(1));
        let part = packet as f64 / cut.message(packet) as f64;
        let nears = (follow.lag.as_secs_f64() / 3.0).max(1e-9);
        Encoder { inner, dial, full, least: least.min(full), part, nears, now: full, last: None }
    }

    fn scaled(&mut self, e: &Emission) -> u64 {
        let target = (self.dial.get() * self.part).clamp(self.least, self.full);
        if let Some(last) = self.last {
            let passed = e.at.since(last).as_secs_f64();
            self.now += (target - self.now) * (1.0 - libm::exp(-passed / self.nears));
        }
        self.last = Some(e.at);
        (libm::round(e.size as f64 * self.now / self.full) as u64).max(1)
    }
}

impl Source for Encoder {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let e = self.inner.next(now)?;
        let size = if matches!(e.kind, Kind::Frame { .. }) { self.scaled(&e) } else { e.size };
        Some(Emission { size, ..e })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::traffic::{TrafficConfig, Video};

    #[test]
    fn a_step_takes_a_second_and_stays_between_least_and_full() {
        let full = Rate::from_bits_per_sec(8_000_000);
        let video = Video { rate: full, sigma: 0.0, ratio: [1.0; 3], ..Video::STANDARD };
        let dial = Dial::new(Follows::Low);
        let follow =
            Follow { what: Follows::Low, least: Rate::from_bits_per_sec(800_000), lag: Duration::from_secs(1) };
        let source = TrafficConfig::Video(video).build(1, "film");
        let mut encoder = Encoder::new(source, full, follow, dial.clone(), Cut::plain(1_000));
        let mut after = |frames: usize| (0..frames).map(|_| encoder.next(Instant::ZERO).unwrap().size).last().unwrap();
        assert_eq!(after(10), 40_000, "nothing is known");
        let says = |bits: u64| {
            let mut usable = UsableRate::default();
            (usable.low, usable.changes) = (Rate::from_bits_per_sec(bits), 1);
            dial.set(usable);
        };
        says(4_000_000);
        let half = after(8);
        assert!((26_000..30_000).contains(&half), "after a third of a second: {half}");
        assert!((20_000..21_500).contains(&after(17)));
        says(0);
        assert!((4_000..4_010).contains(&after(100)));
        says(80_000_000);
        assert!((39_990..=40_000).contains(&after(100)));
    }
}
