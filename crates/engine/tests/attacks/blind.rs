//! Who sees nothing, or only the tag: guesses, forged sources, forged ports.

use super::peer::*;
use crate::common::page::{count, figure, grouped, memory};
use anabranch_base::{RandomStream, Ssn, StreamId, Tsn};
use anabranch_engine::SendOptions;
use anabranch_wire::{AbortOut, DataFlags, ForwardTsnOut, Heartbeat, kind};
use bytes::Bytes;
use std::net::SocketAddr;

/// Shows: 9260/V1, 9260/V2, 9260/X2.
#[test]
fn aborts_by_guessed_tags() {
    let (mut s, p) = connected(assoc_config("cmt"));
    let mut r = RandomStream::named(1, "tags");
    let mut sent = 0;
    for n in 0..1_000_000u32 {
        let tag = r.u32() | 1;
        if tag == p.tag || tag == fields().tag {
            continue;
        }
        let abort = encoded(&AbortOut { tag_reflected: n % 2 == 0, causes: &[] });
        let from = if n % 4 < 2 { HOME } else { source(n) };
        s.handle(from, &Bytes::from(packet(tag, &[&abort])));
        sent += usize::from(s.next_packet().is_some());
    }
    assert_eq!((sent, s.ids().len()), (0, 1));
    figure("blind::aborts_by_guessed_tags", &format!("1,000,000 ABORTs: no effect, {}", count(sent, "answer")));
}

/// Shows: 9260/V1, 9260/V3.
#[test]
fn data_by_guessed_tags() {
    let (mut s, p) = connected(assoc_config("cmt"));
    let mut r = RandomStream::named(2, "tags");
    let (mut bytes_in, mut bytes_out, mut most) = (0, 0, 0);
    for n in 0..100_000 {
        let tag = r.u32() | 1;
        let forged = packet(if tag == p.tag { 1 } else { tag }, &[&data(p.tsn, 0, 0, WHOLE, b"forged")]);
        // The peer's address gets nothing (§8.5), another an ABORT with the tag reflected (§8.4).
        let answer = s.answers(if n % 2 == 0 { HOME } else { source(n) }, &forged);
        assert!(n % 2 == 1 || answer.is_empty());
        bytes_in += forged.len();
        bytes_out += bytes_of(&answer);
        most = most.max(answer.len());
    }
    let read = s.assoc().recv();
    assert!(read.is_none() && bytes_out < bytes_in && most == 1);
    figure(
        "blind::data_by_guessed_tags",
        &format!(
            "100,000 DATA, half of them from the peer's address: {} bytes in, {} out",
            grouped(bytes_in),
            grouped(bytes_out)
        ),
    );
}

/// Everything that has an effect but ABORT, from an address the association does not know, tag right. An ABORT with
/// the right tag counts from anywhere (RFC 9260 §8.5.1): who knows the tag can end an association.
#[test]
fn the_right_tag_from_a_wrong_address() {
    let (mut s, p) = connected(assoc_config("cmt"));
    assert!(
        s.assoc().send(anabranch_base::Instant::from_millis(1_000), SendOptions::default(), "secret".into()).is_ok()
    );
    assert!(!s.drain().is_empty());
    let forged: [(&str, Vec<u8>); 7] = [
        ("DATA", data(p.tsn, 0, 0, WHOLE, b"forged")),
        ("SACK", sack(p.server_tsn, 1 << 20, &[])),
        ("FORWARD-TSN", encoded(&ForwardTsnOut { new_cum: p.tsn.plus(9), streams: &[(StreamId(0), Ssn(3))] })),
        ("HEARTBEAT", encoded(&Heartbeat::new(&[1; 40]))),
        ("SHUTDOWN", vec![kind::SHUTDOWN, 0, 0, 8, 0, 0, 0, 1]),
        ("SHUTDOWN ACK", vec![kind::SHUTDOWN_ACK, 0, 0, 4]),
        ("an unknown chunk", vec![0xff, 0, 0, 4]),
    ];
    let before = s.assoc().stats();
    let mut answers = 0;
    for n in 0..10_000 {
        for (_, chunk) in &forged {
            answers += s.answers(source(n), &p.packet(&[chunk])).len();
        }
    }
    let after = s.assoc().stats();
    assert_eq!((answers, after.outstanding, s.assoc().recv()), (0, before.outstanding, None));
    assert_eq!(s.assoc().paths().count(), 1);
    assert_eq!(s.events.len(), 2, "{:?}", s.events);
    figure(
        "blind::the_right_tag_from_a_wrong_address",
        &format!("70,000 packets from 10,000 addresses: no effect, {}", count(answers, "answer")),
    );
    s.check();
}

/// A host that is seen at another port is followed, for NATs do that (RFC 6951 §5.4). Who knows the tag and can send
/// from
/// the host's address diverts the path this way until the true peer's next packet; no other host can.
#[test]
fn the_right_tag_from_another_port() {
    let (mut s, mut p) = connected(assoc_config("cmt"));
    let other = SocketAddr::new(HOME.ip(), 41_000);
    let heartbeat = p.packet(&[&encoded(&Heartbeat::new(&[1; 40]))]);
    let to = s.answers(other, &heartbeat);
    assert!(to.iter().all(|t| t.0 == other) && !to.is_empty());
    let one = p.data(0, 0, WHOLE, b"home");
    let to = s.answers(HOME, &one);
    assert!(to.iter().all(|t| t.0 == HOME) && !to.is_empty());
    let (mut bytes_in, mut bytes_out) = (0, 0);
    for n in 0..10_000u16 {
        let from = SocketAddr::new(HOME.ip(), 10_000 + n);
        bytes_in += heartbeat.len();
        let out = [s.answers(from, &heartbeat), s.advance(ms(1))].concat();
        assert!(out.iter().all(|sent| sent.0.ip() == HOME.ip()));
        bytes_out += bytes_of(&out);
    }
    figure(
        "blind::the_right_tag_from_another_port",
        &format!(
            "10,000 ports: {} bytes in, {} out, all to that host; {}",
            grouped(bytes_in),
            grouped(bytes_out),
            count(s.assoc().paths().count(), "path")
        ),
    );
    s.check();
}

/// An eavesdropper has the tag; who has lost the TSNs guesses.
#[test]
fn data_by_guessed_tsns() {
    let (mut s, p) = connected(assoc_config("cmt"));
    let mut r = RandomStream::named(3, "tsns");
    let mut old = 0;
    let used = allocation_counter::measure(|| {
        for _ in 0..100_000 {
            // Unordered: an SSN used twice would end it.
            let flags = DataFlags { unordered: true, ..WHOLE };
            s.handle(HOME, &Bytes::from(p.packet(&[&data(Tsn(r.u32()), 0, 0, flags, &[1; 100])])));
            while s.next_packet().is_some() {}
        }
        let id = s.ids()[0];
        old = s.endpoint.association(id).map_or(0, |a| a.stats().duplicates_received);
    });
    let read = std::iter::from_fn(|| s.assoc().recv()).count();
    println!(
        "100,000 DATA with the right tag and guessed TSNs: {read} read, {old} taken for duplicates, {} bytes of memory",
        used.bytes_current
    );
    // One in 65,538 falls into the 65,535 TSNs that are taken; half of the rest are old.
    figure("blind::data_by_guessed_tsns", &format!("100,000: {read} read, {} held", memory(used.bytes_current)));
    s.check();
}
