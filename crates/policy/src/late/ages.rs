//! How old chunks were when they were acknowledged, and with what probability one that is in flight will be missing.

use crate::view::PathView;
use anabranch_base::Duration;

/// Width of a bin, and how many: what takes longer is in the last one.
const BIN: Duration = Duration::from_millis(4);
const BINS: usize = 256;
/// So much a new age counts, and half of it once so many more have come.
const NEW: u32 = 64;
const MOST_AGES: u32 = 512;
/// Fewer ages say nothing.
const FEW: u32 = 16;
/// Ages at which the chunks of a path were acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Ages {
    /// By bin.
    counts: Vec<u32>,
    /// By bin: how many are in higher ones.
    above: Vec<u32>,
    all: u32,
}

impl Default for Ages {
    fn default() -> Self {
        Ages { counts: vec![0; BINS], above: vec![0; BINS], all: 0 }
    }
}

impl Ages {
    pub fn add(&mut self, age: Duration) {
        let bin = (age.as_nanos() / BIN.as_nanos()) as usize;
        if self.all >= MOST_AGES * NEW {
            self.counts.iter_mut().for_each(|c| *c /= 2);
            self.all = 0;
            for (above, count) in self.above.iter_mut().zip(&self.counts).rev() {
                *above = self.all;
                self.all += count;
            }
        }
        let bin = bin.min(BINS - 1);
        if let Some(c) = self.counts.get_mut(bin) {
            *c += NEW;
            self.all += NEW;
        }
        self.above.iter_mut().take(bin).for_each(|a| *a += NEW);
    }
    /// The part that takes longer than `age`, evenly spread within a bin; none while little is known.
    pub fn longer_than(&self, age: Duration) -> Option<f64> {
        if self.all < FEW * NEW {
            return None;
        }
        let at = age.as_nanos() as f64 / BIN.as_nanos() as f64;
        let bin = at as usize;
        let above = self.above.get(bin).copied().unwrap_or(0);
        let here = f64::from(self.counts.get(bin).copied().unwrap_or(0));
        let within = if bin < BINS { here * (1.0 - at.fract()) } else { 0.0 };
        Some((f64::from(above) + within) / f64::from(self.all))
    }
    /// With what probability a chunk that left by `p` so long ago and has not been acknowledged is lost.
    pub fn lost(&self, p: &PathView, age: Duration) -> f64 {
        let loss = f64::from(p.loss.0) / 1e6;
        let waits = self.longer_than(age).unwrap_or(1.0);
        if loss > 0.0 { loss / (loss + (1.0 - loss) * waits) } else { 0.0 }
    }
    /// With what probability a chunk that left by `p` so long ago and has not been acknowledged will be missing when it is
    /// due `slack` after it left, whether late or lost.
    pub fn missing(&self, p: &PathView, age: Duration, slack: Duration) -> f64 {
        // An acknowledgement says when it came, later by the way back.
        let back = p.min_rtt.saturating_sub(p.one_way);
        let loss = f64::from(p.loss.0) / 1e6;
        let (Some(late), Some(waits)) = (self.longer_than((slack + back).max(age)), self.longer_than(age)) else {
            return loss;
        };
        let of = |late: f64| loss + (1.0 - loss) * late;
        if of(waits) <= 0.0 { 1.0 } else { (of(late) / of(waits)).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};
    use anabranch_base::Ppm;

    /// Acknowledged after 100 to 300 ms, evenly.
    fn unsteady() -> Ages {
        let mut ages = Ages::default();
        (0..200).for_each(|i| ages.add(ms(100 + i)));
        ages
    }

    #[test]
    fn the_part_that_is_late_is_counted() {
        let ages = unsteady();
        for (age, part) in [(0, 1.0), (100, 1.0), (150, 0.75), (250, 0.25), (300, 0.0), (9_000, 0.0)] {
            let longer = ages.longer_than(ms(age)).unwrap();
            assert!((longer - part).abs() < 0.01, "{age} ms: {longer}");
        }
        let mut ages = Ages::default();
        (1..FEW).for_each(|_| ages.add(ms(10)));
        assert_eq!(ages.longer_than(ms(5)), None);
        // What is new counts for more than what is old.
        (0..2 * MOST_AGES).for_each(|_| ages.add(ms(100_000)));
        assert!(ages.longer_than(ms(50)).unwrap() > 0.98);
    }

    #[test]
    fn what_has_not_come_is_late_more_likely() {
        let (ages, mut s) = (unsteady(), Scene::new(1, 0));
        let missing = |s: &Scene, age, slack| ages.missing(&s.paths[0], ms(age), ms(slack));
        assert!((missing(&s, 0, 250) - 0.25).abs() < 0.01);
        assert!((missing(&s, 200, 250) - 0.5).abs() < 0.02, "half of what takes 200 ms takes 250");
        // Of a round trip of 60 ms, 10 are the way back: what is acknowledged after 260 had come after 250.
        (s.paths[0].min_rtt, s.paths[0].one_way) = (ms(60), ms(50));
        assert!((missing(&s, 200, 240) - 0.5).abs() < 0.02);
        s.paths[0].loss = Ppm(100_000);
        let expected = (0.1 + 0.9 * 0.25) / (0.1 + 0.9 * 0.5);
        assert!((missing(&s, 200, 240) - expected).abs() < 0.02, "lost or late");
        assert!(missing(&s, 400, 500) > 0.99, "nothing takes so long");
        assert!((ages.lost(&s.paths[0], ms(200)) - 0.1 / (0.1 + 0.9 * 0.5)).abs() < 0.02, "lost, not late");
        assert!(ages.lost(&s.paths[0], ms(400)) > 0.99);
        s.paths[0].loss = Ppm(0);
        assert!(ages.lost(&s.paths[0], ms(400)) < 1e-9, "nothing is lost there");
        s.paths[0].loss = Ppm(100_000);
        assert!((Ages::default().missing(&s.paths[0], ms(10), ms(90)) - 0.1).abs() < 1e-9, "nothing known but losses");
    }
}
