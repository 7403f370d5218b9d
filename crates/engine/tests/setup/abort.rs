//! ABORT (RFC 9260 §9.1, §3.3.7), and faults that lead to one.

use crate::common::raw::*;
use crate::common::{Bench, Side, assoc_config, link, ms, numbered};
use anabranch_base::RandomStream;
use anabranch_engine::{CloseReason, Event, Phase, SendError, SendOptions};
use anabranch_wire::{AbortOut, Cause, Encode, Heartbeat, Parameter, cause_code, kind};

fn abort_with(causes: &[Cause<'_>]) -> Vec<u8> {
    let mut list = vec![];
    causes.iter().for_each(|c| c.encode(&mut list));
    bytes(&AbortOut { tag_reflected: false, causes: &list })
}

/// Shows: 9260/X1, 9260/P16, 9260/P2.
#[test]
fn the_user_aborts_with_a_reason() {
    let (mut r, id) = Raw::connected(&assoc_config("sctp"));
    // Data waits and is under way; the ABORT leaves without any of it.
    for _ in 0..50 {
        r.send(id, &[1; 1_000]);
    }
    r.give(&[&data(PEER_TSN, 0, b"unacknowledged")]);
    r.take();
    r.abort(id, b"closing time");
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag(), sent.flags() & 1), (vec![kind::ABORT], PEER_TAG, 0));
    assert_eq!(causes_of(&sent), [(cause_code::USER_ABORT, b"closing time".to_vec())]);
    assert_eq!(closed(&r, id), Some(CloseReason::Aborted));
    r.run_for(ms(100_000));
    assert!(r.take().is_empty(), "nothing follows");
    if let Some(mut a) = r.endpoint.association_mut(id) {
        assert_eq!(a.send(r.now, SendOptions::default(), vec![1].into()), Err(SendError::Closed));
    }
}

/// Shows: 9260/X1.
#[test]
fn an_abort_before_the_handshake_is_complete() {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let ours = r.take_one();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    r.take();
    // The peer may have an association by now.
    r.abort(id, b"");
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::ABORT], PEER_TAG));
    // Without the peer's tag there is nothing to say.
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    r.take();
    r.abort(id, b"");
    assert!(r.take().is_empty());
    assert_eq!(closed(&r, id), Some(CloseReason::Aborted));
}

/// Shows: 9260/X2.
#[test]
fn an_abort_ends_the_association_and_says_why() {
    let cases = [
        (abort_with(&[]), "no reason given"),
        (abort_with(&[Cause::UserAbort(b"gone \x07fishing")]), "gone .fishing"),
        (abort_with(&[Cause::OutOfResource]), "out of resources"),
        (abort_with(&[Cause::ProtocolViolation(b"bad")]), "protocol violation: bad"),
        (abort_with(&[Cause::Unknown { code: 999, value: b"?" }]), "cause 0x03e7 with 1 bytes"),
    ];
    for (abort, why) in cases {
        let mut r = Raw::accepted();
        let id = r.only();
        r.send(id, b"under way");
        r.take();
        r.give(&[&abort]);
        assert_eq!(closed(&r, id), Some(CloseReason::PeerAborted(why.to_owned())));
        r.run_for(ms(100_000));
        assert!(r.take().is_empty(), "never answered, nothing sent again");
        assert_eq!(r.endpoint.associations().count(), 0);
    }
}

/// Shows: 9260/X2, 9260/P16.
#[test]
fn a_packet_with_an_abort_is_never_answered() {
    let heartbeat = bytes(&Heartbeat::new(&[1; 20]));
    let unknown = chunk(0xff, 0, &[]);
    let abort = abort_with(&[]);
    for chunks in [
        &[&heartbeat[..], &abort][..],
        &[&data(PEER_TSN, 0, b"with it"), &abort],
        &[&unknown, &abort],
        &[&abort, &heartbeat],
        &[&abort, &data(PEER_TSN, 0, b"behind")],
        &[&abort, &unknown],
        &[&abort, &abort],
    ] {
        let mut r = Raw::accepted();
        let id = r.only();
        r.give(chunks);
        assert!(r.take().is_empty());
        assert!(closed(&r, id).is_some());
        r.run_for(ms(1_000));
        assert!(r.take().is_empty());
    }
}

/// Shows: 9260/P16.
#[test]
fn chunks_behind_an_abort_are_ignored() {
    let mut r = Raw::accepted();
    let id = r.only();
    r.give(&[&data(PEER_TSN, 0, b"before"), &abort_with(&[]), &data(PEER_TSN.plus(1), 1, b"behind")]);
    let read = match r.endpoint.association_mut(id) {
        Some(mut a) => std::iter::from_fn(|| a.recv()).map(|m| m.payload.into_bytes().to_vec()).collect(),
        None => vec![],
    };
    assert_eq!(read, [b"before"], "what arrived can be read after the end");
}

/// Shows: 9260/X2.
#[test]
fn an_abort_ends_each_state() {
    let config = assoc_config("sctp");
    let abort = abort_with(&[]);
    // COOKIE-WAIT: the peer refuses our INIT.
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    r.tag = init_of(&r.take_one()).0.tag;
    r.give(&[&abort]);
    assert!(closed(&r, id).is_some());
    assert_eq!(r.endpoint.poll_timeout(), None);
    // COOKIE-ECHOED.
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let ours = r.take_one();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    r.give(&[&abort]);
    assert!(closed(&r, id).is_some());
    // SHUTDOWN-PENDING, SHUTDOWN-SENT.
    for pending in [true, false] {
        let (mut r, id) = Raw::connected(&config);
        if pending {
            r.send(id, b"outstanding");
        }
        r.shutdown(id);
        assert_eq!(r.phase(id), Phase::Closing);
        r.give(&[&abort]);
        assert!(matches!(closed(&r, id), Some(CloseReason::PeerAborted(_))));
        r.take();
        r.run_for(ms(10_000));
        assert!(r.take().is_empty());
    }
}

