//! Which subflow is asked first whether it has room.

use super::Scheduler;
use super::subflow::Subflow;

/// The order in which subflows are offered what is to be sent.
#[derive(Debug, Default)]
pub(super) struct Turns {
    order: Vec<usize>,
    /// Whose turn it is.
    next: usize,
}

impl Turns {
    /// Puts the subflows that may take something new in order, the one to be asked first in front; says how many.
    pub fn order(&mut self, scheduler: Scheduler, subflows: &[Subflow]) -> usize {
        self.order.clear();
        let n = subflows.len().max(1);
        let all = (0..n).map(|i| (i + self.next) % n);
        self.order.extend(all.filter(|i| subflows.get(*i).is_some_and(Subflow::takes)));
        if scheduler == Scheduler::MinRtt {
            // Stable, so that equal ones stay in their order.
            self.order.sort_by_key(|i| subflows.get(*i).map(Subflow::rtt));
        }
        self.order.len()
    }

    /// The subflow at this place of the order.
    pub fn at(&self, place: usize) -> Option<usize> {
        self.order.get(place).copied()
    }

    /// This one has taken a segment.
    pub fn took(&mut self, scheduler: Scheduler, subflow: usize) {
        if scheduler == Scheduler::RoundRobin {
            self.next = subflow + 1;
        }
    }
}
