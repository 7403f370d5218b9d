//! Packets that belong to no association, and verification tags (RFC 9260 §8.4, §8.5, §6.8).

use crate::common::raw::*;
use crate::common::{PORT, assoc_config, ms};
use anabranch_base::Tsn;
use anabranch_engine::{CloseReason, LocalId, Phase};
use anabranch_wire::{AbortOut, ShutdownComplete, kind};
use std::net::SocketAddr;

const STRANGE: u32 = 0x0bad_cafe;

fn abort(reflected: bool) -> Vec<u8> {
    bytes(&AbortOut { tag_reflected: reflected, causes: &[] })
}

fn empty(kind: u8) -> Vec<u8> {
    chunk(kind, 0, &[])
}

fn stale_cookie() -> Vec<u8> {
    chunk(kind::ERROR, 0, &[0, 3, 0, 8, 0, 0, 0, 1])
}

/// Answers to one packet without an association: chunk type, tag, T bit.
fn answers(chunks: &[&[u8]]) -> Vec<(u8, u32, bool)> {
    let mut r = Raw::new();
    r.give_tagged(STRANGE, chunks);
    let sent = r.take();
    assert!(sent.iter().all(|s| s.remote == peer(1) && s.local == LocalId(0)));
    sent.iter().map(|s| (s.kinds()[0], s.vtag(), s.flags() & 1 == 1)).collect()
}

/// Shows: 9260/V3.
#[test]
fn what_is_out_of_the_blue_is_answered_as_section_8_4_says() {
    let one = data(Tsn(7), 0, b"x");
    let heartbeat = bytes(&anabranch_wire::Heartbeat::new(&[1; 20]));
    let nothing: &[(u8, u32, bool)] = &[];
    let refused = &[(kind::ABORT, STRANGE, true)][..];
    let complete = &[(kind::SHUTDOWN_COMPLETE, STRANGE, true)][..];
    let other_error = chunk(kind::ERROR, 0, &[0, 1, 0, 8, 0, 0, 0, 0]);
    type Answers = [(u8, u32, bool)];
    let cases: &[(&[&[u8]], &Answers)] = &[
        // 2: never an answer to ABORT, wherever it stands.
        (&[&abort(false)], nothing),
        (&[&abort(true)], nothing),
        (&[&one, &abort(false)], nothing),
        (&[&empty(kind::SHUTDOWN_ACK), &abort(false)], nothing),
        // 5
        (&[&empty(kind::SHUTDOWN_ACK)], complete),
        (&[&one, &empty(kind::SHUTDOWN_ACK)], complete),
        // 6
        (&[&empty(kind::SHUTDOWN_COMPLETE)], nothing),
        // 7
        (&[&stale_cookie()], nothing),
        (&[&empty(kind::COOKIE_ACK)], nothing),
        (&[&empty(kind::COOKIE_ACK), &one], nothing),
        // 8
        (&[&one], refused),
        (&[&one, &heartbeat, &heartbeat, &one], refused),
        (&[&heartbeat], refused),
        (&[&other_error], refused),
        (&[&bytes(&anabranch_wire::Shutdown { cum_tsn: Tsn(1) })], refused),
        (&[&sack(Tsn(1))], refused),
        (&[&init(init_fields(5), &[])], refused),
        (&[&chunk(0x3f, 0, &[])], refused),
        (&[&chunk(0xff, 0, &[])], refused),
        // COOKIE ECHO that is not the first chunk is no cookie.
        (&[&one, &chunk(kind::COOKIE_ECHO, 0, &[1; 40])], refused),
        // 4: processed as §5.1.5 says; this one has no MAC.
        (&[&chunk(kind::COOKIE_ECHO, 0, &[1; 40])], nothing),
    ];
    for (i, (chunks, wanted)) in cases.iter().enumerate() {
        assert_eq!(answers(chunks), *wanted, "case {i}");
    }
}

/// Shows: 9260/V3, 9260/P1.
#[test]
fn packets_from_no_single_host_and_port_0_get_no_answer() {
    let mut r = Raw::new();
    for from in ["224.0.0.1:5", "255.255.255.255:5", "0.0.0.0:5", "[ff02::1]:5", "[::]:5"] {
        let from: SocketAddr = from.parse().expect("an address");
        r.give_from(from, STRANGE, &[&data(Tsn(7), 0, b"x")]);
        r.give_from(from, 0, &[&init(init_fields(9), &[])]);
        assert!(r.take().is_empty(), "{from}");
    }
    for (src, dst) in [(0, PORT), (PEER_PORT, 0), (PEER_PORT, PORT + 1)] {
        let mut out = anabranch_wire::CommonHeader { src_port: src, dst_port: dst, vtag: 0 }.to_bytes().to_vec();
        out.extend_from_slice(&init(init_fields(9), &[]));
        let sum = anabranch_wire::packet_checksum(&out);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        r.give_bytes(LocalId(0), peer(1), &out);
        assert!(r.take().is_empty(), "ports {src} and {dst}");
    }
}

