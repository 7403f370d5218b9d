//! When to look at what next.
//!
//! A heap in which four stand below each: the keys that are compared lie side by side, and there are half as many levels
//! as with two. Who comes first is taken but stays in its place until something else is put there, because nearly every
//! wake-up makes another one.

use anabranch_base::Instant;

/// Below each.
const WIDTH: usize = 4;

/// Time, number among all that were pushed, and what: as one integer, from the high bits down.
type Entry = u128;

/// Small numbers by time; those of one time in the order they came.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    heap: Vec<Entry>,
    /// The next number; those in the heap begin anew before it runs over.
    number: u32,
    /// The first has been taken.
    taken: bool,
    last: u64,
}

fn entry(at: u64, number: u32, what: u32) -> Entry {
    u128::from(at) << 64 | u128::from(number) << 32 | u128::from(what)
}

impl Wakes {
    pub fn new() -> Self {
        Wakes::default()
    }

    /// Adds an entry; a time before the latest one taken counts as that.
    #[inline]
    pub fn push(&mut self, at: Instant, what: u32) {
        if self.number == u32::MAX {
            self.renumber();
        }
        let new = entry(at.as_nanos().max(self.last), self.number, what);
        self.number += 1;
        if core::mem::take(&mut self.taken) {
            self.sink(new);
        } else {
            self.heap.push(new);
            self.rise(new);
        }
    }

    /// Takes the earliest entry if it is not after `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Instant) -> Option<(Instant, u32)> {
        if core::mem::take(&mut self.taken)
            && let Some(end) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sink(end);
        }
        let first = *self.heap.first()?;
        let at = (first >> 64) as u64;
        if at > until.as_nanos() {
            return None;
        }
        (self.taken, self.last) = (true, at);
        Some((Instant::from_nanos(at), first as u32))
    }

    /// Puts `new` where the first was, and further down until nothing below it is earlier.
    #[inline]
    fn sink(&mut self, new: Entry) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        loop {
            let below = at * WIDTH + 1;
            let least = if let Some(&[a, b, c, d]) = heap.get(below..).and_then(|h| h.first_chunk::<WIDTH>()) {
                let left = if b < a { (b, 1) } else { (a, 0) };
                let right = if d < c { (d, 3) } else { (c, 2) };
                let least = if right.0 < left.0 { right } else { left };
                (least.0, below + least.1)
            } else {
                let rest = heap.get(below..).unwrap_or_default().iter().zip(below..);
                let Some(least) = rest.map(|(e, i)| (*e, i)).min() else { break };
                least
            };
            if new < least.0 {
                break;
            }
            heap[at] = least.0;
            at = least.1;
        }
        heap[at] = new;
    }

    /// Moves `new`, the last, up until nothing above it is later.
    fn rise(&mut self, new: Entry) {
        let heap = self.heap.as_mut_slice();
        let mut at = heap.len() - 1;
        while at > 0 {
            let above = (at - 1) / WIDTH;
            if heap[above] < new {
                break;
            }
            heap[at] = heap[above];
            at = above;
        }
        heap[at] = new;
    }

    /// Numbers what is there from 0 on, in its order: which a sorted heap keeps.
    #[cold]
    fn renumber(&mut self) {
        if core::mem::take(&mut self.taken) {
            self.heap.swap_remove(0);
        }
        self.heap.sort_unstable();
        for (i, e) in self.heap.iter_mut().enumerate() {
            *e = entry((*e >> 64) as u64, i as u32, *e as u32);
        }
        self.number = self.heap.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The same order as a sorted map by time and number, whatever is pushed when, and when numbers run out.
        #[test]
        fn stable_order(
            steps in proptest::collection::vec((0u64..40, 0u32..3, 0u32..60), 0..300),
            left in 0u32..400,
        ) {
            let (mut wakes, mut model) = (Wakes::new(), BTreeMap::new());
            wakes.number = u32::MAX - left;
            let mut now = 0;
            for (i, (gap, pops, shift)) in steps.into_iter().enumerate() {
                let at = now + (gap << (shift / 2));
                wakes.push(Instant::from_nanos(at), i as u32);
                model.insert((at, i), ());
                for _ in 0..pops {
                    let until = now + gap;
                    let want = model.first_key_value().map(|(k, ())| *k).filter(|k| k.0 <= until);
                    let got = wakes.pop_until(Instant::from_nanos(until));
                    prop_assert_eq!(got.map(|(at, i)| (at.as_nanos(), i as usize)), want);
                    if let Some(k) = want {
                        model.remove(&k);
                        now = k.0;
                    }
                }
            }
            let rest: Vec<_> = core::iter::from_fn(|| wakes.pop_until(Instant::FAR))
                .map(|(t, i)| (t.as_nanos(), i as usize))
                .collect();
            prop_assert_eq!(rest, model.into_keys().collect::<Vec<_>>());
        }
    }
}
