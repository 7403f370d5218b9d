//! Small ids.

use core::fmt;

/// A path of one association: an index into its list of paths, stable while the association lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathId(pub u8);

impl PathId {
    /// The id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path{}", self.0)
    }
}

/// An SCTP stream (RFC 9260 §1.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct StreamId(pub u16);

/// A set of up to 32 paths.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct PathSet(u32);

impl PathSet {
    /// No path.
    pub const EMPTY: PathSet = PathSet(0);
    /// Most paths that a set, and so an association, can hold.
    pub const CAPACITY: usize = 32;

    /// The set of just `p`.
    pub const fn only(p: PathId) -> Self {
        PathSet(0).with(p)
    }
    /// The first `n` paths.
    pub const fn first(n: usize) -> Self {
        PathSet(if n >= 32 { u32::MAX } else { (1 << n) - 1 })
    }
    /// Is `p` a member?
    pub const fn has(self, p: PathId) -> bool {
        p.0 < 32 && self.0 >> p.0 & 1 == 1
    }
    /// The set and `p`.
    #[must_use]
    pub const fn with(self, p: PathId) -> Self {
        if p.0 < 32 { PathSet(self.0 | 1 << p.0) } else { self }
    }
    /// The set without `p`.
    #[must_use]
    pub const fn without(self, p: PathId) -> Self {
        if p.0 < 32 { PathSet(self.0 & !(1 << p.0)) } else { self }
    }
    /// Members of both.
    #[must_use]
    pub const fn and(self, o: PathSet) -> Self {
        PathSet(self.0 & o.0)
    }
    /// Members that are none of `o`.
    #[must_use]
    pub const fn except(self, o: PathSet) -> Self {
        PathSet(self.0 & !o.0)
    }
    /// Members of either.
    #[must_use]
    pub const fn or(self, o: PathSet) -> Self {
        PathSet(self.0 | o.0)
    }
    /// Has it no member?
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// How many members.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// Members in rising order.
    pub fn iter(self) -> impl Iterator<Item = PathId> + Clone {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            (rest != 0).then(|| {
                let i = rest.trailing_zeros();
                rest &= rest - 1;
                PathId(i as u8)
            })
        })
    }
}

impl FromIterator<PathId> for PathSet {
    fn from_iter<I: IntoIterator<Item = PathId>>(i: I) -> Self {
        i.into_iter().fold(PathSet::EMPTY, PathSet::with)
    }
}

impl fmt::Debug for PathSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_of_paths() {
        let s: PathSet = [PathId(0), PathId(5), PathId(31)].into_iter().collect();
        assert_eq!(s.iter().map(|p| p.0).collect::<Vec<_>>(), [0, 5, 31]);
        assert!(s.has(PathId(5)) && !s.has(PathId(4)) && !s.has(PathId(40)));
        assert_eq!(s.without(PathId(5)).len(), 2);
        assert_eq!(PathSet::first(2).and(s), PathSet::only(PathId(0)));
    }
}
