//! Packets whose data were given up while they were in flight: the path carries them all the same, and what is acknowledged
//! of them says how fast.

use super::Path;
use super::rate::DeliveredAtSend;
use crate::tx::scoreboard::LiveCopy;
use std::collections::VecDeque;

/// The newest chunks that are remembered: of the largest size, what a path of 48 Mbit/s has under way in a tenth of a second.
const MOST: usize = 512;

/// A chunk that had left once, on this path, and was given up before anything was heard of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenUp {
    tsn: u64,
    pub copy: LiveCopy,
    pub len: u64,
    at_send: DeliveredAtSend,
}

/// Those of a path, by TSN.
#[derive(Debug, Default)]
pub(crate) struct AllGivenUp(VecDeque<GivenUp>);

impl AllGivenUp {
    fn add(&mut self, g: GivenUp) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        // Most often behind all others.
        let at = self.0.partition_point(|other| other.tsn < g.tsn);
        self.0.insert(at, g);
    }

    fn take(&mut self, tsn: u64) -> Option<GivenUp> {
        let at = self.0.binary_search_by_key(&tsn, |g| g.tsn).ok()?;
        self.0.remove(at)
    }

    /// All up to this TSN are settled.
    fn pass(&mut self, cumulative: u64) {
        while self.0.front().is_some_and(|g| g.tsn <= cumulative) {
            self.0.pop_front();
        }
    }
}

impl Path {
    /// Takes the copy of a chunk of `len` bytes off the flight, which is given up: nothing is known of its packet. It is
    /// remembered where it is the only one that left (`once`).
    pub fn give_up(&mut self, tsn: u64, copy: &LiveCopy, len: u64, once: bool) {
        if once && let Some(p) = self.flight.packet(copy.tx_seq) {
            let g = GivenUp { tsn, copy: *copy, len, at_send: p.at_send };
            self.given_up.get_or_insert_default().add(g);
        }
        self.flight.remove_copy(copy.tx_seq, len, false);
    }

    /// The peer reports that `tsn` arrived, which was given up.
    pub fn given_up_arrived(&mut self, tsn: u64) -> Option<GivenUp> {
        let g = self.given_up.as_mut()?.take(tsn)?;
        self.progress.arrive(g.copy.tx_seq, &g.at_send);
        Some(g)
    }

    /// The cumulative TSN has come this far.
    pub fn forget_given_up(&mut self, cumulative: u64) {
        if let Some(all) = &mut self.given_up {
            all.pass(cumulative);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::{Instant, PathId};

    fn given_up(tsn: u64) -> GivenUp {
        let copy = LiveCopy { path: PathId(0), tx_seq: tsn * 2, sent_at: Instant::from_millis(tsn), misses: 0 };
        GivenUp { tsn, copy, len: 1_000, at_send: DeliveredAtSend::default() }
    }

    #[test]
    fn each_arrives_once_unless_it_was_passed_or_is_too_old() {
        let mut all = AllGivenUp::default();
        // In whatever order they are given up.
        (1..=MOST as u64 + 2).for_each(|tsn| all.add(given_up(if tsn % 2 == 0 { tsn - 1 } else { tsn + 1 })));
        assert!(all.take(1).is_none() && all.take(2).is_none(), "too many came after them");
        assert_eq!(all.take(7).map(|g| g.copy.tx_seq), Some(14));
        assert!(all.take(7).is_none());
        all.pass(9);
        assert!(all.take(9).is_none() && all.take(10).is_some());
        assert_eq!(all.0.len(), MOST - 8);
    }
}
