//! The four-way handshake (RFC 9260 §5.1, §3.3.2, §3.3.3): what leaves, what is accepted, what ends it.

use crate::common::raw::*;
use crate::common::{assoc_config, changed, ms};
use anabranch_base::{StreamId, Tsn};
use anabranch_engine::{CloseReason, LocalId, Phase, SendError, SendOptions};
use anabranch_wire::{Chunk, InitFields, InitOut, Parameter, Params, cause_code, kind};
use std::collections::BTreeSet;

fn cookie() -> Vec<u8> {
    bytes(&Parameter::Cookie(b"cookie"))
}

/// Shows: 9260/A1, 9260/P2, 9260/P8, 9260/A5.
#[test]
fn an_init_leaves_with_values_that_make_sense() {
    let mut tags = BTreeSet::new();
    for seed in 0..50 {
        let config = changed(assoc_config("sctp"), |c| {
            c.limits.receive_buffer = 10;
            c.limits.outbound_streams = 0;
            c.limits.inbound_streams = 0;
        });
        let mut r = Raw::with(&config, |e| e.accept = false);
        r.endpoint = anabranch_engine::Endpoint::new(
            anabranch_engine::EndpointConfig::new(crate::common::PORT, config.clone()),
            Box::new(anabranch_base::RandomStream::named(seed, "tags")),
            r.now,
        );
        let id = r.connect(&config);
        assert_eq!(r.phase(id), Phase::Connecting);
        let sent = r.take_one();
        assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::INIT], 0));
        let f = init_of(&sent).0;
        assert!(f.tag != 0 && f.a_rwnd >= 1_500 && f.outbound_streams > 0 && f.inbound_streams > 0, "{f:?}");
        tags.insert(f.tag);
        // T1-init runs.
        assert!(r.run_until_sent(kind::INIT, ms(1_001)).is_some());
    }
    assert_eq!(tags.len(), 50, "tags are random");
}

/// Shows: 9260/P8, 9260/P11, 9260/A2, 9260/A5.
#[test]
fn an_init_ack_leaves_with_values_that_make_sense() {
    let config = changed(assoc_config("sctp"), |c| {
        c.limits.receive_buffer = 10;
        c.limits.outbound_streams = 100;
        c.limits.inbound_streams = 0;
    });
    let mut r = Raw::with(&config, |_| {});
    for (streams, wanted) in [(7, 7), (100, 100), (500, 100), (1, 1)] {
        let fields = InitFields { inbound_streams: streams, ..init_fields(PEER_TAG) };
        r.give_tagged(0, &[&init(fields, &[])]);
        let sent = r.take_one();
        assert_eq!((sent.kinds(), sent.vtag(), sent.remote), (vec![kind::INIT_ACK], PEER_TAG, peer(1)));
        let f = init_of(&sent).0;
        assert!(f.tag != 0 && f.a_rwnd >= 1_500 && f.inbound_streams > 0, "{f:?}");
        assert_eq!(f.outbound_streams, wanted, "not above the MIS of the INIT");
    }
}

/// Shows: 9260/A2.
#[test]
fn an_init_ack_answers_where_the_init_came_from() {
    let mut r = Raw::new();
    for (local, from) in [(LocalId(0), peer(1)), (LocalId(3), peer(7)), (LocalId(1), peer(200))] {
        r.give_to(local, from, 0, &[&init(init_fields(5), &listing(&[peer(1).ip(), peer(9).ip()]))]);
        let sent = r.take_one();
        assert_eq!((sent.local, sent.remote), (local, from));
    }
}

/// Shows: 9260/P9.
#[test]
fn an_init_without_a_tag_is_dropped_without_a_word() {
    for existing in [false, true] {
        let mut r = if existing { Raw::accepted() } else { Raw::new() };
        r.events.clear();
        r.give_tagged(0, &[&init(init_fields(0), &[])]);
        assert!(r.take().is_empty());
        assert!(r.events.is_empty());
    }
}

