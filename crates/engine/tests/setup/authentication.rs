//! Authenticated chunks (RFC 4895): who wants which, with which key, and what becomes of the others.

use crate::common::keys::{association_key, key_vector, signed};
use crate::common::raw::*;
use crate::common::signed::{accepted_with_keys, offer_of};
use crate::common::*;
use anabranch_engine::{AssocConfig, AssocId, AuthKeyError, CloseReason, Event, Phase};
use anabranch_wire::{Cause, Chunk, CookieEcho, Parameter, Params, cause_code, kind, parameter_kind};
use bytes::Bytes;

fn offer(chunks: &[u8]) -> Vec<u8> {
    offer_of(chunks, &[])
}

fn wanting(chunks: &[u8], keys: &[(u16, &'static [u8])], active_key: u16) -> AssocConfig {
    changed(assoc_config("sctp"), |c| {
        c.auth.chunks = chunks.to_vec();
        c.auth.keys = keys.iter().map(|(id, k)| (*id, Bytes::from_static(k))).collect();
        c.auth.active_key = active_key;
    })
}

/// An accepted association, and the key of both ends without a shared one.
struct Both {
    r: Raw,
    id: AssocId,
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl Both {
    fn accepted(config: &AssocConfig, peer_wants: &[u8]) -> Both {
        let (r, id, [ours, theirs]) = accepted_with_keys(config, &offer(peer_wants));
        Both { r, id, ours, theirs }
    }
    fn key(&self, shared: &[u8]) -> Vec<u8> {
        association_key(shared, &self.ours, &self.theirs)
    }
    /// Is this packet's AUTH right, and what follows it?
    fn behind_auth(&self, sent: &Sent, id: u16, shared: &[u8]) -> Vec<u8> {
        let p = sent.packet();
        let auth = p.chunks().flatten().find(|c| c.kind == kind::AUTH).expect("an AUTH");
        let rest = &auth.rest[auth.whole.len()..];
        assert_eq!(auth.rest, signed(id, &self.key(shared), &[rest]), "the MAC");
        p.chunks().flatten().skip_while(|c| c.kind != kind::AUTH).skip(1).map(|c| c.kind).collect()
    }
}

/// Shows: ext/U1.
#[test]
fn each_parameter_stands_once_and_sha1_is_among_the_algorithms() {
    let mut r = Raw::with(&wanting(&[kind::DATA], &[], 0), |_| {});
    r.connect(&wanting(&[kind::DATA], &[], 0));
    let init_sent = r.take_one();
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &offer(&[]))]);
    let ack_sent = r.take_one();
    for sent in [init_sent, ack_sent] {
        let params = init_of(&sent).1;
        let of = |k: u16| Params::new(&params).iter_raw().flatten().filter(|p| p.kind == k).collect::<Vec<_>>();
        assert_eq!(of(parameter_kind::RANDOM).len(), 1);
        assert_eq!(of(parameter_kind::RANDOM)[0].value.len(), 32);
        assert_eq!(of(parameter_kind::CHUNK_LIST)[0].value, [kind::ASCONF, kind::ASCONF_ACK, kind::DATA]);
        let hmacs = of(parameter_kind::HMAC_ALGO);
        assert!(hmacs.len() == 1 && hmacs[0].value.chunks(2).any(|id| id == [0, 1]));
    }
}

/// Shows: ext/U1.
#[test]
fn a_random_of_another_length_ends_it() {
    for len in [0, 31, 33] {
        let random = vec![7; len];
        let params = [bytes(&Parameter::Random(&random)), bytes(&Parameter::HmacAlgo(&[0, 1]))].concat();
        let mut r = Raw::new();
        r.give_tagged(0, &[&init(init_fields(PEER_TAG), &params)]);
        let answer = r.take_one();
        assert_eq!((answer.kinds(), causes_of(&answer)[0].0), (vec![kind::ABORT], cause_code::PROTOCOL_VIOLATION));
        let (mut r, id, sent) = waiting();
        r.answer_init(&sent, init_fields(PEER_TAG), b"cookie", &params);
        let answer = r.take_one();
        assert_eq!((answer.kinds(), causes_of(&answer)[0].0), (vec![kind::ABORT], cause_code::PROTOCOL_VIOLATION));
        assert!(matches!(closed(&r, id), Some(CloseReason::ProtocolViolation(_))));
    }
}

