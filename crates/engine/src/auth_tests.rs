use super::*;
use anabranch_base::RandomStream;
use anabranch_wire::AuthOut;
use proptest::prelude::*;

const ASCONF_START: [u8; 8] = [0xc1, 0, 0, 8, 0, 0, 0, 1];

fn random(from: u8) -> [u8; RANDOM_LEN] {
    std::array::from_fn(|i| from + i as u8)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn peer(random: [u8; RANDOM_LEN], chunks: Option<&[u8]>, hmacs: &[u8]) -> PeerAuth {
    PeerAuth::new(&random, chunks, hmacs).unwrap()
}

fn as_peer(p: &AuthParams) -> PeerAuth {
    peer(p.random, Some(OUR_CHUNKS), OUR_HMACS)
}

/// AUTH with zeros for its MAC, and `behind` after it.
fn unsigned(key: &AssociationKey, key_id: u16, behind: &[u8]) -> Vec<u8> {
    let mut buf = Vec::new();
    AuthOut { key_id, hmac_id: key.hmac_id(), mac_len: key.mac_len() }.encode(&mut buf);
    buf.extend_from_slice(behind);
    buf
}

#[test]
fn hmacs_give_the_published_values() {
    // RFC 4231 §4.3 and RFC 2202 §3, case 2 each.
    let data = b"what do ya want for nothing?";
    let key = AssociationKey::from_material(b"Jefe"[..].into(), HMAC_SHA256);
    assert_eq!(hex(&key.sign(data)), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    let key = AssociationKey::from_material(b"Jefe"[..].into(), HMAC_SHA1);
    assert_eq!(hex(&key.sign(data)), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
}

#[test]
fn association_keys_give_independently_computed_macs() {
    let local = AuthParams::with_random(random(0x40));
    // A peer without CHUNKS and with SHA-1 only: its vector is the shorter, so it comes first.
    let key = AssociationKey::new(&local, OUR_CHUNKS, &peer(random(0x20), None, &[0, 1]), b"").unwrap();
    assert_eq!((key.hmac_id(), key.mac_len()), (HMAC_SHA1, 20));
    let mac = key.sign(&unsigned(&key, 0, &ASCONF_START));
    assert_eq!(hex(&mac), "ff5e71a35f54cbbe3d9bc67a41333dd621ee51aa");
    // Its vector is longer by one byte, so ours comes first though its RANDOM is smaller; and a shared key.
    let theirs = peer(random(0x20), Some(&[0xc1, 0x80, 0x40]), &[0, 3, 0, 1]);
    let key = AssociationKey::new(&local, OUR_CHUNKS, &theirs, b"secret").unwrap();
    assert_eq!((key.hmac_id(), key.mac_len()), (HMAC_SHA256, 32));
    let mac = key.sign(&unsigned(&key, 5, &ASCONF_START));
    assert_eq!(hex(&mac), "b51ee53b752caaa043142f4a28f9664aa491df4a432636b954cb5ce52070d410");
}

#[test]
fn smaller_number_first_then_shorter() {
    for (low, high) in [
        (&[1, 2][..], &[1, 3][..]),
        (&[9, 9], &[1, 0, 0]),
        (&[0, 0, 7], &[8]),
        (&[7], &[0, 7]),
        (&[0, 7], &[0, 0, 7]),
        (&[], &[0]),
    ] {
        assert_eq!((in_order(low, high), in_order(high, low)), (true, false));
    }
}

#[test]
fn an_absent_chunk_list_is_not_an_empty_one() {
    let local = AuthParams::with_random(random(1));
    let mac = |chunks| {
        AssociationKey::new(&local, OUR_CHUNKS, &peer(random(2), chunks, &[0, 3]), b"").unwrap().sign(b"x").to_vec()
    };
    assert_ne!(mac(None), mac(Some(&[])));
}

#[test]
fn parameters_on_the_wire() {
    let mut out = Vec::new();
    AuthParams::with_random(random(0)).encode(OUR_CHUNKS, &mut out);
    assert_eq!(out[..4], [0x80, 0x02, 0, 36]);
    assert_eq!(out[4..36], random(0));
    assert_eq!(out[36..], [0x80, 0x03, 0, 6, 0xc1, 0x80, 0, 0, 0x80, 0x04, 0, 8, 0, 3, 0, 1]);
    let mut entropy = RandomStream::named(1, "auth");
    assert_ne!(AuthParams::new(&mut entropy).random, AuthParams::new(&mut entropy).random);
}

#[test]
fn who_takes_part() {
    let r = random(1);
    assert_eq!(PeerAuth::new(&r[1..], None, &[0, 1]), None);
    assert_eq!(PeerAuth::new(&[0; 33], None, &[0, 1]), None);
    assert_eq!(PeerAuth::new(&r, None, &[0, 2, 0, 9, 3]), None);
    let (chunks, hmacs) = ([0; MAX_CHUNKS + 1], [0, 1].repeat(MAX_HMACS / 2 + 1));
    assert_eq!(PeerAuth::new(&r, &chunks[..], &[0, 1]), None);
    assert_eq!(PeerAuth::new(&r, None, &hmacs), None);
    assert!(PeerAuth::new(&r, &chunks[1..], &hmacs[2..]).is_some());
    // The first one known, in the peer's order.
    assert_eq!(peer(r, None, &[0, 9, 0, 1, 0, 3]).hmac_id(), Some(HMAC_SHA1));
    assert_eq!(peer(r, None, &[0, 3, 0, 1]).hmac_id(), Some(HMAC_SHA256));
}

#[test]
fn wrong_macs() {
    let (a, b) = (AuthParams::with_random(random(1)), AuthParams::with_random(random(2)));
    let key = AssociationKey::new(&a, OUR_CHUNKS, &as_peer(&b), b"").unwrap();
    let bytes = unsigned(&key, 0, &ASCONF_START);
    let mac = key.sign(&bytes);
    assert!(key.verify(HMAC_SHA256, &mac, &bytes));
    assert!(!key.verify(2, &mac, &bytes));
    assert!(!key.verify(HMAC_SHA1, &mac[..20], &bytes));
    for len in 0..mac.len() {
        assert!(!key.verify(HMAC_SHA256, &mac[..len], &bytes), "{len} bytes");
    }
    assert!(!AssociationKey::new(&a, OUR_CHUNKS, &as_peer(&b), b"x").unwrap().verify(HMAC_SHA256, &mac, &bytes));
    assert_eq!(format!("{key:?}"), "AssociationKey { hmac_id: 3, .. }");
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
        let a = AuthParams::with_random(a);
        let b = peer(b, Some(&chunks), if sha1_first { &[0, 1, 0, 3] } else { OUR_HMACS });
        let at_a = AssociationKey::new(&a, OUR_CHUNKS, &b, &shared).unwrap();
        let at_b = AssociationKey::from_lists(b.lists(), a.lists(OUR_CHUNKS), &shared, HMAC_SHA256);
        let mut bytes = unsigned(&at_a, 0, &behind);
        let mut mac = at_a.sign(&bytes).to_vec();
        prop_assert!(at_b.verify(at_a.hmac_id(), &mac, &bytes));
        let bit = bit.index((bytes.len() + mac.len()) * 8);
        match bytes.get_mut(bit / 8) {
            Some(byte) => *byte ^= 1 << (bit % 8),
            None => mac[bit / 8 - bytes.len()] ^= 1 << (bit % 8),
        }
        prop_assert!(!at_b.verify(at_a.hmac_id(), &mac, &bytes));
    }
}
