//! What FORWARD-TSN says (RFC 3758 §3.5).

use crate::common::raw::{self, PEER_TAG, Raw, sack};
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{AssocId, SendOptions};
use anabranch_wire::{Chunk, Packet, Parameter, Verify, kind};

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

/// Shows: ext/F4.
///
/// One fragment is sent as often as its message is worth. Others of it are not, and are given up all the same: none
/// leaves again, and one FORWARD-TSN passes them all, those that arrived too.
#[test]
fn fragments_within_the_limit_go_with_the_one_beyond_it() {
    let (mut r, id) = accepted();
    let now = r.now;
    let options = SendOptions { max_retransmissions: Some(1), ..SendOptions::default() };
    // The first window has four packets; a fifth fragment is cut and never leaves, a sixth is not even cut.
    let mut a = r.endpoint.association_mut(id).expect("alive");
    a.send(now, options, bytes::Bytes::from(vec![1; 6_500])).expect("taken");
    drop(a);
    r.drain();
    let (first, cum) = (r.first_tsn, r.first_tsn.minus(1));
    let sent = |r: &mut Raw| -> Vec<u32> {
        let of = |c: &Chunk<'_>| match c {
            Chunk::Data(d) => Some(d.header.tsn.distance(first)),
            _ => None,
        };
        r.take().iter().flat_map(|s| s.chunks().iter().filter_map(of).collect::<Vec<_>>()).collect()
    };
    let flight = sent(&mut r);
    assert!(flight.len() >= 4, "{flight:?}");
    // The second arrives, three times reported: the first leaves again.
    for to in [2, 2, 2] {
        let gap = [anabranch_wire::GapBlock { start: 2, end: to }];
        r.give(&[&raw::bytes(&anabranch_wire::SackOut { cum_tsn: cum, a_rwnd: 100_000, gaps: &gap, duplicates: &[] })]);
    }
    let gap = [anabranch_wire::GapBlock { start: 2, end: 3 }];
    r.give(&[&raw::bytes(&anabranch_wire::SackOut { cum_tsn: cum, a_rwnd: 100_000, gaps: &gap, duplicates: &[] })]);
    r.run_for(ms(5_000));
    let mut again = vec![0u32; 8];
    let mut points = vec![];
    for s in r.take() {
        for c in s.chunks() {
            match c {
                Chunk::Data(d) => again[d.header.tsn.distance(first) as usize] += 1,
                Chunk::ForwardTsn(f) => points.push(f.new_cum.distance(first)),
                _ => {}
            }
        }
    }
    let end = points.first().copied().expect("a FORWARD-TSN");
    assert!(points.iter().all(|p| *p == end), "one point from the beginning: {points:?}");
    assert!(end as usize >= flight.len() - 1, "{end} passes all that left: {flight:?}");
    assert!(again.iter().all(|n| *n <= 1), "none more often than it is worth: {again:?}");
    let a = r.endpoint.association(id).expect("alive");
    let s = a.stats();
    assert_eq!((s.abandoned_sent, s.abandoned_unsent, s.unsent), (1, 0, 0), "one message, whole");
    r.give(&[&sack(first.plus(end))]);
    assert!(r.endpoint.association(id).expect("alive").is_drained());
    r.run_for(ms(20_000));
    assert_eq!(sent(&mut r), [], "nothing of it ever again");
}
