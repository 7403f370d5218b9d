//! What the user hands over, by class: what is less important has to leave room for it.

use crate::lazy_box::Empty;
use anabranch_base::{Duration, Instant, Rate};

/// Time over which rates are averaged: groups of pictures are a second or two long.
const OVER: Duration = Duration::from_secs(2);
/// Least time that says something of them: a stream that begins may offer more than the paths carry at once. One of several
/// classes begins with its largest frame.
const ENOUGH: [Duration; 2] = [Duration::from_millis(400), Duration::from_secs(1)];
/// Classes that are distinguished; higher ones count as the last.
pub(crate) const CLASSES: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of the last two seconds or so, older ones counting for less.
    bytes: [u64; CLASSES],
    at: Option<Instant>,
    /// The time in which they were handed over, weighted alike.
    seen: Duration,
}

impl Empty for Load {
    const EMPTY: &'static Load = &Load { bytes: [0; CLASSES], at: None, seen: Duration::ZERO };
}

impl Default for Load {
    fn default() -> Self {
        *Load::EMPTY
    }
}

impl Load {
    /// A message was handed over.
    pub fn add(&mut self, now: Instant, class: u8, bytes: u64) {
        let age = self.at.map_or(OVER, |at| now.since(at));
        // Seldom enough for the rounding not to matter.
        if age > Duration::from_millis(1) {
            let keeps = OVER.saturating_sub(age).as_nanos();
            let kept = |n: u64| (u128::from(n) * u128::from(keeps) / u128::from(OVER.as_nanos())) as u64;
            self.bytes = self.bytes.map(kept);
            // After a silence it begins anew.
            self.seen =
                if keeps == 0 { Duration::ZERO } else { Duration::from_nanos(kept(self.seen.as_nanos())) + age };
            self.at = Some(now);
        }
        self.bytes[usize::from(class).min(CLASSES - 1)] += bytes;
    }

    /// Bytes a second, by class. Of a stream that has just begun they say nothing yet.
    pub fn rates(&self) -> [Rate; CLASSES] {
        let several = self.bytes.iter().filter(|b| **b > 0).count() > 1;
        if self.seen < ENOUGH[usize::from(several)] {
            return [Rate::ZERO; CLASSES];
        }
        self.bytes.map(|b| Rate::of(b, self.seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stream of 25 frames a second that begins at `start` is taken to offer, after so many of them.
    fn after(l: &mut Load, start: u64, frames: u64, len: impl Fn(u64) -> (u8, u64)) -> [u64; CLASSES] {
        for i in 0..frames {
            let (class, bytes) = len(i);
            l.add(Instant::from_millis(start + i * 40), class, bytes);
        }
        l.rates().map(Rate::bytes_per_sec)
    }

    #[test]
    fn a_steady_stream_is_known_after_half_a_second_and_as_well_as_later() {
        for start in [0, 1, 1_000, 50_000] {
            let rate = |frames| after(&mut Load::default(), start, frames, |_| (2, 10_000))[2];
            assert_eq!(rate(9), 0, "from {start} on");
            for frames in 13..200 {
                assert!((240_000..=275_000).contains(&rate(frames)), "{start}: {} after {frames}", rate(frames));
            }
        }
    }

    #[test]
    fn classes_count_by_themselves() {
        // An I frame each two seconds.
        let frame = |i| if i % 50 == 0 { (0, 100_000) } else { (2, 10_000) };
        let r = after(&mut Load::default(), 1_000, 250, frame);
        assert_eq!(after(&mut Load::default(), 0, 25, frame), [0; CLASSES], "an I frame and half of a group");
        assert!((20_000..80_000).contains(&r[0]) && r[1] == 0 && (220_000..280_000).contains(&r[2]), "{r:?}");
    }

    #[test]
    fn after_a_silence_a_stream_begins_anew() {
        let mut l = Load::default();
        after(&mut l, 0, 100, |_| (2, 10_000));
        assert_eq!(after(&mut l, 10_000, 5, |_| (9, 1_000)), [0; CLASSES], "what was long ago is forgotten");
        let r = after(&mut l, 10_200, 45, |_| (9, 1_000));
        assert!((23_000..=27_500).contains(&r[2]), "{r:?}");
    }
}
