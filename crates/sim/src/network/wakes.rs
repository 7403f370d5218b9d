//! When to look at what next.
//!
//! Nearly all wake-ups are of the next milliseconds. Those lie in a wheel of short slots, which costs the same however
//! many there are; the few that are further away, such as timers, lie in a heap beside it and stay there until they are
//! the earliest of all.

use anabranch_base::Instant;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slot spans so many nanoseconds, as a power of two: 16 µs.
const SPAN: u32 = 14;
/// Slots of the wheel, which so spans 67 ms. More would not stay in the first cache.
const SLOTS: usize = 1 << 12;
/// A word has a bit for each of 64 slots, and one more word a bit for each of these.
const WORDS: usize = SLOTS / 64;
const _: () = assert!(WORDS == 64);
/// No entry: later than all.
const NOTHING: Entry = Entry::MAX;
/// No node.
const NONE: u32 = u32::MAX;

/// Time, number among all that were pushed, and what: as one integer, from the high bits down.
type Entry = u128;

/// Small numbers by time; those of one time in the order they came.
#[derive(Debug)]
pub(super) struct Wakes {
    near: Wheel,
    far: BinaryHeap<Reverse<Entry>>,
    /// The next number; those that are here begin anew before it runs over.
    number: u32,
    last: u64,
}

fn entry(at: u64, number: u32, what: u32) -> Entry {
    u128::from(at) << 64 | u128::from(number) << 32 | u128::from(what)
}

fn time_of(entry: Entry) -> u64 {
    (entry >> 64) as u64
}

/// Counted from the beginning of time.
fn slot_of(at: u64) -> u64 {
    at >> SPAN
}

impl Wakes {
    pub fn new() -> Self {
        Wakes { near: Wheel::new(), far: BinaryHeap::new(), number: 0, last: 0 }
    }

    /// Adds an entry; a time before the latest one taken counts as that.
    #[inline]
    pub fn push(&mut self, at: Instant, what: u32) {
        if self.number == u32::MAX {
            self.renumber();
        }
        let new = entry(at.as_nanos().max(self.last), self.number, what);
        self.number += 1;
        self.place(new);
    }

    #[inline]
    fn place(&mut self, new: Entry) {
        let slot = slot_of(time_of(new));
        if slot - slot_of(self.last) < SLOTS as u64 {
            self.near.insert(slot as usize % SLOTS, new);
        } else {
            self.far.push(Reverse(new));
        }
    }

    /// Takes the earliest entry if it is not after `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Instant) -> Option<(Instant, u32)> {
        let (near, slot) = self.near.first_from(slot_of(self.last) as usize % SLOTS);
        let far = self.far.peek().map_or(NOTHING, |Reverse(e)| *e);
        let first = near.min(far);
        let at = time_of(first);
        if first == NOTHING || at > until.as_nanos() {
            return None;
        }
        if first == near {
            self.near.remove_first(slot);
        } else {
            self.far.pop();
        }
        self.last = at;
        Some((Instant::from_nanos(at), first as u32))
    }

    /// Numbers what is there from 0 on, in its order.
    #[cold]
    fn renumber(&mut self) {
        let mut all = self.near.take_all();
        all.extend(self.far.drain().map(|Reverse(e)| e));
        all.sort_unstable();
        for (i, e) in all.iter().enumerate() {
            self.place(entry(time_of(*e), i as u32, *e as u32));
        }
        self.number = all.len() as u32;
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    entry: Entry,
    /// The one before it in its slot.
    before: u32,
    /// The next one of its slot, or of those without an entry.
    next: u32,
}

/// The first and the last node of a slot; the last means nothing where there is no first.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// Entries of the time that the wheel spans, each in the slot of its time; those of one slot in order.
#[derive(Debug)]
struct Wheel {
    nodes: Vec<Node>,
    /// The first node without an entry.
    spare: u32,
    /// The nodes of each slot.
    slots: Box<[Ends]>,
    /// A bit for each slot that has an entry, and for each of these words that is not zero.
    used: Box<[u64; WORDS]>,
    used_words: u64,
}