/// Shows: ext/U2.
#[test]
fn some_types_are_never_listed_and_ignored_in_a_list() {
    let never = [kind::INIT, kind::INIT_ACK, kind::SHUTDOWN_COMPLETE, kind::AUTH];
    let b = Both::accepted(&wanting(&never, &[], 0), &never);
    let a = b.r.endpoint.association(b.id).expect("alive");
    assert_eq!(a.authenticated_by_peer(), [kind::ASCONF, kind::ASCONF_ACK]);
    assert!(a.authenticated_by_us().is_empty());
}

/// Shows: ext/U3, ext/U4, ext/U7.
#[test]
fn what_the_peer_wants_signed_is_behind_one_auth() {
    let mut b = Both::accepted(&assoc_config("sctp"), &[kind::DATA, kind::HEARTBEAT_ACK, kind::SHUTDOWN]);
    b.r.take();
    for len in [1, 2, 3, 1_100, 5_000] {
        b.r.send(b.id, &vec![1; len]);
    }
    b.r.give(&[&chunk(kind::HEARTBEAT, 0, &[0, 1, 0, 5, 9])]);
    let mut cum = b.r.first_tsn.minus(1);
    let mut seen = vec![];
    for _ in 0..10 {
        for s in b.r.take() {
            assert!(s.bytes.len() <= 1_200, "{}", s.bytes.len());
            let kinds = s.kinds();
            assert_eq!(kinds.iter().filter(|k| **k == kind::AUTH).count(), 1, "{kinds:?}");
            seen.extend(b.behind_auth(&s, 0, &[]));
            for c in s.chunks() {
                if let Chunk::Data(d) = c {
                    cum = d.header.tsn;
                }
            }
        }
        b.r.give(&[&sack(cum)]);
    }
    assert!(seen.contains(&kind::HEARTBEAT_ACK) && seen.iter().filter(|k| **k == kind::DATA).count() >= 8);
    // What it did not ask for leaves as ever.
    b.r.give(&[&data(PEER_TSN, 0, b"x"), &data(PEER_TSN.plus(1), 1, b"x")]);
    b.r.run_for(ms(300));
    assert!(b.r.take_kinds().contains(&vec![kind::SACK]));
    b.r.shutdown(b.id);
    let end = b.r.take_one();
    assert_eq!(b.behind_auth(&end, 0, &[]), [kind::SHUTDOWN]);
}

/// Shows: ext/U5.
#[test]
fn what_we_want_signed_counts_behind_an_auth_only() {
    let mut b = Both::accepted(&wanting(&[kind::DATA], &[], 0), &[]);
    let (d, key) = (data(PEER_TSN, 0, b"hello"), b.key(&[]));
    b.r.take();
    b.r.give(&[&d]);
    b.r.give(&[&d, &signed(0, &key, &[])]);
    assert!(b.r.read(b.id).is_empty() && b.r.take().is_empty());
    let mut wrong = signed(0, &key, &[&d]);
    wrong[20] ^= 1;
    b.r.give(&[&wrong]);
    b.r.give(&[&signed(9, &key, &[&d])]);
    assert!(b.r.read(b.id).is_empty() && b.r.take().is_empty(), "a wrong MAC and an unknown key");
    b.r.give(&[&signed(0, &key, &[&d])]);
    assert_eq!(b.r.read(b.id), [b"hello"]);
}

