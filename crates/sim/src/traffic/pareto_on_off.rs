//! Bursts and silences of heavy-tailed length; many such sources together are self-similar
//! (Willinger et al. 1997).

use super::redraw::{Means, Redraw};
use super::{Emission, Sizes, packet};
use crate::draw::pareto;
use anabranch_base::{Duration, Instant, RandomStream, Rate};

/// Sends at `peak` while on and nothing while off; both last for Pareto times. The gap that the end
/// of a burst cuts off goes on in the next burst, so the mean rate is
/// `peak mean_on / (mean_on + mean_off)` whatever the sizes.
#[derive(Clone, PartialEq, Debug)]
pub struct ParetoOnOff {
    /// Bytes of payload per second while on.
    pub peak: Rate,
    /// Bytes of payload per packet.
    pub sizes: Sizes,
    /// Mean length of a burst.
    pub mean_on: Duration,
    /// Mean length of a silence.
    pub mean_off: Duration,
    /// Shape of both, above 1; up to 2 the variance is infinite.
    pub shape: f64,
    /// A mean rate that is drawn again and again, in place of `peak`: the peak follows it.
    pub redraw: Option<Redraw>,
}

impl ParetoOnOff {
    /// Bursts and silences of half a second on average with shape 1.5, as the cross traffic of Xu et al. 2014 §VII.A.
    pub const fn half_and_half(peak: Rate, sizes: Sizes) -> Self {
        let half = Duration::from_millis(500);
        ParetoOnOff { peak, sizes, mean_on: half, mean_off: half, shape: 1.5, redraw: None }
    }

    /// This source with the peak rate that makes `mean` in the long run, which bursts and silences as long as these need.
    #[must_use]
    pub fn with_mean(self, mean: Rate) -> Self {
        let peak = mean.bytes_per_sec() as f64 * self.peak_over_mean();
        // A source without bursts has no mean, and is refused for that.
        let peak = if peak.is_finite() { Rate::from_bytes_per_sec(libm::round(peak) as u64) } else { mean };
        ParetoOnOff { peak, redraw: None, ..self }
    }

    /// Peak rate over mean rate.
    fn peak_over_mean(&self) -> f64 {
        let (on, off) = (self.mean_on.as_secs_f64(), self.mean_off.as_secs_f64());
        (on + off) / on
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.sizes.check()?;
        match &self.redraw {
            Some(redraw) => redraw.check()?,
            None if self.peak == Rate::ZERO => return Err("an on/off source needs a peak rate above zero"),
            None => {}
        }
        if self.mean_on.is_zero() || self.mean_off.is_zero() {
            return Err("mean lengths of bursts and silences must be longer than zero");
        }
        if !(self.shape > 1.0 && self.shape.is_finite()) {
            return Err("the Pareto shape of an on/off source must be above 1: below there is no mean");
        }
        Ok(())
    }
}

pub(super) struct Source {
    config: ParetoOnOff,
    random: RandomStream,
    /// When the next packet leaves, if the burst lasts that long.
    next: Option<Instant>,
    off_at: Instant,
    means: Option<Means>,
    /// Bytes of the packet before, which the next one waits for.
    before: u64,
}

impl Source {
    /// `means` gives the numbers of the means, where they are drawn again.
    pub(super) fn new(config: ParetoOnOff, random: RandomStream, means: RandomStream) -> Self {
        let factor = config.peak_over_mean();
        let means = config.redraw.map(|redraw| Means::new(redraw, means, factor));
        Source { config, random, next: None, off_at: Instant::ZERO, means, before: 0 }
    }

    /// A Pareto time with this mean: its least is `mean (shape - 1) / shape`.
    fn time(&mut self, mean: Duration) -> Duration {
        let shape = self.config.shape;
        let least = mean.as_secs_f64() * (shape - 1.0) / shape;
        Duration::from_secs_f64(pareto(&mut self.random, least, shape))
    }

    /// The first packet's time: now or after a silence, in proportion to their means.
    fn start(&mut self, now: Instant) -> Instant {
        let (on, off) = (self.config.mean_on.as_secs_f64(), self.config.mean_off.as_secs_f64());
        let silent = self.random.unit() * (on + off) >= on;
        let first = if silent { now + self.time(self.config.mean_off) } else { now };
        self.off_at = first + self.time(self.config.mean_on);
        first
    }
}

