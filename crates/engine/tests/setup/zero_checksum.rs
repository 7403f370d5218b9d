//! Packets without a checksum, where both ends agreed on something better (RFC 9653).

use crate::common::raw::*;
use crate::common::*;
use anabranch_engine::{AssocConfig, AssocId, Event, LocalId, Phase, SendOptions};
use anabranch_wire::{CommonHeader, Parameter, Params, kind};

/// DTLS below SCTP (RFC 9653 §6).
const DTLS: u32 = 1;

fn config(method: Option<u32>) -> AssocConfig {
    changed(assoc_config("sctp"), |c| c.extensions.error_detection = method)
}

fn announces(method: u32) -> Vec<u8> {
    bytes(&Parameter::ZeroChecksum(method))
}

fn checksum(sent: &Sent) -> u32 {
    u32::from_le_bytes([sent.bytes[8], sent.bytes[9], sent.bytes[10], sent.bytes[11]])
}

/// The methods that an INIT or INIT ACK of ours names.
fn named(sent: &Sent) -> Vec<u32> {
    let params = init_of(sent).1;
    let of = |p| match p {
        Parameter::ZeroChecksum(m) => Some(m),
        _ => None,
    };
    Params::new(&params).iter().flatten().filter_map(of).collect()
}

impl Unsummed for Raw {
    fn give_with_sum(&mut self, vtag: u32, sum: [u8; 4], chunks: &[&[u8]]) {
        let mut out = CommonHeader { src_port: PEER_PORT, dst_port: PORT, vtag }.to_bytes().to_vec();
        chunks.iter().for_each(|c| out.extend_from_slice(c));
        out[8..12].copy_from_slice(&sum);
        let (to, from) = (self.to, self.from);
        self.give_bytes(to, from, &out);
    }
}

trait Unsummed {
    fn give_with_sum(&mut self, vtag: u32, sum: [u8; 4], chunks: &[&[u8]]);
}

/// A peer that announced `theirs` to us who know `ours`.
fn accepted(ours: Option<u32>, theirs: &[u8]) -> (Raw, AssocId) {
    let mut r = Raw::with(&config(ours), |_| {});
    r.handshake(PEER_TAG, theirs);
    let id = r.only();
    r.take();
    (r, id)
}

/// Shows: ext/Z1, ext/Z2.
#[test]
fn the_method_is_announced_only_when_it_is_configured() {
    for method in [None, Some(DTLS), Some(7)] {
        let mut r = Raw::with(&config(method), |_| {});
        r.connect(&config(method));
        let ours = r.take_one();
        assert_eq!(named(&ours), Vec::from_iter(method), "INIT");
        assert_ne!(checksum(&ours), 0);
        for theirs in [vec![], announces(DTLS)] {
            let mut r = Raw::with(&config(method), |_| {});
            r.give_tagged(0, &[&init(init_fields(PEER_TAG), &theirs)]);
            assert_eq!(named(&r.take_one()), Vec::from_iter(method), "INIT ACK");
        }
    }
}

/// Shows: ext/Z3.
#[test]
fn zero_is_sent_to_a_peer_that_announced_our_method() {
    let both = [(Some(DTLS), announces(DTLS), true), (Some(DTLS), announces(2), false)];
    let one = [(None, announces(DTLS), false), (Some(DTLS), vec![], false), (Some(u32::MAX), announces(1), false)];
    for (ours, theirs, zero) in both.into_iter().chain(one) {
        let (mut r, id) = accepted(ours, &theirs);
        r.send(id, b"hello");
        r.give(&[&data(PEER_TSN, 0, b"x")]);
        r.give(&[&data(PEER_TSN.plus(1), 1, b"x")]);
        let sent = r.take();
        assert!(sent.len() > 1);
        for s in &sent {
            assert_eq!(checksum(s) == 0, zero, "{ours:?} {theirs:?} {:?}", s.kinds());
        }
    }
}

/// Shows: ext/Z3, ext/Z4.
#[test]
fn the_answer_to_an_init_may_be_unsummed_and_what_finds_an_association_is_not() {
    let mut r = Raw::with(&config(Some(DTLS)), |_| {});
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &announces(DTLS))]);
    assert_eq!(checksum(&r.take_one()), 0, "INIT ACK");
    let mut r = Raw::with(&config(Some(DTLS)), |e| e.accept = false);
    r.connect(&config(Some(DTLS)));
    let first = r.take_one();
    r.answer_init(&first, init_fields(PEER_TAG), b"cookie", &announces(DTLS));
    let echo = r.take_one();
    assert_eq!(echo.kinds(), [kind::COOKIE_ECHO]);
    assert_eq!(checksum(&echo), anabranch_wire::packet_checksum(&echo.bytes));
    // Out of the blue.
    r.give_tagged(77, &[&data(PEER_TSN, 0, b"x")]);
    assert!(r.take().iter().all(|s| checksum(s) == anabranch_wire::packet_checksum(&s.bytes)));
}

