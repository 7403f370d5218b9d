//! A list of chunks by TSN, as policies see it.

use crate::work;
use anabranch_base::Tsn;
use anabranch_policy::view::ChunkView;

/// Views in TSN order, shown as one slice. Most leave at the front, which costs nothing.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    list: Vec<ChunkView>,
    /// Those before it have left.
    start: usize,
    /// How many there are of class 0, of class 1, and of all others.
    classes: [u32; 3],
}

impl Sorted {
    pub fn list(&self) -> &[ChunkView] {
        self.list.get(self.start..).unwrap_or_default()
    }
    /// No view in the list has a class below this one.
    #[inline]
    pub fn lowest_class(&self) -> u8 {
        let [zero, one, _] = self.classes;
        if zero > 0 {
            0
        } else if one > 0 {
            1
        } else {
            2
        }
    }
    fn count_of(&mut self, class: u8) -> &mut u32 {
        &mut self.classes[usize::from(class.min(2))]
    }
    fn find(&self, tsn: Tsn) -> Result<usize, usize> {
        let order = |c: &ChunkView| {
            if c.tsn == tsn {
                core::cmp::Ordering::Equal
            } else if c.tsn.before(tsn) {
                core::cmp::Ordering::Less
            } else {
                core::cmp::Ordering::Greater
            }
        };
        self.list().binary_search_by(order)
    }
    /// Puts a view behind all others.
    // Inlined, it is written in its place: made elsewhere and copied at once it waits for its own stores.
    #[inline(always)]
    pub fn push(&mut self, view: ChunkView) {
        debug_assert!(self.list().last().is_none_or(|last| last.tsn.before(view.tsn)), "the highest TSN");
        *self.count_of(view.class) += 1;
        self.list.push(view);
    }
    /// False when it is not there.
    #[inline]
    pub fn remove(&mut self, tsn: Tsn) -> bool {
        if self.start + 1 == self.list.len() && self.list().first().is_some_and(|c| c.tsn == tsn) {
            self.list.clear();
            self.start = 0;
            self.classes = [0; 3];
            return true;
        }
        self.remove_of_many(tsn)
    }

    #[inline(never)]
    fn remove_of_many(&mut self, tsn: Tsn) -> bool {
        work::steps(1);
        let at = if self.list().first().is_some_and(|c| c.tsn == tsn) { Ok(0) } else { self.find(tsn) };
        let Ok(i) = at else { return false };
        let class = self.list()[i].class;
        *self.count_of(class) -= 1;
        if i == 0 {
            self.start += 1;
        } else {
            work::steps(self.list.len() - self.start - i);
            self.list.remove(self.start + i);
        }
        if self.start == self.list.len() {
            self.list.clear();
            self.start = 0;
        } else if self.start * 2 > self.list.len() {
            work::steps(self.list.len() - self.start);
            self.list.drain(..self.start);
            self.start = 0;
        }
        true
    }
}