/// Shows: 9260/P9, 9260/A7.
#[test]
fn an_init_with_impossible_values_is_refused_and_changes_nothing() {
    let good = init_fields(PEER_TAG + 1);
    for bad in [
        InitFields { a_rwnd: 1_499, ..good },
        InitFields { a_rwnd: 0, ..good },
        InitFields { outbound_streams: 0, ..good },
        InitFields { inbound_streams: 0, ..good },
    ] {
        for existing in [false, true] {
            let mut r = if existing { Raw::accepted() } else { Raw::new() };
            r.give_tagged(0, &[&init(bad, &[])]);
            let sent = r.take_one();
            assert_eq!((sent.kinds(), sent.vtag(), sent.flags() & 1), (vec![kind::ABORT], PEER_TAG + 1, 0), "{bad:?}");
            assert_eq!(causes_of(&sent), [(cause_code::INVALID_PARAMETER, vec![])]);
            if existing {
                r.give(&[&data(PEER_TSN, 0, b"as before")]);
                assert_eq!(r.read(r.only()), [b"as before"]);
            }
        }
    }
    let mut r = Raw::new();
    r.give_tagged(0, &[&init(InitFields { a_rwnd: 1_500, ..good }, &[])]);
    assert_eq!(r.take_one().kinds(), [kind::INIT_ACK]);
}

/// Shows: 9260/A7.
#[test]
fn a_parameter_that_is_not_what_it_claims_ends_the_handshake() {
    // An IPv4 address of three bytes.
    let broken = [0, 5, 0, 7, 1, 2, 3, 0];
    let mut r = Raw::new();
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &broken)]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::ABORT], PEER_TAG));
    assert_eq!(causes_of(&sent)[0].0, cause_code::PROTOCOL_VIOLATION);
    let (mut r, id, ours) = waiting();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &broken);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::ABORT], PEER_TAG));
    assert!(matches!(closed(&r, id), Some(CloseReason::ProtocolViolation(_))));
}

/// Shows: 9260/P12.
#[test]
fn a_host_name_is_refused_and_never_sent() {
    let name = [0, 11, 0, 8, b'a', b'.', b'b', 0];
    let mut r = Raw::new();
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &name)]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag(), sent.remote), (vec![kind::ABORT], PEER_TAG, peer(1)));
    assert_eq!(causes_of(&sent), [(cause_code::UNRESOLVABLE_ADDRESS, name.to_vec())]);

    let (mut r, id, ours) = waiting();
    let never = |s: &Sent| Params::new(&init_of(s).1).iter_raw().flatten().all(|p| p.kind != 11);
    assert!(never(&ours));
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &name);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::ABORT], PEER_TAG));
    assert_eq!(causes_of(&sent), [(cause_code::UNRESOLVABLE_ADDRESS, name.to_vec())]);
    assert!(closed(&r, id).is_some());
    let mut r = Raw::new();
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &[])]);
    assert!(never(&r.take_one()));
}

/// Shows: 9260/P10.
#[test]
fn an_init_ack_with_impossible_values_ends_the_handshake() {
    let good = init_fields(PEER_TAG);
    for bad in [
        InitFields { outbound_streams: 0, ..good },
        InitFields { inbound_streams: 0, ..good },
        InitFields { a_rwnd: 1_499, ..good },
    ] {
        let (mut r, id, ours) = waiting();
        r.answer_init(&ours, bad, b"cookie", &[]);
        let sent = r.take_one();
        assert_eq!((sent.kinds(), sent.vtag(), sent.flags() & 1), (vec![kind::ABORT], PEER_TAG, 0), "{bad:?}");
        assert_eq!(causes_of(&sent), [(cause_code::INVALID_PARAMETER, vec![])]);
        assert!(matches!(closed(&r, id), Some(CloseReason::ProtocolViolation(_))));
        assert_eq!(r.endpoint.poll_timeout(), None, "the TCB is gone");
    }
    // Without a tag there is only ours to reflect.
    let (mut r, id, ours) = waiting();
    r.answer_init(&ours, InitFields { tag: 0, ..good }, b"cookie", &[]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag(), sent.flags() & 1), (vec![kind::ABORT], r.tag, 1));
    assert!(closed(&r, id).is_some());
}

