//! What the last SACK's gap blocks said, and how the next one's differ.

use crate::lazy_box::Empty;
use crate::work;
use anabranch_wire::GapBlock;

/// The gap blocks of the last SACK, as extended TSN ranges: only differences are walked.
#[derive(Debug, Default)]
pub(crate) struct GapMemory {
    pub(in crate::association) ranges: Vec<(u64, u64)>,
    /// What will not be taken back (NR-SACK).
    pub(in crate::association) kept: Vec<(u64, u64)>,
    /// What the peer withdrew, with reports since; only so many are counted, T3 takes care of the rest.
    pub withdrawn: Vec<(u64, u8)>,
}

impl Empty for GapMemory {
    const EMPTY: &'static GapMemory = &GapMemory { ranges: Vec::new(), kept: Vec::new(), withdrawn: Vec::new() };
}

/// What the SACK at hand says, and how it differs from the last one.
#[derive(Debug, Default)]
pub(crate) struct GapScratch {
    pub(in crate::association) next: Vec<(u64, u64)>,
    pub(in crate::association) added: Vec<(u64, u64)>,
    pub(in crate::association) gone: Vec<(u64, u64)>,
    /// The part of `next` that will not be taken back.
    pub(in crate::association) kept: Vec<(u64, u64)>,
}

impl GapScratch {
    /// Nothing in it.
    pub const EMPTY: GapScratch =
        GapScratch { next: Vec::new(), added: Vec::new(), gone: Vec::new(), kept: Vec::new() };
}

/// Most withdrawn TSNs whose reports are counted.
pub(in crate::association) const MAX_WITHDRAWN: usize = 64;

impl GapMemory {
    /// Ranges remembered.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }
    /// First and last TSN of each, rising.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }
}

/// What gap blocks amount to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::association) enum GapsRead {
    Fine,
    /// Out of order, overlapping, or at the cumulative TSN.
    Nonsense,
    /// They acknowledge what no packet has carried.
    Unsent,
}

/// Gap blocks as extended ranges in order; `end` is above all that was sent. `alone`: see
/// [`crate::AssocConfig::gap_blocks_alone`].
pub(in crate::association) fn read_blocks(
    (cum, end): (u64, u64),
    alone: bool,
    blocks: impl Iterator<Item = GapBlock>,
    out: &mut Vec<(u64, u64)>,
) -> GapsRead {
    out.clear();
    let mut doubtful = false;
    for b in blocks {
        work::steps(1);
        let (from, to) = (cum + u64::from(b.start), cum + u64::from(b.end));
        let ordered = out.last().is_none_or(|&(_, last)| from > last);
        if b.start == 0 || to < from || !ordered {
            if !alone {
                return GapsRead::Nonsense;
            }
            doubtful = true;
        }
        if to >= end && from <= to {
            return GapsRead::Unsent;
        }
        if from.max(cum + 1) <= to {
            out.push((from.max(cum + 1), to));
        }
    }
    if doubtful {
        join(out);
    }
    GapsRead::Fine
}

/// Sorts ranges and joins those that touch.
pub(in crate::association) fn join(ranges: &mut Vec<(u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|later, before| {
        let touches = later.0 <= before.1 + 1;
        before.1 = if touches { before.1.max(later.1) } else { before.1 };
        touches
    });
}

/// Ranges of `a` that are not in `b`; both sorted and disjoint.
pub(in crate::association) fn subtract(a: &[(u64, u64)], b: &[(u64, u64)], out: &mut Vec<(u64, u64)>) {
    out.clear();
    work::steps(a.len() + b.len());
    let mut j = 0;
    for &(mut from, to) in a {
        while j < b.len() && b[j].1 < from {
            j += 1;
        }
        let mut k = j;
        while k < b.len() && b[k].0 <= to {
            if b[k].0 > from {
                out.push((from, b[k].0 - 1));
            }
            from = b[k].1 + 1;
            k += 1;
        }
        if from <= to {
            out.push((from, to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::subtract;

    #[test]
    fn ranges_subtract() {
        let mut out = vec![];
        subtract(&[(5, 10), (20, 30)], &[(7, 8), (25, 40)], &mut out);
        assert_eq!(out, [(5, 6), (9, 10), (20, 24)]);
        subtract(&[(5, 10)], &[(1, 4), (5, 10)], &mut out);
        assert!(out.is_empty());
        subtract(&[(5, 10), (12, 13)], &[(1, 6), (12, 12)], &mut out);
        assert_eq!(out, [(7, 10), (13, 13)]);
        subtract(&[(1, 2)], &[], &mut out);
        assert_eq!(out, [(1, 2)]);
    }
}
