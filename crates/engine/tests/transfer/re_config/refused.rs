//! Requests that the peer refuses as "already in progress", as Linux does while one of its own has no answer.

use super::{accepted_with, answer, asked, asking, config, numbers, reset, responses, send_on};
use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{Duration, Instant, StreamId, Tsn};
use anabranch_engine::{AssocId, Event, Phase};
use anabranch_wire::{Parameter, Params, kind, reconfig_result as result};

const REFUSED: Event = Event::ReconfigFailed { result: result::ALREADY_IN_PROGRESS };

/// No HEARTBEATs, which would not be answered.
fn quiet() -> (Raw, AssocId) {
    accepted_with(&changed(config(), |c| c.timers.heartbeat_interval = Duration::from_secs(100_000)))
}

/// A reset of stream 1 is under way, all before it is acknowledged, and a message waits for the answer.
fn asking_for_stream_1() -> (Raw, AssocId) {
    let (mut r, id) = quiet();
    send_on(&mut r, id, 1, b"a");
    reset(&mut r, id, &[1], true, false).expect("taken");
    send_on(&mut r, id, 1, b"b");
    let first = r.first_tsn;
    r.give(&[&sack(first)]);
    r.take();
    (r, id)
}

/// Time and parameters of the request that comes next.
fn next_request(r: &mut Raw) -> (Instant, Vec<u8>) {
    let sent = r.run_until_sent(kind::RE_CONFIG, ms(70_000)).expect("asked");
    (sent.at, asked(&[sent]).concat())
}

/// Number, last TSN and streams (as bytes) of the only Outgoing SSN Reset Request.
fn outgoing(params: &[u8]) -> (u32, Tsn, Vec<u8>) {
    match Params::new(params).iter().collect::<Vec<_>>()[..] {
        [Ok(Parameter::OutgoingReset { request, last_tsn, streams, .. })] => (request, last_tsn, streams.to_vec()),
        ref other => panic!("{other:?}"),
    }
}

fn refuse(r: &mut Raw, number: u32) {
    r.give(&[&answer(number, result::ALREADY_IN_PROGRESS)]);
}

fn count(r: &Raw, id: AssocId, what: &Event) -> usize {
    r.events_of(id).iter().filter(|e| *e == what).count()
}

fn is_unharmed(r: &Raw, id: AssocId) {
    assert_eq!(r.phase(id), Phase::Established);
    let a = r.endpoint.association(id).expect("alive");
    assert!(a.paths().all(|(_, p)| p.errors == 0));
    a.check_invariants().expect("the books agree");
}

/// Shows: ext/R14, ext/R3.
#[test]
fn it_is_asked_for_again_with_the_next_number_and_later_each_time() {
    let (mut r, id) = asking_for_stream_1();
    let first = r.first_tsn;
    for (n, wait) in [(0, 1_000), (1, 2_000), (2, 4_000)] {
        refuse(&mut r, first.0.wrapping_add(n));
        assert!(r.take().is_empty() && r.endpoint.association(id).expect("alive").is_reconfiguring());
        let refused = r.now;
        let (at, params) = next_request(&mut r);
        assert_eq!(at.since(refused), ms(wait));
        assert_eq!(outgoing(&params), (first.0.wrapping_add(n + 1), first, vec![0, 1]));
    }
    // A late copy of a refusal says nothing of the request under way.
    refuse(&mut r, first.0);
    assert_eq!(count(&r, id, &REFUSED), 0);
    r.give(&[&answer(first.0.wrapping_add(3), result::PERFORMED)]);
    assert_eq!(numbers(&r.take()), [(first.next(), 1, 0)]);
    assert_eq!(count(&r, id, &Event::StreamsReset { streams: vec![StreamId(1)], incoming: false }), 1);
    is_unharmed(&r, id);
}

