//! What expiries of T3 were about.

/// Expiries of a path whose fate is looked for: several come before the first report where answers take long.
const MOST: usize = 8;

/// TSNs that the newest expiries of a path were about, while a duplicate of one can only mean that its expiry was
/// needless.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpiredTsns(Vec<u64>);

impl ExpiredTsns {
    /// T3 expired over `tsn`.
    pub fn note(&mut self, tsn: u64) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(tsn);
    }

    /// Was an expiry about `tsn`? It is looked for no longer.
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
        let mut e = ExpiredTsns::default();
        (0..10).for_each(|tsn| e.note(tsn));
        assert!(!e.take(0) && !e.take(1), "too long ago");
        assert!(e.take(2) && !e.take(2));
        e.note(5);
        e.forget(5);
        assert!(!e.take(5), "both of them");
        assert!(e.take(9));
    }
}
