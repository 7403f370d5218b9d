//! Solves one block of symbols from dense sums over it.

use crate::gf256;
use fearless_simd::Level;

/// The sources of one block, as sums of them come: Gaussian elimination to the reduced form, a row at a time, in memory
/// that is asked for once. Coefficients of zero and one alone make it GF(2).
#[derive(Debug)]
pub struct Block {
    level: Level,
    sources: usize,
    /// A row for each source: its coefficients, then its symbol. The row of a source begins with it.
    rows: Vec<u8>,
    width: usize,
    /// Which rows are there.
    there: Vec<bool>,
    rank: usize,
    /// The row that comes.
    row: Vec<u8>,
}

impl Block {
    /// Nothing has come of a block of so many sources of so many bytes each.
    pub fn new(sources: usize, bytes: usize) -> Self {
        let width = sources + bytes;
        Block {
            level: Level::new(),
            sources,
            rows: vec![0; sources * width],
            width,
            there: vec![false; sources],
            rank: 0,
            row: vec![0; width],
        }
    }

    /// Begins anew with the memory there is.
    pub fn clear(&mut self) {
        self.rows.fill(0);
        self.there.fill(false);
        self.rank = 0;
    }

    /// How many sources there are.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// How many independent sums have come.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// A sum came: its coefficients by source, those not given being zero, and its symbol. Says whether it says anything
    /// that the others do not.
    pub fn add(&mut self, coefficients: impl Iterator<Item = u8>, symbol: &[u8]) -> bool {
        let (n, width, level) = (self.sources, self.width, self.level);
        self.row.fill(0);
        self.row.iter_mut().take(n).zip(coefficients).for_each(|(to, c)| *to = c);
        self.row.iter_mut().skip(n).zip(symbol).for_each(|(to, s)| *to = *s);
        for (i, row) in self.rows.chunks_exact(width).enumerate() {
            let by = self.row.get(i).copied().unwrap_or(0);
            if by != 0 && self.there.get(i) == Some(&true) {
                gf256::add_scaled(level, &mut self.row, row, by);
            }
        }
        let Some((pivot, first)) = self.row.iter().copied().take(n).enumerate().find(|(_, c)| *c != 0) else {
            return false;
        };
        gf256::scale(level, &mut self.row, gf256::inverse(first));
        for row in self.rows.chunks_exact_mut(width) {
            let by = row.get(pivot).copied().unwrap_or(0);
            if by != 0 {
                gf256::add_scaled(level, row, &self.row, by);
            }
        }
        if let (Some(row), Some(there)) =
            (self.rows.get_mut(pivot * width..(pivot + 1) * width), self.there.get_mut(pivot))
        {
            row.copy_from_slice(&self.row);
            *there = true;
            self.rank += 1;
        }
        true
    }

    /// The symbol of a source, once it is solved.
    pub fn solved(&self, source: usize) -> Option<&[u8]> {
        if self.there.get(source) != Some(&true) {
            return None;
        }
        let (coefficients, symbol) =
            self.rows.get(source * self.width..(source + 1) * self.width)?.split_at_checked(self.sources)?;
        let alone = coefficients.iter().enumerate().all(|(i, c)| (*c == 0) == (i != source));
        alone.then_some(symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(coefficients: &[u8], sources: &[Vec<u8>]) -> Vec<u8> {
        let mut symbol = vec![0; sources[0].len()];
        for (c, s) in coefficients.iter().zip(sources) {
            symbol.iter_mut().zip(s).for_each(|(to, s)| *to ^= gf256::mul(*s, *c));
        }
        symbol
    }

    proptest! {
        /// Whatever sums come, what is solved is right, all is solved once the rank is full, and a sum of those that came
        /// says nothing new.
        #[test]
        fn what_is_solved_is_right(
            n in 1usize..12,
            bytes in 1usize..40,
            binary: bool,
            rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 12), 1..40),
            content in prop::collection::vec(any::<u8>(), 12 * 40),
        ) {
            let sources: Vec<Vec<u8>> = content.chunks(40).take(n).map(|s| s[..bytes].to_vec()).collect();
            let mut block = Block::new(n, bytes);
            let mut came: Vec<Vec<u8>> = Vec::new();
            for row in &rows {
                let row: Vec<u8> = row[..n].iter().map(|c| if binary { c & 1 } else { *c }).collect();
                let before = block.rank();
                let new = block.add(row.iter().copied(), &sum(&row, &sources));
                prop_assert_eq!(block.rank(), before + usize::from(new));
                came.push(row);
                for (i, source) in sources.iter().enumerate() {
                    if let Some(symbol) = block.solved(i) {
                        prop_assert_eq!(symbol, &source[..]);
                    }
                }
                let all: Vec<u8> = (0..n).map(|i| came.iter().fold(0, |a, r| a ^ r[i])).collect();
                prop_assert!(!block.add(all.iter().copied(), &sum(&all, &sources)));
            }
            prop_assert_eq!(block.rank() == n, (0..n).all(|i| block.solved(i).is_some()));
            block.clear();
            prop_assert!(block.rank() == 0 && (0..n).all(|i| block.solved(i).is_none()));
        }
    }

    #[test]
    fn one_source_alone_is_solved_before_the_others() {
        let sources = [vec![7, 8], vec![9, 10], vec![1, 2]];
        let mut block = Block::new(3, 2);
        assert!(block.add([1, 1, 0].into_iter(), &sum(&[1, 1, 0], &sources)));
        assert!(block.solved(0).is_none() && block.solved(1).is_none());
        assert!(block.add([0, 1].into_iter(), &sources[1]));
        assert_eq!((block.solved(0), block.solved(1), block.solved(2)), (Some(&[7, 8][..]), Some(&[9, 10][..]), None));
        assert!(!block.add(core::iter::empty(), &[0, 0]));
    }
}