/// Shows: ext/U5.
#[test]
fn an_unknown_algorithm_is_named() {
    let mut b = Both::accepted(&wanting(&[kind::DATA], &[], 0), &[]);
    b.r.take();
    let mut auth = signed(0, &b.key(&[]), &[&data(PEER_TSN, 0, b"hello")]);
    auth[6..8].copy_from_slice(&7u16.to_be_bytes());
    b.r.give(&[&auth]);
    let answer = b.r.take_one();
    assert_eq!(answer.kinds(), [kind::ERROR]);
    assert!(
        matches!(answer.chunks()[..], [Chunk::Error(e)] if e.causes.iter().next() == Some(Ok(Cause::UnsupportedHmac(7))))
    );
    assert!(b.r.read(b.id).is_empty() && b.r.phase(b.id) == Phase::Established);
}

/// Shows: ext/U4, ext/U7.
#[test]
fn shared_keys_come_go_and_change() {
    let config = wanting(&[kind::DATA], &[(3, b"three"), (4, b"four")], 3);
    let mut b = Both::accepted(&config, &[kind::DATA]);
    b.r.take();
    b.r.send(b.id, b"x");
    let first = b.r.take_one();
    assert_eq!(b.behind_auth(&first, 3, b"three"), [kind::DATA]);
    let mut next = PEER_TSN;
    let mut heard = |b: &mut Both, id: u16, shared: &[u8]| {
        let (d, key) = (data(next, next.distance(PEER_TSN) as u16, b"y"), b.key(shared));
        b.r.give(&[&signed(id, &key, &[&d])]);
        let heard = !b.r.read(b.id).is_empty();
        next = if heard { next.next() } else { next };
        heard
    };
    assert!(heard(&mut b, 4, b"four") && heard(&mut b, 3, b"three") && heard(&mut b, 0, b""));
    assert!(!heard(&mut b, 4, b"three") && !heard(&mut b, 5, b""));
    let id = b.id;
    let mut a = b.r.endpoint.association_mut(id).expect("alive");
    assert_eq!(a.activate_auth_key(5), Err(AuthKeyError::Unknown(5)));
    a.set_auth_key(5, b"five");
    assert_eq!(a.activate_auth_key(5), Ok(()));
    assert_eq!(a.delete_auth_key(5), Err(AuthKeyError::Active(5)));
    assert_eq!(a.delete_auth_key(3), Ok(()));
    assert_eq!(a.delete_auth_key(3), Err(AuthKeyError::Unknown(3)));
    drop(a);
    b.r.send(id, b"x");
    let sent = b.r.take().into_iter().find(|s| s.kinds().contains(&kind::DATA)).expect("DATA");
    assert_eq!(b.behind_auth(&sent, 5, b"five"), [kind::DATA]);
    assert!(!heard(&mut b, 3, b"three") && heard(&mut b, 5, b"five"));
    // Deactivated: we sign with it no more, what the peer signs counts until it is deleted.
    let mut a = b.r.endpoint.association_mut(id).expect("alive");
    assert_eq!(a.deactivate_auth_key(5), Err(AuthKeyError::Active(5)));
    assert_eq!(a.deactivate_auth_key(9), Err(AuthKeyError::Unknown(9)));
    assert_eq!((a.deactivate_auth_key(4), a.deactivate_auth_key(4)), (Ok(()), Ok(())));
    assert_eq!(a.activate_auth_key(4), Err(AuthKeyError::Retired(4)));
    drop(a);
    assert!(heard(&mut b, 4, b"four"));
    let freed = b.r.events_of(id).iter().filter(|e| **e == Event::AuthKeyFree { id: 4 }).count();
    assert_eq!(freed, 1, "once");
    let mut a = b.r.endpoint.association_mut(id).expect("alive");
    a.set_auth_key(4, b"anew");
    assert_eq!((a.activate_auth_key(4), a.deactivate_auth_key(4)), (Ok(()), Err(AuthKeyError::Active(4))));
}

