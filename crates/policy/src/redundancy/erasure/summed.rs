//! What plain sums cover: each chunk is in one of them, since of two XOR sums over the same chunks one says nothing.

use anabranch_base::Tsn;
use core::cmp::Ordering;

/// So many are remembered, the newest; more are not in flight within a sum's reach.
const MOST: usize = 4_096;

/// Chunks that a sum covers, the oldest first.
#[derive(Default)]
pub(super) struct Summed(Vec<Tsn>);

fn in_order(a: &Tsn, b: &Tsn) -> Ordering {
    match (a.before(*b), a == b) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Equal,
        _ => Ordering::Greater,
    }
}

impl Summed {
    /// Is it in a sum?
    pub fn has(&self, tsn: Tsn) -> bool {
        self.0.binary_search_by(|t| in_order(t, &tsn)).is_ok()
    }
    /// A sum over these leaves.
    pub fn add(&mut self, covers: impl Iterator<Item = Tsn>) {
        self.0.extend(covers);
        self.0.sort_by(in_order);
        self.0.drain(..self.0.len().saturating_sub(MOST));
    }
}

/// Of what is planned every so-manieth: the part of the first of so many sums.
pub(super) fn part(plan: &mut Vec<Tsn>, sums: usize) {
    let mut at = 0..;
    plan.retain(|_| at.next().is_some_and(|at: usize| at.is_multiple_of(sums)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_across_the_end_of_the_numbers() {
        let mut s = Summed::default();
        let tsn = |n: u32| Tsn(u32::MAX - 2_000).plus(n);
        for sum in 0..100 {
            s.add((0..50).map(|i| tsn(sum * 100 + 2 * i)));
            s.add((0..50).map(|i| tsn(sum * 100 + 2 * i + 1)));
        }
        assert!((10_000 - MOST as u32..10_000).all(|n| s.has(tsn(n))));
        assert!(s.0.len() == MOST && !s.has(tsn(10_000)) && !s.has(tsn(5_000)));
    }

    #[test]
    fn parts_are_divided_evenly() {
        let mut plan: Vec<Tsn> = (0..7).map(Tsn).collect();
        part(&mut plan, 3);
        assert_eq!(plan, [Tsn(0), Tsn(3), Tsn(6)]);
        part(&mut plan, 1);
        assert_eq!(plan.len(), 3);
    }
}