/// Shows: 9260/V1.
#[test]
fn tag_0_is_for_a_lone_init() {
    let mut r = Raw::accepted();
    let id = r.only();
    let first = init(init_fields(9), &[]);
    for chunks in [
        &[&first[..], &data(PEER_TSN, 0, b"x")][..],
        &[&first, &first],
        &[&data(PEER_TSN, 0, b"x")],
        &[&abort(false)],
        &[&empty(kind::SHUTDOWN_ACK)],
    ] {
        r.give_tagged(0, chunks);
        assert!(r.take().is_empty());
    }
    assert!(r.read(id).is_empty());
    assert_eq!(r.phase(id), Phase::Established);
    // And an INIT is nothing under any other tag.
    r.give(&[&first]);
    assert!(r.take().is_empty());
}

/// Shows: 9260/V1.
#[test]
fn another_tag_is_as_good_as_no_packet() {
    let mut r = Raw::accepted();
    let id = r.only();
    for tag in [r.tag ^ 1, r.tag.swap_bytes(), PEER_TAG, 1] {
        r.give_tagged(tag, &[&data(PEER_TSN, 0, b"forged")]);
        r.give_tagged(tag, &[&bytes(&anabranch_wire::Shutdown { cum_tsn: Tsn(1) })]);
        r.give_tagged(tag, &[&empty(kind::SHUTDOWN_ACK)]);
    }
    assert!(r.read(id).is_empty());
    assert_eq!(r.phase(id), Phase::Established);
    // The right tag under another port is another peer's.
    let mut out = anabranch_wire::CommonHeader { src_port: PEER_PORT + 1, dst_port: PORT, vtag: r.tag };
    let send = |r: &mut Raw, h: anabranch_wire::CommonHeader| {
        let mut b = h.to_bytes().to_vec();
        b.extend_from_slice(&data(PEER_TSN, 0, b"forged"));
        let sum = anabranch_wire::packet_checksum(&b);
        b[8..12].copy_from_slice(&sum.to_le_bytes());
        r.give_bytes(LocalId(0), peer(1), &b);
    };
    send(&mut r, out);
    assert!(r.read(id).is_empty());
    out.src_port = PEER_PORT;
    send(&mut r, out);
    assert_eq!(r.read(id), [b"forged"]);
}

/// Shows: 9260/V2.
#[test]
fn abort_and_shutdown_complete_need_our_tag_or_the_peers_with_the_t_bit() {
    let complete = |reflected| bytes(&ShutdownComplete { tag_reflected: reflected });
    // Ours with the T bit, the peer's without, and strangers.
    let mut r = Raw::accepted();
    let id = r.only();
    let tags = [(r.tag, true), (PEER_TAG, false), (STRANGE, true), (STRANGE, false)];
    for (tag, reflected) in tags {
        r.give_tagged(tag, &[&abort(reflected)]);
        r.give_tagged(tag, &[&data(PEER_TSN, 0, b"beside"), &abort(reflected)]);
        assert!(r.take().is_empty(), "never answered");
        assert_eq!(r.phase(id), Phase::Established);
        assert!(r.read(id).is_empty(), "the whole packet is dropped");
    }
    r.give(&[&bytes(&anabranch_wire::Shutdown { cum_tsn: r.first_tsn.minus(1) })]);
    for (tag, reflected) in tags {
        r.give_tagged(tag, &[&complete(reflected)]);
        assert_eq!(closed(&r, id), None);
    }

    // Under the peer's own tag nothing else counts, not even beside a SHUTDOWN COMPLETE that would.
    let mut r = Raw::accepted();
    let id = r.only();
    r.give_tagged(PEER_TAG, &[&data(PEER_TSN, 0, b"beside"), &complete(true)]);
    assert!(r.read(id).is_empty() && r.take().is_empty());

    for reflected in [false, true] {
        let mut r = Raw::accepted();
        let id = r.only();
        let tag = if reflected { PEER_TAG } else { r.tag };
        r.give_tagged(tag, &[&abort(reflected)]);
        assert!(matches!(closed(&r, id), Some(CloseReason::PeerAborted(_))));
        assert!(r.take().is_empty());
        // The other direction of §8.5.1 C, in the state where it counts.
        let (mut r, id) = Raw::connected(&assoc_config("sctp"));
        r.give(&[&bytes(&anabranch_wire::Shutdown { cum_tsn: r.first_tsn.minus(1) })]);
        assert_eq!(r.take_one().kinds(), [kind::SHUTDOWN_ACK]);
        let tag = if reflected { PEER_TAG } else { r.tag };
        r.give_tagged(tag, &[&complete(reflected)]);
        assert_eq!(closed(&r, id), Some(CloseReason::Shutdown));
        assert!(r.take().is_empty());
    }
}

