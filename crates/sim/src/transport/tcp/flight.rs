//! The segments from the first unacknowledged one to the highest sent: when each left last, and what is known of it.

use super::AckSegment;
use super::runs::Runs;
use anabranch_base::Instant;
use std::collections::VecDeque;

/// What is known of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing since it left.
    Flying,
    /// The receiver has it (SACK).
    Arrived,
    /// It was lost, and has not left again.
    Lost,
}

/// When a segment left. Of several that left at one time the count tells the order; RFC 8985 has to guess it from
/// their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Departure {
    pub at: Instant,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    left: Departure,
    again: bool,
    state: State,
}

/// A segment that has just been acknowledged, by whichever kind of acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delivered {
    pub number: u64,
    /// When it left last.
    pub left: Departure,
    /// Had it been sent more than once?
    pub again: bool,
}

/// What a connection has outstanding.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    una: u64,
    segments: VecDeque<Sent>,
    sacked: Runs,
    arrived: u64,
    lost: u64,
    /// No lost segment lies below.
    lost_from: u64,
    /// Transmissions by time. Those of segments that arrived, were lost or left again are passed over.
    order: VecDeque<(Departure, u64)>,
    departures: u64,
}

impl Flight {
    /// Segment `number` leaves at `now`; it is the next new one or has left before.
    pub fn leaves(&mut self, number: u64, now: Instant) {
        self.departures += 1;
        let left = Departure { at: now, count: self.departures };
        let place = number.saturating_sub(self.una) as usize;
        match self.segments.get_mut(place) {
            Some(sent) => {
                self.lost -= u64::from(sent.state == State::Lost);
                *sent = Sent { left, again: true, state: State::Flying };
            }
            None => self.segments.push_back(Sent { left, again: false, state: State::Flying }),
        }
        self.order.push_back((left, number));
    }

    /// Takes the acknowledgement of everything below `next` and the blocks of `ack`; calls `each` with what is new, in
    /// the order of numbers.
    pub fn acknowledged(&mut self, next: u64, ack: &AckSegment, mut each: impl FnMut(Delivered)) {
        while self.una < next
            && let Some(sent) = self.segments.pop_front()
        {
            match sent.state {
                State::Arrived => self.arrived -= 1,
                State::Lost => self.lost -= 1,
                State::Flying => {}
            }
            if sent.state != State::Arrived {
                each(Delivered { number: self.una, left: sent.left, again: sent.again });
            }
            self.una += 1;
        }
        self.sacked.forget_below(self.una);
        let mut blocks = ack.blocks_in_order();
        for (first, end) in blocks.iter_mut() {
            *end = (*end).min(self.una + self.segments.len() as u64);
            self.block((*first).max(self.una), *end, &mut each);
        }
    }

    fn block(&mut self, first: u64, end: u64, each: &mut impl FnMut(Delivered)) {
        let mut from = first;
        while let Some((gap, gap_end)) = self.sacked.gap(from, end) {
            for number in gap..gap_end {
                let Some(sent) = self.segments.get_mut((number - self.una) as usize) else { return };
                self.lost -= u64::from(sent.state == State::Lost);
                self.arrived += 1;
                sent.state = State::Arrived;
                each(Delivered { number, left: sent.left, again: sent.again });
            }
            from = gap_end;
        }
        self.sacked.add(first, end, 0);
    }

    /// Goes through the transmissions of segments of which nothing is known, from the oldest on, as long as `judge`
    /// says something: `true` for a loss.
    pub fn judge(&mut self, mut judge: impl FnMut(Departure, u64) -> Option<bool>) -> u64 {
        let (mut place, mut found) = (0, 0);
        while let Some((left, number)) = self.order.get(place).copied() {
            let flying = number.checked_sub(self.una).and_then(|n| self.segments.get_mut(n as usize));
            let flying = flying.filter(|sent| sent.state == State::Flying && sent.left == left);
            let stays = match flying {
                None => false,
                Some(sent) => {
                    let Some(lost) = judge(left, number) else { break };
                    if lost {
                        sent.state = State::Lost;
                        self.lost_from = if self.lost == 0 { number } else { self.lost_from.min(number) };
                        self.lost += 1;
                        found += 1;
                    }
                    !lost
                }
            };
            if stays || place > 0 {
                place += 1;
            } else {
                self.order.pop_front();
            }
        }
        found
    }

    /// The first lost segment that has not left again.
    pub fn first_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_from.max(self.una);
        let place = self.segments.iter().skip((from - self.una) as usize).position(|s| s.state == State::Lost)?;
        self.lost_from = from + place as u64;
        Some(self.lost_from)
    }

    /// Segments in the network, as far as is known.
    pub fn flying(&self) -> u64 {
        self.outstanding() - self.arrived - self.lost
    }

    /// Segments not acknowledged cumulatively.
    pub fn outstanding(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Segments of which the receiver said that it has them, without those before.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Lost segments that have not left again.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_BLOCKS;
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    fn ack(next: u64, blocks: &[(u16, u16)]) -> AckSegment {
        let mut all = [(0, 0); MAX_BLOCKS];
        all[..blocks.len()].copy_from_slice(blocks);
        AckSegment { flow: 0, next, blocks: all }
    }

    fn taken(f: &mut Flight, ack: &AckSegment) -> Vec<(u64, bool)> {
        let mut all = Vec::new();
        f.acknowledged(ack.next, ack, |d| all.push((d.number, d.again)));
        all
    }

    #[test]
    fn each_segment_is_delivered_once() {
        let mut f = Flight::default();
        (0..10).for_each(|n| f.leaves(n, MS(n)));
        assert_eq!(
            taken(&mut f, &ack(2, &[(6, 1), (1, 2)])),
            [(0, false), (1, false), (3, false), (4, false), (8, false)]
        );
        assert_eq!((f.outstanding(), f.arrived(), f.flying()), (8, 3, 5));
        assert_eq!(taken(&mut f, &ack(2, &[(1, 6)])), [(5, false), (6, false), (7, false)]);
        // A block beyond what was sent is cut.
        assert_eq!(taken(&mut f, &ack(3, &[(1, 60)])), [(2, false), (9, false)]);
        assert_eq!(taken(&mut f, &ack(10, &[])), []);
        assert_eq!((f.outstanding(), f.arrived(), f.flying()), (0, 0, 0));
    }

    #[test]
    fn losses_by_time_and_what_left_again() {
        let mut f = Flight::default();
        (0..6).for_each(|n| f.leaves(n, MS(n)));
        taken(&mut f, &ack(0, &[(3, 1)]));
        assert_eq!(f.judge(|left, _| (left.at < MS(4)).then_some(left.at < MS(2))), 2);
        assert_eq!((f.lost(), f.flying(), f.first_lost()), (2, 3, Some(0)));
        f.leaves(0, MS(10));
        assert_eq!((f.lost(), f.flying(), f.first_lost()), (1, 4, Some(1)));
        // Lost once more: its latest transmission counts.
        assert_eq!(f.judge(|left, _| Some(left.at >= MS(10))), 1);
        assert_eq!((f.lost(), f.first_lost()), (2, Some(0)));
        assert_eq!(taken(&mut f, &ack(2, &[])), [(0, true), (1, false)]);
        assert_eq!((f.lost(), f.first_lost(), f.flying()), (0, None, 3));
    }
}
