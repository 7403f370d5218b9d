//! Chunk authentication: its parameters, the association key, signing and verifying (RFC 4895).

use crate::mac::{Key, Mac};
use anabranch_base::Entropy;
use anabranch_wire::{Encode, Parameter, kind, parameter_kind};
use core::fmt;
use smallvec::SmallVec;

/// HMAC identifier of SHA-1 (RFC 4895 §3.3), which every endpoint has to know.
pub const HMAC_SHA1: u16 = 1;
/// HMAC identifier of SHA-256.
pub const HMAC_SHA256: u16 = 3;
/// Length of RANDOM, bytes. An association whose peer sends another length must be aborted (RFC 4895 §6.1).
pub const RANDOM_LEN: usize = 32;
/// Most chunk types that CHUNKS can list (RFC 4895 §3.2).
pub const MAX_CHUNKS: usize = 256;
/// Longest HMAC-ALGO value we keep, bytes. Two identifiers are defined; a list of 32 is no honest peer's.
pub const MAX_HMACS: usize = 64;

/// Length of a MAC in bytes; none for an identifier that we do not know.
pub const fn mac_len(hmac_id: u16) -> Option<usize> {
    match hmac_id {
        HMAC_SHA1 => Some(20),
        HMAC_SHA256 => Some(32),
        _ => None,
    }
}

/// Appends a parameter to a key vector: header and value, never padding (RFC 4895 §6.1).
fn put_unpadded(out: &mut Vec<u8>, parameter: u16, value: &[u8]) {
    // Values are bounded far below 64 KiB wherever they are made.
    let len = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    out.extend_from_slice(&parameter.to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(value);
}

/// What we say about authentication in an INIT or INIT ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthParams {
    /// RANDOM.
    pub random: [u8; RANDOM_LEN],
}

/// What address changes need in CHUNKS, the types that the peer must authenticate (RFC 5061 §4.1).
pub const OUR_CHUNKS: &[u8] = &[kind::ASCONF, kind::ASCONF_ACK];
/// HMAC-ALGO: identifiers in network order, best first.
const OUR_HMACS: &[u8] = &[0, HMAC_SHA256 as u8, 0, HMAC_SHA1 as u8];

impl AuthParams {
    /// Our parameters for a new association, with fresh random bytes.
    pub fn new(entropy: &mut dyn Entropy) -> Self {
        let mut random = [0; RANDOM_LEN];
        entropy.fill(&mut random);
        Self::with_random(random)
    }

    /// Our parameters with the RANDOM announced before. All but RANDOM stays the same while the endpoint lives
    /// (RFC 4895 §6.1): address changes have to be authenticated (RFC 5061 §4.1), and SHA-256 is preferred.
    pub fn with_random(random: [u8; RANDOM_LEN]) -> Self {
        AuthParams { random }
    }

    /// Appends the three parameters, padded, as in an INIT or INIT ACK. `chunks`: what the peer has to
    /// authenticate.
    pub fn encode(&self, chunks: &[u8], out: &mut Vec<u8>) {
        Parameter::Random(&self.random).encode(out);
        Parameter::ChunkList(chunks).encode(out);
        Parameter::HmacAlgo(OUR_HMACS).encode(out);
    }

    fn lists<'a>(&'a self, chunks: &'a [u8]) -> Lists<'a> {
        Lists { random: &self.random, chunks: Some(chunks), hmacs: OUR_HMACS }
    }
}

/// The values of the parameters in which one end said what it wants.
#[derive(Clone, Copy)]
struct Lists<'a> {
    random: &'a [u8],
    chunks: Option<&'a [u8]>,
    hmacs: &'a [u8],
}

impl Lists<'_> {
    /// Appends its part of the key: the parameters as in INIT or INIT ACK, an absent one left out.
    fn put_vector(&self, out: &mut Vec<u8>) {
        put_unpadded(out, parameter_kind::RANDOM, self.random);
        if let Some(chunks) = self.chunks {
            put_unpadded(out, parameter_kind::CHUNK_LIST, chunks);
        }
        put_unpadded(out, parameter_kind::HMAC_ALGO, self.hmacs);
    }

    /// Bytes that [`Lists::put_vector`] appends.
    fn len(&self) -> usize {
        8 + self.random.len() + self.chunks.map_or(0, |c| 4 + c.len()) + self.hmacs.len()
    }
}

/// What the peer said about authentication: values as they came, for the key is made of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAuth {
    random: [u8; RANDOM_LEN],
    /// None when the parameter was absent, which differs from an empty one in the key.
    chunks: Option<ChunkTypes>,
    hmacs: SmallVec<[u8; 16]>,
}

/// Chunk types, in place when they are as many as honest peers list.
pub(crate) type ChunkTypes = SmallVec<[u8; 16]>;

