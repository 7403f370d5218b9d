//! Groups of messages that are only useful together, such as the parts of a video frame.

use std::collections::VecDeque;

/// Groups that live at once; the oldest is forgotten first, which only makes giving up less clever.
const KEPT: usize = 128;

#[derive(Clone, Copy, Debug)]
struct Group {
    id: u32,
    unsent: u64,
    broken: bool,
}

/// What is known of recent groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    recent: VecDeque<Group>,
}

impl Groups {
    fn find(&self, id: Option<u32>) -> Option<&Group> {
        let id = id?;
        self.recent.iter().rev().find(|g| g.id == id)
    }
    fn find_mut(&mut self, id: Option<u32>) -> Option<&mut Group> {
        let id = id?;
        self.recent.iter_mut().rev().find(|g| g.id == id)
    }

    /// `bytes` of `id` were handed over.
    pub fn queued(&mut self, id: Option<u32>, bytes: u64) {
        if let Some(g) = self.find_mut(id) {
            g.unsent += bytes;
        } else if let Some(id) = id {
            if self.recent.len() == KEPT {
                self.recent.pop_front();
            }
            self.recent.push_back(Group { id, unsent: bytes, broken: false });
        }
    }
    /// `bytes` of `id` left for the first time, or were given up.
    pub fn taken(&mut self, id: Option<u32>, bytes: u64) {
        if let Some(g) = self.find_mut(id) {
            g.unsent = g.unsent.saturating_sub(bytes);
        }
    }
    /// A message of `id` was given up.
    pub fn break_up(&mut self, id: Option<u32>) {
        if let Some(g) = self.find_mut(id) {
            g.broken = true;
        }
    }
    /// Can the group no longer be whole?
    pub fn is_broken(&self, id: Option<u32>) -> bool {
        self.find(id).is_some_and(|g| g.broken)
    }
    /// Bytes handed over and not sent.
    pub fn unsent(&self, id: Option<u32>) -> u64 {
        self.find(id).map_or(0, |g| g.unsent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_counts_and_breaks() {
        let mut g = Groups::default();
        g.queued(Some(7), 100);
        g.queued(Some(7), 50);
        g.queued(None, 50);
        g.taken(Some(7), 100);
        assert_eq!((g.unsent(Some(7)), g.is_broken(Some(7)), g.unsent(None)), (50, false, 0));
        g.break_up(Some(7));
        assert!(g.is_broken(Some(7)) && !g.is_broken(Some(8)) && !g.is_broken(None));
    }

    #[test]
    fn memory_is_bounded() {
        let mut g = Groups::default();
        (0..10_000).for_each(|i| g.queued(Some(i), 1));
        assert_eq!(g.recent.len(), KEPT);
        assert_eq!((g.unsent(Some(9_999)), g.unsent(Some(0))), (1, 0));
    }
}
