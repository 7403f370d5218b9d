//! Reports of damaged packets (draft-stewart-tsvwg-sctpktdrprep): what is believed, what follows.

mod common;

use anabranch_engine::AssocConfig;
use anabranch_wire::{Packet, PacketDrop, Verify, kind};
use bytes::Bytes;
use common::manual::*;
use common::*;

fn manual(on: bool) -> Manual {
    let config = AssocConfig { packet_drop_reports: on, ..assoc_config("sctp") };
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
    for at in [0, 2, 4, 7, 14, 18, 28, 43] {
        let mut forged = good.clone();
        forged[at] ^= 0x40;
        assert_eq!(report(&mut m, DAMAGED, &forged), [], "byte {at} changed");
    }
    for len in [0, 3, 11, 12, 15, 27, 43] {
        assert_eq!(report(&mut m, DAMAGED, &good[..len]), [], "{len} bytes are not enough");
    }
    m.sack(2, &[]);
    assert_eq!(report(&mut m, DAMAGED, &good), [], "it arrived");
    let third = packets[2].to_vec();
    assert_eq!(report(&mut m, DAMAGED, &third), [2], "and this one is believed");
    assert!(Packet::parse(&third, Verify::Checksum).is_ok());
}

#[test]
fn without_agreement_it_is_an_unknown_chunk() {
    let mut m = manual(false);
    let packets = sent(&mut m, 3);
    assert_eq!(report(&mut m, DAMAGED, &packets[1]), []);
}
