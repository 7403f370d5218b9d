//! From tags and addresses to associations, at a cost that does not grow with their number.
//!
//! Peers choose their addresses, and choose among tags by asking for many cookies. So the hash is multilinear under
//! keys that they do not know (Dietzfelbinger 1996; Lemire and Kaser 2014): whatever two inputs they find, the odds
//! that both get one value are 2^-32. No order of entries is ever seen.

use super::peer_key::PeerKey;
use hashbrown::HashTable;

/// Words of the longest input.
const WORDS: usize = 7;

/// The secret keys.
pub(super) struct Keys([u64; WORDS + 1]);

impl Keys {
    /// From 64 secret bytes.
    pub fn new(secret: &[u8; 8 * (WORDS + 1)]) -> Keys {
        let (words, _) = secret.as_chunks::<8>();
        let mut words = words.iter().map(|w| u64::from_le_bytes(*w));
        Keys(core::array::from_fn(|_| words.next().unwrap_or_default()))
    }

    fn hash<const N: usize>(&self, input: [u32; N]) -> u32 {
        const { assert!(N <= WORDS) };
        let [first, keys @ ..] = &self.0;
        let sum = input.iter().zip(keys).fold(*first, |sum, (w, k)| sum.wrapping_add(k.wrapping_mul(u64::from(*w))));
        (sum >> 32) as u32
    }

    pub fn of_tag(&self, tag: u32) -> u32 {
        self.hash([tag])
    }

    pub fn of_peer(&self, peer: &PeerKey) -> u32 {
        self.hash(peer.words())
    }
}

/// The table looks at the lowest bits and at the highest.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

struct Entry {
    hash: u32,
    /// Place of the association among the slots.
    at: u32,
}

/// Places by hash. Whether a place is the right one its association says.
#[derive(Default)]
pub(super) struct Index(HashTable<Entry>);

impl Index {
    /// The place under `hash` that `is_it` confirms.
    pub fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.0.find(spread(hash), |e| e.hash == hash && is_it(e.at)).map(|e| e.at)
    }

    /// Adds a place that is not there.
    pub fn insert(&mut self, hash: u32, at: u32) {
        self.0.insert_unique(spread(hash), Entry { hash, at }, |e| spread(e.hash));
    }

    /// Takes a place out.
    pub fn remove(&mut self, hash: u32, at: u32) {
        if let Ok(e) = self.0.find_entry(spread(hash), |e| e.hash == hash && e.at == at) {
            e.remove();
        }
    }
}

#[cfg(test)]
#[path = "../../tests/common/page.rs"]
mod page;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn keys() -> Keys {
        Keys::new(&core::array::from_fn(|i| (i as u8).wrapping_mul(97) ^ 0x5a))
    }

    #[test]
    fn places_come_and_go_and_equal_hashes_do_not_collide() {
        let mut index = Index::default();
        for at in 0..1_000 {
            index.insert(at % 7, at);
        }
        assert_eq!(index.find(3, |at| at == 10), Some(10));
        assert_eq!(index.find(3, |at| at == 11), None, "another hash");
        index.remove(3, 10);
        index.remove(3, 10);
        assert_eq!(index.find(3, |at| at == 10), None);
        assert!((0..1_000).filter(|at| *at != 10).all(|at| index.find(at % 7, |a| a == at) == Some(at)));
    }

    /// Inputs in a row, as an attacker would take them, scatter: no value is met often.
    #[test]
    fn inputs_in_a_row_scatter() {
        let (keys, mut most) = (keys(), 0);
        for of in [|i: u32| [i, 0, 0, 0, 0, 0, 0], |i| [0, 0, 0, i << 20, 0, 0, 0], |i| [0, 0, 0, 0, 0, i << 16, 0]] {
            let mut low = BTreeMap::<u32, u32>::new();
            for i in 0..4_096 {
                *low.entry(keys.hash(of(i)) & 0xfff).or_default() += 1;
            }
            most = most.max(low.into_values().max().unwrap_or(0));
        }
        page::figure(
            "endpoint::index::inputs_in_a_row_scatter",
            &format!("4,096 addresses or ports in a row over 4,096 places: at most {most} in one"),
        );
    }
}
