//! A peer, or an attacker in between, that breaks the rules: no panic, no memory, no answer that amplifies, and an
//! association that did nothing wrong goes on.

use crate::common::page::figure;
use crate::common::*;
use crate::scene::*;
use anabranch_base::{RandomStream, Ssn, StreamId, Tsn};
use anabranch_engine::{CloseReason, LocalId, SendOptions, Transmit};
use anabranch_wire::{
    AbortOut, Cause, CommonHeader, DataFlags, Encode, ForwardTsnOut, Heartbeat, Packet, PacketSlices, Verify, kind,
};
use bytes::Bytes;

#[test]
fn old_sacks_are_ignored() {
    let mut s = scene();
    for cum in [s.client_tsn.minus(1 << 30), s.client_tsn.minus(5)] {
        s.client_gets(&[&sack(cum, 100_000, &[])]);
        s.client_gets(&[&sack(cum, 100_000, &[(2, 9)])]);
    }
    s.still_works();
}

#[test]
fn a_sack_for_what_was_never_sent_ends_it() {
    let lies = [(1, &[][..]), (1_000, &[]), (1 << 31, &[]), (0, &[(1, 1)]), (0, &[(500, 65_535)])];
    for (ahead, gaps) in lies {
        let mut s = scene();
        let lie = sack(s.client_tsn.plus(ahead), 100_000, gaps);
        s.client_gets(&[&lie]);
        assert!(s.answers().contains(&vec![kind::ABORT]), "{ahead} {gaps:?}");
        assert!(matches!(s.client_is_closed(), Some(CloseReason::ProtocolViolation(_))));
    }
    let text = format!("{} kinds of it: by the first one", lies.len());
    figure("hostile::a_sack_for_what_was_never_sent_ends_it", &text);
}

#[test]
fn gap_blocks_that_make_no_sense_are_ignored() {
    let mut s = scene();
    s.b.cut(0);
    for _ in 0..4 {
        assert!(s.b.send(Side::Client, SendOptions::default(), numbered(0, 1, 1_000)));
    }
    s.b.run_for(ms(5));
    for gaps in [&[(3, 2)][..], &[(0, 2)], &[(3, 3), (2, 2)], &[(2, 3), (3, 4)], &[(2, 2), (2, 2)], &[(0, 0)]] {
        let bytes = sack(s.client_tsn, 100_000, gaps);
        s.client_gets(&[&bytes]);
        assert_eq!(s.b.assoc(Side::Client).stats().outstanding, 4_000, "{gaps:?}");
    }
    s.b.at_server.clear();
    s.b.restore(0);
    s.b.run_for(ms(10_000));
    assert_eq!(s.b.at_server.len(), 4);
    s.b.at_server.clear();
    s.still_works();
}

#[test]
fn acknowledging_and_taking_back_costs_nothing_but_time() {
    let mut s = scene();
    s.b.cut(0);
    for i in 0..4 {
        assert!(s.b.send(Side::Client, SendOptions::default(), numbered(0, i, 1_000)));
    }
    s.b.run_for(ms(5));
    for i in 0..200 {
        let gaps = if i % 2 == 0 { &[(2, 4)][..] } else { &[] };
        let bytes = sack(s.client_tsn, 100_000, gaps);
        s.client_gets(&[&bytes]);
    }
    s.b.restore(0);
    s.b.run_for(ms(20_000));
    assert_eq!(s.b.at_server.len(), 4);
    s.b.at_server.clear();
    s.still_works();
}

#[test]
fn acknowledging_before_arrival_only_harms_the_liar() {
    let mut s = scene();
    s.b.filter = Some(Box::new(|l| l.from == Side::Client || !l.has(kind::SACK)));
    for _ in 0..2_000 {
        let _ = s.b.send(Side::Client, SendOptions { unordered: true, ..SendOptions::default() }, &[7u8; 1_000][..]);
    }
    let mut tsn = s.client_tsn;
    for _ in 0..2_000 {
        // One packet at a time, as if the round trip were nothing.
        tsn = tsn.next();
        let bytes = sack(tsn, u32::MAX, &[]);
        s.client_gets(&[&bytes]);
        s.b.flush();
    }
    s.b.check();
    let sent = s.b.path(Side::Client, 0).counters.data_sent;
    assert!(sent <= 2_100_000, "{sent}");
}