/// Shows: 9260/V2.
#[test]
fn a_reflected_tag_counts_from_the_peers_addresses_only() {
    let mut r = Raw::accepted();
    let id = r.only();
    r.give_from(peer(2), PEER_TAG, &[&abort(true)]);
    assert_eq!(closed(&r, id), None);
    r.give(&[&abort(false)]);
    assert!(closed(&r, id).is_some());
}

/// Shows: 9260/D19.
#[test]
fn a_wrong_checksum_is_as_good_as_no_packet() {
    let mut r = Raw::accepted();
    let id = r.only();
    let mut good =
        anabranch_wire::CommonHeader { src_port: PEER_PORT, dst_port: PORT, vtag: r.tag }.to_bytes().to_vec();
    good.extend_from_slice(&data(PEER_TSN, 0, b"payload"));
    let sum = anabranch_wire::packet_checksum(&good);
    good[8..12].copy_from_slice(&sum.to_le_bytes());
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        r.give_bytes(LocalId(0), peer(1), &bad);
        assert!(r.take().is_empty() && r.read(id).is_empty(), "bit {bit}");
    }
    r.give_bytes(LocalId(0), peer(1), &good);
    assert_eq!(r.read(id), [b"payload"]);
    // What we send carries the sum of the whole packet with zeros in its place.
    let mut ours = r.take_one().bytes.to_vec();
    let field = u32::from_le_bytes([ours[8], ours[9], ours[10], ours[11]]);
    ours[8..12].fill(0);
    assert_eq!(crc32c_by_the_book(&ours), field);
}

/// CRC32c bit by bit, so that the test does not trust what it tests.
fn crc32c_by_the_book(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for b in bytes {
        crc ^= u32::from(*b);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

/// Shows: 9260/V6.
#[test]
fn one_packet_gets_one_packet_that_is_no_larger_by_much() {
    let mut r = Raw::new();
    let many: Vec<Vec<u8>> = (0..40).map(|_| chunk(0xff, 0, &[])).collect();
    let list: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    r.give_tagged(STRANGE, &list);
    assert_eq!(r.take_one().bytes.len(), 16);
    // Inside an association: one ERROR for each chunk, in one packet, no larger than what came.
    let mut r = Raw::accepted();
    r.give(&list);
    let sent = r.take();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].bytes.len() <= 1_200);
}

/// Shows: 9260/V3.
#[test]
fn after_the_end_packets_are_out_of_the_blue() {
    let mut r = Raw::accepted();
    let id = r.only();
    r.give(&[&data(PEER_TSN, 0, b"unread")]);
    r.abort(id, b"done");
    r.take();
    // The user has not read yet, but there is no association any more. For some seconds the reason is still known.
    for (wait, flags, tag, causes) in [(9_999, 0, PEER_TAG, 1), (1, 1, r.tag, 0)] {
        r.run_for(ms(wait));
        r.give(&[&data(PEER_TSN.plus(1), 1, b"late")]);
        let answer = r.take_one();
        assert_eq!((answer.kinds(), answer.vtag(), answer.flags() & 1), (vec![kind::ABORT], tag, flags));
        assert_eq!(causes_of(&answer).len(), causes, "after {wait} ms");
    }
    r.give(&[&empty(kind::SHUTDOWN_ACK)]);
    assert_eq!(r.take_one().kinds(), [kind::SHUTDOWN_COMPLETE]);
    r.handshake(PEER_TAG + 1, &[]);
}

/// RFC 9260 §8.5.1 E: an end of before is helped along, whatever tag it has.
#[test]
fn a_shutdown_ack_under_tag_0_is_answered() {
    let mut r = Raw::new();
    r.give_tagged(0, &[&empty(kind::SHUTDOWN_ACK)]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.flags(), sent.vtag()), (vec![kind::SHUTDOWN_COMPLETE], 1, 0));
}
