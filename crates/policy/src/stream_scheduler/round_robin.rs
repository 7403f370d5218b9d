//! One message of each stream in turn.
//!
//! Source: RFC 8260 §3.2, SCTP_SS_RR. No parameters.

use super::{Place, StreamScheduler};
use crate::registry::{Hook, Policy, PolicyInfo};
use crate::view::StreamView;
use anabranch_base::StreamId;

pub(super) const POLICY: Policy<dyn StreamScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::StreamScheduler,
        name: "round_robin",
        source: "RFC 8260 §3.2",
        file: file!(),
        summary: "The next stream by number after the one that was served last.",
        params: &[],
    },
    build: |_| Box::new(RoundRobin { turn: Turn::default() }),
};

struct RoundRobin {
    turn: Turn,
}

/// Whose turn it is: streams in the order of their numbers, round by round.
#[derive(Default)]
pub(super) struct Turn {
    round: u64,
    /// The stream that was served last in this round.
    last: Option<u16>,
}

impl Turn {
    /// In this round if its number comes after the last one's, else in the next.
    pub(super) fn place(&self, stream: StreamId) -> Place {
        let over = self.last.is_some_and(|last| stream.0 <= last);
        Place(u128::from(self.round + u64::from(over)), stream.0.into())
    }
    pub(super) fn taken(&mut self, stream: StreamId) {
        // The last one again: it was alone, or goes on in the same turn.
        self.round += u64::from(self.last.is_some_and(|last| stream.0 < last));
        self.last = Some(stream.0);
    }
}

impl StreamScheduler for RoundRobin {
    fn place(&mut self, first: &StreamView, _least: Option<Place>) -> Place {
        self.turn.place(first.id)
    }
    fn taken(&mut self, stream: StreamId, _len: u64) {
        self.turn.taken(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Turns, stream};

    #[test]
    fn in_turn() {
        let ready = [stream(9, 1), stream(2, 2), stream(5, 3)];
        let mut p = RoundRobin { turn: Turn::default() };
        let (mut order, mut turns) = (Vec::new(), Turns::default());
        for _ in 0..4 {
            let s = turns.next(&mut p, &ready);
            turns.taken(&mut p, s, 100);
            order.push(s.0);
        }
        assert_eq!(order, [2, 5, 9, 2]);
    }

    /// Whoever comes and goes, the next one is the next by number, and after the highest the lowest.
    #[test]
    fn the_next_by_number_whoever_comes_and_goes() {
        let mut r = anabranch_base::RandomStream::named(1, "round_robin");
        let (mut p, mut turns, mut last) = (RoundRobin { turn: Turn::default() }, Turns::default(), u16::MAX);
        for _ in 0..10_000 {
            let mut ready: Vec<_> = (0..9).filter(|_| r.chance(0.4)).map(|id| stream(id, 1)).collect();
            ready.extend(ready.is_empty().then(|| stream(4, 1)));
            let wanted = ready.iter().map(|s| s.id.0).min_by_key(|id| id.wrapping_sub(last.wrapping_add(1)));
            let s = turns.next(&mut p, &ready);
            assert_eq!(Some(s.0), wanted);
            turns.taken(&mut p, s, 100);
            last = s.0;
        }
    }
}
