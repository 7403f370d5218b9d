//! What FORWARD-TSN says (RFC 3758 §3.5).

mod common;

use anabranch_base::StreamId;
use anabranch_engine::{AssocId, SendOptions};
use anabranch_wire::{Chunk, Packet, Parameter, Verify, kind};
use common::raw::{self, PEER_TAG, Raw, sack};
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

fn accepted() -> (Raw, AssocId) {
    let mut r = Raw::with(&assoc_config("sctp"), |_| {});
    r.handshake(PEER_TAG, &raw::bytes(&Parameter::ForwardTsnSupported));
    let id = r.only();
    r.take();
    (r, id)
}

fn send(r: &mut Raw, id: AssocId, life: Option<u64>, len: usize) {
    let now = r.now;
    let options = SendOptions { deadline: life.map(|l| now + ms(l)), ..SendOptions::default() };
    let mut a = r.endpoint.association_mut(id).expect("alive");
    a.send(now, options, bytes::Bytes::from(vec![1; len])).expect("taken");
    drop(a);
    r.drain();
}

/// RFC 3758 §3.5 F2: with data where there are any, and in front of them.
#[test]
fn it_leaves_in_front_of_what_is_sent_again() {
    let (mut r, id) = accepted();
    send(&mut r, id, Some(100), 500);
    send(&mut r, id, None, 500);
    r.take();
    let sent = r.run_until_sent(kind::FORWARD_TSN, ms(5_000)).expect("given up");
    assert_eq!(sent.kinds(), [kind::FORWARD_TSN, kind::DATA]);
}

/// It acknowledges no data, yet the peer was reached: the path need not prove itself with a single packet any more.
#[test]
fn its_answer_proves_the_path() {
    for answered in [false, true] {
        let (mut r, id) = accepted();
        send(&mut r, id, Some(100), 500);
        r.run_until_sent(kind::FORWARD_TSN, ms(5_000)).expect("given up");
        if answered {
            let chunk = sack(r.first_tsn);
            r.give(&[&chunk]);
        }
        r.take();
        for _ in 0..2 {
            send(&mut r, id, None, 400);
        }
        assert_eq!(r.take().len(), 1 + usize::from(answered));
    }
}

/// It leaves in front of data that is there to be sent, and alone at once where there is none.
///
/// Shows: ext/F8.
#[test]
fn it_shares_the_packet_of_data_and_waits_for_none() {
    for more in [true, false] {
        let config = assoc_config("sctp");
        let mut b = Bench::connected(5, &config, &[(link(10, 20), link(10, 20))]);
        b.strict = true;
        b.tap = Some(vec![]);
        b.filter = drop_first(Side::Client, kind::DATA, 1);
        let late = b.now + ms(300);
        let options = SendOptions { deadline: Some(late), ..SendOptions::default() };
        assert!(b.send(Side::Client, options, vec![1; 500]));
        // T3 finds it lost and late.
        let t3 = b.now + b.path(Side::Client, 0).rto;
        if more {
            // A second one is on its way when the first is given up: its repetition leaves with what skips the first.
            b.run_for(ms(1));
            b.filter = drop_first(Side::Client, kind::DATA, 1);
            assert!(b.send(Side::Client, SendOptions::default(), vec![2; 500]));
        }
        b.run_for(ms(3_000));
        let first = b.tapped(Side::Client, kind::FORWARD_TSN)[0];
        assert!(first.0.since(t3) <= ms(200), "{} after the loss", first.0.since(t3));
        assert_eq!(kinds(&first.3).contains(&kind::DATA), more);
        assert_eq!(b.at_server.len(), usize::from(more));
    }
}
