//! Coded transports on Multipath TCP's subflows. Of both papers the abstracts and what others say of them are at hand, not
//! the text: these are reconstructions, named so wherever they are seen, and results against them are results against a
//! reconstruction.

mod decoding;
mod flights;
mod fmtcp;
mod nc;

pub(super) use decoding::Decoding;
pub(super) use fmtcp::Fountain;
pub(super) use nc::Network;

use anabranch_code::Code;

/// Sums in a packet at most.
pub const MOST_SYMBOLS: usize = 16;
/// Blocks of which an acknowledgement tells.
pub const MOST_RANKS: usize = 32;

/// Sums of the connection's segments, or of symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coded {
    /// From which both ends take the coefficients; none is used twice in a connection.
    pub seed: u32,
    /// Coefficients of zero and one alone.
    pub binary: bool,
    /// Of which blocks; those without sums are not there.
    pub groups: [Group; 2],
    /// The sums, group by group.
    pub sums: [[u8; 4]; MOST_SYMBOLS],
}

/// Sums over one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// Number of the block, from 0.
    pub block: u32,
    /// The first of the connection's segments (or symbols) in it.
    pub first: u64,
    /// How many of them are in the sums.
    pub units: u16,
    /// How many sums.
    pub count: u16,
    /// Do the data end with it?
    pub last: bool,
}

/// What a receiver has of each block from `first` on: independent sums, or segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ranks {
    /// Number of the first block that is not complete.
    pub first: u32,
    /// Of it and those behind it.
    pub of: [u16; MOST_RANKS],
}

impl Ranks {
    /// What is known of a block.
    pub fn get(&self, block: u32) -> Option<u16> {
        self.of.get(block.checked_sub(self.first)? as usize).copied()
    }
}

/// What stands for a segment (or symbol) in sums: its length and its content.
pub(super) const fn unit(bytes: u32, content: u16) -> [u8; 4] {
    let [a, b] = (bytes as u16).to_be_bytes();
    let [c, d] = content.to_be_bytes();
    [a, b, c, d]
}

/// Length and content.
pub(super) const fn from_unit([a, b, c, d]: [u8; 4]) -> (u32, u16) {
    (u16::from_be_bytes([a, b]) as u32, u16::from_be_bytes([c, d]))
}

/// The coefficients of a sum over `units`: the one at place `index` of a packet with this seed.
pub(super) fn coefficients(seed: u32, index: usize, binary: bool, units: u16) -> impl Iterator<Item = u8> {
    let of = u64::from(seed) * MOST_SYMBOLS as u64 + index as u64;
    (0..u64::from(units)).map(move |i| {
        if binary {
            (super::mixed(of << 8 | i >> 5) >> (i & 31 | 32)) as u8 & 1
        } else {
            // The seed of a sum has 16 bits there; the rest goes into the number.
            Code::Rlc.coefficient(of as u16, i | of >> 16 << 8 & 0xffff_ff00)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_code::Block;

    /// Of so many blocks of `units`, how many cannot be solved from `units + more` sums.
    fn failures(binary: bool, units: u16, more: u16, blocks: u32) -> u32 {
        let mut block = Block::new(usize::from(units), 4);
        let mut failed = 0;
        for b in 0..blocks {
            block.clear();
            for j in 0..u32::from(units + more) {
                // Each in a packet of its own, or sixteen in one.
                let seed = b * 400 + if b % 2 == 0 { j } else { j / 16 };
                let index = if b % 2 == 0 { 0 } else { j as usize % 16 };
                block.add(coefficients(seed, index, binary, units), &[0; 4]);
            }
            failed += u32::from(block.rank() < usize::from(units));
        }
        failed
    }

    /// Uniform over GF(2), K + m sums leave a block unsolved with probability 1 - prod_{i > m} (1 - 2^-i), which is 0.711
    /// for m = 0, 0.422 for 1 and about 2^-m then. Over GF(256) with coefficients other than zero one in about 255 fails at
    /// m = 0.
    #[test]
    fn blocks_are_solved_with_the_probability_of_random_codes() {
        let blocks = 500;
        let expected = |q: f64, m: i32| 1.0 - (m + 1..200).map(|i| 1.0 - q.powi(-i)).product::<f64>();
        for (units, more) in [(8, 0), (64, 0), (64, 1), (64, 3), (64, 5), (33, 2), (1, 3)] {
            let failed = f64::from(failures(true, units, more, blocks));
            // Of few sources a rank of all is a little likelier: the product ends with them.
            let p = 1.0 - (i32::from(more) + 1..=i32::from(more + units)).map(|i| 1.0 - 2f64.powi(-i)).product::<f64>();
            let (mean, sd) = (p * f64::from(blocks), (p * (1.0 - p) * f64::from(blocks)).sqrt());
            println!("GF(2), {units} + {more}: {failed} of {blocks}, expected {mean:.0} +- {sd:.0}");
            assert!((failed - mean).abs() < 4.0 * sd + 1.0, "{units} + {more}: {failed}, not {mean}");
        }
        let failed = f64::from(failures(false, 32, 0, blocks));
        let mean = expected(256.0, 0) * f64::from(blocks);
        assert!((failed - mean).abs() < 4.0 * mean.sqrt() + 1.0, "{failed}, not {mean}");
        assert!(failures(false, 32, 2, blocks) == 0);
    }

    #[test]
    fn a_unit_keeps_its_length_and_content() {
        for (bytes, content) in [(0, 0), (1_428, 0xabcd), (65_535, 1)] {
            assert_eq!(from_unit(unit(bytes, content)), (bytes, content));
        }
    }
}
