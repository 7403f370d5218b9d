//! The paths of an association, in the order of their ids.

use super::Path;
use core::ops::{Deref, DerefMut, Index, IndexMut};

/// Each stands on its own: a path is large, and a list that grows would copy all of them and leave holes behind. Few
/// associations have more than two.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "a path stays where it is")]
pub(crate) struct Paths(Vec<Box<Path>>);

impl Paths {
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn get(&self, i: usize) -> Option<&Path> {
        self.0.get(i).map(Box::deref)
    }
    pub fn get_mut(&mut self, i: usize) -> Option<&mut Path> {
        self.0.get_mut(i).map(Box::deref_mut)
    }
    pub fn first(&self) -> Option<&Path> {
        self.get(0)
    }
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Path> + Clone {
        self.0.iter().map(Box::deref)
    }
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Path> {
        self.0.iter_mut().map(Box::deref_mut)
    }
    /// Appends one; makes room for no more than that.
    #[inline]
    pub fn push(&mut self, p: Path) {
        self.0.reserve_exact(1);
        // Written to its place at once.
        self.0.push(Box::write(Box::new_uninit(), p));
    }
}

impl Index<usize> for Paths {
    type Output = Path;
    fn index(&self, i: usize) -> &Path {
        &self.0[i]
    }
}

impl IndexMut<usize> for Paths {
    fn index_mut(&mut self, i: usize) -> &mut Path {
        &mut self.0[i]
    }
}
