//! An association in its place, and what the endpoint has noted of it.

use super::AssocId;
use super::peer_key::PeerKey;
use crate::association::{Association, Phase};
use anabranch_base::Instant;
use smallvec::SmallVec;
use std::collections::VecDeque;

pub(super) struct Slot {
    pub(super) association: Association,
    /// What counts of it in `alarms`.
    pub(super) timeout: Option<Instant>,
    pub(super) ready: bool,
    pub(super) eventful: bool,
    /// What stands for it in `by_peer`, and the count of address changes when that was made.
    pub(super) hashes: SmallVec<[u32; 4]>,
    pub(super) hashes_of: Option<u32>,
}

impl Slot {
    /// In its place at once: an association is too large to be moved about.
    #[inline]
    pub(super) fn with(association: Association) -> Box<Slot> {
        let slot = Slot {
            association,
            timeout: None,
            ready: false,
            eventful: false,
            hashes: SmallVec::new(),
            hashes_of: None,
        };
        Box::write(Box::new_uninit(), slot)
    }

    /// There may be something to send, and an event.
    pub(super) fn wake(&mut self, id: AssocId, ready: &mut VecDeque<AssocId>, eventful: &mut VecDeque<AssocId>) {
        if !self.ready {
            self.ready = true;
            ready.push_back(id);
        }
        self.announce(id, eventful);
    }

    /// There may be an event.
    pub(super) fn announce(&mut self, id: AssocId, eventful: &mut VecDeque<AssocId>) {
        if !self.eventful && self.association.has_event() {
            self.eventful = true;
            eventful.push_back(id);
        }
    }

    /// It lives, and is known under the addresses that it has.
    pub(super) fn is_listed(&self) -> bool {
        self.hashes_of == Some(self.association.paths.addresses_changed()) && self.association.phase() != Phase::Closed
    }

    pub(super) fn has(&self, key: &PeerKey) -> bool {
        let a = &self.association;
        a.paths
            .iter()
            .any(|p| !p.access.is_disowned() && PeerKey::new(p.local(), p.remote(), a.handshake.peer_port()) == *key)
    }
}
