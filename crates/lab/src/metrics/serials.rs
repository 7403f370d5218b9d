//! Instants by a 32-bit serial number that wraps.

use anabranch_base::Instant;
use std::collections::VecDeque;

/// Numbers may come out of order by this many after those above them are done.
const SLACK: usize = 4_096;

/// The first time each serial number was seen, until it is taken out.
#[derive(Clone, Debug, Default)]
pub(super) struct Serials {
    /// Number of the front, unwrapped.
    base: i64,
    /// Nothing below was kept.
    floor: i64,
    /// [`Instant::FAR`] where nothing was seen, [`Instant::ZERO`] where it was taken.
    times: VecDeque<Instant>,
}

impl Serials {
    fn unwrap(&self, serial: u32) -> i64 {
        // Half the number space each way of the front.
        self.base + i64::from(serial.wrapping_sub(self.base as u32) as i32)
    }

    /// Notes `at` for a number that was not seen before.
    pub fn note(&mut self, serial: u32, at: Instant) {
        if self.times.is_empty() && self.floor == 0 {
            self.base = i64::from(serial) + (1 << 32);
        }
        let n = self.unwrap(serial);
        if n < self.floor {
            return;
        }
        while n < self.base {
            self.times.push_front(Instant::FAR);
            self.base -= 1;
        }
        let offset = (n - self.base) as usize;
        if offset >= self.times.len() {
            self.times.resize(offset + 1, Instant::FAR);
        }
        if let Some(t) = self.times.get_mut(offset).filter(|t| **t == Instant::FAR) {
            *t = at.max(Instant::from_nanos(1));
        }
    }

    /// The time noted for a number.
    pub fn get(&self, serial: u32) -> Option<Instant> {
        let offset = usize::try_from(self.unwrap(serial) - self.base).ok()?;
        self.times.get(offset).copied().filter(|t| *t != Instant::FAR && *t != Instant::ZERO)
    }

    /// The time noted for a number, once.
    pub fn take(&mut self, serial: u32) -> Option<Instant> {
        let at = self.get(serial)?;
        let offset = usize::try_from(self.unwrap(serial) - self.base).ok()?;
        *self.times.get_mut(offset)? = Instant::ZERO;
        while self.times.len() > SLACK && self.times.front() == Some(&Instant::ZERO) {
            self.times.pop_front();
            self.base += 1;
            self.floor = self.base;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn first_time_counts_and_is_taken_once() {
        let mut s = Serials::default();
        s.note(u32::MAX, ms(1));
        s.note(1, ms(3));
        s.note(u32::MAX, ms(9));
        s.note(u32::MAX - 2, ms(4));
        assert_eq!(s.take(0), None);
        assert_eq!((s.take(u32::MAX), s.take(u32::MAX)), (Some(ms(1)), None));
        assert_eq!((s.take(1), s.take(u32::MAX - 2)), (Some(ms(3)), Some(ms(4))));
        s.note(1, ms(5));
        assert_eq!(s.take(1), None, "a repetition is not a first time");
    }

    #[test]
    fn what_is_done_is_forgotten_and_stays_so() {
        let mut s = Serials::default();
        for n in 0..3 * SLACK as u32 {
            s.note(n, ms(u64::from(n) + 1));
            assert_eq!(s.take(n), Some(ms(u64::from(n) + 1)));
        }
        assert!(s.times.len() <= SLACK + 1);
        s.note(5, ms(9));
        assert_eq!(s.take(5), None);
    }
}
