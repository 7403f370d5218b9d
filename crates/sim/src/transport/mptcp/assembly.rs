//! The connection's data at the receiver: what came, in order or not, and how much more may come.

use anabranch_base::Instant;
use std::collections::VecDeque;

/// A segment of the connection that came for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes.
    pub bytes: u32,
    /// When it left first.
    pub sent: Instant,
}

/// What came and is not in order is held, in a buffer that all subflows share.
#[derive(Clone, Debug)]
pub struct Assembly {
    buffer: u64,
    /// The first segment that is missing.
    next: u64,
    in_order: u64,
    /// From `next` on: bytes and value of what is there.
    places: VecDeque<Option<(u32, u16)>>,
    /// The latest that were in order, of which sums may still be: so many at most.
    past: VecDeque<(u32, u16)>,
    keeps: usize,
    held: u64,
    most_held: u64,
    end: Option<u64>,
    digest: u64,
}

impl Assembly {
    /// Nothing has come.
    pub fn new(buffer: u64) -> Self {
        Assembly {
            buffer,
            next: 1,
            in_order: 0,
            places: VecDeque::new(),
            past: VecDeque::new(),
            keeps: 0,
            held: 0,
            most_held: 0,
            end: None,
            digest: 0,
        }
    }

    /// Keeps so many of those that were in order.
    pub(super) fn keeping(self, keeps: usize) -> Self {
        Assembly { keeps, ..self }
    }

    /// Bytes and content of a segment that is there, if that is still known.
    pub(super) fn value(&self, number: u64) -> Option<(u32, u16)> {
        match number.checked_sub(self.next) {
            Some(place) => *self.places.get(place as usize)?,
            None => self.past.iter().rev().nth((self.next - 1 - number) as usize).copied(),
        }
    }

    /// The data end with this segment.
    pub(super) fn ends_with(&mut self, number: u64) {
        self.end = Some(number + 1);
    }

    /// Takes a segment; says whether it is new.
    pub fn take(&mut self, number: u64, bytes: u32, value: u16, last: bool) -> bool {
        let Some(place) = number.checked_sub(self.next) else { return false };
        // What the buffer has no room for was not allowed to leave.
        if self.held + u64::from(bytes) > self.buffer || place > self.buffer {
            return false;
        }
        if last {
            self.end = Some(number + 1);
        }
        let place = place as usize;
        if place >= self.places.len() {
            self.places.resize(place + 1, None);
        }
        let Some(slot) = self.places.get_mut(place).filter(|slot| slot.is_none()) else { return false };
        *slot = Some((bytes, value));
        self.held += u64::from(bytes);
        self.most_held = self.most_held.max(self.held);
        while let Some((bytes, value)) = self.places.front().copied().flatten() {
            self.places.pop_front();
            self.next += 1;
            self.held -= u64::from(bytes);
            self.in_order += u64::from(bytes);
            self.digest = folded(self.digest, value);
            if self.keeps > 0 {
                if self.past.len() >= self.keeps {
                    self.past.pop_front();
                }
                self.past.push_back((bytes, value));
            }
        }
        true
    }

    /// The first segment that is missing.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The end of the window: who reads does so at once, so that only what is not in order takes room.
    pub fn edge(&self) -> u64 {
        self.in_order + self.buffer
    }

    /// Bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.in_order
    }

    /// Bytes that wait for others.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The most that have waited.
    pub fn most_held(&self) -> u64 {
        self.most_held
    }

    /// Has everything been delivered?
    pub fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// A sum over the content of what was delivered, in its order.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// What [`digest`](Self::digest) is to be now: over the content of as many segments as were sent.
    pub fn expected_digest(&self) -> u64 {
        (1..self.next).fold(0, |digest, number| folded(digest, super::content(number)))
    }
}

/// One more value in a sum that depends on their order.
const fn folded(digest: u64, value: u16) -> u64 {
    (digest ^ value as u64).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::super::content;
    use super::*;

    fn take(a: &mut Assembly, number: u64) -> bool {
        a.take(number, 1_000, content(number), number == 5)
    }

    #[test]
    fn what_is_not_in_order_waits_and_nothing_counts_twice() {
        let mut a = Assembly::new(3_000);
        assert!(take(&mut a, 1) && take(&mut a, 3) && take(&mut a, 4));
        assert_eq!((a.next(), a.held(), a.delivered(), a.edge()), (2, 2_000, 1_000, 4_000));
        assert!(!take(&mut a, 3) && !take(&mut a, 1));
        assert!(!a.is_complete());
        assert!(take(&mut a, 2) && take(&mut a, 5));
        assert_eq!((a.next(), a.held(), a.most_held(), a.delivered()), (6, 0, 3_000, 5_000));
        assert!(a.is_complete());
        assert_eq!(a.digest(), a.expected_digest());
    }

    #[test]
    fn what_has_no_room_is_not_taken() {
        let mut a = Assembly::new(3_000);
        assert!(take(&mut a, 2) && take(&mut a, 3) && take(&mut a, 4) && !take(&mut a, 5) && !take(&mut a, u64::MAX));
        assert_eq!(a.held(), 3_000);
    }

    #[test]
    fn another_content_or_order_is_another_digest() {
        let mut swapped = Assembly::new(9_000);
        for (number, of) in [(1, 2), (2, 1), (3, 3)] {
            swapped.take(number, 1, content(of), false);
        }
        assert_ne!(swapped.digest(), swapped.expected_digest());
    }
}
