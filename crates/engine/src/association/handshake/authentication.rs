//! AUTH (RFC 4895): which chunks are signed, with which key, and what becomes of those that should be and are not.

use crate::association::Association;
use crate::association::control::{What, causes};
use crate::auth::{AssociationKey, AuthParams, ChunkTypes, PeerAuth, mac_len};
use crate::config::AssocConfig;
use crate::event::Event;
use crate::transmit::Transmit;
use anabranch_base::PathId;
use anabranch_wire::{AuthOut, Cause, Chunk, Encode, Packet, RawChunk, kind};
use std::collections::{BTreeMap, BTreeSet};

/// Why a key was not activated or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthKeyError {
    /// No key has this identifier.
    #[error("there is no key {0}")]
    Unknown(u16),
    /// The key that is signed with cannot be deleted.
    #[error("key {0} is the active one")]
    Active(u16),
    /// It was deactivated: only what the peer signs with it counts still.
    #[error("key {0} was deactivated")]
    Retired(u16),
}

/// Endpoint pair shared keys by number.
#[derive(Debug)]
struct SharedKeys {
    keys: BTreeMap<u16, Box<[u8]>>,
    /// Those that we sign with no more.
    retired: BTreeSet<u16>,
}

/// Keys and lists of an association. Empty while the peer takes no part.
#[derive(Debug, Default)]
pub(crate) struct Authentication {
    /// The association key of the empty shared key: others differ from it by their prefix.
    base: Option<AssociationKey>,
    /// Endpoint pair shared keys; none is only the empty one, number 0.
    shared: Option<Box<SharedKeys>>,
    active: u16,
    /// What the peer signed with last.
    theirs_active: u16,
    /// Chunk types that we take behind an AUTH only.
    ours: ChunkTypes,
    /// Chunk types that the peer takes behind an AUTH only.
    theirs: ChunkTypes,
    /// The peer wants more than what signs itself when it is made, [`Association::push_authenticated`].
    more: bool,
}

impl Authentication {
    pub fn new(config: &AssocConfig, local: &AuthParams, peer: Option<&PeerAuth>) -> Self {
        let ours = config.chunks_to_authenticate();
        let base = peer.and_then(|p| AssociationKey::new(local, &ours, p, &[]));
        // RFC 4895 §3.2: these are ignored in a list.
        let signable = |k: &u8| !matches!(*k, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH);
        let theirs: ChunkTypes =
            peer.and_then(PeerAuth::chunks).unwrap_or_default().iter().copied().filter(signable).collect();
        let more = base.is_some() && theirs.iter().any(|k| !matches!(*k, kind::ASCONF | kind::ASCONF_ACK));
        let mut auth = Authentication { base, shared: None, active: 0, theirs_active: 0, ours, theirs, more };
        if !config.auth.keys.is_empty() {
            auth.shared().keys.extend(config.auth.keys.iter().map(|(id, key)| (*id, Box::from(&key[..]))));
        }
        if auth.shared_key(config.auth.active_key).is_some() {
            auth.active = config.auth.active_key;
        }
        auth
    }

    /// Do both ends take part?
    pub fn works(&self) -> bool {
        self.base.is_some()
    }
    /// Packets have to be looked at before they leave.
    pub fn signs_packets(&self) -> bool {
        self.more
    }
    /// Bytes that every packet keeps free for an AUTH.
    pub fn room(&self) -> usize {
        if !self.more {
            return 0;
        }
        let len = self.base.as_ref().map(|k| AuthOut::MAC_OFFSET + k.mac_len());
        len.unwrap_or(0).next_multiple_of(4)
    }
    fn shared(&mut self) -> &mut SharedKeys {
        let only_the_empty_one =
            || Box::new(SharedKeys { keys: BTreeMap::from([(0, Box::default())]), retired: BTreeSet::new() });
        self.shared.get_or_insert_with(only_the_empty_one)
    }
    fn shared_key(&self, id: u16) -> Option<&[u8]> {
        match &self.shared {
            Some(s) => s.keys.get(&id).map(|k| &k[..]),
            None => (id == 0).then_some(&[]),
        }
    }
    fn key(&self, id: u16) -> Option<AssociationKey> {
        let shared = self.shared_key(id)?;
        self.base.as_ref().map(|base| base.with_shared(shared))
    }
}

impl Association {
    /// Sets an endpoint pair shared key (RFC 4895 §6.1), known to both ends by other means; 0 may be set too.
    pub fn set_auth_key(&mut self, id: u16, secret: &[u8]) {
        let shared = self.handshake.auth.shared();
        shared.keys.insert(id, secret.into());
        shared.retired.remove(&id);
    }

    /// Signs with another key from now on.
    ///
    /// # Errors
    /// [`AuthKeyError::Unknown`], [`AuthKeyError::Retired`].
    pub fn activate_auth_key(&mut self, id: u16) -> Result<(), AuthKeyError> {
        if self.handshake.auth.shared_key(id).is_none() {
            return Err(AuthKeyError::Unknown(id));
        }
        if self.handshake.auth.shared.as_ref().is_some_and(|s| s.retired.contains(&id)) {
            return Err(AuthKeyError::Retired(id));
        }
        self.handshake.auth.active = id;
        Ok(())
    }

