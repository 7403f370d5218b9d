//! A queue of events ordered by time, and by insertion among equal times.

use anabranch_base::Instant;
use core::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events ordered by instant; events of one instant come out in the order they went in.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    inserted: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// A queue without events.
    pub fn new() -> Self {
        EventQueue { heap: BinaryHeap::new(), inserted: 0 }
    }

    /// Adds `event` at time `at`.
    pub fn push(&mut self, at: Instant, event: E) {
        self.heap.push(Entry { at, number: self.inserted, event });
        self.inserted += 1;
    }

    /// Removes the earliest event.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        self.heap.pop().map(|e| (e.at, e.event))
    }

    /// Removes the earliest event if its time has come.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, E)> {
        if self.next_at()? <= now { self.pop() } else { None }
    }

    /// The earliest event and its time.
    pub fn peek(&self) -> Option<(Instant, &E)> {
        self.heap.peek().map(|e| (e.at, &e.event))
    }

    /// Time of the earliest event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|e| e.at)
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Does no event wait?
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Forgets all events. The insertion numbers go on.
    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

// `BinaryHeap` gives the greatest first, so the order is reversed here.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn due_events_only() {
        let mut q = EventQueue::new();
        q.push(Instant::from_millis(5), 'b');
        q.push(Instant::from_millis(1), 'a');
        assert_eq!(q.pop_due(Instant::ZERO), None);
        assert_eq!(q.peek(), Some((Instant::from_millis(1), &'a')));
        assert_eq!(q.pop_due(Instant::from_millis(1)), Some((Instant::from_millis(1), 'a')));
        assert_eq!(q.pop_due(Instant::from_millis(4)), None);
        assert_eq!(q.len(), 1);
    }

    proptest! {
        /// The queue is a stable sort by time.
        #[test]
        fn stable_order(times in proptest::collection::vec(0u64..20, 0..200)) {
            let mut q = EventQueue::new();
            for (i, t) in times.iter().enumerate() {
                q.push(Instant::from_nanos(*t), i);
            }
            let mut want: Vec<_> = times.iter().copied().enumerate().map(|(i, t)| (t, i)).collect();
            want.sort();
            let got: Vec<_> = std::iter::from_fn(|| q.pop()).map(|(t, i)| (t.as_nanos(), i)).collect();
            prop_assert_eq!(got, want);
        }
    }
}
