//! By what an association is found: its tag, and the addresses of its paths.

use super::peer_key::PeerKey;
use super::slot::Slot;
use super::{AssocId, Endpoint};
use crate::association::Phase;

impl Endpoint {
    pub(super) fn insert(&mut self, slot: Box<Slot>) -> AssocId {
        let tag = slot.association.handshake.local_tag();
        let id = self.slots.insert(slot);
        self.note_tag(tag, id);
        self.wake(id);
        id
    }

    /// The association whose tag this is.
    pub(super) fn of_tag(&self, tag: u32) -> Option<AssocId> {
        let is_it = |at| self.slots.at(at).is_some_and(|s| s.association.handshake.local_tag() == tag);
        Some(self.slots.id_at(self.by_tag.find(self.keys.of_tag(tag), is_it)?))
    }

    pub(super) fn note_tag(&mut self, tag: u32, id: AssocId) {
        self.latest = None;
        if let Some(before) = self.of_tag(tag) {
            self.by_tag.remove(self.keys.of_tag(tag), before.place());
        }
        self.by_tag.insert(self.keys.of_tag(tag), id.place());
    }

    /// The association that is known under this address.
    pub(super) fn of_peer(&self, key: &PeerKey) -> Option<AssocId> {
        let is_it = |at| self.slots.at(at).is_some_and(|s| s.has(key));
        Some(self.slots.id_at(self.by_peer.find(self.keys.of_peer(key), is_it)?))
    }

    /// Makes an association known under the addresses of all its paths, and one that is over under none: what still
    /// comes for it is out of the blue. What another holds stays with it: a peer that lists the address of another
    /// gains nothing.
    #[cold]
    pub(super) fn index_addresses(&mut self, id: AssocId) {
        self.latest = None;
        let Some(s) = self.slots.get_mut(&id) else { return };
        for hash in s.hashes.drain(..) {
            self.by_peer.remove(hash, id.place());
        }
        if s.association.phase() == Phase::Closed {
            if let Some((at, last)) = s.association.goodbye() {
                let h = &s.association.handshake;
                self.farewells.note(at, h.local_tag(), h.header(), last);
            }
            self.by_tag.remove(self.keys.of_tag(s.association.handshake.local_tag()), id.place());
            return;
        }
        s.hashes_of = Some(s.association.paths.addresses_changed());
        for i in 0..s.association.paths.len() {
            let Some(s) = self.slots.get(&id) else { return };
            let Some(p) = s.association.paths.get(i) else { return };
            if p.access.is_disowned() {
                continue;
            }
            let key = PeerKey::new(p.local(), p.remote(), s.association.handshake.peer_port());
            if self.of_peer(&key).is_none() {
                let hash = self.keys.of_peer(&key);
                self.by_peer.insert(hash, id.place());
                if let Some(s) = self.slots.get_mut(&id) {
                    s.hashes.push(hash);
                }
            }
        }
    }

    pub(super) fn new_tag(&mut self) -> u32 {
        loop {
            let t = self.entropy.u32();
            if t != 0 && self.of_tag(t).is_none() {
                return t;
            }
        }
    }

    pub(super) fn forget(&mut self, id: AssocId) {
        let Some(s) = self.slots.remove(&id) else { return };
        self.latest = None;
        for hash in s.hashes {
            self.by_peer.remove(hash, id.place());
        }
        self.by_tag.remove(self.keys.of_tag(s.association.handshake.local_tag()), id.place());
        self.settle_alarms();
    }
}