/// Shows: ext/U6.
#[test]
fn a_cookie_that_has_to_be_signed_is() {
    let config = wanting(&[kind::COOKIE_ECHO], &[(1, b"secret")], 1);
    for (shared, alive) in [(&b"secret"[..], true), (b"guess", false)] {
        let mut r = Raw::with(&config, |_| {});
        let theirs = offer(&[kind::COOKIE_ACK]);
        r.give_tagged(0, &[&init(init_fields(PEER_TAG), &theirs)]);
        let answer = r.take_one();
        r.tag = init_of(&answer).0.tag;
        let echo = bytes(&CookieEcho { cookie: &cookie_of(&answer) });
        r.give(&[&echo]);
        assert!(r.endpoint.associations().next().is_none() && r.take().is_empty(), "unsigned");
        let key = association_key(shared, &key_vector(&init_of(&answer).1), &key_vector(&theirs));
        r.give(&[&signed(1, &key, &[&echo, &data(PEER_TSN, 0, b"early")])]);
        assert_eq!(r.endpoint.associations().count(), usize::from(alive));
        if alive {
            let id = r.only();
            assert_eq!(r.read(id), [b"early"]);
            let first = r.take().into_iter().next().expect("an answer");
            assert_eq!(first.kinds()[..2], [kind::AUTH, kind::COOKIE_ACK]);
        }
    }
}

/// Shows: ext/U6.
#[test]
fn our_cookie_echo_is_signed_for_who_wants_it() {
    let config = wanting(&[], &[(1, b"secret")], 1);
    let mut r = Raw::with(&config, |e| e.accept = false);
    r.connect(&config);
    let ours = r.take_one();
    let theirs = offer(&[kind::COOKIE_ECHO]);
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &theirs);
    let echo = r.take_one();
    assert_eq!(echo.kinds(), [kind::AUTH, kind::COOKIE_ECHO]);
    let key = association_key(b"secret", &key_vector(&init_of(&ours).1), &key_vector(&theirs));
    let p = echo.packet();
    let auth = p.chunks().next().expect("AUTH").expect("framed");
    assert_eq!(auth.rest, signed(1, &key, &[&auth.rest[auth.whole.len()..]]));
}

/// Shows: ext/U6.
#[test]
fn out_of_the_blue_an_auth_is_not_there() {
    for (chunk, answer) in [
        (chunk(kind::ABORT, 0, &[]), vec![]),
        (chunk(kind::SHUTDOWN_ACK, 0, &[]), vec![vec![kind::SHUTDOWN_COMPLETE]]),
        (data(PEER_TSN, 0, b"x"), vec![vec![kind::ABORT]]),
    ] {
        let mut r = Raw::new();
        r.give_tagged(0x99, &[&signed(0, b"", &[&chunk])]);
        assert_eq!(r.take_kinds(), answer);
    }
}

/// An ABORT that has to be signed cannot be forged, reflected or not.
#[test]
fn an_abort_without_a_signature_ends_nothing() {
    let mut b = Both::accepted(&wanting(&[kind::ABORT], &[], 0), &[]);
    b.r.give(&[&chunk(kind::ABORT, 0, &[])]);
    b.r.give_tagged(PEER_TAG, &[&chunk(kind::ABORT, 1, &[])]);
    assert_eq!(b.r.phase(b.id), Phase::Established);
    b.r.give(&[&signed(0, &b.key(&[]), &[&chunk(kind::ABORT, 0, &[])])]);
    assert_eq!(b.r.phase(b.id), Phase::Closed);
}

/// Messages both ways between two of us who want nearly everything signed.
#[test]
fn two_that_sign_everything() {
    let all = [kind::DATA, kind::SACK, kind::HEARTBEAT, kind::HEARTBEAT_ACK, kind::COOKIE_ECHO, kind::COOKIE_ACK];
    let config = changed(wanting(&all, &[(7, b"seven")], 7), |c| c.profile = assoc_config("cmt").profile);
    let mut b = Bench::connected(4, &config, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    b.strict = true;
    b.tap = Some(vec![]);
    for from in [Side::Client, Side::Server] {
        let mut flow = Flow::new(from, 3, 3_000);
        flow.transfer(&mut b, 100, ms(60_000)).expect("arrives");
    }
    let tap = b.tap.take().expect("tapped");
    assert!(tap.iter().all(|t| kinds(&t.3).contains(&kind::AUTH) && t.3.len() <= 1_200));
    assert!(tap.len() > 400);
}
