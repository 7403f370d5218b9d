//! The queue of wake-ups: which link or agent to look at next, and when.
//!
//! Nearly all wake-ups are of the next milliseconds. Time is cut into epochs. What falls into the one that has begun
//! lies in slots so short that few hold more than a handful; the next epochs have a row each, from where all goes into
//! slots when the epoch begins; the few that are further away, such as long timers, lie in a heap. So adding and taking
//! cost the same however many there are, unless many fall into one slot in the wrong order.

use anabranch_base::Instant;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slot spans so many nanoseconds, as a power of two: 4 µs.
const SPAN: u32 = 12;
/// Slots of an epoch, which so spans 17 ms. More would not stay in the first cache.
const SLOTS: usize = 1 << 12;
/// A word has a bit for each of 64 slots, and one more word a bit for each of these.
const WORDS: usize = SLOTS / 64;
const _: () = assert!(WORDS == 64);
/// The epoch and the next ones with a row of their own, which reach 1.07 s; one word has a bit for each.
const EPOCHS: u64 = 64;
/// No node.
const NONE: u32 = u32::MAX;

/// Small numbers by time; those of one time in the order they came.
#[derive(Debug)]
pub(super) struct Wakes {
    nodes: Nodes,
    /// The epoch that has begun.
    epoch: u64,
    slots: Slots,
    /// One row for each of the epochs to come, at its number modulo [`EPOCHS`].
    rows: [Row; EPOCHS as usize],
    /// A bit for each row that is not empty.
    used_rows: u64,
    /// Those of later epochs: time, number among all that came here, and what.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    number: u64,
    last: u64,
}

fn epoch_of(at: u64) -> u64 {
    at >> SPAN >> SLOTS.trailing_zeros()
}

impl Wakes {
    pub fn new() -> Self {
        Wakes {
            nodes: Nodes { all: Vec::new(), spare: NONE },
            epoch: 0,
            slots: Slots { rows: Box::new([Row::EMPTY; SLOTS]), used: Box::new([0; WORDS]), used_words: 0 },
            rows: [Row::EMPTY; EPOCHS as usize],
            used_rows: 0,
            far: BinaryHeap::new(),
            number: 0,
            last: 0,
        }
    }

    /// Adds an entry; a time before the latest one asked for counts as that.
    #[inline]
    pub fn push(&mut self, at: Instant, what: u32) {
        let at = at.as_nanos().max(self.last);
        if epoch_of(at) == self.epoch {
            let node = self.nodes.place_for(at, what);
            self.slots.insert(&mut self.nodes, node, at);
        } else {
            self.push_later(at, what);
        }
    }

    fn push_later(&mut self, at: u64, what: u32) {
        let epoch = epoch_of(at);
        if epoch - self.epoch < EPOCHS {
            let node = self.nodes.place_for(at, what);
            self.rows[(epoch % EPOCHS) as usize].append(&mut self.nodes, node);
            self.used_rows |= 1 << (epoch % EPOCHS);
        } else {
            self.far.push(Reverse((at, self.number, what)));
            self.number += 1;
        }
    }

