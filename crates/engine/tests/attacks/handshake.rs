//! Before there is an association: INITs, cookies, addresses and parameters by the thousand.

use super::peer::*;
use crate::common::changed;
use crate::common::page::{count, figure, figures, grouped, memory};
use crate::common::sampled::all_cases;
use anabranch_wire::{CookieEcho, Encode, InitFields, Parameter, kind};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

fn allocations(f: impl FnOnce()) -> allocation_counter::AllocationInfo {
    allocation_counter::measure(f)
}

/// INITs of a flood from 100,000 sources: a million where all cases are run.
fn flood() -> u32 {
    if all_cases() { 1_000_000 } else { 150_000 }
}

/// Shows: 9260/A2, 9260/V6.
#[test]
fn a_flood_of_inits() {
    let inits = flood();
    let mut s = Server::new(assoc_config("cmt"));
    let bare = Bytes::from(init(fields(), &[]));
    let full = Bytes::from(init(fields(), &all_extensions()));
    let (mut sizes, mut most, mut allocated) = (vec![], 0, 0);
    for (name, bytes) in [("bare", bare), ("with all extensions", full)] {
        let (mut answers, mut largest) = (0, 0);
        let used = allocations(|| {
            for n in 0..inits {
                s.handle(source(n % 100_000), &bytes);
                while let Some((to, len)) = s.next_packet() {
                    assert_eq!(to, source(n % 100_000));
                    answers += 1;
                    largest = largest.max(len);
                }
            }
        });
        println!(
            "{inits} INITs ({name}) from 100,000 sources: {answers} answers, {} bytes in, {largest} out; memory at \
             most {} bytes more, {} at the end; {:.1} allocations each",
            bytes.len(),
            used.bytes_max,
            used.bytes_current,
            used.count_total as f64 / f64::from(inits)
        );
        assert_eq!((answers, s.ids().len()), (inits, 0));
        sizes.push((bytes.len(), largest));
        (most, allocated) = (most.max(used.bytes_max), allocated + used.count_total);
    }
    let flood = format!(
        "from 100,000 sources: one answer each, {} at most, {} in all",
        memory(most),
        count(allocated, "allocation")
    );
    // 20 bytes of fixed fields and a cookie: no more than RFC 9260 §3.3.3 asks for, unless both know more.
    let [(bare, small), (full, large)] = sizes[..] else { panic!("two floods") };
    let sizes = format!("{bare} bytes in, {small} out; with all extensions {full} in, {large} out");
    figures("handshake::a_flood_of_inits", &[&flood, &sizes]);
}

/// A driver that is late: what waits is bounded, not what comes.
#[test]
fn a_flood_of_inits_whose_answers_are_never_sent() {
    let mut s = Server::new(assoc_config("cmt"));
    let bytes = Bytes::from(init(fields(), &all_extensions()));
    let used = allocations(|| (0..flood()).for_each(|n| s.handle(source(n % 100_000), &bytes)));
    let waiting = s.drain().len();
    println!("{} INITs unanswered: {} bytes of memory, {waiting} answers wait", flood(), used.bytes_max);
    figure(
        "handshake::a_flood_of_inits_whose_answers_are_never_sent",
        &format!("{waiting} answers wait, in {}", memory(used.bytes_max)),
    );
}

/// Shows: 9260/A18.
#[test]
fn forged_cookies() {
    let mut s = Server::new(assoc_config("cmt"));
    let mut genuine = Vec::new();
    {
        // A cookie that was never used: the INIT ACK of another source.
        let answer = s.answers(source(1), &init(fields(), &[]));
        let p = anabranch_wire::Packet::parse(&answer[0].1, anabranch_wire::Verify::Trusted).expect("a packet");
        let Some(Ok(anabranch_wire::Chunk::InitAck(ack))) = p.chunks().next().map(|c| c.expect("a chunk").decode())
        else {
            panic!("no INIT ACK")
        };
        let Some(Ok(Parameter::Cookie(c))) = ack.params.iter().next() else { panic!("no cookie") };
        genuine.extend_from_slice(c);
        let tag = ack.fields.tag;
        // From elsewhere, with another tag, through other ports: not this association (§5.1.5).
        for (from, vtag, shift) in [(source(2), tag, 0), (source(1), tag ^ 1, 0), (source(1), tag, 1)] {
            let mut bytes = packet(vtag, &[&encoded(&CookieEcho { cookie: &genuine })]);
            bytes[1] += shift;
            assert_eq!(s.answers(from, &bytes), []);
        }
    }
    let mut r = anabranch_base::RandomStream::named(7, "forged");
    let forged: Vec<Bytes> = (0..1_000)
        .map(|n| {
            let mut c = genuine.clone();
            match n % 4 {
                0 => {
                    let i = r.below(c.len() as u64) as usize;
                    c[i] ^= 1 << r.below(8);
                }
                1 => c.truncate(r.below(c.len() as u64) as usize),
                2 => c[2..].iter_mut().for_each(|b| *b = r.below(256) as u8),
                _ => c.resize(60_000, 7),
            }
            Bytes::from(packet(r.u32() | 1, &[&encoded(&CookieEcho { cookie: &c })]))
        })
        .collect();
    let mut sent = 0;
    let used = allocations(|| {
        for n in 0..100_000 {
            s.handle(source(1), &forged[n % forged.len()]);
            sent += usize::from(s.next_packet().is_some());
        }
    });
    assert_eq!((sent, s.ids().len()), (0, 0));
    let (answers, open) = (count(sent, "answer"), count(s.ids().len(), "association"));
    let text = format!("100,000: {answers}, {open}, {}", count(used.count_total, "allocation"));
    figure("handshake::forged_cookies", &text);
}

