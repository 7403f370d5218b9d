//! Address changes by who may not make them, and by who means a bystander.

use super::peer::*;
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
    let (mut answers, mut bytes_in) = (0, 0);
    for (n, bytes) in forged.iter().enumerate() {
        bytes_in += bytes.len();
        answers += s.answers(source(n as u32), bytes).len() + s.answers(HOME, bytes).len();
    }
    println!("20,000 ASCONFs without a right AUTH: {answers} answers, {} path", s.assoc().paths().count());
    assert_eq!(answers, 0);
    assert_eq!(s.assoc().paths().count(), 1);
    assert!(bytes_in > 0);
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
    assert!(paths <= 16 && worst <= 600 && s.ids().len() == 1);
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
        // The same again is answered the same.
        assert_eq!(bytes_of(&s.answers(HOME, &bytes)), bytes_of(&out));
        s.check();
    }
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
    println!("1,000 ASCONFs behind an AUTH, {} bytes: {} packets, {} bytes", adds.len(), out.len(), bytes_of(&out));
    assert_eq!(chunks_of(&out), [[kind::AUTH, kind::ASCONF_ACK]]);

    // An AUTH behind a right AUTH ends the packet: the request behind it is not looked at.
    let (mut s, mut p) = connected(assoc_config("cmt"));
    let add = p.asconf_add();
    let inner = p.authenticated(&[&add]);
    let outer = p.authenticated(&[&inner[12..]]);
    assert_eq!(s.answers(HOME, &outer), []);
    assert_eq!(chunks_of(&s.answers(HOME, &inner)), [[kind::AUTH, kind::ASCONF_ACK]]);
}
