//! When each association wants to be called next.

use super::AssocId;
use anabranch_base::Instant;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries beyond those that count after which the others are thrown away.
const STALE: usize = 64;

/// The earliest first. An association that wants to be called earlier than it said gets a second entry; only the one
/// with the time that its slot notes counts.
#[derive(Default)]
pub(super) struct Alarms(BinaryHeap<Reverse<(Instant, AssocId)>>);

impl Alarms {
    /// The first; it counts.
    pub fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((t, _))| *t)
    }

    /// Takes the first out when it is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, AssocId)> {
        self.0.peek().filter(|Reverse((t, _))| *t <= now)?;
        self.0.pop().map(|Reverse(e)| e)
    }

    /// `id` wants to be called at `t`. At most `most` entries count.
    pub fn push(&mut self, t: Instant, id: AssocId, most: usize, counts: impl Fn(Instant, AssocId) -> bool) {
        if self.0.len() >= 2 * most + STALE {
            let mut all = core::mem::take(&mut self.0).into_vec();
            all.retain(|Reverse((t, id))| counts(*t, *id));
            // A time that was given up for an earlier one and came back stands here twice.
            all.sort_unstable();
            all.dedup();
            self.0 = all.into();
        }
        self.0.push(Reverse((t, id)));
    }

    /// Throws away what does not count from the front.
    pub fn settle(&mut self, counts: impl Fn(Instant, AssocId) -> bool) {
        while let Some(Reverse((t, id))) = self.0.peek()
            && !counts(*t, *id)
        {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_that_counts_and_no_hoard_of_others() {
        let mut alarms = Alarms::default();
        let mut noted = [Instant::FAR; 3];
        for round in 0..10_000u64 {
            let id = round % 3;
            // A time far away, and again and again an earlier one.
            noted[id as usize] = Instant::from_millis(if round % 2 == 0 { 1_000_000 } else { 1_000 - round / 20 });
            alarms.push(noted[id as usize], AssocId(id), 3, |t, id| noted[id.0 as usize] == t);
            assert!(alarms.0.len() <= 2 * 3 + STALE);
            alarms.settle(|t, id| noted[id.0 as usize] == t);
            assert_eq!(alarms.next(), noted.iter().min().copied());
        }
        let first = alarms.next().unwrap();
        assert_eq!(alarms.pop_due(first - anabranch_base::Duration::from_nanos(1)), None);
        assert_eq!(alarms.pop_due(first).map(|(t, _)| t), Some(first));
    }
}
