//! A mean rate that is another one from time to time.

use anabranch_base::{Duration, Instant, RandomStream, Rate};

/// The mean rate of a source, drawn evenly between two rates at its start and again after each `every`. So the load of
/// others varies on a link in Xu et al. 2014 §VII.A, between nothing and half of the access rate; how often, the paper
/// leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redraw {
    /// The least mean rate, bytes of payload a second.
    pub from: Rate,
    /// The highest one.
    pub to: Rate,
    /// How long a mean holds.
    pub every: Duration,
}

/// Below it a packet takes so long that a source may wait for nothing.
const LEAST_HIGHEST: Rate = Rate::from_bytes_per_sec(125);

impl Redraw {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.from > self.to {
            return Err("the least mean rate of a source must not be above the highest");
        }
        if self.to < LEAST_HIGHEST {
            return Err("the highest mean rate of a source must be 1 kbit/s or more");
        }
        if self.every < Duration::from_millis(1) {
            return Err("a mean rate must hold for 1 ms or longer");
        }
        Ok(())
    }
}

/// The means as time goes on.
pub(super) struct Means {
    config: Redraw,
    random: RandomStream,
    /// When the next one is drawn.
    pub until: Instant,
    /// The peak rate that makes the mean of now, bytes a second.
    pub peak: u64,
    /// Peak over mean.
    factor: f64,
}

impl Means {
    /// None drawn yet: the first holds from the first [`draw`](Self::draw) on.
    pub fn new(config: Redraw, random: RandomStream, factor: f64) -> Self {
        Means { config, random, until: Instant::ZERO, peak: 0, factor }
    }

    /// Draws the mean of `now` where that before it is over. Of those that a silence went past none is missed.
    pub fn go_on(&mut self, now: Instant) {
        if self.until <= now {
            let every = self.config.every.as_nanos();
            let begun = now.since(self.until).as_nanos() / every * every;
            self.draw(self.until + Duration::from_nanos(begun));
        }
    }

    /// Draws the mean that holds from `now` on.
    pub fn draw(&mut self, now: Instant) {
        let (from, to) = (self.config.from.bytes_per_sec() as f64, self.config.to.bytes_per_sec() as f64);
        let mean = from + self.random.unit() * (to - from);
        self.peak = (mean * self.factor).round() as u64;
        self.until = now + self.config.every;
    }
}