/// Shows: 9260/A7.
#[test]
fn an_init_ack_without_a_cookie_ends_the_handshake() {
    let (mut r, id, _) = waiting();
    r.give(&[&bytes(&InitOut { ack: true, fields: init_fields(PEER_TAG), params: &[] })]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::ABORT], PEER_TAG));
    assert_eq!(causes_of(&sent), [(cause_code::MISSING_PARAMETERS, vec![0, 0, 0, 1, 0, 7])]);
    assert!(closed(&r, id).is_some());
}

/// Shows: 9260/A5.
#[test]
fn an_init_ack_beside_anything_is_none() {
    let (mut r, id, ours) = waiting();
    let ack = bytes(&InitOut { ack: true, fields: init_fields(PEER_TAG), params: &cookie() });
    r.give(&[&ack, &data(PEER_TSN, 0, b"x")]);
    r.give(&[&data(PEER_TSN, 0, b"x"), &ack]);
    assert_eq!((r.take().len(), r.phase(id)), (0, Phase::Connecting));
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ECHO]);
}

/// Shows: 9260/A3, 9260/A4, 9260/P2.
#[test]
fn the_cookie_goes_back_at_once_and_alone_until_it_is_acknowledged() {
    let (mut r, id, ours) = waiting();
    for i in 0..20 {
        r.send(id, &[i; 1_000]);
    }
    r.run_for(ms(50));
    assert!(r.take().is_empty(), "nothing but INIT before the INIT ACK");
    r.answer_init(&ours, init_fields(PEER_TAG), b"any bytes at all", &[]);
    let echo = r.take_one();
    assert_eq!(echo.at, r.now);
    assert_eq!((echo.kinds(), echo.vtag()), (vec![kind::COOKIE_ECHO], PEER_TAG));
    assert_eq!(echo.value(), b"any bytes at all");
    // T1-init is off, T1-cookie on: only the cookie leaves.
    let until = r.now + ms(6_000);
    while r.now < until {
        r.run_for(ms(100));
    }
    assert_eq!(r.take_kinds().concat(), [kind::COOKIE_ECHO, kind::COOKIE_ECHO]);
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    assert_eq!(r.phase(id), Phase::Established);
    let sent = r.take();
    assert!(sent[0].kinds().contains(&kind::DATA));
    r.run_for(ms(900));
    assert!(r.take_kinds().concat().iter().all(|k| *k != kind::COOKIE_ECHO), "T1-cookie is off");
}

/// Shows: 9260/P13.
#[test]
fn an_init_ack_larger_than_any_packet_of_ours_is_accepted() {
    let (mut r, id, ours) = waiting();
    let large = vec![0x5a; 4_000];
    r.answer_init(&ours, init_fields(PEER_TAG), &large, &listing(&[peer(1).ip(); 200]));
    let echo = r.take_one();
    assert_eq!((echo.kinds(), echo.value()), (vec![kind::COOKIE_ECHO], large));
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    assert_eq!(r.phase(id), Phase::Established);
}

/// Shows: 9260/A11, 9260/A33.
#[test]
fn an_init_ack_from_another_address_makes_that_one_the_peer() {
    let (mut r, id, ours) = waiting();
    r.from = peer(5);
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    let echo = r.take_one();
    // It is not confirmed: the cookie brings a nonce.
    assert_eq!((echo.remote, echo.kinds()), (peer(5), vec![kind::COOKIE_ECHO, kind::HEARTBEAT]));
    r.answer_heartbeat(&echo);
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    r.send(id, b"hello");
    let sent = r.take();
    assert!(sent.iter().any(|s| s.kinds().contains(&kind::DATA)), "confirmed, it takes data");
    assert!(sent.iter().all(|s| s.remote == peer(5)));
}

/// Shows: 9260/A10.
#[test]
fn streams_are_the_lesser_of_what_one_wants_and_the_other_takes() {
    for (wanted, taken) in [(10, 3), (3, 10), (4, 4)] {
        let config = changed(assoc_config("sctp"), |c| c.limits.outbound_streams = wanted);
        let mut r = Raw::with(&config, |e| e.accept = false);
        let id = r.connect(&config);
        let ours = r.take_one();
        assert_eq!(init_of(&ours).0.outbound_streams, wanted);
        let fields = InitFields { inbound_streams: taken, ..init_fields(PEER_TAG) };
        r.answer_init(&ours, fields, b"cookie", &[]);
        r.take();
        r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
        let least = wanted.min(taken);
        let now = r.now;
        let mut a = r.endpoint.association_mut(id).expect("alive");
        let mut on = |s: u16| {
            let o = SendOptions { stream: StreamId(s), ..SendOptions::default() };
            a.send(now, o, vec![1].into())
        };
        assert_eq!(on(least), Err(SendError::InvalidStream(least)));
        assert!((0..least).all(|s| on(s).is_ok()));
        drop(a);
        r.drain();
        let used: BTreeSet<u16> = r.take().iter().flat_map(streams).collect();
        assert!(used.iter().all(|s| *s < least));
    }
}