impl Source {
    /// The next packet's time where the mean is drawn again: when the bytes of the one before have passed at the peak
    /// rates of the times in which the source was on.
    fn next_of_means(&mut self, now: Instant) -> Option<Instant> {
        let mut means = self.means.take()?;
        let mut at = match self.next {
            Some(at) => at,
            None => {
                means.draw(now);
                self.start(now)
            }
        };
        let mut left = u128::from(self.before) * 1_000_000_000;
        while at < Instant::FAR {
            means.go_on(at);
            let piece = self.off_at.min(means.until).since(at).as_nanos();
            let passes = u128::from(means.peak) * u128::from(piece);
            // What is to leave as a burst ends leaves with the next one.
            if left < passes {
                at += Duration::from_nanos(left.div_ceil(u128::from(means.peak)) as u64);
                break;
            }
            left -= passes;
            at += Duration::from_nanos(piece);
            if at >= self.off_at {
                let silence = self.time(self.config.mean_off);
                at += silence;
                self.off_at = self.off_at + silence + self.time(self.config.mean_on);
            }
        }
        self.means = Some(means);
        self.next = Some(at);
        (at < Instant::FAR).then_some(at)
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        if self.means.is_some() {
            let at = self.next_of_means(now)?;
            let size = u64::from(self.config.sizes.draw(&mut self.random));
            self.before = size;
            return Some(packet(at, size));
        }
        let mut at = match self.next {
            Some(at) => at,
            None => self.start(now),
        };
        while at >= self.off_at {
            if self.off_at == Instant::FAR {
                return None;
            }
            let silence = self.time(self.config.mean_off);
            at += silence;
            self.off_at = self.off_at + silence + self.time(self.config.mean_on);
        }
        let size = u64::from(self.config.sizes.draw(&mut self.random));
        self.next = Some(at + self.config.peak.time_for(size));
        Some(packet(at, size))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrafficConfig;
    use super::*;

    #[test]
    fn gaps_are_those_of_the_peak_or_hold_a_silence() {
        let config = ParetoOnOff::half_and_half(Rate::from_bits_per_sec(800_000), Sizes::Fixed(1_000));
        let mut source = TrafficConfig::ParetoOnOff(config).build(3, "on-off");
        let all: Vec<Instant> = (0..20_000).map(|_| source.next(Instant::ZERO).unwrap().at).collect();
        let peak = Duration::from_millis(10);
        // The shortest silence is a third of the mean.
        let shortest = Duration::from_secs_f64(0.5 / 3.0);
        let mut silences = 0;
        for gap in all.windows(2).map(|w| w[1].since(w[0])) {
            if gap != peak {
                assert!(gap >= peak + shortest - Duration::from_nanos(2), "{gap}");
                silences += 1;
            }
        }
        assert!(silences > 100, "{silences}");
    }

    /// A mean that never changes makes what its peak does, but for a nanosecond here and there.
    #[test]
    fn one_mean_is_one_peak() {
        let plain =
            ParetoOnOff::half_and_half(Rate::from_bits_per_sec(800_000), Sizes::Uniform { min: 40, max: 1_500 });
        let rate = Rate::from_bits_per_sec(400_000);
        let redraw = Some(Redraw { from: rate, to: rate, every: Duration::from_millis(700) });
        let mut sources =
            [plain.clone(), ParetoOnOff { redraw, ..plain }].map(|c| TrafficConfig::ParetoOnOff(c).build(3, "on-off"));
        for n in 0..20_000u64 {
            let [a, b] = sources.each_mut().map(|s| s.next(Instant::ZERO).unwrap());
            assert_eq!(a.size, b.size);
            let apart = a.at.since(b.at).max(b.at.since(a.at));
            assert!(apart <= Duration::from_nanos(2 * (n + 1)), "packet {n}: {:?} and {:?}", a.at, b.at);
        }
    }

    #[test]
    fn nonsense_is_named() {
        let good = ParetoOnOff::half_and_half(Rate::from_bytes_per_sec(9), Sizes::Fixed(1));
        let bad = |c: ParetoOnOff| {
            let config = TrafficConfig::ParetoOnOff(c);
            assert_eq!(config.build(1, "bad").next(Instant::ZERO), None);
            config.check().is_err()
        };
        assert_eq!(good.check(), Ok(()));
        assert!(bad(ParetoOnOff { shape: 1.0, ..good.clone() }));
        assert!(bad(ParetoOnOff { mean_on: Duration::ZERO, ..good.clone() }));
        assert!(bad(ParetoOnOff { peak: Rate::ZERO, ..good.clone() }));
        let rate = Rate::from_bytes_per_sec;
        let redraw = |from, to, every| {
            let redraw = Some(Redraw { from: rate(from), to: rate(to), every: Duration::from_micros(every) });
            ParetoOnOff { redraw, ..good.clone() }
        };
        assert_eq!(redraw(0, 125, 1_000).check(), Ok(()));
        for (from, to, every) in [(0, 124, 1_000), (0, 125, 999), (126, 125, 1_000)] {
            assert!(bad(redraw(from, to, every)), "{from} {to} {every}");
        }
    }

    #[test]
    fn a_fixed_mean_is_reached_in_the_long_run() {
        let ms = Duration::from_millis;
        for (on, off) in [(ms(500), ms(500)), (ms(100), ms(900)), (ms(2_000), ms(500))] {
            for rate in [20_000, 250_000] {
                let plain = ParetoOnOff::half_and_half(Rate::ZERO, Sizes::Fixed(500));
                // Far from 1, where means of Pareto times are slow to come.
                let source = ParetoOnOff { mean_on: on, mean_off: off, shape: 3.0, ..plain };
                let source = source.with_mean(Rate::from_bytes_per_sec(rate));
                let peak = rate as f64 * (on + off).as_secs_f64() / on.as_secs_f64();
                assert_eq!(source.peak.bytes_per_sec(), libm::round(peak) as u64);
                let mut source = TrafficConfig::ParetoOnOff(source).build(1, "mean");
                let until = Instant::ZERO + Duration::from_secs(4_000);
                let all = std::iter::from_fn(|| source.next(Instant::ZERO)).take_while(|e| e.at < until);
                let mean = all.map(|e| e.size).sum::<u64>() as f64 / 4_000.0;
                assert!((mean / rate as f64 - 1.0).abs() < 0.05, "{on:?} {off:?} {rate}: {mean}");
            }
        }
    }
}
