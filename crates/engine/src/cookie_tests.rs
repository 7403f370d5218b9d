use super::*;
use anabranch_base::RandomStream;
use proptest::prelude::*;

fn entropy() -> RandomStream {
    RandomStream::named(1, "cookie")
}

fn peer_auth(chunks: Option<&[u8]>) -> PeerAuth {
    PeerAuth::new(&[9; 32], chunks, &[0, 3, 0, 1]).unwrap()
}

fn cookie() -> Cookie {
    Cookie {
        created: Instant::from_millis(5_000),
        lifespan: Duration::from_secs(60),
        local_tag: 0x1122_3344,
        peer_tag: 0x5566_7788,
        local_tie: 0,
        peer_tie: 0,
        local_port: 9_899,
        peer_port: 40_000,
        local_initial_tsn: Tsn(u32::MAX),
        peer_initial_tsn: Tsn(7),
        peer_rwnd: 1 << 20,
        outbound_streams: 64,
        inbound_streams: 10,
        remote: "192.0.2.7:9899".parse().unwrap(),
        local: LocalId(0),
        listed: vec![],
        features: Features { forward_tsn: true, asconf: true, auth: true, ..Features::default() },
        local_random: [3; 32],
        peer_auth: Some(peer_auth(Some(&[0xc1, 0x80]))),
        adaptation: None,
        own: vec![],
    }
}

fn sealed(jar: &CookieJar, c: &Cookie) -> Vec<u8> {
    let mut out = vec![1, 2, 3];
    jar.seal(c, &mut out);
    out.split_off(3)
}

#[test]
fn what_is_sealed_opens_again() {
    let now = Instant::from_millis(5_100);
    let jar = CookieJar::new(&mut entropy(), now);
    let plain = Cookie { peer_auth: None, local_random: [0; 32], ..cookie() };
    let ip6: IpAddr = "2001:db8::9".parse().unwrap();
    let variants = [
        cookie(),
        plain.clone(),
        Cookie { adaptation: Some(7), ..cookie() },
        Cookie { adaptation: Some(u32::MAX), ..plain.clone() },
        Cookie { own: vec![OwnParameter::said(0xbf43, vec![1, 3, 0, 1, 2])], ..plain.clone() },
        Cookie { own: vec![OwnParameter::said(0x8fff, vec![])], adaptation: Some(1), ..cookie() },
        Cookie { local_tie: 1, peer_tie: u32::MAX, ..plain.clone() },
        Cookie { remote: "[2001:db8::1]:1".parse().unwrap(), ..plain.clone() },
        Cookie { remote: SocketAddrV6::new("fe80::1".parse().unwrap(), 5, 6, 7).into(), ..plain.clone() },
        Cookie { local: LocalId(7), listed: vec!["192.0.2.8".parse().unwrap(), ip6], ..plain.clone() },
        Cookie { listed: vec![ip6; MAX_LISTED], ..cookie() },
        Cookie { peer_auth: Some(peer_auth(None)), ..plain.clone() },
        Cookie { peer_auth: Some(peer_auth(Some(&[]))), ..plain.clone() },
        Cookie { peer_auth: Some(peer_auth(Some(&[7; 256]))), ..plain.clone() },
        // The longest there is.
        Cookie {
            remote: SocketAddrV6::new("fe80::1".parse().unwrap(), 5, 6, 7).into(),
            peer_auth: PeerAuth::new(&[9; 32], &[7; 256][..], &[0, 3].repeat(32)),
            listed: vec![ip6; MAX_LISTED],
            adaptation: Some(1),
            own: vec![OwnParameter::said(0xbf43, vec![9; OwnParameter::MAX_LEN]); OwnParameter::MOST],
            ..cookie()
        },
    ];
    for c in variants {
        let bytes = sealed(&jar, &c);
        assert!(bytes.len() <= MAX_LEN, "{} bytes", bytes.len());
        assert_eq!(jar.open(now, &bytes), Ok(c));
    }
    assert_eq!(sealed(&jar, &plain).len(), 99);
    assert_eq!(sealed(&jar, &cookie()).len(), 172);
}

/// Shows: 9260/A16.
#[test]
fn every_flipped_bit_and_every_other_length_is_refused() {
    let now = Instant::from_millis(5_100);
    let jar = CookieJar::new(&mut entropy(), now);
    let good = sealed(&jar, &cookie());
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let expected = if bit < 8 { CookieError::Malformed } else { CookieError::BadMac };
        assert_eq!(jar.open(now, &bad), Err(expected), "bit {bit}");
    }
    for len in 0..good.len() {
        assert!(jar.open(now, &good[..len]).is_err(), "{len} bytes");
    }
    let longer = [&good[..], &[0]].concat();
    assert_eq!(jar.open(now, &longer), Err(CookieError::BadMac));
    // Not even looked at: a MAC costs by the byte.
    let much_longer = [&good[..], &[0; MAX_LEN]].concat();
    assert_eq!(jar.open(now, &much_longer), Err(CookieError::Malformed));
}