/// Shows: 9260/D18.
#[test]
fn data_without_payload_is_refused_both_ways() {
    let mut r = Raw::accepted();
    let id = r.only();
    let empty = data(PEER_TSN, 0, b"");
    r.give(&[&empty]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::ABORT], PEER_TAG));
    assert_eq!(causes_of(&sent), [(cause_code::NO_USER_DATA, PEER_TSN.0.to_be_bytes().to_vec())]);
    assert!(matches!(closed(&r, id), Some(CloseReason::ProtocolViolation(_))));
    let (mut r, id) = Raw::connected(&assoc_config("sctp"));
    let now = r.now;
    let mut a = r.endpoint.association_mut(id).expect("alive");
    assert_eq!(a.send(now, SendOptions::default(), bytes::Bytes::new()), Err(SendError::Empty));
}

#[test]
fn an_abort_with_a_broken_cause_is_one_all_the_same() {
    for causes in [&[0, 12, 0, 200][..], &[0, 12], &[0, 12, 0, 1], &[0, 3, 0, 5, 1, 0, 0, 0]] {
        let mut r = Raw::accepted();
        let id = r.only();
        r.give(&[&chunk(kind::ABORT, 0, causes)]);
        assert!(closed(&r, id).is_some(), "{causes:?}");
    }
}

#[test]
fn causes_that_only_inform_change_nothing() {
    let mut r = Raw::accepted();
    let id = r.only();
    let parameter = bytes(&Parameter::EcnCapable);
    for c in [
        Cause::InvalidStream(anabranch_base::StreamId(3)),
        Cause::MissingParameters(&[0, 7]),
        Cause::StaleCookie { staleness_us: 9 },
        Cause::OutOfResource,
        Cause::UnresolvableAddress(&parameter),
        Cause::UnrecognizedChunk(&[99, 0, 0, 4]),
        Cause::InvalidParameter,
        Cause::UnrecognizedParameters(&parameter),
        Cause::NoUserData(PEER_TSN),
        Cause::CookieWhileShuttingDown,
        Cause::RestartNewAddresses(&listing(&[peer(1).ip()])),
        Cause::UserAbort(b"in an ERROR"),
        Cause::ProtocolViolation(b""),
        Cause::Unknown { code: 4_711, value: b"x" },
    ] {
        let mut list = vec![];
        c.encode(&mut list);
        r.give(&[&chunk(kind::ERROR, 0, &list)]);
        assert!(r.take().is_empty(), "{c:?}");
    }
    r.give(&[&data(PEER_TSN, 0, b"goes on")]);
    assert_eq!(r.read(id), [b"goes on"]);
}

/// What a player hears that is sent away for `reason`, which an input leaves from every 20 ms: packets are lost, and one
/// comes between the decision and the next packet out where `overtaken`.
fn sent_away(profile: &str, reason: &str, loss: u64, overtaken: bool, seed: u64) -> Option<String> {
    let mut b = Bench::connected(seed, &assoc_config(profile), &[(link(10, 15), link(10, 15))]);
    b.largest = 1_500;
    let mut r = RandomStream::named(seed, "loss");
    b.filter = Some(Box::new(move |_| r.u64() % 100 >= loss));
    b.tap = Some(vec![]);
    let input = |b: &mut Bench, n| {
        if b.client.association(b.client_id).is_some_and(|a| a.phase() == Phase::Established) {
            b.send(Side::Client, SendOptions::default(), numbered(0, n, 40));
        }
        b.run_for(ms(20));
    };
    for n in 0..20 + seed as u32 {
        input(&mut b, n);
    }
    let now = b.now;
    let last = b.tapped(Side::Client, kind::DATA).last().expect("an input").3.clone();
    let id = b.id(Side::Server);
    b.server.association_mut(id).expect("alive").abort(now, reason.as_bytes());
    if overtaken {
        b.inject(Side::Server, 0, &last);
    }
    for n in 100..400 {
        input(&mut b, n);
    }
    b.client_events.iter().find_map(|e| match e {
        Event::Closed(CloseReason::PeerAborted(why)) => Some(why.clone()),
        _ => None,
    })
}

/// The peer hears why, whatever is lost and whatever comes meanwhile.
#[test]
fn the_reason_of_an_abort_arrives() {
    let long = "the server goes down for maintenance and comes back at six in the evening; nothing that you built is \
                lost, and whoever comes back before seven finds all doors of the old map open";
    for (profile, reason) in ["low-latency", "sctp"].into_iter().flat_map(|p| ["kicked", long].map(|r| (p, r))) {
        for (loss, overtaken) in [(0, true), (5, false), (5, true), (20, false), (20, true)] {
            for seed in 1..=30 {
                let heard = sent_away(profile, reason, loss, overtaken, seed);
                assert_eq!(heard.as_deref(), Some(reason), "{profile}, loss {loss} %, {overtaken}, seed {seed}");
            }
        }
    }
}
