//! What the peer skips by FORWARD-TSN (RFC 3758 §3.6), chunk by chunk.

use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{Ssn, StreamId, Tsn};
use anabranch_engine::{AssocConfig, AssocId, Part};
use anabranch_wire::{
    Chunk, Data, DataFlags, DataHeader, ForwardTsnOut, GapBlock, Parameter, SackOut, cause_code, kind,
};

fn accepted_with(config: &AssocConfig) -> (Raw, AssocId) {
    let mut r = Raw::with(config, |_| {});
    r.handshake(PEER_TAG, &bytes(&Parameter::ForwardTsnSupported));
    let id = r.only();
    r.take();
    (r, id)
}

fn accepted() -> (Raw, AssocId) {
    accepted_with(&assoc_config("sctp"))
}

fn piece(n: u32, stream: u16, ssn: u16, flags: DataFlags, payload: &[u8]) -> Vec<u8> {
    let header = DataHeader { tsn: PEER_TSN.plus(n), stream: StreamId(stream), ssn: Ssn(ssn), ppid: 0, flags };
    bytes(&Data { header, payload })
}

const WHOLE: DataFlags = DataFlags { immediate: false, unordered: false, begin: true, end: true };
const BEGIN: DataFlags = DataFlags { end: false, ..WHOLE };
const END: DataFlags = DataFlags { begin: false, ..WHOLE };

fn skip(n: u32, streams: &[(u16, u16)]) -> Vec<u8> {
    let streams: Vec<_> = streams.iter().map(|&(s, n)| (StreamId(s), Ssn(n))).collect();
    bytes(&ForwardTsnOut { new_cum: PEER_TSN.plus(n), streams: &streams })
}

/// Cumulative TSN and gap blocks of the SACKs that were sent.
fn sacks(sent: &[Sent]) -> Vec<(Tsn, Vec<(u16, u16)>)> {
    let of = |s: &Sent| {
        let list = s.chunks().into_iter().filter_map(|c| match c {
            Chunk::Sack(s) => Some((s.cum_tsn, s.gaps().map(|g| (g.start, g.end)).collect())),
            _ => None,
        });
        list.collect::<Vec<_>>()
    };
    sent.iter().flat_map(of).collect()
}

/// Shows: ext/F1.
#[test]
fn from_a_peer_that_did_not_announce_it_it_is_unknown() {
    let mut r = Raw::accepted();
    r.give(&[&skip(3, &[])]);
    assert_eq!(causes_of(&r.take_one())[0].0, cause_code::UNRECOGNIZED_CHUNK);
    r.give(&[&piece(0, 0, 0, WHOLE, b"x")]);
    let id = r.only();
    assert_eq!(r.read(id), [b"x"]);
}

/// Shows: ext/F11.
#[test]
fn the_cumulative_tsn_moves_on_over_what_is_here() {
    let (mut r, _) = accepted();
    for n in [2, 3, 6] {
        r.give(&[&piece(n, n as u16, 0, WHOLE, b"x")]);
    }
    r.take();
    r.give(&[&skip(1, &[])]);
    r.run_for(ms(250));
    assert_eq!(sacks(&r.take()).pop(), Some((PEER_TSN.plus(3), vec![(3, 3)])));
    // What the skipped numbers bring later is a repetition.
    r.give(&[&piece(0, 5, 0, WHOLE, b"late")]);
    let id = r.only();
    assert!(r.read(id).iter().all(|m| m != b"late"));
}

/// Shows: ext/F12.
#[test]
fn an_old_one_changes_nothing_and_is_answered() {
    let (mut r, id) = accepted();
    r.give(&[&piece(0, 1, 0, WHOLE, b"a"), &piece(1, 1, 1, WHOLE, b"b"), &piece(2, 1, 4, WHOLE, b"waits")]);
    r.run_for(ms(250));
    r.take();
    assert_eq!(r.read(id).len(), 2);
    for n in [1, 0] {
        r.give(&[&skip(n, &[(1, 3)])]);
        r.run_for(ms(250));
        assert_eq!(sacks(&r.take()), [(PEER_TSN.plus(2), vec![])], "{n}");
        assert!(r.read(id).is_empty());
    }
    // Half the numbers ahead is behind.
    r.give(&[&skip(2 + (1 << 31), &[(1, 3)])]);
    assert!(r.read(id).is_empty());
}

/// Shows: ext/F12.
#[test]
fn it_is_acknowledged_as_data_is() {
    let (mut r, _) = accepted();
    r.give(&[&piece(0, 1, 0, WHOLE, b"a")]);
    r.run_for(ms(250));
    r.take();
    r.give(&[&skip(5, &[])]);
    let at = r.now;
    let sent = r.run_until_sent(kind::SACK, ms(1_000)).expect("a SACK");
    assert!(sent.at.since(at) <= ms(200));
    assert_eq!(sacks(&[sent]), [(PEER_TSN.plus(5), vec![])]);
}