#[test]
fn any_window_is_survived() {
    let mut s = scene();
    let mut flow = Flow::new(Side::Client, 3, 900);
    for w in [0, 1, u32::MAX, 0, 1_171, 1_172, u32::MAX, 3] {
        let bytes = sack(s.client_tsn, w, &[]);
        s.client_gets(&[&bytes]);
        flow.send_to(&mut s.b, flow.sent + 3);
        s.b.run_for(ms(50));
        s.b.check();
    }
    flow.transfer(&mut s.b, 20, ms(30_000)).expect("arrives");
    s.still_works();
}

/// Shows: 9260/P4.
#[test]
fn unknown_chunks_by_their_high_bits() {
    for (chunk, goes_on, reports) in
        [(0x3f, false, false), (0x7f, false, true), (0xbf, true, false), (0xff, true, true)]
    {
        let mut s = scene();
        let unknown = [chunk, 0, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0];
        let tsn = s.server_next;
        s.client_gets(&[&unknown, &data(tsn, 0, 1, WHOLE, b"after")]);
        let answers = s.answers();
        assert_eq!(s.b.at_client.len(), usize::from(goes_on), "{chunk:#x}");
        let reported = answers.iter().flatten().any(|k| *k == kind::ERROR);
        assert_eq!(reported, reports, "{chunk:#x}: {answers:?}");
    }
}

#[test]
fn forward_tsn_is_unknown_where_it_was_not_agreed() {
    let config = changed(assoc_config("cmt"), |c| c.extensions.partial_reliability = false);
    let mut b = Bench::connected(9, &config, &[(link(10, 20), link(10, 20))]);
    b.tap = Some(vec![]);
    assert!(b.send(Side::Server, SendOptions::default(), &b"two"[..]));
    b.run_for(ms(500));
    let tap = b.tap.take().expect("tapped");
    let vtag = tap
        .iter()
        .find(|t| t.1 == Side::Server)
        .map(|t| Packet::parse(&t.3, Verify::Trusted).expect("one").header.vtag);
    let forward = encoded(&ForwardTsnOut { new_cum: Tsn(5), streams: &[] });
    b.inject(Side::Client, 0, &packet(vtag.expect("a packet"), &[&forward]));
    b.tap = Some(vec![]);
    b.run_for(ms(10));
    assert_eq!(b.tapped(Side::Client, kind::ERROR).len(), 1);
}

/// Shows: 9260/D18.
#[test]
fn data_without_payload_ends_it() {
    let mut s = scene();
    let empty = data(s.server_next, 0, 1, WHOLE, b"");
    s.client_gets(&[&empty]);
    assert!(s.answers().contains(&vec![kind::ABORT]));
    assert!(matches!(s.client_is_closed(), Some(CloseReason::ProtocolViolation(_))));
}

/// Shows: 9260/D10.
#[test]
fn a_stream_that_does_not_exist_is_acknowledged_and_reported() {
    let mut s = scene();
    let wrong = data(s.server_next, 60_000, 0, WHOLE, b"lost");
    let right = data(s.server_next.next(), 0, 1, WHOLE, b"kept");
    s.client_gets(&[&wrong]);
    s.client_gets(&[&right]);
    let answers = s.answers();
    assert!(answers.iter().flatten().any(|k| *k == kind::ERROR), "{answers:?}");
    assert!(answers.iter().flatten().any(|k| *k == kind::SACK), "{answers:?}");
    assert_eq!(s.b.at_client.len(), 1);
}

#[test]
fn fragments_that_do_not_fit_end_it() {
    let flags = |begin, end| DataFlags { begin, end, ..WHOLE };
    for second in [flags(true, true), flags(true, false)] {
        let mut s = scene_of(&changed(assoc_config("cmt"), |c| c.extensions.partial_reliability = false));
        let a = data(s.server_next, 0, 1, flags(true, false), b"aaa");
        let b = data(s.server_next.next(), 0, 2, second, b"bbb");
        s.client_gets(&[&a, &b]);
        assert!(s.answers().contains(&vec![kind::ABORT]));
        assert!(matches!(s.client_is_closed(), Some(CloseReason::ProtocolViolation(_))));
    }
}