impl Wheel {
    fn new() -> Self {
        let slots = vec![Ends { first: NONE, last: NONE }; SLOTS].into();
        Wheel { nodes: Vec::new(), spare: NONE, slots, used: Box::new([0; WORDS]), used_words: 0 }
    }

    #[inline]
    fn insert(&mut self, slot: usize, entry: Entry) {
        let Ends { first, last } = self.slots[slot];
        if first == NONE {
            self.used[slot / 64] |= 1 << (slot % 64);
            self.used_words |= 1 << (slot / 64);
            let place = self.place_for(Node { entry, before: NONE, next: NONE });
            self.slots[slot] = Ends { first: place, last: place };
            return;
        }
        // What comes later is mostly to happen later, too.
        let (mut before, mut next) = (last, NONE);
        while let Some(other) = self.nodes.get(before as usize).filter(|o| o.entry > entry) {
            (before, next) = (other.before, before);
        }
        let place = self.place_for(Node { entry, before, next });
        match self.nodes.get_mut(before as usize) {
            Some(before) => before.next = place,
            None => self.slots[slot].first = place,
        }
        match self.nodes.get_mut(next as usize) {
            Some(next) => next.before = place,
            None => self.slots[slot].last = place,
        }
    }

    #[inline]
    fn place_for(&mut self, node: Node) -> u32 {
        let place = self.spare;
        if let Some(spare) = self.nodes.get_mut(place as usize) {
            self.spare = spare.next;
            *spare = node;
            return place;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// The earliest entry and its slot, where nothing is earlier than what is in the slot `from`.
    #[inline]
    fn first_from(&self, from: usize) -> (Entry, usize) {
        let slot = self.used_from(from).unwrap_or(from);
        (self.nodes.get(self.slots[slot].first as usize).map_or(NOTHING, |n| n.entry), slot)
    }

    /// The first slot with an entry, `from` and then around.
    #[inline]
    fn used_from(&self, from: usize) -> Option<usize> {
        let here = self.used[from / 64] >> (from % 64);
        if here != 0 {
            return Some(from + here.trailing_zeros() as usize);
        }
        // The words behind it, and around to its own, whose other slots are the last.
        let next = from / 64 + 1;
        let rest = self.used_words.rotate_right(next as u32);
        if rest == 0 {
            return None;
        }
        let word = (next + rest.trailing_zeros() as usize) % WORDS;
        Some(word * 64 + self.used[word].trailing_zeros() as usize)
    }

    /// Takes out the first entry of a slot that has one.
    #[inline]
    fn remove_first(&mut self, slot: usize) {
        let place = self.slots[slot].first;
        let Some(node) = self.nodes.get_mut(place as usize) else { return };
        let next = core::mem::replace(&mut node.next, self.spare);
        self.spare = place;
        self.slots[slot].first = next;
        if let Some(next) = self.nodes.get_mut(next as usize) {
            next.before = NONE;
        } else {
            let word = &mut self.used[slot / 64];
            *word &= !(1 << (slot % 64));
            if *word == 0 {
                self.used_words &= !(1 << (slot / 64));
            }
        }
    }

    fn take_all(&mut self) -> Vec<Entry> {
        let mut all = Vec::new();
        while let (entry, slot) = self.first_from(0)
            && entry != NOTHING
        {
            all.push(entry);
            self.remove_first(slot);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The same order as a sorted map by time and number, whatever is pushed when, near and far, and when numbers
        /// run out.
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

        /// The same for times that go on over many turns of the wheel.
        #[test]
        fn turn_by_turn(steps in proptest::collection::vec((0u64..90_000_000, 0u32..4), 1..400)) {
            let (mut wakes, mut model, mut now) = (Wakes::new(), BTreeMap::new(), 0);
            for (i, (ahead, pops)) in steps.into_iter().enumerate() {
                wakes.push(Instant::from_nanos(now + ahead), i as u32);
                model.insert((now + ahead, i), ());
                for _ in 0..pops {
                    let want = model.pop_first().map(|(k, ())| k);
                    let got = wakes.pop_until(Instant::FAR);
                    prop_assert_eq!(got.map(|(at, i)| (at.as_nanos(), i as usize)), want);
                    now = want.map_or(now, |k| k.0);
                }
            }
        }
    }
}
