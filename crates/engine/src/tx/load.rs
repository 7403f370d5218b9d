//! What the user hands over, by class: what is less important has to leave room for it.

use crate::lazy_box::Empty;
use anabranch_base::{Duration, Instant, Rate};

/// Time over which rates are averaged: groups of pictures are a second or two long.
const OVER: Duration = Duration::from_secs(2);
/// Classes that are distinguished; higher ones count as the last.
pub(crate) const CLASSES: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of the last two seconds or so.
    bytes: [u64; CLASSES],
    at: Instant,
    began: Option<Instant>,
}

impl Empty for Load {
    const EMPTY: &'static Load = &Load { bytes: [0; CLASSES], at: Instant::ZERO, began: None };
}

impl Default for Load {
    fn default() -> Self {
        *Load::EMPTY
    }
}

impl Load {
    /// A message was handed over.
    pub fn add(&mut self, now: Instant, class: u8, bytes: u64) {
        self.began.get_or_insert(now);
        let age = now.since(self.at).as_nanos();
        // LazyBox enough for the rounding not to matter.
        if age > 1_000_000 {
            let keeps = OVER.as_nanos().saturating_sub(age);
            for b in &mut self.bytes {
                *b = (u128::from(*b) * u128::from(keeps) / u128::from(OVER.as_nanos())) as u64;
            }
            self.at = now;
        }
        self.bytes[usize::from(class).min(CLASSES - 1)] += bytes;
    }

    /// Bytes a second, by class. Of a stream that has just begun they say nothing yet.
    pub fn rates(&self, now: Instant) -> [Rate; CLASSES] {
        if self.began.is_none_or(|t| now.since(t) < OVER) {
            return [Rate::ZERO; CLASSES];
        }
        self.bytes.map(|b| Rate::of(b, OVER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_class_once_there_was_time_to_see_them() {
        let mut l = Load::default();
        let at = |i: u64| Instant::from_millis(1_000 + i * 40);
        for i in 0..250 {
            l.add(at(i), if i % 50 == 0 { 0 } else { 2 }, if i % 50 == 0 { 100_000 } else { 10_000 });
            assert_eq!(l.rates(at(i))[2] == Rate::ZERO, i < 50);
        }
        let r = l.rates(at(249)).map(Rate::bytes_per_sec);
        assert!((20_000..80_000).contains(&r[0]) && r[1] == 0 && (220_000..280_000).contains(&r[2]), "{r:?}");
        l.add(at(10_000), 9, 1);
        assert_eq!(l.bytes, [0, 0, 1], "what was long ago is forgotten");
    }
}
