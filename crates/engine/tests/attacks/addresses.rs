//! Address changes by who may not make them, and by who means a bystander.

use super::peer::*;
use crate::common::page::{count, figure, grouped};
use anabranch_base::StreamId;
use anabranch_engine::SendOptions;
use anabranch_wire::{Parameter, kind};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

#[test]
fn asconf_without_or_behind_a_forged_auth() {
    let (mut s, mut p) = connected(assoc_config("cmt"));
    let mut forged = vec![];
    for n in 0..10_000u32 {
        let add = p.asconf_add();
        let mut auth = p.authenticated(&[&add]);
        let at = 12 + 8 + (n as usize % 32);
        auth[at] ^= 1 << (n % 8);
        forged.push(p.packet(&[&add]));
        forged.push(auth);
    }
    let mut answers = 0;
    for (n, bytes) in forged.iter().enumerate() {
        answers += s.answers(source(n as u32), bytes).len() + s.answers(HOME, bytes).len();
    }
    let more = s.assoc().paths().count() - 1;
    figure(
        "addresses::asconf_without_or_behind_a_forged_auth",
        &format!("20,000: {}, {}", count(answers, "answer"), count(more, "path")),
    );
    s.check();
}

/// The peer itself, with keys, sends from the addresses of bystanders (RFC 5062 §5: what it adds must speak for itself).
#[test]
fn bystanders_added_by_the_peer() {
    let (mut s, mut p) = connected(assoc_config("cmt"));
    let (mut to, mut bytes_in, mut largest) = (std::collections::BTreeMap::new(), 0, 0);
    let mut count = |sent: &[Sent], to: &mut std::collections::BTreeMap<_, usize>| {
        for (addr, bytes) in sent.iter().filter(|x| x.0 != HOME) {
            *to.entry(*addr).or_default() += bytes.len();
            assert!(!crate::common::kinds(bytes).contains(&kind::DATA));
            largest = largest.max(bytes.len());
        }
    };
    for n in 0..1_000 {
        let add = p.asconf_add();
        let bytes = p.authenticated(&[&add]);
        bytes_in += bytes.len();
        count(&s.answers(source(n), &bytes), &mut to);
        // There is always something to send, and it must not go there.
        let now = s.now;
        let _ = s.assoc().send(now, SendOptions { stream: StreamId(1), ..SendOptions::default() }, "secret".into());
        count(&s.drain(), &mut to);
    }
    let paths = s.assoc().paths().count();
    for _ in 0..3_600 {
        let sent = s.advance(ms(1_000));
        count(&sent, &mut to);
        let home: Vec<_> = sent.into_iter().filter(|x| x.0 == HOME).collect();
        let newest = home.iter().flat_map(|x| tsns(&x.1)).max_by_key(|t| t.0);
        s.answers(HOME, &p.packet(&[&answers_to_heartbeats(&home)]));
        if let Some(t) = newest {
            s.answers(HOME, &p.packet(&[&sack(t, 1 << 20, &[])]));
        }
    }
    let worst = to.values().max().copied().unwrap_or(0);
    let sum: usize = to.values().sum();
    println!(
        "1,000 bystanders added with {bytes_in} bytes, then an hour: {paths} paths, {sum} bytes to {} of them, {worst} to \
         the worst off, {largest} in a packet at most",
        to.len()
    );
    assert!(paths <= 16 && s.ids().len() == 1);
    figure(
        "addresses::bystanders_added_by_the_peer",
        &format!("1,000 bystanders: {} bytes each on average, {worst} at most", sum / 1_000),
    );
    s.check();
}

fn tsns(bytes: &Bytes) -> Vec<anabranch_base::Tsn> {
    let p = anabranch_wire::Packet::parse(bytes, anabranch_wire::Verify::Trusted).expect("a packet");
    p.chunks()
        .flatten()
        .filter_map(|c| match c.decode() {
            Ok(anabranch_wire::Chunk::Data(d)) => Some(d.header.tsn),
            _ => None,
        })
        .collect()
}