    /// Never signs with a key again; what the peer signs with it counts until it is deleted (RFC 6458 §8.3.4). Packets
    /// are signed as they leave, so nothing waits for it, and [`Event::AuthKeyFree`] tells at once that it may go.
    ///
    /// # Errors
    /// [`AuthKeyError::Unknown`], [`AuthKeyError::Active`].
    pub fn deactivate_auth_key(&mut self, id: u16) -> Result<(), AuthKeyError> {
        if self.handshake.auth.shared_key(id).is_none() {
            return Err(AuthKeyError::Unknown(id));
        }
        if self.handshake.auth.active == id {
            return Err(AuthKeyError::Active(id));
        }
        if self.handshake.auth.shared().retired.insert(id) {
            self.events.push_back(Event::AuthKeyFree { id });
        }
        Ok(())
    }

    /// Forgets a key: what is signed with it is dropped.
    ///
    /// # Errors
    /// [`AuthKeyError`].
    pub fn delete_auth_key(&mut self, id: u16) -> Result<(), AuthKeyError> {
        if self.handshake.auth.active == id {
            return Err(AuthKeyError::Active(id));
        }
        let shared = self.handshake.auth.shared();
        shared.retired.remove(&id);
        shared.keys.remove(&id).map(drop).ok_or(AuthKeyError::Unknown(id))
    }

    /// Chunk types that we take from the peer behind an AUTH only.
    pub fn authenticated_by_peer(&self) -> &[u8] {
        if self.handshake.auth.works() { &self.handshake.auth.ours } else { &[] }
    }

    /// Chunk types that the peer takes from us behind an AUTH only.
    pub fn authenticated_by_us(&self) -> &[u8] {
        if self.handshake.auth.works() { &self.handshake.auth.theirs } else { &[] }
    }

    /// ASCONF and its answer are, whatever the lists say (RFC 5061 §4.1).
    pub(in crate::association) fn must_be_authenticated(&self, chunk: u8) -> bool {
        // A few bytes: a loop is shorter than a search.
        let listed = || self.handshake.auth.ours.iter().fold(false, |found, k| found | (*k == chunk));
        matches!(chunk, kind::ASCONF | kind::ASCONF_ACK) || self.handshake.auth.works() && listed()
    }

    /// Checks an AUTH chunk over the rest of its packet (RFC 4895 §6.3). `path`: where to say that an HMAC is none of
    /// ours.
    #[inline(never)]
    pub(in crate::association) fn check_auth(&mut self, path: Option<PathId>, raw: &RawChunk<'_>) -> bool {
        let Ok(Chunk::Auth(a)) = raw.decode() else { return false };
        if !self.handshake.auth.works() {
            return false;
        }
        if mac_len(a.hmac_id).is_none() {
            if let Some(path) = path {
                self.control.push(path, What::Error(causes(&[Cause::UnsupportedHmac(a.hmac_id)])));
            }
            return false;
        }
        let Some(key) = self.handshake.auth.key(a.key_id) else { return false };
        let mac = AuthOut::MAC_OFFSET..AuthOut::MAC_OFFSET + a.mac.len();
        let mut signed = raw.rest.to_vec();
        let Some(field) = signed.get_mut(mac) else { return false };
        field.fill(0);
        let fine = key.verify(a.hmac_id, a.mac, &signed);
        if fine && self.handshake.auth.theirs_active != a.key_id {
            self.handshake.auth.theirs_active = a.key_id;
            self.events.push_back(Event::AuthKeyUsed { id: a.key_id });
        }
        fine
    }

    /// May a COOKIE ECHO that stands first in its packet, or second behind an AUTH, be taken (RFC 4895 §6.3)?
    pub(crate) fn admits_cookie(&mut self, packet: &Packet<'_>) -> bool {
        match packet.chunks().next() {
            Some(Ok(first)) if first.kind == kind::AUTH => self.check_auth(None, &first),
            _ => !self.must_be_authenticated(kind::COOKIE_ECHO),
        }
    }

    /// Appends AUTH and the chunk it covers.
    pub(in crate::association) fn push_authenticated(&self, chunk: &impl Encode, out: &mut Transmit) {
        let Some(key) = self.handshake.auth.key(self.handshake.auth.active) else { return };
        let start = out.packet.push_auth(&self.auth_out(&key));
        out.packet.push(chunk);
        sign(&key, start, out);
    }

    fn auth_out(&self, key: &AssociationKey) -> AuthOut {
        AuthOut { key_id: self.handshake.auth.active, hmac_id: key.hmac_id(), mac_len: key.mac_len() }
    }

    /// Puts an AUTH in front of the first chunk of a complete packet that the peer wants signed (§6.2).
    #[inline(never)]
    pub(in crate::association) fn authenticate(&self, out: &mut Transmit) {
        let kinds = out.packet.chunk_kinds();
        let wanted = kinds.iter().position(|k| self.handshake.auth.theirs.contains(k));
        let Some(at) = wanted.filter(|_| !kinds.contains(&kind::AUTH)) else { return };
        let Some(key) = self.handshake.auth.key(self.handshake.auth.active) else { return };
        if let Some(start) = out.packet.insert_auth(at, &self.auth_out(&key)) {
            sign(&key, start, out);
        }
    }
}

/// Computes the MAC of the AUTH that begins at `start` of the packet's head, and writes it there.
fn sign(key: &AssociationKey, start: usize, out: &mut Transmit) {
    let signed: Vec<u8> = out.packet.slices_from(start).flatten().copied().collect();
    let mac = key.sign(&signed);
    let at = start + AuthOut::MAC_OFFSET;
    if let Some(field) = out.packet.head_mut().get_mut(at..at + mac.len()) {
        field.copy_from_slice(&mac);
    }
}
