//! AUTH as a peer made by hand computes it (RFC 4895 §6.1, §6.2); shares no code with the engine.

use anabranch_wire::{AuthOut, Encode, parameter_kind};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// RANDOM, CHUNKS and HMAC-ALGO as in parameters, without padding.
pub fn key_vector(params: &[u8]) -> Vec<u8> {
    let wanted = [parameter_kind::RANDOM, parameter_kind::CHUNK_LIST, parameter_kind::HMAC_ALGO];
    let (mut out, mut rest) = (Vec::new(), params);
    while let [k0, k1, l0, l1, ..] = *rest {
        let (kind, len) = (u16::from_be_bytes([k0, k1]), usize::from(u16::from_be_bytes([l0, l1])));
        if wanted.contains(&kind) {
            out.extend_from_slice(&rest[..len]);
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    out
}

/// The smaller vector first; none begins with a zero, so that a shorter one is a smaller number.
pub fn association_key(shared: &[u8], a: &[u8], b: &[u8]) -> Vec<u8> {
    let first = if (a.len(), a) <= (b.len(), b) { [a, b] } else { [b, a] };
    [shared, &first.concat()].concat()
}

/// AUTH with SHA-256 over `chunks`, and the chunks.
pub fn signed(key_id: u16, key: &[u8], chunks: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    AuthOut { key_id, hmac_id: 3, mac_len: 32 }.encode(&mut out);
    chunks.iter().for_each(|c| out.extend_from_slice(c));
    let mac =
        Hmac::<Sha256>::new_from_slice(key).expect("any length will do").chain_update(&out).finalize().into_bytes();
    let at = AuthOut::MAC_OFFSET;
    out[at..at + 32].copy_from_slice(&mac);
    out
}