#[test]
fn thousands_of_requests_in_one() {
    type Request = (&'static str, fn(u32) -> Parameter<'static>);
    let requests: [Request; 3] = [
        ("add others", |n| Parameter::AsconfAdd { correlation: n, address: address(n) }),
        ("delete others", |n| Parameter::AsconfDelete { correlation: n, address: address(n) }),
        ("add the source", |n| Parameter::AsconfAdd { correlation: n, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED) }),
    ];
    let mut most = (0, 0);
    for (name, request) in requests {
        let (mut s, mut p) = connected(assoc_config("cmt"));
        let mut params = Vec::new();
        (0..3_000).for_each(|n| anabranch_wire::Encode::encode(&request(n), &mut params));
        let chunk = p.asconf(&params);
        let bytes = p.authenticated(&[&chunk]);
        let out = s.answers(HOME, &bytes);
        println!("{name}: an ASCONF of {} bytes with 3,000 requests, {} bytes out", bytes.len(), bytes_of(&out));
        assert_eq!(chunks_of(&out), [[kind::AUTH, kind::ASCONF_ACK]]);
        // What is added is limited, and each address is asked for itself in turn.
        let (sum, paths) = (bytes_of(&out), s.assoc().paths().count());
        assert!(sum <= 1_200 && paths <= 16, "{name}: {paths} paths");
        most = most.max((sum, bytes.len()));
        // A repeated request gets an equal answer.
        assert_eq!(bytes_of(&s.answers(HOME, &bytes)), bytes_of(&out));
        s.check();
    }
    figure(
        "addresses::thousands_of_requests_in_one",
        &format!("3,000 requests: {} bytes in, {} out", grouped(most.1), grouped(most.0)),
    );
}

fn address(n: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + n))
}

/// Each AUTH costs a MAC over all that follows it: only one counts (RFC 4895 §6.2), and a thousand requests behind it
/// get one packet of answers.
#[test]
fn many_auths_and_many_asconfs_in_a_packet() {
    let (mut s, mut p) = connected(assoc_config("cmt"));
    let adds: Vec<u8> = (0..1_000).flat_map(|_| p.asconf_add()).collect();
    let out = s.answers(HOME, &p.authenticated(&[&adds]));
    assert_eq!(chunks_of(&out), [[kind::AUTH, kind::ASCONF_ACK]]);
    figure(
        "addresses::many_auths_and_many_asconfs_in_a_packet",
        &format!("1,000 ASCONFs: {} bytes in, {} out", grouped(adds.len()), grouped(bytes_of(&out))),
    );

    // An AUTH behind a right AUTH ends the packet: the request behind it is not looked at.
    let (mut s, mut p) = connected(assoc_config("cmt"));
    let add = p.asconf_add();
    let inner = p.authenticated(&[&add]);
    let outer = p.authenticated(&[&inner[12..]]);
    assert_eq!(s.answers(HOME, &outer), []);
    assert_eq!(chunks_of(&s.answers(HOME, &inner)), [[kind::AUTH, kind::ASCONF_ACK]]);
}

/// Takes `Peer`'s tag for an ABORT of a host that knows nothing of the association (RFC 9260 §8.4).
fn abort_of_a_stranger(heartbeat: &Bytes) -> Vec<u8> {
    let vtag = anabranch_wire::Packet::parse(heartbeat, anabranch_wire::Verify::Trusted).expect("a packet").header.vtag;
    packet(vtag, &[&encoded(&anabranch_wire::AbortOut { tag_reflected: true, causes: &[] })])
}

fn listing(list: &[std::net::SocketAddr]) -> Vec<u8> {
    let mut params = all_extensions();
    list.iter().for_each(|a| anabranch_wire::Encode::encode(&Parameter::from(a.ip()), &mut params));
    params
}

/// Address camping (RFC 5062 §2): an attacker lists a victim's address, so that the victim cannot connect from it. Its
/// host says that it knows nothing of that, and has its address back. A victim with one address takes it as a restart
/// would.
#[test]
fn an_attacker_camps_on_the_address_of_a_victim() {
    let victim = [source(70), source(71)];
    let mine = anabranch_wire::InitFields { tag: 0x0b5e_55ed, ..fields() };
    // With one address: at once.
    let mut s = Server::new(assoc_config("cmt"));
    s.connect(HOME, fields(), &listing(&victim[..1]));
    s.connect(victim[0], mine, &all_extensions());
    assert_eq!(s.ids().len(), 1, "the camper's is gone");
    // With two of which one is taken: as soon as the first probe was answered.
    let mut s = Server::new(assoc_config("cmt"));
    let camper = s.connect(HOME, fields(), &listing(&victim[..1]));
    let refused = s.answers(victim[0], &init(mine, &listing(&victim)));
    assert_eq!(chunks_of(&refused), [[kind::ABORT]], "a restart must not add addresses");
    let (began, mut probes) = (s.now, 0);
    loop {
        let sent = s.advance(ms(100));
        let (to_victim, rest): (Vec<_>, Vec<_>) = sent.into_iter().partition(|x| x.0.ip() == victim[0].ip());
        s.answers(HOME, &camper.packet(&[&answers_to_heartbeats(&rest)]));
        probes += to_victim.len();
        for (to, probe) in &to_victim {
            s.answers(*to, &abort_of_a_stranger(probe));
        }
        if probes > 0 {
            break;
        }
        assert!(s.now.since(began) < ms(5_000));
    }
    let waited = s.now.since(began);
    s.connect(victim[0], mine, &listing(&victim));
    assert_eq!(s.ids().len(), 2, "each has its own");
    figure(
        "addresses::an_attacker_camps_on_the_address_of_a_victim",
        &format!("{}, {} ms", count(probes, "probe"), waited.as_millis()),
    );
    assert!(
        s.advance(ms(600_000))
            .iter()
            .all(|x| x.0.ip() != victim[0].ip() || !crate::common::kinds(&x.1).contains(&kind::DATA))
    );
    s.check();
}