    /// Takes the earliest entry if it is not after `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Instant) -> Option<(Instant, u32)> {
        let until = until.as_nanos();
        let slot = match self.slots.first() {
            Some(slot) => slot,
            None => self.next_epoch(until)?,
        };
        let row = &mut self.slots.rows[slot];
        let Node { at, what, next, .. } = self.nodes.get(row.first)?;
        if at > until {
            self.last = self.last.max(until);
            return None;
        }
        self.nodes.give_back(core::mem::replace(&mut row.first, next));
        if next == NONE {
            self.slots.emptied(slot);
        }
        self.last = at;
        Some((Instant::from_nanos(at), what))
    }

    /// Begins the next epoch that has an entry, if that is not after `until`; the first slot with one.
    fn next_epoch(&mut self, until: u64) -> Option<usize> {
        let row = (self.used_rows != 0).then(|| {
            self.epoch + u64::from(self.used_rows.rotate_right((self.epoch % EPOCHS) as u32).trailing_zeros())
        });
        let far = self.far.peek().map(|Reverse((at, ..))| epoch_of(*at));
        let next = row.into_iter().chain(far).min().filter(|next| *next <= epoch_of(until));
        let Some(next) = next else {
            self.last = self.last.max(until);
            return None;
        };
        self.epoch = next;
        // Of one time, what was far away came before what was nearer when it came.
        while let Some(Reverse((at, _, what))) =
            self.far.peek().copied().filter(|Reverse((at, ..))| epoch_of(*at) == next)
        {
            self.far.pop();
            let node = self.nodes.place_for(at, what);
            self.slots.insert(&mut self.nodes, node, at);
        }
        let row = core::mem::replace(&mut self.rows[(next % EPOCHS) as usize], Row::EMPTY);
        self.used_rows &= !(1 << (next % EPOCHS));
        let mut node = row.first;
        while let Some(Node { at, next, .. }) = self.nodes.get(node) {
            self.nodes.end_with(node);
            self.slots.insert(&mut self.nodes, node, at);
            node = next;
        }
        self.slots.first()
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    at: u64,
    what: u32,
    /// The next one of its row, or of those without an entry.
    next: u32,
    /// The one before it; means nothing in the first.
    before: u32,
}

/// Where all entries but those far away lie.
#[derive(Debug)]
struct Nodes {
    all: Vec<Node>,
    /// The first node without an entry.
    spare: u32,
}

impl Nodes {
    #[inline]
    fn get(&self, node: u32) -> Option<Node> {
        self.all.get(node as usize).copied()
    }

    /// A node with an entry and nothing behind it.
    #[inline]
    fn place_for(&mut self, at: u64, what: u32) -> u32 {
        let new = Node { at, what, next: NONE, before: NONE };
        let node = self.spare;
        if let Some(spare) = self.all.get_mut(node as usize) {
            self.spare = spare.next;
            *spare = new;
            return node;
        }
        self.all.push(new);
        self.all.len() as u32 - 1
    }

    /// Has nothing behind `node`.
    fn end_with(&mut self, node: u32) {
        if let Some(node) = self.all.get_mut(node as usize) {
            node.next = NONE;
        }
    }

    /// A node whose entry has been taken.
    #[inline]
    fn give_back(&mut self, node: u32) {
        if let Some(taken) = self.all.get_mut(node as usize) {
            taken.next = self.spare;
            self.spare = node;
        }
    }

    /// Puts `next` behind `node`.
    #[inline]
    fn link(&mut self, node: u32, next: u32) {
        if let Some(node) = self.all.get_mut(node as usize) {
            node.next = next;
        }
        if let Some(next) = self.all.get_mut(next as usize) {
            next.before = node;
        }
    }
}

/// Nodes one behind the other; the last means nothing where there is no first.
#[derive(Clone, Copy, Debug)]
struct Row {
    first: u32,
    last: u32,
}

impl Row {
    const EMPTY: Row = Row { first: NONE, last: NONE };

    /// Puts a node that has nothing behind it at the end.
    #[inline]
    fn append(&mut self, nodes: &mut Nodes, node: u32) {
        if self.first == NONE {
            self.first = node;
        } else {
            nodes.link(self.last, node);
        }
        self.last = node;
    }

    /// Puts a node that has nothing behind it where its time belongs, behind others of that time.
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, node: u32, at: u64) {
        // What comes later is mostly to happen later, too.
        if self.first == NONE || nodes.get(self.last).is_some_and(|last| last.at <= at) {
            self.append(nodes, node);
        } else {
            self.insert_before_last(nodes, node, at);
        }
    }

    fn insert_before_last(&mut self, nodes: &mut Nodes, node: u32, at: u64) {
        let mut next = self.last;
        while next != self.first
            && let Some(Node { before, .. }) = nodes.get(next)
        {
            if nodes.get(before).is_some_and(|before| before.at <= at) {
                nodes.link(before, node);
                nodes.link(node, next);
                return;
            }
            next = before;
        }
        nodes.link(node, next);
        self.first = node;
    }
}

