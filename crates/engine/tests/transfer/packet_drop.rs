//! Reports of damaged packets (draft-stewart-tsvwg-sctpktdrprep): what is believed, what follows; what is reported.

use crate::common::manual::*;
use crate::common::page::{count, figure, grouped};
use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::{LocalId, SendOptions};
use anabranch_wire::{Chunk, CommonHeader, Packet, PacketDrop, Verify, kind};
use bytes::Bytes;

fn manual(on: bool) -> Manual {
    let config = changed(assoc_config("sctp"), |c| c.extensions.packet_drop_reports = on);
    Manual::new(&config, &[(link(10, 20), link(10, 20))])
}

/// The client sends `n` full messages; its packets.
fn sent(m: &mut Manual, n: usize) -> Vec<Bytes> {
    m.send(n, FULL);
    m.b.flush();
    let tap = m.b.tap.replace(vec![]).expect("tapped");
    let data = tap.into_iter().filter(|t| t.1 == Side::Client && kinds(&t.3).contains(&kind::DATA));
    data.map(|t| t.3).collect()
}

const DAMAGED: u8 = 2;
const CUT: u8 = 4;

fn report(m: &mut Manual, flags: u8, packet: &[u8]) -> Vec<u32> {
    let r = encoded(&PacketDrop { flags, bandwidth: 0, queue: 0, whole_len: packet.len() as u16, packet });
    m.receive(0, &[&r]);
    m.sent()
}

#[test]
fn a_damaged_packet_leaves_again_at_once_and_costs_no_window() {
    for shown in [1_200, 12 + 16 + 16] {
        let mut m = manual(true);
        let packets = sent(&mut m, 3);
        let before = m.path(0);
        let part = &packets[1][..packets[1].len().min(shown)];
        assert_eq!(report(&mut m, DAMAGED | CUT, part), [1], "{shown} bytes of it");
        let after = m.path(0);
        assert_eq!((after.cwnd, after.ssthresh, after.counters.recoveries), (before.cwnd, before.ssthresh, 0));
        assert_eq!(report(&mut m, DAMAGED, part), [], "once");
    }
}

#[test]
fn a_packet_that_a_queue_dropped_is_a_loss_like_any_other() {
    let mut m = manual(true);
    let packets = sent(&mut m, 3);
    let before = m.path(0).ssthresh;
    assert_eq!(report(&mut m, 0, &packets[1]), [1]);
    assert_eq!(m.path(0).counters.recoveries, 1);
    assert!(m.path(0).ssthresh < before);
}

/// Tag, ports, TSN, length and payload have to be ours, and of something in flight.
#[test]
fn what_does_not_show_what_was_sent_is_not_believed() {
    let mut m = manual(true);
    let packets = sent(&mut m, 3);
    let good = packets[1].to_vec();
    let mut reports = 0;
    for at in [0, 2, 4, 7, 14, 18, 28, 43] {
        reports += 1;
        let mut forged = good.clone();
        forged[at] ^= 0x40;
        assert_eq!(report(&mut m, DAMAGED, &forged), [], "byte {at} changed");
    }
    for len in [0, 3, 11, 12, 15, 27, 43] {
        reports += 1;
        assert_eq!(report(&mut m, DAMAGED, &good[..len]), [], "{len} bytes are not enough");
    }
    m.sack(2, &[]);
    assert_eq!(report(&mut m, DAMAGED, &good), [], "it arrived");
    let third = packets[2].to_vec();
    assert_eq!(report(&mut m, DAMAGED, &third), [2], "and this one is believed");
    assert!(Packet::parse(&third, Verify::Checksum).is_ok());
    figure(
        "transfer/packet_drop.rs::what_does_not_show_what_was_sent_is_not_believed",
        &format!("{} with a byte changed or too few of them: none believed", count(reports, "report")),
    );
}

