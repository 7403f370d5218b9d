//! Rates and shares with their units in the type.

use crate::Duration;
use core::fmt;

/// A rate in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Rate(u64);

/// `10^9 n / d`, by 64-bit division where that is enough.
const fn nano_share(n: u64, d: u64) -> u64 {
    match n.checked_mul(1_000_000_000) {
        Some(n) => n / d,
        None => ((n as u128 * 1_000_000_000) / d as u128) as u64,
    }
}

/// `a b / d`, by 64-bit division where that is enough.
#[inline]
const fn product_share(a: u64, b: u64, d: u64) -> u64 {
    match a.checked_mul(b) {
        Some(n) => n / d,
        None => ((a as u128 * b as u128) / d as u128) as u64,
    }
}

impl Rate {
    /// Nothing moves.
    pub const ZERO: Rate = Rate(0);

    /// Bytes per second.
    pub const fn from_bytes_per_sec(b: u64) -> Self {
        Rate(b)
    }
    /// Bits per second, rounded down to whole bytes.
    pub const fn from_bits_per_sec(b: u64) -> Self {
        Rate(b / 8)
    }
    /// Bytes per second.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0
    }
    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0.saturating_mul(8)
    }
    /// `bytes` in `time`; zero when no time passed.
    pub const fn of(bytes: u64, time: Duration) -> Self {
        if time.is_zero() {
            return Rate(0);
        }
        Rate(nano_share(bytes, time.as_nanos()))
    }
    /// Time to send `bytes`; `Duration::MAX` at rate zero.
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        Duration::from_nanos(nano_share(bytes, self.0))
    }
    /// Bytes sent in `time`.
    pub const fn bytes_in(self, time: Duration) -> u64 {
        product_share(self.0, time.as_nanos(), 1_000_000_000)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Mbit/s", self.bits_per_sec() as f64 / 1e6)
    }
}

/// A share in parts per million.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Debug)]
pub struct Ppm(pub u32);

impl Ppm {
    /// The whole.
    pub const ONE: Ppm = Ppm(1_000_000);

    /// This share of `n`, rounded down.
    pub const fn of(self, n: u64) -> u64 {
        product_share(n, self.0 as u64, 1_000_000)
    }
    /// As a fraction of one.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_agree() {
        let r = Rate::from_bits_per_sec(8_000_000);
        assert_eq!(r.time_for(1_000), Duration::from_millis(1));
        assert_eq!(r.bytes_in(Duration::from_millis(1)), 1_000);
        assert_eq!(Rate::of(1_000, Duration::from_millis(1)), r);
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
        assert_eq!(Ppm(500_000).of(9), 4);
    }
}
