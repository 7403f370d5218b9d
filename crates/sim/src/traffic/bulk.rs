//! As much as the transport takes.

use super::{Emission, packet};
use anabranch_base::Instant;

/// A source that always has more, or a file of a given length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// Bytes handed over at a time.
    pub size: u32,
    /// Bytes in all; `None` never ends.
    pub total: Option<u64>,
}

impl Bulk {
    /// Without end, in pieces of `size` bytes.
    pub const fn endless(size: u32) -> Self {
        Bulk { size, total: None }
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.size == 0 || self.total == Some(0) {
            return Err("a bulk source needs pieces, and a total, of at least one byte");
        }
        Ok(())
    }
}

pub(super) struct Source {
    size: u64,
    left: Option<u64>,
}

impl Source {
    pub(super) fn new(config: Bulk) -> Self {
        Source { size: u64::from(config.size), left: config.total }
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let size = self.left.map_or(self.size, |left| left.min(self.size));
        self.left = self.left.map(|left| left - size);
        (size > 0).then(|| packet(now, size))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bulk, TrafficConfig};
    use anabranch_base::Instant;

    fn sizes(bulk: Bulk, n: usize) -> Vec<u64> {
        let mut source = TrafficConfig::Bulk(bulk).build(1, "bulk");
        std::iter::from_fn(|| source.next(Instant::from_millis(3))).take(n).map(|e| e.size).collect()
    }

    #[test]
    fn ends_with_what_is_left() {
        assert_eq!(sizes(Bulk { size: 1_000, total: Some(2_500) }, 9), [1_000, 1_000, 500]);
        assert_eq!(sizes(Bulk::endless(700), 4), [700; 4]);
        assert!(TrafficConfig::Bulk(Bulk::endless(0)).check().is_err());
        assert_eq!(sizes(Bulk::endless(0), 4), [] as [u64; 0]);
    }
}
