//! Chunks of the look-ahead that are bound to paths before they leave: the send buffers of paths.

use crate::view::{AssocView, ChunkView, QueueView};
use anabranch_base::{PathId, Tsn};
use std::collections::VecDeque;

#[derive(Default)]
struct Lane {
    chunks: VecDeque<(Tsn, u64)>,
    bytes: u64,
}

/// Chunks are bound in the order of their TSNs, so that those which are not come behind.
#[derive(Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    last: Option<Tsn>,
}

impl Lanes {
    /// There are so many paths.
    pub fn resize(&mut self, paths: usize) {
        if self.lanes.len() > paths {
            self.clear();
        }
        self.lanes.resize_with(paths, Lane::default);
    }
    /// Nothing is bound any more.
    pub fn clear(&mut self) {
        for l in &mut self.lanes {
            l.chunks.clear();
            l.bytes = 0;
        }
        self.last = None;
    }
    /// Bytes bound to a path.
    pub fn bytes(&self, p: PathId) -> u64 {
        self.lanes.get(p.index()).map_or(0, |l| l.bytes)
    }
    /// Bytes bound to any path.
    pub fn total(&self) -> u64 {
        self.lanes.iter().map(|l| l.bytes).sum()
    }
    /// Is anything bound to a path that is not in use?
    pub fn holds_lost(&self, cx: &AssocView<'_>) -> bool {
        let lost = |i: usize| cx.path(PathId(i as u8)).is_none_or(|p| !p.state.usable() || cx.aside.has(p.id));
        self.lanes.iter().enumerate().any(|(i, l)| !l.chunks.is_empty() && lost(i))
    }
    /// The chunk waits for this path.
    pub fn bind(&mut self, c: &ChunkView, p: PathId) {
        if let Some(l) = self.lanes.get_mut(p.index()) {
            l.chunks.push_back((c.tsn, c.len));
            l.bytes += c.len;
            self.last = Some(c.tsn);
        }
    }
    fn bound(&self, q: &QueueView<'_>) -> usize {
        self.last.map_or(0, |last| q.chunks.partition_point(|c| c.tsn.at_or_before(last)))
    }
    /// Chunks that are not bound.
    pub fn rest<'a>(&self, q: &QueueView<'a>) -> &'a [ChunkView] {
        q.chunks.get(self.bound(q)..).unwrap_or_default()
    }
    /// Place in `q` of the first chunk bound to a path.
    pub fn first(&self, q: &QueueView<'_>, p: PathId) -> Option<usize> {
        let lane = self.lanes.get(p.index())?;
        lane.chunks.iter().find_map(|(tsn, _)| place(q, *tsn))
    }
    /// It left, on whatever path.
    pub fn sent(&mut self, tsn: Tsn) {
        for l in &mut self.lanes {
            if let Some(i) = l.chunks.iter().position(|(t, _)| *t == tsn) {
                let len = l.chunks.remove(i).map_or(0, |(_, len)| len);
                l.bytes -= len;
                return;
            }
        }
    }
    /// Are the first chunks of `q` those that are bound? Not when one was given up, or came back.
    pub fn agree(&self, q: &QueueView<'_>) -> bool {
        let known = |l: &Lane| l.chunks.front().is_none_or(|(tsn, _)| place(q, *tsn).is_some());
        self.lanes.iter().map(|l| l.chunks.len()).sum::<usize>() == self.bound(q) && self.lanes.iter().all(known)
    }
}

fn place(q: &QueueView<'_>, tsn: Tsn) -> Option<usize> {
    let i = q.chunks.partition_point(|c| c.tsn.before(tsn));
    q.chunks.get(i).filter(|c| c.tsn == tsn).map(|_| i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    #[test]
    fn bound_chunks_are_found_until_they_leave() {
        let mut s = Scene::new(2, 6);
        let mut l = Lanes::default();
        l.resize(2);
        for (i, p) in [A, B, A].into_iter().enumerate() {
            l.bind(&s.chunks[i], p);
        }
        let q = QueueView::of(&s.chunks);
        assert_eq!((l.first(&q, A), l.first(&q, B), l.rest(&q).len()), (Some(0), Some(1), 3));
        assert_eq!((l.bytes(A), l.bytes(B), l.total()), (2 * 1_144, 1_144, 3 * 1_144));
        l.sent(Tsn(40));
        s.chunks.remove(0);
        let q = QueueView::of(&s.chunks);
        assert_eq!((l.first(&q, A), l.bytes(A), l.agree(&q)), (Some(1), 1_144, true));
        l.sent(Tsn(45));
        assert_eq!(l.total(), 2 * 1_144, "it was not bound");
        // The chunk of B is given up.
        s.chunks.remove(0);
        let q = QueueView::of(&s.chunks);
        assert_eq!((l.first(&q, B), l.agree(&q)), (None, false));
        l.clear();
        assert_eq!((l.total(), l.rest(&q).len(), l.agree(&q)), (0, 4, true));
    }

    #[test]
    fn a_path_that_goes_leaves_chunks_behind() {
        let mut s = Scene::new(2, 2);
        let mut l = Lanes::default();
        l.resize(2);
        l.bind(&s.chunks[0], B);
        assert!(!l.holds_lost(&s.cx()));
        s.aside = anabranch_base::PathSet::only(B);
        assert!(l.holds_lost(&s.cx()));
        s.aside = anabranch_base::PathSet::EMPTY;
        s.paths[1].state = crate::view::PathState::Inactive;
        assert!(l.holds_lost(&s.cx()));
        l.resize(1);
        assert_eq!(l.total(), 0);
    }
}
