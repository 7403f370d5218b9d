//! What a subflow's segments carry, from the first that is not acknowledged on.

use crate::transport::tcp::AckSegment;
use anabranch_base::Instant;
use std::collections::VecDeque;

/// A segment by its latest transmission.
#[derive(Clone, Copy, Debug)]
struct Flight<T> {
    carries: T,
    at: Instant,
    /// It has neither arrived nor been lost, as far as is known.
    flying: bool,
}

/// The segments of a subflow.
#[derive(Debug)]
pub(super) struct Flights<T> {
    first: u64,
    all: VecDeque<Flight<T>>,
    /// Part of the transmissions that are lost, smoothed.
    loss: f64,
}

/// Weight of a transmission in the smoothed part that is lost. Ours: the papers' own is not known here.
const WEIGHT: f64 = 1.0 / 64.0;

impl<T: Copy> Flights<T> {
    pub fn new() -> Self {
        Flights { first: 1, all: VecDeque::new(), loss: 0.0 }
    }

    /// Segment `number` leaves with this; says what is lost, if it has left before and was still on its way.
    pub fn leaves(&mut self, number: u64, now: Instant, carries: T) -> Option<T> {
        let new = Flight { carries, at: now, flying: true };
        let place = number.checked_sub(self.first)? as usize;
        let Some(flight) = self.all.get_mut(place) else {
            self.all.push_back(new);
            return None;
        };
        let before = core::mem::replace(flight, new);
        self.loss += WEIGHT * (1.0 - self.loss);
        before.flying.then_some(before.carries)
    }

    /// Calls `each` with what has arrived.
    pub fn acknowledged(&mut self, ack: &AckSegment, mut each: impl FnMut(T)) {
        let mut arrived = |loss: &mut f64, flight: &mut Flight<T>| {
            if core::mem::replace(&mut flight.flying, false) {
                *loss -= WEIGHT * *loss;
                each(flight.carries);
            }
        };
        while self.first < ack.next
            && let Some(mut flight) = self.all.pop_front()
        {
            self.first += 1;
            arrived(&mut self.loss, &mut flight);
        }
        for (from, to) in ack.sacked() {
            let place = |n: u64| (n.saturating_sub(self.first) as usize).min(self.all.len());
            let (from, to) = (place(from), place(to));
            self.all.range_mut(from..to.max(from)).for_each(|f| arrived(&mut self.loss, f));
        }
    }

    /// Everything on its way is lost, for all that is known; calls `each` with it.
    pub fn give_up(&mut self, mut each: impl FnMut(T)) {
        for flight in self.all.iter_mut().filter(|f| f.flying) {
            flight.flying = false;
            each(flight.carries);
        }
    }

    /// What is on its way, and when it left.
    pub fn flying(&self) -> impl Iterator<Item = (T, Instant)> + '_ {
        self.all.iter().filter(|f| f.flying).map(|f| (f.carries, f.at))
    }

    /// What segment `number` carries.
    pub fn carries(&self, number: u64) -> Option<T> {
        Some(self.all.get(number.checked_sub(self.first)? as usize)?.carries)
    }

    /// When the oldest that is not acknowledged left.
    pub fn oldest(&self) -> Option<Instant> {
        self.all.front().map(|f| f.at)
    }

    /// Part of the transmissions that are lost.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// None of a path that is known to lose so much.
    #[cfg(test)]
    pub fn of_a_path_that_loses(loss: f64) -> Self {
        Flights { loss, ..Flights::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tcp::MAX_BLOCKS;

    fn ack(next: u64, block: (u16, u16)) -> AckSegment {
        let mut blocks = [(0, 0); MAX_BLOCKS];
        blocks[0] = block;
        AckSegment { flow: 0, next, blocks }
    }

    #[test]
    fn each_arrives_or_is_lost_once() {
        let (mut f, ms) = (Flights::new(), Instant::from_millis);
        (1..=8).for_each(|n| assert_eq!(f.leaves(n, ms(n), n), None));
        let mut came = Vec::new();
        f.acknowledged(&ack(3, (2, 2)), |n| came.push(n));
        f.acknowledged(&ack(3, (2, 3)), |n| came.push(n));
        assert_eq!(came, [1, 2, 5, 6, 7]);
        assert_eq!((f.oldest(), f.loss()), (Some(ms(3)), 0.0));
        assert_eq!(f.leaves(3, ms(20), 30), Some(3));
        assert!((f.loss() - WEIGHT).abs() < 1e-12);
        let mut lost = Vec::new();
        f.give_up(|n| lost.push(n));
        assert_eq!(lost, [30, 4, 8]);
        assert_eq!(f.leaves(4, ms(30), 40), None, "it was given up before");
        assert_eq!(f.flying().collect::<Vec<_>>(), [(40, ms(30))]);
        came.clear();
        f.acknowledged(&ack(9, (0, 0)), |n| came.push(n));
        assert_eq!(came, [40]);
        assert_eq!(f.leaves(9, ms(40), 9), None);
    }
}
