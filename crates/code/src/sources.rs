//! The newest sources that are known, for what repair symbols still to come say about them.

use crate::combiner::add_pieces;
use fearless_simd::Level;
use std::collections::VecDeque;

/// A run of numbers of fixed length that moves up with the newest one.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Number of the first place.
    base: u64,
    places: VecDeque<Option<Vec<u8>>>,
    most: usize,
    most_bytes: usize,
    bytes: usize,
    /// Buffers that were used before.
    spare: Vec<Vec<u8>>,
}

/// Buffers kept for the next sources.
const MOST_SPARE: usize = 8;

impl Sources {
    pub fn new(most: usize, most_bytes: usize) -> Self {
        Sources { base: 0, places: VecDeque::new(), most, most_bytes, bytes: 0, spare: Vec::new() }
    }

    /// Lower numbers are not kept.
    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn get(&self, number: u64) -> Option<&[u8]> {
        let at = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.places.get(at)?.as_deref()
    }

    /// Keeps a source; false when it is too old, or known.
    pub fn keep(&mut self, level: Level, number: u64, pieces: &[&[u8]]) -> bool {
        if self.places.is_empty() {
            self.base = number;
        }
        let Some(at) = number.checked_sub(self.base) else { return false };
        let mut at = usize::try_from(at).unwrap_or(usize::MAX);
        if at >= self.most.saturating_add(self.places.len()) {
            // Nothing of what is kept stays in reach.
            while !self.places.is_empty() {
                self.drop_first();
            }
            (self.base, at) = (number, 0);
        }
        while at >= self.most {
            self.drop_first();
            at -= 1;
        }
        while self.places.len() <= at {
            self.places.push_back(None);
        }
        if self.places.get(at).is_none_or(Option::is_some) {
            return false;
        }
        let len = pieces.iter().map(|p| p.len()).sum();
        let mut symbol = self.spare.pop().unwrap_or_default();
        symbol.clear();
        symbol.resize(len, 0);
        add_pieces(level, &mut symbol, pieces, 1);
        self.bytes += len;
        if let Some(place) = self.places.get_mut(at) {
            *place = Some(symbol);
        }
        while self.bytes > self.most_bytes && self.places.len() > 1 {
            self.drop_first();
        }
        true
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn drop_first(&mut self) {
        self.base += 1;
        if let Some(symbol) = self.places.pop_front().flatten() {
            self.bytes -= symbol.len();
            if self.spare.len() < MOST_SPARE {
                self.spare.push(symbol);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_the_bytes_bounded() {
        let level = Level::new();
        let mut s = Sources::new(4, 100);
        for n in 10..16 {
            assert!(s.keep(level, n, &[&[n as u8; 10], &[1]]));
        }
        assert!(!s.keep(level, 15, &[b"again"]) && !s.keep(level, 11, &[b"old"]));
        assert_eq!((s.base(), s.bytes(), s.get(11), s.get(16)), (12, 44, None, None));
        assert_eq!(s.get(12).map(|x| (x.len(), x[0], x[10])), Some((11, 12, 1)));
        assert!(s.keep(level, 16, &[&[0; 90]]));
        assert_eq!((s.base(), s.bytes()), (16, 90), "the others went for its bytes");
        assert!(s.keep(level, 1 << 40, &[b"far"]));
        assert_eq!((s.base(), s.bytes(), s.places.len()), (1 << 40, 3, 1));
        assert!(s.spare.len() <= MOST_SPARE);
    }
}
