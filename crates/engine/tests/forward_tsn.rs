//! What FORWARD-TSN says (RFC 3758 §3.5).

mod common;

use anabranch_base::StreamId;
use anabranch_engine::SendOptions;
use anabranch_wire::{Chunk, Packet, Verify, kind};
use common::*;

/// The streams that the client's FORWARD-TSNs named, one list for each.
fn named(b: &Bench) -> Vec<Vec<(u16, u16)>> {
    let of = |bytes: &bytes::Bytes| {
        let p = Packet::parse(bytes, Verify::Checksum).expect("a packet");
        let found = p.chunks().flatten().find_map(|c| match c.decode() {
            Ok(Chunk::ForwardTsn(f)) => Some(f.streams().map(|(s, ssn)| (s.0, ssn.0)).collect()),
            _ => None,
        });
        found.expect("a FORWARD-TSN")
    };
    b.tapped(Side::Client, kind::FORWARD_TSN).iter().map(|t| of(&t.3)).collect()
}

/// What the new cumulative TSN passes only because it arrived out of order is not skipped.
#[test]
fn only_what_was_given_up_is_named() {
    let config = assoc_config("sctp");
    let mut b = Bench::connected(5, &config, &[(link(10, 20), link(10, 20))]);
    b.strict = true;
    b.tap = Some(vec![]);
    b.filter = drop_first(Side::Client, kind::DATA, 1);
    let deadline = Some(b.now + ms(300));
    // One packet each: the first is lost, the others arrive behind it. Too few to have it sent again before it is late.
    for (stream, deadline) in [(1, deadline), (2, deadline), (2, None)] {
        let options = SendOptions { stream: StreamId(stream), deadline, ..SendOptions::default() };
        assert!(b.send(Side::Client, options, vec![stream as u8; 1_000]));
        b.run_for(ms(1));
    }
    b.run_for(ms(5_000));
    let all = named(&b);
    assert!(!all.is_empty());
    assert!(all.iter().all(|streams| *streams == [(1, 0)]), "{all:?}");
    let got: Vec<u16> = b.at_server.iter().map(|m| m.stream.0).collect();
    assert_eq!(got, [2, 2]);
}