/// Shows: 9260/A29.
#[test]
fn a_cookie_again_and_again() {
    let (mut s, p) = connected(assoc_config("cmt"));
    let echo = Bytes::from(p.packet(&[&encoded(&CookieEcho { cookie: &p.cookie })]));
    let (mut home, mut elsewhere) = (0, 0);
    let used = allocations(|| {
        for n in 0..100_000 {
            let from = if n % 2 == 0 { HOME } else { source(n) };
            s.handle(from, &echo);
            while let Some((to, len)) = s.next_packet() {
                *(if to == HOME { &mut home } else { &mut elsewhere }) += len;
            }
        }
    });
    println!(
        "a cookie 100,000 times, {} bytes each: {} association, {home} bytes sent home, {elsewhere} elsewhere; memory \
         {} bytes more",
        echo.len(),
        s.ids().len(),
        used.bytes_current
    );
    assert!(s.ids().len() == 1 && elsewhere == 0 && home <= echo.len() * 100_000);
    s.check();

    // After its end a cookie that is still fresh opens one association, which is not kept alive; a stale one none.
    let abort = p.packet(&[&[kind::ABORT, 0, 0, 4]]);
    assert_eq!(s.answers(HOME, &abort), []);
    assert!(s.ids().is_empty());
    for _ in 0..1_000 {
        s.answers(HOME, &echo);
        assert_eq!(s.ids().len(), 1);
    }
    let began = s.now;
    let mut packets = 0;
    while !s.ids().is_empty() {
        packets += s.advance(ms(1_000)).len();
        assert!(s.now.since(began) < ms(3_600_000));
    }
    figure(
        "handshake::a_cookie_again_and_again",
        &format!(
            "100,000 times: 1 association, {} more; a replayed one is gone after {} s and {packets} small packets",
            memory(used.bytes_current),
            s.now.since(began).as_millis() / 1_000
        ),
    );
    let late = s.answers(HOME, &echo);
    assert_eq!((chunks_of(&late), s.ids().len()), (vec![vec![kind::ERROR]], 0));
}

/// The victims of RFC 5062 §5 and §6: addresses that an attacker lists, and keeps the association alive.
#[test]
fn an_init_with_eight_thousand_addresses() {
    let mut params = Vec::new();
    (0..8_180u32).for_each(|n| Parameter::Ipv4(Ipv4Addr::from(0x0b00_0000 + n)).encode(&mut params));
    let mut s = Server::new(assoc_config("cmt"));
    let bytes = init(fields(), &params);
    let answer = bytes_of(&s.answers(HOME, &bytes));
    assert!(s.advance(ms(60_000)).is_empty(), "nothing follows an INIT");
    let p = s.connect(HOME, fields(), &params);
    let paths = s.assoc().paths().count();
    let (mut elsewhere, mut largest, mut worst) = (s.advance(ms(1)), 0, 0);
    for _ in 0..3_600 {
        let sent = s.advance(ms(1_000));
        let (home, away): (Vec<_>, Vec<_>) = sent.into_iter().partition(|x| x.0 == HOME);
        s.answers(HOME, &p.packet(&[&answers_to_heartbeats(&home)]));
        worst = worst.max(away.len());
        elsewhere.extend(away);
    }
    elsewhere.retain(|x| x.0.ip() != HOME.ip());
    elsewhere.iter().for_each(|x| largest = largest.max(x.1.len()));
    println!(
        "an INIT of {} bytes with 8,180 addresses: answered with {answer}; {paths} paths; to all the addresses in an \
         hour {} packets, {largest} bytes each, {worst} in a second at most",
        bytes.len(),
        elsewhere.len()
    );
    assert_eq!((paths, s.ids().len()), (16, 1));
    assert!(chunks_of(&elsewhere).iter().all(|c| *c == [kind::HEARTBEAT]), "nothing but probes");
    // One small probe for each second at first, then each address once in a heartbeat interval (RFC 9260 §5.4, §8.3).
    figure(
        "handshake::an_init_with_eight_thousand_addresses",
        &format!(
            "8,180 addresses: answered with {answer} bytes; {} of {largest} bytes to all of them in an hour, never \
             more than {worst} in a second",
            count(elsewhere.len(), "packet")
        ),
    );
}