/// Shows: ext/Z5.
#[test]
fn an_asconf_is_summed() {
    let config = config(Some(DTLS));
    let mut b = Bench::connected(5, &config, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
    b.tap = Some(vec![]);
    let now = b.now;
    let id = b.client_id;
    let mut a = b.client.association_mut(id).expect("alive");
    a.add_path(now, LocalId(2), server_addr(0)).expect("room");
    drop(a);
    b.run_for(ms(500));
    let tap = b.tap.take().expect("tapped");
    let sum = |b: &[u8]| u32::from_le_bytes([b[8], b[9], b[10], b[11]]);
    let with = tap.iter().filter(|t| t.1 == Side::Client && kinds(&t.3).contains(&kind::ASCONF));
    let sums: Vec<_> = with.map(|t| sum(&t.3) == anabranch_wire::packet_checksum(&t.3)).collect();
    assert!(!sums.is_empty() && sums.iter().all(|s| *s), "{sums:?}");
}

/// Shows: ext/Z6.
#[test]
fn zero_is_taken_only_by_who_announced_it() {
    for (ours, taken) in [(Some(DTLS), true), (None, false)] {
        // Whatever the peer announced.
        for theirs in [vec![], announces(DTLS)] {
            let (mut r, id) = accepted(ours, &theirs);
            let tag = r.tag;
            r.give_with_sum(tag, [0; 4], &[&data(PEER_TSN, 0, b"zero")]);
            assert_eq!(r.read(id).len(), usize::from(taken));
            // A right sum is as good, and a wrong one that is not zero is wrong.
            r.give(&[&data(PEER_TSN.plus(1), 1, b"summed")]);
            r.give_with_sum(tag, [1; 4], &[&data(PEER_TSN.plus(2), 2, b"wrong")]);
            assert!(r.read(id).len() == usize::from(taken), "{ours:?}");
        }
    }
}

/// Shows: ext/Z4, ext/Z6.
#[test]
fn what_needs_a_checksum_is_not_taken_without() {
    let mut r = Raw::with(&config(Some(DTLS)), |_| {});
    r.give_with_sum(0, [0; 4], &[&init(init_fields(PEER_TAG), &announces(DTLS))]);
    assert!(r.take().is_empty(), "INIT");
    let cookie = r.ask(PEER_TAG, &announces(DTLS));
    let echo = chunk(kind::COOKIE_ECHO, 0, &cookie);
    let tag = r.tag;
    r.give_with_sum(tag, [0; 4], &[&echo]);
    assert!(r.take().is_empty() && r.endpoint.associations().count() == 0, "COOKIE ECHO");
    r.echo(&cookie);
    let id = r.only();
    r.take();
    r.give_with_sum(PEER_TAG, [0; 4], &[&chunk(kind::ABORT, 1, &[])]);
    r.give_with_sum(99, [0; 4], &[&data(PEER_TSN, 0, b"x")]);
    assert!(r.take().is_empty(), "out of the blue");
    assert_eq!(r.phase(id), Phase::Established);
}

/// Shows: ext/Z6.
///
/// Not even where packets without a checksum are taken from strangers, nor where the tag is that of an association
/// which takes them: these chunks would be looked up by something else.
#[test]
fn no_tag_and_no_setting_makes_up_for_the_checksum_of_a_handshake() {
    let mut r = Raw::with(&config(Some(DTLS)), |e| e.unsummed_strangers = true);
    r.give_with_sum(0, [0; 4], &[&init(init_fields(PEER_TAG), &announces(DTLS))]);
    assert!(r.take().is_empty(), "INIT");
    let cookie = r.ask(PEER_TAG, &announces(DTLS));
    let (echo, tag) = (chunk(kind::COOKIE_ECHO, 0, &cookie), r.tag);
    r.give_with_sum(tag, [0; 4], &[&echo]);
    assert!(r.take().is_empty() && r.endpoint.associations().count() == 0, "COOKIE ECHO");
    r.echo(&cookie);
    let id = r.only();
    assert!(r.take_kinds().iter().flatten().any(|k| *k == kind::COOKIE_ACK));
    // The association takes data without.
    r.give_with_sum(tag, [0; 4], &[&data(PEER_TSN, 0, b"zero")]);
    assert_eq!(r.read(id).len(), 1);
    r.take();
    // But neither a cookie under its tag, which would be answered, nor what is beside one.
    r.give_with_sum(tag, [0; 4], &[&echo]);
    r.give_with_sum(tag, [0; 4], &[&data(PEER_TSN.plus(1), 1, b"beside"), &echo]);
    assert!(r.take().is_empty() && r.read(id).is_empty(), "COOKIE ECHO under the tag of an association");
    r.give(&[&echo]);
    assert_eq!(r.take_kinds(), [[kind::COOKIE_ACK]], "with its checksum it is answered");
}

/// A handshake and data between two of us, every packet in between read without sums but those that need one.
#[test]
fn two_of_us_do_without() {
    let config = config(Some(DTLS));
    let mut b = Bench::new(5, &config);
    b.paths.add("path", link(10, 20), link(10, 20));
    b.tap = Some(vec![]);
    b.connect(&config);
    b.run_for(ms(1_000));
    assert!(b.client_events.contains(&Event::Connected));
    let mut flow = Flow::new(Side::Client, 3, 900);
    flow.transfer(&mut b, 50, ms(10_000)).expect("arrives");
    assert!(b.send(Side::Server, SendOptions::default(), &b"back"[..]));
    b.run_for(ms(500));
    let tap = b.tap.take().expect("tapped");
    for t in &tap {
        let kinds = kinds(&t.3);
        let summed = kinds.contains(&kind::INIT) || kinds.contains(&kind::COOKIE_ECHO);
        assert_eq!(t.3[8..12] != [0; 4], summed, "{kinds:?}");
    }
    assert!(tap.len() > 50);
}

/// RFC 9653 §5.3 lets packets without an association be answered too.
#[test]
fn strangers_without_a_checksum_are_answered_where_that_is_wanted() {
    for answered in [false, true] {
        let mut r = Raw::with(&config(Some(DTLS)), |e| e.unsummed_strangers = answered);
        r.give_with_sum(9, [0; 4], &[&data(PEER_TSN, 0, b"x")]);
        assert_eq!(r.take_kinds(), if answered { vec![vec![kind::ABORT]] } else { vec![] });
        r.give_with_sum(9, [1; 4], &[&data(PEER_TSN, 0, b"x")]);
        assert!(r.take().is_empty(), "a wrong one is");
    }
}