fn streams(s: &Sent) -> Vec<u16> {
    let of = |c: &Chunk<'_>| match c {
        Chunk::Data(d) => Some(d.header.stream.0),
        _ => None,
    };
    s.chunks().iter().filter_map(of).collect()
}

/// Shows: 9260/A8.
#[test]
fn the_very_first_data_is_acknowledged_at_once() {
    let mut r = Raw::accepted();
    r.give(&[&data(PEER_TSN, 0, b"one")]);
    assert_eq!(r.take_kinds(), [[kind::SACK]]);
    r.give(&[&data(PEER_TSN.plus(1), 1, b"two")]);
    assert!(r.take().is_empty(), "the second waits");
}

/// Shows: 9260/A9.
#[test]
fn numbers_begin_at_the_initial_tsn() {
    let (mut r, id) = Raw::connected(&assoc_config("sctp"));
    // An acknowledgement of what comes before the first TSN says nothing new.
    r.give(&[&sack(r.first_tsn.minus(1))]);
    assert_eq!(r.phase(id), Phase::Established);
    r.send(id, b"first");
    let first = r.take_one();
    match first.chunks()[..] {
        [Chunk::Data(d)] => assert_eq!(d.header.tsn, r.first_tsn),
        ref other => panic!("{other:?}"),
    }
    r.give(&[&sack(r.first_tsn.minus(1))]);
    assert_eq!(r.endpoint.association(id).expect("alive").stats().outstanding, 5);
    r.give(&[&sack(r.first_tsn)]);
    assert_eq!(r.endpoint.association(id).expect("alive").stats().outstanding, 0);
}

/// Shows: 9260/A32.
#[test]
fn tags_stay_and_each_association_has_its_own() {
    let mut tags = vec![];
    let mut r = Raw::new();
    for round in 0..5u32 {
        r.handshake(PEER_TAG + round, &[]);
        let id = r.only();
        tags.push(r.tag);
        for i in 0..5u32 {
            r.send(id, b"x");
            r.give(&[&data(PEER_TSN.plus(i), i as u16, b"y"), &sack(Tsn(r.first_tsn.0.wrapping_add(i)))]);
            r.run_for(ms(300));
        }
        assert!(r.take().iter().all(|s| s.vtag() == PEER_TAG + round));
        r.abort(id, b"");
        r.take();
        let now = r.now;
        if let Some(mut a) = r.endpoint.association_mut(id) {
            while a.recv().is_some() {}
            let _ = now;
        }
        r.drain();
        assert_eq!(r.endpoint.associations().count(), 0);
    }
    let all: BTreeSet<_> = tags.iter().collect();
    assert_eq!(all.len(), tags.len());
}

#[test]
fn who_does_not_accept_says_so() {
    let mut r = Raw::with(&assoc_config("sctp"), |e| e.accept = false);
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &[])]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag(), sent.flags() & 1), (vec![kind::ABORT], PEER_TAG, 0));
}

#[test]
fn a_peer_has_one_association() {
    let config = assoc_config("sctp");
    let (mut r, id) = Raw::connected(&config);
    let again = r.endpoint.connect(r.now, config.clone(), LocalId(0), peer(1), PEER_PORT);
    assert!(matches!(again, Err(anabranch_engine::ConnectError::Exists(other)) if other == id));
    assert!(r.endpoint.connect(r.now, config.clone(), LocalId(0), peer(1), PEER_PORT + 1).is_ok());
    assert!(r.endpoint.connect(r.now, config, LocalId(0), peer(2), PEER_PORT).is_ok());
}