#[test]
fn stale_cookies_say_by_how_much() {
    let jar = CookieJar::new(&mut entropy(), Instant::ZERO);
    let c = cookie();
    let bytes = sealed(&jar, &c);
    let end = c.created + c.lifespan;
    assert_eq!(jar.open(end, &bytes), Ok(c.clone()));
    let by = Duration::from_millis(250);
    assert_eq!(jar.open(end + by, &bytes), Err(CookieError::Stale { by, cookie: Box::new(c) }));
}

/// Shows: 9260/A16.
#[test]
fn secrets_live_for_two_rotations() {
    let mut entropy = entropy();
    let mut now = Instant::ZERO;
    let mut jar = CookieJar::new(&mut entropy, now);
    let c = Cookie { lifespan: Duration::MAX, ..cookie() };
    let bytes = sealed(&jar, &c);
    jar.rotate_if_due(now + (ROTATION - Duration::from_nanos(1)), &mut entropy);
    assert_eq!(sealed(&jar, &c), bytes);
    now += ROTATION;
    jar.rotate_if_due(now, &mut entropy);
    assert_ne!(sealed(&jar, &c), bytes);
    assert_eq!(jar.open(now, &bytes), Ok(c.clone()));
    // Not again before the next hour is over.
    jar.rotate_if_due(now + Duration::from_secs(3_599), &mut entropy);
    assert_eq!(jar.open(now, &bytes), Ok(c));
    now += ROTATION;
    jar.rotate_if_due(now, &mut entropy);
    assert_eq!(jar.open(now, &bytes), Err(CookieError::BadMac));
    // The secret's number comes round; the secret does not.
    for _ in 0..254 {
        now += ROTATION;
        jar.rotate_if_due(now, &mut entropy);
    }
    assert_eq!(jar.current.number, bytes[1]);
    assert_eq!(jar.open(now, &bytes), Err(CookieError::BadMac));
}

#[test]
fn jars_do_not_open_each_others_cookies() {
    let mut entropy = entropy();
    let (a, b) = (CookieJar::new(&mut entropy, Instant::ZERO), CookieJar::new(&mut entropy, Instant::ZERO));
    assert_eq!(b.open(Instant::ZERO, &sealed(&a, &cookie())), Err(CookieError::BadMac));
}

#[test]
fn debug_output_shows_no_secret() {
    let jar = CookieJar::new(&mut entropy(), Instant::ZERO);
    assert_eq!(format!("{jar:?}"), format!("CookieJar {{ rotated: {:?}, .. }}", Instant::ZERO));
}

#[test]
fn feature_bits() {
    let f = Features { forward_tsn: true, i_forward_tsn: true, ..Features::default() };
    assert_eq!(f.to_bits(), 0x801);
    assert_eq!(Features::from_bits(0x801), Some(f));
    for bit in 0..16 {
        assert_eq!(Features::from_bits(1 << bit).map(Features::to_bits), Some(1 << bit));
    }
}

proptest! {
    /// Garbage with a right MAC, as a bug or a stolen secret would make it.
    #[test]
    fn no_bytes_panic(fields in prop::collection::vec(any::<u8>(), 0..300), sign: bool) {
        let jar = CookieJar::new(&mut entropy(), Instant::ZERO);
        let mut bytes = vec![VERSION, jar.current.number];
        bytes.extend(fields);
        if sign {
            let mac = jar.current.key.sign(&bytes);
            bytes.extend_from_slice(&mac);
        }
        if let Ok(c) = jar.open(Instant::ZERO, &bytes) {
            prop_assert_eq!(sealed(&jar, &c).len(), bytes.len());
        }
    }

    #[test]
    fn every_truncation_of_the_fields_is_malformed(len in 0usize..135) {
        let jar = CookieJar::new(&mut entropy(), Instant::ZERO);
        let whole = sealed(&jar, &cookie());
        let mut bytes = whole[..(2 + len).min(whole.len() - MAC_LEN - 1)].to_vec();
        let mac = jar.current.key.sign(&bytes);
        bytes.extend_from_slice(&mac);
        prop_assert_eq!(jar.open(Instant::ZERO, &bytes), Err(CookieError::Malformed));
    }

    #[test]
    fn any_numbers_survive(n: [u32; 7], s: [u16; 4], bits in 0u16..0x400, at: u64, life: u64, ip: [u8; 4], port: u16) {
        let jar = CookieJar::new(&mut entropy(), Instant::ZERO);
        let c = Cookie {
            created: Instant::from_nanos(at),
            lifespan: Duration::from_nanos(life),
            local_tag: n[0],
            peer_tag: n[1],
            local_tie: n[2],
            peer_tie: n[3],
            local_port: s[0],
            peer_port: s[1],
            local_initial_tsn: Tsn(n[4]),
            peer_initial_tsn: Tsn(n[5]),
            peer_rwnd: n[6],
            outbound_streams: s[2],
            inbound_streams: s[3],
            remote: SocketAddr::from((ip, port)),
            features: Features::from_bits(bits).unwrap(),
            ..cookie()
        };
        prop_assert_eq!(jar.open(Instant::from_nanos(at), &sealed(&jar, &c)), Ok(c));
    }
}