impl PeerAuth {
    /// From the values of RANDOM, CHUNKS (none when absent) and HMAC-ALGO in an INIT or INIT ACK. None when they
    /// cannot be used: RANDOM has not [`RANDOM_LEN`] bytes, no listed HMAC is known, or a list is longer than any
    /// honest one.
    pub fn new<'a>(random: &[u8], chunks: impl Into<Option<&'a [u8]>>, hmacs: &[u8]) -> Option<Self> {
        let chunks = chunks.into();
        if hmacs.len() > MAX_HMACS || chunks.is_some_and(|c| c.len() > MAX_CHUNKS) {
            return None;
        }
        let random = random.try_into().ok()?;
        let peer = PeerAuth { random, chunks: chunks.map(SmallVec::from_slice), hmacs: SmallVec::from_slice(hmacs) };
        peer.hmac_id().is_some().then_some(peer)
    }

    /// RANDOM.
    pub fn random(&self) -> &[u8; RANDOM_LEN] {
        &self.random
    }
    /// Value of CHUNKS, none when it was not sent.
    pub fn chunks(&self) -> Option<&[u8]> {
        self.chunks.as_deref()
    }
    /// Value of HMAC-ALGO.
    pub fn hmacs(&self) -> &[u8] {
        &self.hmacs
    }

    /// The HMAC to sign with: the first on the peer's list that we know (RFC 4895 §6.1).
    pub fn hmac_id(&self) -> Option<u16> {
        let (ids, _) = self.hmacs.as_chunks::<2>();
        ids.iter().map(|id| u16::from_be_bytes(*id)).find(|id| mac_len(*id).is_some())
    }

    fn lists(&self) -> Lists<'_> {
        Lists { random: &self.random, chunks: self.chunks(), hmacs: &self.hmacs }
    }
}

/// Does `a` come first? The smaller vector does, as a number, and of equal numbers the shorter (RFC 4895 §6.1).
fn in_order(a: &[u8], b: &[u8]) -> bool {
    fn rank(v: &[u8]) -> (usize, &[u8], usize) {
        let zeros = v.iter().take_while(|b| **b == 0).count();
        let digits = v.get(zeros..).unwrap_or_default();
        (digits.len(), digits, v.len())
    }
    rank(a) <= rank(b)
}

/// The association key. Its schedule is computed when it is used, which is seldom: ready to use it would take more
/// memory than all the rest of an idle association.
#[derive(Clone)]
pub struct AssociationKey {
    hmac_id: u16,
    material: Box<[u8]>,
}

impl fmt::Debug for AssociationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the key.
        f.debug_struct("AssociationKey").field("hmac_id", &self.hmac_id).finish_non_exhaustive()
    }
}

impl AssociationKey {
    /// The key both ends compute from what they exchanged and from `shared`, the endpoint pair shared key, which is
    /// empty without one. None when the peer lists no HMAC that we know.
    /// `chunks` is the list that `local` was sent with.
    pub fn new(local: &AuthParams, chunks: &[u8], peer: &PeerAuth, shared: &[u8]) -> Option<Self> {
        Some(Self::from_lists(local.lists(chunks), peer.lists(), shared, peer.hmac_id()?))
    }

    /// The key for another endpoint pair shared key; `self` is the one without.
    pub fn with_shared(&self, shared: &[u8]) -> Self {
        Self::from_material([shared, &self.material].concat().into(), self.hmac_id)
    }

    fn from_lists(ours: Lists<'_>, theirs: Lists<'_>, shared: &[u8], hmac_id: u16) -> Self {
        let mut material = Vec::with_capacity(shared.len() + ours.len() + theirs.len());
        material.extend_from_slice(shared);
        ours.put_vector(&mut material);
        theirs.put_vector(&mut material);
        if let Some(both) = material.get_mut(shared.len()..)
            && let Some((first, second)) = both.split_at_checked(ours.len())
            && !in_order(first, second)
        {
            both.rotate_left(ours.len());
        }
        Self::from_material(material.into(), hmac_id)
    }

    fn from_material(material: Box<[u8]>, hmac_id: u16) -> Self {
        AssociationKey { hmac_id, material }
    }

    fn key(&self, hmac_id: u16) -> Key {
        if hmac_id == HMAC_SHA1 { Key::sha1(&self.material) } else { Key::sha256(&self.material) }
    }

    /// HMAC identifier of what [`AssociationKey::sign`] makes.
    pub fn hmac_id(&self) -> u16 {
        self.hmac_id
    }
    /// Length of the MACs it makes, bytes.
    pub fn mac_len(&self) -> usize {
        mac_len(self.hmac_id).unwrap_or(0)
    }

    /// The MAC over `bytes`: the AUTH chunk with zeros for its MAC and all chunks behind it, padding included
    /// (RFC 4895 §6.2).
    pub fn sign(&self, bytes: &[u8]) -> Mac {
        self.key(self.hmac_id).sign(bytes)
    }

    /// Is `mac` the MAC over `bytes`, which are as for [`AssociationKey::sign`]? False for an HMAC that we did not
    /// list, see [`mac_len`]. The comparison takes the same time for every wrong MAC.
    pub fn verify(&self, hmac_id: u16, mac: &[u8], bytes: &[u8]) -> bool {
        mac_len(hmac_id).is_some() && self.key(hmac_id).verify(bytes, mac)
    }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