#[test]
fn without_agreement_it_is_an_unknown_chunk() {
    let mut m = manual(false);
    let packets = sent(&mut m, 3);
    assert_eq!(report(&mut m, DAMAGED, &packets[1]), []);
}

/// The bytes of the packets with a chunk of this type that the client sent since the last time.
fn reports(m: &mut Manual) -> Vec<Bytes> {
    m.b.flush();
    let tap = m.b.tap.replace(vec![]).expect("tapped");
    let of = |t: &(_, Side, _, Bytes)| t.1 == Side::Client && kinds(&t.3).contains(&kind::PACKET_DROP);
    tap.into_iter().filter(of).map(|t| t.3).collect()
}

/// A packet of the peer to the client, with its sum, and then with one bit of its last byte flipped.
fn damaged(m: &Manual, vtag: u32, chunks: &[&[u8]]) -> Vec<u8> {
    let mut packet = CommonHeader { src_port: PORT, dst_port: PORT, vtag }.to_bytes().to_vec();
    chunks.iter().for_each(|c| packet.extend_from_slice(c));
    let sum = anabranch_wire::packet_checksum(&packet);
    packet[8..12].copy_from_slice(&sum.to_le_bytes());
    assert!(Packet::parse(&packet, Verify::Checksum).is_ok() && m.b.strict);
    *packet.last_mut().expect("a byte") ^= 1;
    packet
}

/// Between two of our own: what a link damages leaves again a round trip later, and the window is what it was.
#[test]
fn damage_costs_one_round_trip_and_no_window() {
    for on in [true, false] {
        let config = changed(assoc_config("sctp"), |c| c.extensions.packet_drop_reports = on);
        let mut b = Bench::connected(3, &config, &[(link(10, 20), link(10, 20))]);
        b.strict = true;
        let (filter, caught) = catch_second();
        b.filter = filter;
        let before = b.path(Side::Client, 0);
        for i in 0..3 {
            assert!(b.send(Side::Client, SendOptions::default(), pattern(i, FULL)));
        }
        b.run_for(ms(20));
        let mut packet = caught.borrow()[0].1.to_vec();
        *packet.last_mut().expect("a byte") ^= 0x10;
        b.inject_summed(Side::Server, 0, &packet);
        b.run_for(ms(100));
        assert_eq!(b.at_server.len(), if on { 3 } else { 1 }, "within 120 ms, reports: {on}");
        b.run_for(ms(5_000));
        assert_eq!(b.at_server.len(), 3, "in the end");
        let after = b.path(Side::Client, 0);
        assert_eq!(after.ssthresh == before.ssthresh && after.cwnd >= before.cwnd, on);
        assert_eq!(after.counters.recoveries + after.counters.timeouts == 0, on);
    }
}

/// It shows the beginning of the packet, and is not larger than that.
#[test]
fn a_report_shows_what_arrived_and_is_never_longer() {
    let mut m = manual(true);
    for len in [1, 30, 48, 49, 100, 500, FULL] {
        let data = m.data(0, 0, 0, WHOLE, &vec![7; len]);
        let packet = damaged(&m, m.to_client, &[&data]);
        m.b.inject_summed(Side::Client, 0, &packet);
        let sent = reports(&mut m);
        // One that could not show a chunk by which it is believed is not sent.
        assert_eq!(sent.len(), usize::from(packet.len() >= 76), "{len} bytes");
        for report in sent {
            assert!(report.len() <= packet.len());
            let read = Packet::parse(&report, Verify::Checksum).expect("a packet");
            assert_eq!(read.header.vtag, m.to_server);
            let chunks: Vec<_> = read.chunks().map(|c| c.expect("framed").decode().expect("known")).collect();
            let [Chunk::PacketDrop(d)] = chunks[..] else { panic!("{chunks:?}") };
            assert_eq!((d.flags, d.bandwidth, d.queue, usize::from(d.whole_len)), (DAMAGED | CUT, 0, 0, packet.len()));
            assert!(packet.starts_with(d.packet) && d.packet.len() + 31 >= packet.len().min(1_200));
        }
        assert!(m.read().is_empty(), "nothing of it counts");
        m.b.run_for(ms(100));
    }
}