/// Linux and dcsctp leave a message that they give up half sent without an end.
#[test]
fn a_message_without_an_end_may_have_been_given_up() {
    let mut s = scene();
    let a = data(s.server_next, 0, 1, DataFlags { end: false, ..WHOLE }, b"aaa");
    let b = data(s.server_next.next(), 0, 0, DataFlags { unordered: true, ..WHOLE }, b"bbb");
    s.client_gets(&[&a, &b]);
    assert!(!s.answers().contains(&vec![kind::ABORT]));
    assert_eq!(s.client_is_closed(), None);
    assert_eq!(s.b.at_client.len(), 1);
}

#[test]
fn forward_tsn_far_ahead_costs_nothing() {
    let mut s = scene();
    // The real server would end an association whose client acknowledges what it never sent.
    s.b.cut(0);
    for ahead in [1u32 << 30, 5, (1 << 31) - 1, 1 << 31, 70_000] {
        let to = s.server_next.plus(ahead);
        let streams: Vec<_> = (0..250).map(|i| (StreamId(i * 260), Ssn(i * 7))).collect();
        let forward = encoded(&ForwardTsnOut { new_cum: to, streams: &streams });
        s.client_gets(&[&forward]);
        s.b.run_for(ms(300));
        s.b.check();
    }
    assert_eq!(s.client_is_closed(), None);
}

#[test]
fn holes_without_end_cost_bounded_memory() {
    let mut s = scene();
    let mut tsn = s.server_next;
    for i in 0..60_000u32 {
        tsn = tsn.plus(2);
        let unordered = DataFlags { unordered: true, begin: i % 3 == 0, end: false, ..WHOLE };
        let p = packet(s.to_client, &[&data(tsn, 0, 0, unordered, &[1; 60])]);
        s.b.inject(Side::Client, 0, &p);
    }
    s.b.check();
    s.b.run_for(ms(1_000));
    s.b.check();
}

/// Shows: 9260/V2, 9260/X2.
#[test]
fn aborts_need_the_tag() {
    for (vtag, reflected) in [(1, false), (1, true)] {
        let mut s = scene();
        let abort = encoded(&AbortOut { tag_reflected: reflected, causes: &[] });
        let p = packet(vtag, &[&abort]);
        s.b.inject(Side::Client, 0, &p);
        // Our own tag does not count with the T bit, nor the peer's without it.
        let swapped = if reflected { s.to_client } else { s.to_server };
        let p = packet(swapped, &[&abort]);
        s.b.inject(Side::Client, 0, &p);
        assert_eq!(s.answers(), Vec::<Vec<u8>>::new(), "an ABORT is never answered");
        s.still_works();
    }
    for reflected in [false, true] {
        let mut s = scene();
        let abort = encoded(&AbortOut { tag_reflected: reflected, causes: &[] });
        let vtag = if reflected { s.to_server } else { s.to_client };
        let p = packet(vtag, &[&abort]);
        s.b.inject(Side::Client, 0, &p);
        assert!(matches!(s.client_is_closed(), Some(CloseReason::PeerAborted(_))), "reflected: {reflected}");
    }
}

/// Shows: 9260/X2.
#[test]
fn an_abort_tells_why() {
    let mut s = scene();
    let mut causes = Vec::new();
    Cause::UserAbort(b"shop\x1b[31mclosed").encode(&mut causes);
    let abort = encoded(&AbortOut { tag_reflected: false, causes: &causes });
    s.client_gets(&[&abort]);
    assert_eq!(s.client_is_closed(), Some(CloseReason::PeerAborted("shop.[31mclosed".to_owned())));
}