/// Shows: ext/R14, ext/R13.
#[test]
fn a_peer_that_refuses_for_ever_is_asked_so_often_and_no_more() {
    let (mut r, id) = asking_for_stream_1();
    let (start, first) = (r.now, r.first_tsn);
    let again = config().failure.max_association_retrans;
    for n in 0..u32::from(again) {
        refuse(&mut r, first.0.wrapping_add(n));
        assert_eq!(count(&r, id, &REFUSED), 0);
        assert_eq!(outgoing(&next_request(&mut r).1).0, first.0.wrapping_add(n + 1));
    }
    assert_eq!(r.now.since(start), ms(1_000 * (1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 + 60 + 60)));
    refuse(&mut r, first.0.wrapping_add(u32::from(again)));
    assert_eq!(count(&r, id, &REFUSED), 1);
    assert_eq!(numbers(&r.take()), [(first.next(), 1, 1)]);
    r.give(&[&sack(first.next())]);
    r.run_for(ms(200_000));
    assert!(asked(&r.take()).is_empty(), "it is over");
    is_unharmed(&r, id);
}

/// Neither "in progress" in between nor requests of its own, which are met at once, give a peer more of them.
///
/// Shows: ext/R14.
#[test]
fn a_peer_that_changes_its_mind_gets_no_more_either() {
    let (mut r, id) = asking_for_stream_1();
    let mut asked_for = 1;
    for n in 0.. {
        let number = r.first_tsn.0.wrapping_add(2 * n);
        r.give(&[&answer(number, result::IN_PROGRESS)]);
        refuse(&mut r, number);
        r.take();
        r.give(&[&asking(&[Parameter::AddIncoming { request: PEER_TSN.0 + n, streams: 1 }])]);
        let met = asked(&r.take()).concat();
        let add = Parameter::AddOutgoing { request: number.wrapping_add(1), streams: 1 };
        assert!(Params::new(&met).iter().flatten().any(|p| p == add), "{met:?}");
        r.give(&[&answer(number.wrapping_add(1), result::PERFORMED)]);
        if count(&r, id, &REFUSED) > 0 {
            break;
        }
        assert_eq!(outgoing(&next_request(&mut r).1).0, number.wrapping_add(2));
        asked_for += 1;
    }
    assert_eq!(asked_for, 1 + config().failure.max_association_retrans);
    is_unharmed(&r, id);
}

/// It would else cost memory for each pair of packets, and in the end give more streams than the limit.
///
/// Shows: ext/R14, ext/R12.
#[test]
fn a_peer_that_refuses_the_streams_it_asks_for_gets_no_more_of_them() {
    let (mut r, id) = quiet();
    let (before, most) = (r.endpoint.association(id).expect("alive").streams().0, config().limits.max_streams);
    let (number, streams) = (r.first_tsn.0, most - before);
    let ask = |n: u32| asking(&[Parameter::AddIncoming { request: PEER_TSN.0.wrapping_add(n), streams }]);
    let wanted = |n: u32| Parameter::AddOutgoing { request: number.wrapping_add(n), streams };
    let has = |params: &[u8], n| Params::new(params).iter().flatten().any(|p| p == wanted(n));
    r.give(&[&ask(0)]);
    assert!(has(&asked(&r.take()).concat(), 0));
    refuse(&mut r, number);
    for n in 1..100 {
        // Under either number: it is to come again as it was.
        for request in [1, n] {
            r.give(&[&ask(request)]);
            assert!(!has(&asked(&r.take()).concat(), n));
        }
        refuse(&mut r, number.wrapping_add(n));
    }
    let (_, params) = next_request(&mut r);
    assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(wanted(1))]);
    r.give(&[&answer(number.wrapping_add(1), result::PERFORMED)]);
    r.run_for(ms(200_000));
    assert!(asked(&r.take()).is_empty(), "nothing else waits");
    assert_eq!(r.endpoint.association(id).expect("alive").streams().0, most);
    is_unharmed(&r, id);
}

