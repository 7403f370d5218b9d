//! Which segments are there, as runs without holes.

/// Segments `first..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Run {
    pub first: u64,
    pub end: u64,
    /// Bytes they carry.
    pub bytes: u64,
    /// Number of the latest addition, for the order of SACK blocks.
    pub touched: u64,
}

/// Runs in order, none touching another.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    additions: u64,
}

impl Runs {
    /// Adds segments `first..end`; says whether any was new.
    pub fn add(&mut self, first: u64, end: u64, bytes: u64) -> bool {
        if first >= end {
            return false;
        }
        self.additions += 1;
        // The runs that touch the new one: `from..to`.
        let from = self.runs.partition_point(|r| r.end < first);
        let to = from + self.runs[from..].partition_point(|r| r.first <= end);
        let mut new = Run { first, end, bytes, touched: self.additions };
        if from == to {
            self.runs.insert(from, new);
            return true;
        }
        let old = &self.runs[from..to];
        if old[0].first <= first && old[0].end >= end {
            self.runs[from].touched = self.additions;
            return false;
        }
        new.first = first.min(old[0].first);
        new.end = end.max(old[old.len() - 1].end);
        new.bytes += old.iter().map(|r| r.bytes).sum::<u64>();
        self.runs[from] = new;
        self.runs.drain(from + 1..to);
        true
    }

    /// Takes the first run if it begins at `next`.
    pub fn take_at(&mut self, next: u64) -> Option<Run> {
        let run = *self.runs.first().filter(|r| r.first <= next)?;
        self.runs.remove(0);
        Some(run)
    }

    /// Forgets what lies below `next`.
    pub fn forget_below(&mut self, next: u64) {
        let gone = self.runs.partition_point(|r| r.end <= next);
        self.runs.drain(..gone);
        if let Some(run) = self.runs.first_mut() {
            run.first = run.first.max(next);
        }
    }

    pub fn contains(&self, number: u64) -> bool {
        let after = self.runs.partition_point(|r| r.end <= number);
        self.runs.get(after).is_some_and(|r| r.first <= number)
    }

    /// The first segment from `from` on that is missing with a run above it.
    pub fn hole(&self, from: u64) -> Option<u64> {
        let after = self.runs.partition_point(|r| r.end <= from);
        let run = self.runs.get(after)?;
        if run.first > from { Some(from) } else { self.runs.get(after + 1).map(|_| run.end) }
    }

    /// The first stretch of segments within `from..end` that are missing.
    pub fn gap(&self, from: u64, end: u64) -> Option<(u64, u64)> {
        let after = self.runs.partition_point(|r| r.end <= from);
        let (first, next) = match self.runs.get(after) {
            Some(run) if run.first <= from => (run.end, self.runs.get(after + 1)),
            run => (from, run),
        };
        (first < end).then(|| (first, next.map_or(end, |run| run.first.min(end))))
    }

    /// How many segments there are from `from` on.
    pub fn count_from(&self, from: u64) -> u64 {
        self.runs.iter().map(|r| r.end.saturating_sub(r.first.max(from))).sum()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn clear(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Runs are a set of numbers, whatever is added.
        #[test]
        fn a_set(adds in proptest::collection::vec((0u64..40, 0u64..6), 0..40), probe in 0u64..50, cut in 0u64..40) {
            let (mut runs, mut set) = (Runs::default(), BTreeSet::new());
            for (first, len) in adds {
                let grew = (first..first + len).filter(|n| set.insert(*n)).count() > 0;
                prop_assert_eq!(runs.add(first, first + len, len), grew);
            }
            prop_assert_eq!(runs.contains(probe), set.contains(&probe));
            let hole = set.last().and_then(|last| (probe..*last).find(|n| !set.contains(n)));
            prop_assert_eq!(runs.hole(probe), hole);
            let gap = (probe..60).find(|n| !set.contains(n)).unwrap_or(60);
            let end = (gap..60).find(|n| set.contains(n)).unwrap_or(60);
            prop_assert_eq!(runs.gap(probe, 60), Some((gap, end)));
            prop_assert_eq!(runs.count_from(probe), set.range(probe..).count() as u64);
            runs.forget_below(cut);
            let left: Vec<u64> = runs.iter().flat_map(|r| r.first..r.end).collect();
            prop_assert_eq!(left, set.range(cut..).copied().collect::<Vec<_>>());
            prop_assert!(runs.runs.windows(2).all(|w| w[0].end < w[1].first));
        }
    }
}