#[test]
fn large_heartbeats_do_not_make_large_packets() {
    let mut s = scene();
    for len in [10, 500, 1_000, 1_100, 1_180, 5_000, 60_000] {
        for _ in 0..5 {
            let hb = encoded(&Heartbeat::new(&vec![3; len]));
            s.client_gets(&[&hb]);
        }
        // The bench refuses packets above 1,200 bytes.
        let answers = s.answers();
        assert_eq!(answers.iter().flatten().filter(|k| **k == kind::HEARTBEAT_ACK).count() > 0, len <= 1_180, "{len}");
    }
    s.still_works();
}

#[test]
fn a_flood_gets_bounded_answers() {
    let mut s = scene();
    let hb = encoded(&Heartbeat::new(&[1; 100]));
    let old = data(s.server_next.minus(1), 0, 0, WHOLE, b"again");
    let unknown = [0xff, 0, 0, 4];
    for _ in 0..50_000 {
        let p = packet(s.to_client, &[&hb, &old, &unknown]);
        s.b.inject(Side::Client, 0, &p);
    }
    s.b.check();
    let answers = s.answers();
    assert!(answers.len() <= 70, "{} packets", answers.len());
    s.still_works();
}

/// Shows: 9260/V3, 9260/V6.
#[test]
fn packets_for_no_association_get_one_answer_at_most() {
    let mut s = scene();
    let abort = encoded(&AbortOut { tag_reflected: false, causes: &[] });
    let stale = [9u8, 0, 0, 12, 0, 3, 0, 8, 0, 0, 0, 1];
    let hb = encoded(&Heartbeat::new(&[1; 100]));
    let one = data(Tsn(7), 0, 0, WHOLE, b"x");
    let cases: [(&[&[u8]], &[u8]); 9] = [
        (&[&one], &[kind::ABORT]),
        (&[&one, &hb, &hb], &[kind::ABORT]),
        (&[&one, &abort], &[]),
        (&[&abort], &[]),
        (&[&[kind::SHUTDOWN_ACK, 0, 0, 4]], &[kind::SHUTDOWN_COMPLETE]),
        (&[&[kind::SHUTDOWN_COMPLETE, 0, 0, 4]], &[]),
        (&[&[kind::COOKIE_ACK, 0, 0, 4]], &[]),
        (&[&stale], &[]),
        (&[&[kind::INIT, 0, 0, 20, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 1, 0, 0, 0, 1]], &[kind::ABORT]),
    ];
    for (chunks, wanted) in cases {
        let (now, stranger) = (s.b.now, ([203, 0, 113, 99], 9_899).into());
        let p = Bytes::from(packet(0x0bad_cafe, chunks));
        s.b.server.handle(now, LocalId(0), stranger, &p, Verify::Trusted);
        let (mut answers, mut t) = (vec![], Transmit::default());
        while s.b.server.poll_transmit(now, &mut t) {
            assert_eq!(t.remote, stranger);
            let mut bytes = vec![];
            t.packet.write_to(&mut bytes);
            answers.push(Bytes::from(bytes));
        }
        let got: Vec<u8> = answers.iter().flat_map(kinds).collect();
        assert_eq!(got, wanted, "{:?}", kinds(&Bytes::from(packet(1, chunks))));
        for t in answers {
            let p = Packet::parse(&t, Verify::Checksum).expect("a packet");
            assert_eq!(p.header.vtag, 0x0bad_cafe, "the tag is reflected");
            assert!(p.chunks().flatten().all(|c| c.flags & 1 == 1), "and the T bit says so");
            assert!(t.len() <= 36);
        }
    }
    s.still_works();
}

/// Shows: 9260/V1.
#[test]
fn a_wrong_tag_is_as_good_as_no_packet() {
    let mut s = scene();
    let shutdown = [kind::SHUTDOWN, 0, 0, 8, 0, 0, 0, 1];
    for vtag in [0, 1, s.to_server, s.to_client ^ 1] {
        let old = data(s.server_next, 0, 1, WHOLE, b"forged");
        let p = packet(vtag, &[&old]);
        s.b.inject(Side::Client, 0, &p);
        let p = packet(vtag, &[&shutdown]);
        s.b.inject(Side::Client, 0, &p);
    }
    s.b.run_for(ms(500));
    assert!(s.b.at_client.is_empty());
    s.still_works();
}