#[test]
fn oversized_parameters() {
    let mut s = Server::new(assoc_config("cmt"));
    let of = |kind: u16, len: u16| {
        let mut p = [kind.to_be_bytes(), (len + 4).to_be_bytes()].concat();
        p.resize(usize::from(len) + 4, 0xc0);
        p
    };
    let reported: Vec<u8> = (0..8_000).flat_map(|_| of(0xc0de, 4)).collect();
    let cases = [
        ("8,000 unknown ones to be reported", reported),
        ("one unknown to be reported", of(0xc0de, 60_000)),
        ("supported extensions", of(0x8008, 60_000)),
        ("RANDOM", of(0x8002, 60_000)),
        ("CHUNKS", of(0x8003, 60_000)),
        ("HMAC-ALGO", of(0x8004, 60_000)),
        ("padding", of(0x8005, 60_000)),
    ];
    let (mut most, mut work, mut held) = ((0, 0), 0, 0);
    for (name, params) in cases {
        let bytes = Bytes::from(init(fields(), &params));
        let mut out = 0;
        let used = allocations(|| {
            s.handle(HOME, &bytes);
            out = s.next_packet().map_or(0, |p| p.1);
        });
        println!("{name}: {} bytes in, {out} out, {} allocations", bytes.len(), used.count_total);
        most = most.max((out, bytes.len()));
        (work, held) = (work.max(used.count_total), held.max(used.bytes_max));
        assert_eq!(s.next_packet(), None);
    }
    assert!(s.ids().is_empty());
    figure(
        "handshake::oversized_parameters",
        &format!(
            "at most {} bytes out, for {} in; {} and {} at most",
            grouped(most.0),
            grouped(most.1),
            count(work, "allocation"),
            memory(held)
        ),
    );
}

#[test]
fn all_streams_there_are() {
    let many = changed(assoc_config("cmt"), |c| {
        c.limits.outbound_streams = u16::MAX;
        c.limits.inbound_streams = u16::MAX;
    });
    let wide = InitFields { outbound_streams: u16::MAX, inbound_streams: u16::MAX, ..fields() };
    let mut held = 0;
    for (name, config) in [("65,535 accepted", many), ("default", assoc_config("cmt"))] {
        let mut s = Server::new(config.clone());
        let mut peer = None;
        let idle = allocations(|| peer = Some(s.connect(HOME, wide, &all_extensions())));
        let mut p = peer.expect("connected");
        let mut read = 0u32;
        let used = allocations(|| {
            for stream in 0..config.limits.inbound_streams {
                let one = p.data(stream, 0, WHOLE, b"x");
                s.answers(HOME, &one);
                read += u32::from(s.assoc().recv().is_some());
            }
        });
        println!(
            "{name} streams: {} bytes when connected, {} more after a message on each of {read}",
            idle.bytes_current, used.bytes_current
        );
        assert_eq!(read, u32::from(config.limits.inbound_streams));
        held = held.max(used.bytes_current);
    }
    // The number expected next on each stream is all there is to keep.
    figure("handshake::all_streams_there_are", &format!("{} more after a message on each", memory(held)));
}

/// Sources that finish the handshake, as many hosts of one attacker would.
#[test]
fn a_thousand_associations_that_do_nothing() {
    let mut s = Server::new(assoc_config("cmt"));
    let used = allocations(|| (1..=1_000).for_each(|n| drop(s.connect(source(n), fields(), &all_extensions()))));
    let each = used.bytes_current / 1_000;
    println!("1,000 idle associations: {each} bytes each");
    assert_eq!(s.ids().len(), 1_000);
    figure("handshake::a_thousand_associations_that_do_nothing", &format!("{} for each", memory(each)));
}

#[test]
fn addresses_of_an_init_do_not_name_the_answers_way() {
    // An INIT that claims to come from a victim is answered there once, whatever it lists; nothing follows.
    let mut s = Server::new(assoc_config("cmt"));
    let mut params = Vec::new();
    Parameter::from(IpAddr::V4(Ipv4Addr::new(11, 1, 1, 1))).encode(&mut params);
    let first = s.answers(source(3), &init(fields(), &params));
    assert_eq!(first.iter().map(|p| p.0).collect::<Vec<_>>(), [source(3)]);
    assert_eq!(s.advance(ms(600_000)), []);
}
