//! When to look at what next.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan 1990): times never run backwards, so an entry lies in the bucket of
//! the highest bit in which its time differs from the latest one taken. Taking empties the lowest bucket into those
//! below it, which are empty, so that equal times keep their order without a number for each, and every step runs
//! along a short row of memory.

use anabranch_base::Instant;

/// Bucket 0 holds what is due at the latest time taken, bucket `i` what differs from it in bit `i - 1` at most.
const BUCKETS: usize = 65;

/// Entries by time; those of one time in the order they came.
#[derive(Debug)]
pub(super) struct Wakes<T> {
    buckets: [Vec<(u64, T)>; BUCKETS],
    /// Bit `i - 1` says whether bucket `i` holds anything.
    filled: u64,
    /// How far bucket 0 has been taken.
    taken: usize,
    last: u64,
    spare: Vec<(u64, T)>,
}

impl<T: Copy> Wakes<T> {
    pub fn new() -> Self {
        Wakes { buckets: [const { Vec::new() }; BUCKETS], filled: 0, taken: 0, last: 0, spare: Vec::new() }
    }

    /// Adds an entry; a time before the latest one taken counts as that.
    #[inline]
    pub fn push(&mut self, at: Instant, what: T) {
        let at = at.as_nanos().max(self.last);
        self.put(at, what);
    }

    #[inline]
    fn put(&mut self, at: u64, what: T) {
        let bucket = 64 - (at ^ self.last).leading_zeros() as usize;
        self.buckets[bucket].push((at, what));
        if bucket > 0 {
            self.filled |= 1 << (bucket - 1);
        }
    }

    /// Takes the earliest entry if it is not after `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Instant) -> Option<(Instant, T)> {
        if self.taken == self.buckets[0].len() && !self.refill(until.as_nanos()) {
            return None;
        }
        let (at, what) = *self.buckets[0].get(self.taken)?;
        if at > until.as_nanos() {
            return None;
        }
        self.taken += 1;
        Some((Instant::from_nanos(at), what))
    }

    /// Moves what is due next into bucket 0, unless it is after `until`.
    fn refill(&mut self, until: u64) -> bool {
        self.buckets[0].clear();
        self.taken = 0;
        if self.filled == 0 {
            return false;
        }
        let lowest = self.filled.trailing_zeros() as usize + 1;
        if let [(at, what)] = self.buckets[lowest][..] {
            if at > until {
                return false;
            }
            self.buckets[lowest].clear();
            self.filled &= self.filled - 1;
            self.last = at;
            self.buckets[0].push((at, what));
            return true;
        }
        let next = self.buckets[lowest].iter().map(|e| e.0).min().unwrap_or(u64::MAX);
        if next > until {
            return false;
        }
        self.last = next;
        self.filled &= self.filled - 1;
        let mut all = core::mem::replace(&mut self.buckets[lowest], core::mem::take(&mut self.spare));
        for (at, what) in all.drain(..) {
            self.put(at, what);
        }
        self.spare = all;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The same order as a sorted map by time and number, whatever is pushed when.
        #[test]
        fn stable_order(steps in proptest::collection::vec((0u64..40, 0u32..3, 0u32..60), 0..300)) {
            let (mut wakes, mut model) = (Wakes::new(), BTreeMap::new());
            let mut now = 0;
            for (i, (gap, pops, shift)) in steps.into_iter().enumerate() {
                let at = now + (gap << (shift / 2));
                wakes.push(Instant::from_nanos(at), i);
                model.insert((at, i), ());
                for _ in 0..pops {
                    let until = now + gap;
                    let want = model.first_key_value().map(|(k, ())| *k).filter(|k| k.0 <= until);
                    let got = wakes.pop_until(Instant::from_nanos(until));
                    prop_assert_eq!(got.map(|(at, i)| (at.as_nanos(), i)), want);
                    if let Some(k) = want {
                        model.remove(&k);
                        now = k.0;
                    }
                }
            }
            let rest: Vec<_> = core::iter::from_fn(|| wakes.pop_until(Instant::FAR)).map(|(t, i)| (t.as_nanos(), i)).collect();
            prop_assert_eq!(rest, model.into_keys().collect::<Vec<_>>());
        }
    }
}