/// Shows: 9260/D19.
#[test]
fn a_wrong_checksum_is_as_good_as_no_packet() {
    let mut s = scene();
    let mut p = PacketSlices::default();
    p.start(CommonHeader { src_port: PORT, dst_port: PORT, vtag: s.to_client });
    p.push(&AbortOut { tag_reflected: false, causes: &[] });
    let mut bytes = Vec::new();
    p.write_to(&mut bytes);
    bytes[8] ^= 1;
    let now = s.b.now;
    s.b.client.handle(now, anabranch_engine::LocalId(0), server_addr(0), &Bytes::from(bytes), Verify::Checksum);
    assert_eq!(s.client_is_closed(), None);
    s.still_works();
}

/// Real packets with a few bytes changed, their tags and ports intact.
#[test]
fn mutated_packets_never_panic_and_never_pile_up() {
    let wanted: u32 = std::env::var("ANABRANCH_MUTATIONS").ok().and_then(|v| v.parse().ok()).unwrap_or(20_000);
    let (mut injected, mut round) = (0, 0);
    while injected < wanted {
        injected += mutate(round);
        round += 1;
    }
    assert!(round < u64::from(wanted), "no association lives long enough to be worth it");
}

/// Answers how many packets went in before one ended the association.
fn mutate(round: u64) -> u32 {
    let mut r = RandomStream::named(round, "mutation");
    let profile = ["cmt", "sctp", "live", "low-latency"][(round % 4) as usize];
    let config = changed(assoc_config(profile), |c| c.limits.receive_buffer = 100_000);
    let mut b = Bench::new(round, &config);
    b.paths.add("path0", link(10, 10), link(10, 10));
    b.paths.add("path1", link(10, 20), link(10, 20));
    b.strict = true;
    b.tap = Some(vec![]);
    b.connect(&config);
    let mut pool: Vec<(Side, usize, Bytes)> = vec![];
    b.run_for(ms(100));
    for n in 0..1_500u32 {
        if b.client.associations().count() == 0 || b.server.associations().count() == 0 {
            return n;
        }
        let tap = b.tap.replace(vec![]).expect("tapped");
        pool.extend(tap.into_iter().map(|t| (t.1, t.2, t.3)));
        let keep = pool.len().saturating_sub(400);
        pool.drain(..keep);
        if n % 5 == 0 {
            for side in [Side::Client, Side::Server] {
                let id = if side == Side::Client { Some(b.client_id) } else { b.server_id };
                let now = b.now;
                let deadline = r.chance(0.5).then(|| now + ms(r.below(100)));
                let o = SendOptions { stream: StreamId(r.below(4) as u16), deadline, ..SendOptions::default() };
                if let Some(mut a) = id.and_then(|id| b.endpoint(side).association_mut(id)) {
                    let _ = a.send(now, o, Bytes::from(vec![1; 1 + r.below(3_000) as usize]));
                }
            }
        }
        if !pool.is_empty() {
            let (from, path, bytes) = pool[r.below(pool.len() as u64) as usize].clone();
            let mut bytes = bytes.to_vec();
            for _ in 0..1 + r.below(4) {
                let at = 12 + r.below(bytes.len().saturating_sub(12).max(1) as u64) as usize;
                match r.below(4) {
                    0 if at < bytes.len() => bytes[at] = r.below(256) as u8,
                    1 if at < bytes.len() => bytes[at] ^= 1 << r.below(8),
                    2 => bytes.truncate(at),
                    _ => bytes.extend_from_slice(&[r.below(256) as u8, 0, 0, 4]),
                }
            }
            let to = if from == Side::Client { Side::Server } else { Side::Client };
            b.inject(to, path, &bytes);
            b.check();
        }
        b.run_for(ms(r.below(4)));
        b.at_client.clear();
        b.at_server.clear();
        b.client_events.clear();
        b.server_events.clear();
        assert!(b.server.associations().count() <= 3);
    }
    1_500
}