/// Shows: ext/R14.
#[test]
fn only_the_half_that_was_refused_is_asked_for_again() {
    let (mut r, id) = quiet();
    reset(&mut r, id, &[1], true, true).expect("taken");
    r.take();
    let n = r.first_tsn.0;
    refuse(&mut r, n.wrapping_add(1));
    assert!(r.endpoint.poll_timeout().is_some_and(|t| t.since(r.now) <= ms(1_000)), "the other half has its timer");
    r.give(&[&answer(n, result::PERFORMED)]);
    assert_eq!(count(&r, id, &Event::StreamsReset { streams: vec![StreamId(1)], incoming: false }), 1);
    let (_, params) = next_request(&mut r);
    let wanted = Parameter::IncomingReset { request: n.wrapping_add(2), streams: &[0, 1] };
    assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(wanted)]);
    // More streams, both halves refused: both are asked for, one after the other.
    r.give(&[&answer(n.wrapping_add(2), result::NOTHING_TO_DO)]);
    let now = r.now;
    r.endpoint.association_mut(id).expect("alive").add_streams(now, 3, 2).expect("taken");
    r.drain();
    r.take();
    refuse(&mut r, n.wrapping_add(3));
    refuse(&mut r, n.wrapping_add(4));
    let wanted = [
        Parameter::AddOutgoing { request: n.wrapping_add(5), streams: 3 },
        Parameter::AddIncoming { request: n.wrapping_add(6), streams: 2 },
    ];
    for (i, p) in (5..).zip(wanted) {
        let (_, params) = next_request(&mut r);
        assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(p)]);
        r.give(&[&answer(n.wrapping_add(i), result::PERFORMED)]);
    }
    assert_eq!(r.endpoint.association(id).expect("alive").streams().0, 13);
    is_unharmed(&r, id);
}

/// Shows: ext/R14, ext/R10.
#[test]
fn tsns_begin_anew_after_a_refusal_and_data_waits_until_then() {
    let (mut r, id) = quiet();
    let (now, first) = (r.now, r.first_tsn);
    r.endpoint.association_mut(id).expect("alive").reset_association(now).expect("taken");
    r.drain();
    refuse(&mut r, first.0);
    r.take();
    send_on(&mut r, id, 1, b"a");
    assert_eq!(numbers(&r.take()), []);
    let (_, params) = next_request(&mut r);
    let number = first.0.wrapping_add(1);
    assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(Parameter::TsnReset { request: number })]);
    let tsns = Some((Tsn(5_000), Tsn(9_000)));
    let done = Parameter::ReconfigResponse { response: number, result: result::PERFORMED, tsns };
    r.give(&[&asking(&[done])]);
    assert_eq!(numbers(&r.take()), [(Tsn(9_000), 1, 0)]);
    assert_eq!(count(&r, id, &Event::AssociationReset), 1);
}

/// Shows: ext/R14, ext/R8.
#[test]
fn what_the_peer_waits_for_itself_does_not_wait_for_it() {
    // For these streams the next request of ours does it.
    let (mut r, id) = asking_for_stream_1();
    let (first, n) = (r.first_tsn, PEER_TSN.0);
    refuse(&mut r, first.0);
    r.take();
    r.give(&[&asking(&[Parameter::IncomingReset { request: n, streams: &[0, 1] }])]);
    assert_eq!(responses(&r.take()), [(n, result::NOTHING_TO_DO)]);
    assert_eq!(outgoing(&next_request(&mut r).1).0, first.0.wrapping_add(1));
    assert_eq!(count(&r, id, &REFUSED), 0);

    // Others: it gets them, and the user learns that ours will not be.
    let (mut r, id) = asking_for_stream_1();
    let first = r.first_tsn;
    refuse(&mut r, first.0);
    r.take();
    r.give(&[&asking(&[Parameter::IncomingReset { request: n, streams: &[0, 2] }])]);
    let sent = r.take();
    assert_eq!(outgoing(&asked(&sent).concat()), (first.0.wrapping_add(1), first, vec![0, 2]));
    assert_eq!(count(&r, id, &REFUSED), 1);
    assert_eq!(numbers(&sent), [(first.next(), 1, 1)]);
}

/// Shows: ext/R14.
#[test]
fn an_end_waits_for_one_more_answer_at_most() {
    let (mut r, id) = asking_for_stream_1();
    let first = r.first_tsn;
    refuse(&mut r, first.0);
    r.take();
    r.shutdown(id);
    assert_eq!(outgoing(&asked(&r.take()).concat()).0, first.0.wrapping_add(1));
    refuse(&mut r, first.0.wrapping_add(1));
    assert_eq!(count(&r, id, &REFUSED), 1);
    assert_eq!(numbers(&r.take()), [(first.next(), 1, 1)]);
    r.give(&[&sack(first.next())]);
    assert_eq!(r.take_kinds(), [[kind::SHUTDOWN]]);
}
