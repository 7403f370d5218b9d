//! What was taken for lost, and may not have been.

/// Losses of a path whose fate is looked for: several are noticed before the first report of a duplicate where answers take
/// long.
const MOST: usize = 8;

/// TSNs of a path that were taken for lost last, while a duplicate of one means that it was not.
#[derive(Clone, Debug, Default)]
pub(crate) struct DoubtedTsns(Vec<u64>);

impl DoubtedTsns {
    /// `tsn` was taken for lost.
    pub fn note(&mut self, tsn: u64) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(tsn);
    }

    /// Was `tsn` taken for lost? It is looked for no longer.
    pub fn take(&mut self, tsn: u64) -> bool {
        let found = self.0.iter().position(|t| *t == tsn);
        found.map(|at| self.0.remove(at)).is_some()
    }

    /// A duplicate of `tsn` says nothing any more.
    pub fn forget(&mut self, tsn: u64) {
        self.0.retain(|t| *t != tsn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_looked_for_each_once() {
        let mut e = DoubtedTsns::default();
        (0..10).for_each(|tsn| e.note(tsn));
        assert!(!e.take(0) && !e.take(1), "too long ago");
        assert!(e.take(2) && !e.take(2));
        e.note(5);
        e.forget(5);
        assert!(!e.take(5), "both of them");
        assert!(e.take(9));
    }
}
