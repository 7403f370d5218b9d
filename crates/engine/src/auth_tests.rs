use super::*;
use proptest::prelude::*;

const ASCONF_START: [u8; 8] = [0xc1, 0, 0, 8, 0, 0, 0, 1];

fn random(from: u8) -> [u8; RANDOM_LEN] {
    std::array::from_fn(|i| from + i as u8)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn peer(random: [u8; RANDOM_LEN], chunks: Option<&[u8]>, hmacs: &[u8]) -> PeerAuth {
    PeerAuth::from_values(Some(&random), chunks, Some(hmacs)).unwrap().unwrap()
}

fn as_peer(p: &AuthParams) -> PeerAuth {
    peer(p.random, Some(&p.chunks), &p.hmac_bytes())
}

/// AUTH with its MAC filled in, and `behind` after it.
fn signed(key: &AssociationKey, behind: &[u8]) -> Vec<u8> {
    let mut buf = Vec::new();
    let at = key.chunk().encode_at(&mut buf);
    let mac = key.sign([&buf[..], behind]);
    buf[at..at + mac.len()].copy_from_slice(&mac);
    buf.extend_from_slice(behind);
    buf
}

fn auth_of(key: &AssociationKey, packet: &[u8]) -> (u16, u16, Vec<u8>) {
    let c = key.chunk();
    (c.key_id, c.hmac_id, packet[8..8 + c.mac_len].to_vec())
}

fn check(key: &AssociationKey, local: &AuthParams, packet: &[u8]) -> Result<(), AuthRefused> {
    let (key_id, hmac_id, mac) = auth_of(key, packet);
    key.verify(local, &Auth { key_id, hmac_id, mac: &mac }, packet)
}

#[test]
fn hmacs_give_the_published_values() {
    // RFC 4231 §4.3 and RFC 2202 §3, case 2 each.
    let data = [b"what do ya want ".as_slice(), b"for nothing?"];
    let key = AssociationKey::from_material(b"Jefe", 0, HMAC_SHA256);
    assert_eq!(hex(&key.sign(data)), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    let key = AssociationKey::from_material(b"Jefe", 0, HMAC_SHA1);
    assert_eq!(hex(&key.sign(data)), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
}

#[test]
fn association_keys_give_independently_computed_macs() {
    let local = AuthParams::announced(random(0x40));
    // A peer without CHUNKS and with SHA-1 only: its vector is the shorter, so it comes first.
    let key = AssociationKey::new(&local, &peer(random(0x20), None, &[0, 1]), 0, b"");
    let packet = signed(&key, &ASCONF_START);
    assert_eq!(hex(&packet[8..28]), "ff5e71a35f54cbbe3d9bc67a41333dd621ee51aa");
    // Its vector is longer by one byte, so ours comes first though its RANDOM is smaller; and a shared key.
    let theirs = peer(random(0x20), Some(&[0xc1, 0x80, 0x40]), &[0, 3, 0, 1]);
    let key = AssociationKey::new(&local, &theirs, 5, b"secret");
    let packet = signed(&key, &ASCONF_START);
    assert_eq!(hex(&packet[8..40]), "b51ee53b752caaa043142f4a28f9664aa491df4a432636b954cb5ce52070d410");
    assert_eq!(check(&key, &local, &packet), Ok(()));
}

#[test]
fn smaller_number_first_then_shorter() {
    let order = |a: &'static [u8], b: &'static [u8]| (in_order(a, b), in_order(b, a));
    for (low, high) in [
        (&[1, 2][..], &[1, 3][..]),
        (&[9, 9], &[1, 0, 0]),
        (&[0, 0, 7], &[8]),
        (&[7], &[0, 7]),
        (&[0, 7], &[0, 0, 7]),
        (&[], &[0]),
    ] {
        assert_eq!(order(low, high), ((low, high), (low, high)));
    }
}

#[test]
fn parameters_on_the_wire() {
    let mut out = Vec::new();
    AuthParams::announced(random(0)).encode(&mut out);
    assert_eq!(out[..4], [0x80, 0x02, 0, 36]);
    assert_eq!(out[4..36], random(0));
    assert_eq!(out[36..], [0x80, 0x03, 0, 6, 0xc1, 0x80, 0, 0, 0x80, 0x04, 0, 8, 0, 3, 0, 1]);
}

#[test]
fn who_takes_part() {
    let r = random(1);
    let from = |r: Option<&[u8]>, h: Option<&[u8]>| PeerAuth::from_values(r, None, h);
    assert_eq!(from(None, Some(&[0, 1])), Ok(None));
    assert_eq!(from(Some(&r), None), Ok(None));
    assert_eq!(from(Some(&r), Some(&[0, 2, 0, 9, 3])), Ok(None));
    assert_eq!(from(Some(&r[1..]), Some(&[0, 1])), Err(AuthError::RandomLength { len: 31 }));
    assert_eq!(from(Some(&r[1..]), None), Err(AuthError::RandomLength { len: 31 }));
    assert_eq!(from(Some(&r), Some(&[0; MAX_HMACS + 2])), Err(AuthError::TooLong { len: MAX_HMACS + 2 }));
    let long = PeerAuth::from_values(Some(&r), Some(&[0; MAX_CHUNKS + 1]), Some(&[0, 1]));
    assert_eq!(long, Err(AuthError::TooLong { len: MAX_CHUNKS + 1 }));
    // The first one known, in the peer's order.
    assert_eq!(peer(r, None, &[0, 9, 0, 1, 0, 3]).hmac_id(), Some(HMAC_SHA1));
    assert_eq!(peer(r, None, &[0, 3, 0, 1]).hmac_id(), Some(HMAC_SHA256));
}

#[test]
fn required_chunks() {
    let p = peer(random(1), Some(&[kind::ASCONF, kind::INIT, kind::AUTH, kind::DATA]), &[0, 1]);
    assert!(p.peer_requires(kind::ASCONF) && p.peer_requires(kind::DATA));
    assert!(!p.peer_requires(kind::INIT) && !p.peer_requires(kind::AUTH) && !p.peer_requires(kind::SACK));
    assert!(!peer(random(1), None, &[0, 1]).peer_requires(kind::ASCONF));
    let ours = AuthParams::announced(random(1));
    assert!(ours.requires(kind::ASCONF) && ours.requires(kind::ASCONF_ACK) && !ours.requires(kind::DATA));
}

#[test]
fn refusals() {
    let (a, b) = (AuthParams::announced(random(1)), AuthParams::announced(random(2)));
    let key = AssociationKey::new(&a, &as_peer(&b), 0, b"");
    let packet = signed(&key, &ASCONF_START);
    let (key_id, hmac_id, mac) = auth_of(&key, &packet);
    let verify = |auth| key.verify(&a, &auth, &packet);
    assert_eq!(verify(Auth { key_id, hmac_id, mac: &mac }), Ok(()));
    let unsupported = |hmac_id| Err(AuthRefused::UnsupportedHmac { hmac_id });
    assert_eq!(verify(Auth { key_id, hmac_id: 2, mac: &mac }), unsupported(2));
    let only_sha1 = AuthParams { hmacs: vec![HMAC_SHA1], ..a.clone() };
    assert_eq!(key.verify(&only_sha1, &Auth { key_id, hmac_id, mac: &mac }, &packet), unsupported(HMAC_SHA256));
    assert_eq!(verify(Auth { key_id: 1, hmac_id, mac: &mac }), Err(AuthRefused::UnknownKey { key_id: 1 }));
    assert_eq!(verify(Auth { key_id, hmac_id, mac: &mac[..31] }), Err(AuthRefused::BadMac));
    assert_eq!(verify(Auth { key_id, hmac_id: HMAC_SHA1, mac: &mac[..20] }), Err(AuthRefused::BadMac));
    for len in 0..packet.len() {
        let auth = Auth { key_id, hmac_id, mac: &mac };
        assert_eq!(key.verify(&a, &auth, &packet[..len]), Err(AuthRefused::BadMac), "{len} bytes");
    }
    let other = AssociationKey::new(&a, &as_peer(&b), 0, b"x");
    assert_eq!(check(&other, &a, &packet), Err(AuthRefused::BadMac));
}

proptest! {
    #[test]
    fn both_ends_agree_and_every_flipped_bit_is_noticed(
        a: [u8; RANDOM_LEN],
        b: [u8; RANDOM_LEN],
        chunks in prop::collection::vec(any::<u8>(), 0..20),
        shared in prop::collection::vec(any::<u8>(), 0..80),
        behind in prop::collection::vec(any::<u8>(), 0..60),
        sha1_first: bool,
        bit: prop::sample::Index,
    ) {
        let a = AuthParams::announced(a);
        let hmacs = if sha1_first { vec![HMAC_SHA1, HMAC_SHA256] } else { vec![HMAC_SHA256, HMAC_SHA1] };
        let b = AuthParams { random: b, chunks, hmacs };
        let at_a = AssociationKey::new(&a, &as_peer(&b), 0, &shared);
        let at_b = AssociationKey::new(&b, &as_peer(&a), 0, &shared);
        let mut packet = signed(&at_a, &behind);
        let (key_id, hmac_id, mac) = auth_of(&at_a, &packet);
        prop_assert_eq!(at_b.verify(&b, &Auth { key_id, hmac_id, mac: &mac }, &packet), Ok(()));
        let bit = bit.index(packet.len() * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        let (_, _, mac) = auth_of(&at_a, &packet);
        prop_assert_eq!(at_b.verify(&b, &Auth { key_id, hmac_id, mac: &mac }, &packet), Err(AuthRefused::BadMac));
    }
}