/// Shows: ext/F13.
#[test]
fn what_waited_is_released_and_what_misses_a_piece_is_gone() {
    let (mut r, id) = accepted();
    r.give(&[&piece(0, 1, 0, BEGIN, b"half"), &piece(2, 1, 1, WHOLE, b"one"), &piece(3, 1, 3, WHOLE, b"three")]);
    r.give(&[&piece(4, 2, 1, WHOLE, b"other")]);
    assert!(r.read(id).is_empty());
    r.give(&[&skip(1, &[(1, 0)])]);
    assert_eq!(r.read(id), [b"one"]);
    r.give(&[&piece(5, 1, 2, WHOLE, b"two")]);
    assert_eq!(r.read(id), [b"two".to_vec(), b"three".to_vec()]);
    r.give(&[&piece(6, 2, 0, WHOLE, b"first")]);
    assert_eq!(r.read(id), [b"first".to_vec(), b"other".to_vec()]);
    assert_eq!(r.endpoint.association(id).expect("alive").held_for_reading(), 0);
    // The end of what is gone is no one's message.
    r.give(&[&piece(7, 1, 9, BEGIN, b"a"), &skip(7, &[(1, 9)]), &piece(8, 1, 9, END, b"b")]);
    assert!(r.read(id).is_empty());
}

/// Shows: ext/F13.
/// What was skipped stood before a message without an end, which shows at once and not with the next DATA.
#[test]
fn a_skip_shows_that_a_message_has_no_end() {
    let (mut r, id) = accepted();
    r.give(&[&piece(2, 1, 2, WHOLE, b"two"), &piece(1, 1, 1, BEGIN, b"one"), &skip(0, &[(1, 0)])]);
    assert_eq!(r.read(id), [b"two"]);
}

#[test]
fn a_half_delivered_message_ends_with_a_word() {
    let config = changed(assoc_config("sctp"), |c| {
        c.messages.partial_delivery = true;
        c.limits.receive_buffer = 5_000;
    });
    let (mut r, id) = accepted_with(&config);
    let middle = DataFlags { begin: false, end: false, ..WHOLE };
    let mut n = 0;
    let part = loop {
        r.give(&[&piece(n, 1, 0, if n == 0 { BEGIN } else { middle }, &[7; 900])]);
        n += 1;
        let got = r.endpoint.association_mut(id).expect("alive").recv();
        if let Some(m) = got {
            break m;
        }
        assert!(n < 20);
    };
    assert_eq!(part.part, Part::More);
    r.give(&[&skip(n + 3, &[(1, 0)])]);
    let last = r.endpoint.association_mut(id).expect("alive").recv().expect("a word");
    assert_eq!((last.part, last.payload.len()), (Part::Abandoned, 0));
    r.give(&[&piece(n + 4, 1, 1, WHOLE, b"next")]);
    assert_eq!(r.read(id), [b"next"]);
}

/// The advanced point is ours alone: a SACK is old or new by the cumulative TSN it was sent for.
///
/// Shows: ext/F3, ext/F9.
#[test]
fn an_abandoned_chunk_is_not_outstanding_and_old_sacks_are_those_below_the_cumulative_one() {
    let (mut r, id) = accepted();
    let deadline = Some(r.now + ms(100));
    let now = r.now;
    for _ in 0..3 {
        let options = anabranch_engine::SendOptions { deadline, ..Default::default() };
        let mut a = r.endpoint.association_mut(id).expect("alive");
        a.send(now, options, bytes::Bytes::from(vec![1; 1_000])).expect("taken");
        drop(a);
        r.drain();
    }
    let first = r.first_tsn;
    let before = r.endpoint.association(id).expect("alive").paths().next().expect("one").1.cwnd;
    r.run_until_sent(kind::FORWARD_TSN, ms(5_000)).expect("given up");
    let a = r.endpoint.association(id).expect("alive");
    let path = a.paths().next().expect("one").1;
    assert_eq!((a.stats().outstanding, path.in_flight), (0, 0));
    assert!(path.cwnd <= before, "no credit");
    // The point stands at first + 2, and the peer reports less: its word counts, for the point is only advanced.
    r.send(id, &[2; 500]);
    r.take();
    let gap = |cum: Tsn, at: u16| {
        bytes(&SackOut { cum_tsn: cum, a_rwnd: 50_000, gaps: &[GapBlock { start: at, end: at }], duplicates: &[] })
    };
    r.give(&[&gap(first.minus(1), 4)]);
    assert_eq!(r.endpoint.association(id).expect("alive").stats().outstanding, 0, "taken, although below the point");
    r.give(&[&sack(first.plus(3))]);
    r.give(&[&gap(first.minus(1), 4)]);
    r.send(id, b"goes on");
    assert!(r.take_kinds().concat().contains(&kind::DATA));
}