/// Forged damage: eight answers, then one in 50 ms, each no longer than what asked for it.
#[test]
fn a_flood_of_damage_is_answered_seldom() {
    let mut m = manual(true);
    let data = m.data(0, 0, 0, WHOLE, &[7; 1_000]);
    let packet = damaged(&m, m.to_client, &[&data]);
    let (mut answers, mut bytes) = (0, 0);
    for _ in 0..10_000 {
        m.b.inject_summed(Side::Client, 0, &packet);
        let sent = reports(&mut m);
        answers += sent.len();
        bytes += sent.iter().map(Bytes::len).sum::<usize>();
        m.b.run_for(Duration::from_micros(100));
    }
    assert!(bytes <= answers * packet.len());
    figure(
        "transfer/packet_drop.rs::a_flood_of_damage_is_answered_seldom",
        &format!(
            "10,000 in a second: {}; {} bytes in, {} out",
            count(answers, "report"),
            grouped(10_000 * packet.len()),
            grouped(bytes)
        ),
    );
    assert_eq!(m.path(0).errors, 0);
}

/// Nothing is said of what may not be answered, nor to anybody but the peer where it is known to be.
#[test]
fn only_the_peers_own_data_are_reported() {
    let filler = [0; 100];
    let data = |m: &Manual| m.data(0, 0, 0, WHOLE, &[7; 500]);
    for (kinds, answered) in [
        (&[kind::COOKIE_ACK][..], true),
        (&[], true),
        (&[kind::PACKET_DROP], false),
        (&[kind::ABORT], false),
        (&[kind::INIT], false),
        (&[kind::INIT_ACK], false),
    ] {
        for behind in [false, true] {
            let mut m = manual(true);
            let more: Vec<_> = kinds.iter().map(|k| crate::common::raw::chunk(*k, 0, &filler)).collect();
            let mut chunks = vec![data(&m)];
            let at = if behind { 1 } else { 0 };
            more.into_iter().for_each(|c| chunks.insert(at, c));
            let chunks: Vec<&[u8]> = chunks.iter().map(|c| &c[..]).collect();
            let packet = damaged(&m, m.to_client, &chunks);
            m.b.inject_summed(Side::Client, 0, &packet);
            assert_eq!(reports(&mut m).len(), usize::from(answered), "{kinds:?}");
        }
    }
    let silent = |m: &mut Manual, packet: &[u8], what: &str| {
        m.b.inject_summed(Side::Client, 0, packet);
        assert!(reports(m).is_empty(), "{what}");
    };
    let mut m = manual(true);
    let sack = damaged(&m, m.to_client, &[&crate::common::raw::chunk(kind::SACK, 0, &[0; 200])]);
    silent(&mut m, &sack, "no data");
    let good = damaged(&m, m.to_client, &[&data(&m)]);
    for (at, what) in [(0, "source port"), (2, "port"), (5, "tag"), (14, "framing")] {
        let mut other = good.clone();
        other[at] ^= 0x40;
        silent(&mut m, &other, what);
    }
    let mut off = manual(false);
    let packet = damaged(&off, off.to_client, &[&data(&off)]);
    silent(&mut off, &packet, "not agreed on");
    // From an address that is no path.
    let now = m.b.now;
    let stranger = "203.0.113.99:9899".parse().expect("an address");
    m.b.client.handle(now, LocalId(0), stranger, &Bytes::from(good.clone()), Verify::Checksum);
    assert!(reports(&mut m).is_empty(), "a stranger's");
    m.b.inject_summed(Side::Client, 0, &good);
    assert_eq!(reports(&mut m).len(), 1, "and this one is answered");
}