/// Association hijacking and the restart attack (RFC 5062 §3, §4): whoever has got an address of the peer, or none of
/// them, begins anew in its name.
#[test]
fn strangers_begin_anew_in_the_name_of_the_peer() {
    let params = listing(&[source(80)]);
    let (mut refused, mut bytes_out) = (0, 0);
    let mut s = Server::new(assoc_config("cmt"));
    let mut p = s.connect(HOME, fields(), &params);
    for n in 0..1_000u32 {
        // From an address of its own, with the peer's in the list: that adds its own.
        let theirs = anabranch_wire::InitFields { tag: 0x0bad_0000 + n, ..fields() };
        let out = s.answers(source(1_000 + n), &init(theirs, &listing(&[HOME, source(80)])));
        bytes_out += bytes_of(&out);
        refused += usize::from(chunks_of(&out) == [[kind::ABORT]]);
        // An INIT from the peer's own address, without the cookie that goes there: nothing changes.
        let out = s.answers(HOME, &init(theirs, &params));
        assert_eq!(chunks_of(&out), [[kind::INIT_ACK]]);
        let cookie = [0x5a; 200];
        assert!(
            s.answers(HOME, &packet(0x0bad_0000 + n, &[&encoded(&anabranch_wire::CookieEcho { cookie: &cookie })]))
                .is_empty()
        );
    }
    assert_eq!(refused, 1_000);
    assert_eq!(s.ids().len(), 1);
    let bytes = p.data(3, 0, WHOLE, b"as ever");
    s.answers(HOME, &bytes);
    assert_eq!(s.assoc().recv().map(|m| m.payload.into_bytes()).as_deref(), Some(&b"as ever"[..]));
    // The cookie of a restart shows nothing of the tags: Tie-Tags are numbers of their own (§3.3).
    let out = s.answers(HOME, &init(anabranch_wire::InitFields { tag: 0x0bad_ffff, ..fields() }, &params));
    let shows = |tag: u32| out[0].1.windows(4).any(|w| w == tag.to_be_bytes());
    assert!(!shows(p.tag), "our tag");
    figure(
        "addresses::strangers_begin_anew_in_the_name_of_the_peer",
        &format!("1,000: all refused with {} bytes each, the association untouched", bytes_out / refused),
    );
    s.check();
}

/// Redirection (RFC 5062 §5): the first address to which data would go is a bystander's. Data goes nowhere before a nonce
/// came back, whatever the peer asks for: its answers to probes it never saw are guesses of 64 bits.
#[test]
fn a_bystander_is_to_be_the_primary_path() {
    let bystander = source(90);
    let mut s = Server::new(assoc_config("sctp"));
    let mut p = s.connect(HOME, fields(), &listing(&[bystander]));
    let mut wanted = Vec::new();
    anabranch_wire::Encode::encode(
        &Parameter::AsconfSetPrimary { correlation: 1, address: bystander.ip() },
        &mut wanted,
    );
    let chunk = p.asconf(&wanted);
    s.answers(HOME, &p.authenticated(&[&chunk]));
    for n in 0..100_000u64 {
        let mut info = vec![1];
        info.extend_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        let mut raw = vec![];
        anabranch_wire::Encode::encode(&anabranch_wire::Heartbeat::new(&info), &mut raw);
        raw[0] = kind::HEARTBEAT_ACK;
        s.handle(bystander, &Bytes::from(p.packet(&[&raw])));
    }
    let now = s.now;
    for _ in 0..50 {
        let _ = s.assoc().send(now, SendOptions::default(), Bytes::from(vec![7; 1_000]));
    }
    let mut sent = s.drain();
    for _ in 0..600 {
        sent.extend(s.advance(ms(100)));
        if let Some(t) = sent.iter().filter(|x| x.0 == HOME).flat_map(|x| tsns(&x.1)).max_by_key(|t| t.0) {
            sent.extend(s.answers(HOME, &p.packet(&[&sack(t, 1 << 20, &[])])));
        }
    }
    let there: Vec<_> = sent.iter().filter(|x| x.0 == bystander).collect();
    let (packets, bytes): (usize, usize) = (there.len(), there.iter().map(|x| x.1.len()).sum());
    assert!(there.iter().all(|x| crate::common::kinds(&x.1) == [kind::HEARTBEAT]));
    assert!(s.assoc().is_drained());
    figure(
        "addresses::a_bystander_is_to_be_the_primary_path",
        &format!("100,000 guesses: {} with {bytes} bytes in a minute", count(packets, "probe")),
    );
}