/// The entries of one epoch, each in the slot of its time.
#[derive(Debug)]
struct Slots {
    rows: Box<[Row; SLOTS]>,
    /// A bit for each slot that has an entry, and for each of these words that is not zero.
    used: Box<[u64; WORDS]>,
    used_words: u64,
}

impl Slots {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, node: u32, at: u64) {
        let slot = (at >> SPAN) as usize % SLOTS;
        self.rows[slot].insert(nodes, node, at);
        self.used[slot / 64] |= 1 << (slot % 64);
        self.used_words |= 1 << (slot / 64);
    }

    /// The first slot with an entry.
    #[inline]
    fn first(&self) -> Option<usize> {
        if self.used_words == 0 {
            return None;
        }
        let word = self.used_words.trailing_zeros() as usize % WORDS;
        Some(word * 64 + self.used[word].trailing_zeros() as usize % 64)
    }

    /// There is nothing more in a slot.
    #[inline]
    fn emptied(&mut self, slot: usize) {
        let word = &mut self.used[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.used_words &= !(1 << (slot / 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The queue beside a sorted map by time and number.
    struct Both {
        wakes: Wakes,
        model: BTreeMap<(u64, u32), ()>,
        pushed: u32,
        /// The latest time asked for.
        now: u64,
    }

    impl Both {
        fn new() -> Self {
            Both { wakes: Wakes::new(), model: BTreeMap::new(), pushed: 0, now: 0 }
        }

        fn push(&mut self, at: u64) {
            let at = Instant::from_nanos(at);
            self.wakes.push(at, self.pushed);
            self.model.insert((at.as_nanos().max(self.now), self.pushed), ());
            self.pushed += 1;
        }

        fn pop_until(&mut self, until: u64) -> Result<bool, TestCaseError> {
            let until = Instant::from_nanos(until);
            let want = self.model.first_key_value().map(|(k, ())| *k).filter(|k| k.0 <= until.as_nanos());
            let got = self.wakes.pop_until(until);
            prop_assert_eq!(got.map(|(at, i)| (at.as_nanos(), i)), want);
            self.now = want.map_or(self.now.max(until.as_nanos()), |k| k.0);
            if let Some(k) = want {
                self.model.remove(&k);
            }
            Ok(want.is_some())
        }
    }

    proptest! {
        /// The order of a sorted map by time and number, whatever is pushed when, near and far.
        #[test]
        fn stable_order(steps in proptest::collection::vec((0u64..40, 0u32..3, 0u32..70), 0..300)) {
            let mut both = Both::new();
            for (gap, pops, shift) in steps {
                both.push(both.now + (gap << (shift / 2)));
                for _ in 0..pops {
                    both.pop_until(both.now + gap)?;
                }
            }
            while both.pop_until(u64::MAX)? {}
            prop_assert!(both.model.is_empty());
        }

        /// The order of a sorted map also for many entries of few times, on this and that side of the borders of
        /// epochs, rows and heap, asked for in steps that end between them, and now and then too early.
        #[test]
        fn epoch_by_epoch(
            steps in proptest::collection::vec((0u64..200, 0u64..3, 0u32..3, 0u64..4, 0u64..9), 1..400),
        ) {
            let (mut both, half) = (Both::new(), 1u64 << (SPAN + SLOTS.trailing_zeros() - 1));
            for (ahead, off, pops, until, back) in steps {
                both.push(((both.now + ahead * half).next_multiple_of(half) + off).saturating_sub(1));
                for _ in 0..pops {
                    both.pop_until((both.now + until * half).saturating_sub(if back == 0 { 3 * half } else { 0 }))?;
                }
            }
            while both.pop_until(u64::MAX)? {}
            prop_assert!(both.model.is_empty());
        }
    }

    #[test]
    fn the_end_of_time() {
        let mut both = Both::new();
        for at in [u64::MAX, u64::MAX - 1, 5, u64::MAX, u64::MAX - (1 << 40)] {
            both.push(at);
        }
        while both.pop_until(u64::MAX).unwrap() {}
        // What comes now counts as of the latest time.
        both.push(7);
        both.push(u64::MAX);
        while both.pop_until(u64::MAX).unwrap() {}
        assert!(both.model.is_empty());
    }
}
