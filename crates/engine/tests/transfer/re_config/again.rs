//! A reset that the peer calls "in progress" when nothing is left to wait for, as usrsctp does.

use super::{accepted, answer, asked, numbers, reset, send_on};
use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{StreamId, Tsn};
use anabranch_engine::{AssocId, Event};
use anabranch_wire::{Parameter, Params, kind, reconfig_result as result};

/// Number, last TSN and streams (as bytes) of the Outgoing SSN Reset Request that comes next.
fn next_request(r: &mut Raw) -> (u32, Tsn, Vec<u8>) {
    let sent = r.run_until_sent(kind::RE_CONFIG, ms(70_000)).expect("asked");
    let params = asked(&[sent]).concat();
    match Params::new(&params).iter().next() {
        Some(Ok(Parameter::OutgoingReset { request, last_tsn, streams, .. })) => (request, last_tsn, streams.to_vec()),
        other => panic!("{other:?}"),
    }
}

/// A reset of stream 1 is under way, deferred, with a message on its way and one that waits for the answer.
fn deferred() -> (Raw, AssocId, u32) {
    let (mut r, id) = accepted();
    send_on(&mut r, id, 1, b"a");
    reset(&mut r, id, &[1], true, false).expect("taken");
    send_on(&mut r, id, 1, b"b");
    let number = r.first_tsn.0;
    r.take();
    r.give(&[&answer(number, result::IN_PROGRESS)]);
    (r, id, number)
}

/// The peer says so until the request has been repeated once after everything was acknowledged, which is what shows it.
fn in_vain() -> (Raw, AssocId, u32) {
    let (mut r, id, number) = deferred();
    let first = r.first_tsn;
    r.give(&[&sack(first)]);
    assert_eq!(next_request(&mut r), (number, first, vec![0, 1]), "it may have been deferred");
    r.give(&[&answer(number, result::IN_PROGRESS)]);
    (r, id, number)
}

fn errors(r: &Raw, id: AssocId) -> u16 {
    r.endpoint.association(id).expect("alive").paths().map(|(_, p)| p.errors).sum()
}

/// Shows: ext/R13.
#[test]
fn a_reset_that_waits_for_nothing_is_asked_for_with_the_next_number() {
    let (mut r, id, number) = in_vain();
    let first = r.first_tsn;
    assert_eq!(next_request(&mut r), (number.wrapping_add(1), first, vec![0, 1]));
    // The peer has both: what comes of the first one says nothing of the second.
    r.give(&[&answer(number, result::PERFORMED)]);
    assert_eq!(numbers(&r.take()), []);
    r.give(&[&answer(number.wrapping_add(1), result::PERFORMED)]);
    assert_eq!(numbers(&r.take()), [(first.next(), 1, 0)]);
    let done = Event::StreamsReset { streams: vec![StreamId(1)], incoming: false };
    assert_eq!(r.events_of(id).iter().filter(|e| **e == done).count(), 1);
    assert_eq!(errors(&r, id), 0);
    r.give(&[&sack(first.next())]);
    reset(&mut r, id, &[], true, false).expect("taken");
    assert_eq!(next_request(&mut r).0, number.wrapping_add(2));
}

/// Shows: ext/R13.
#[test]
fn a_reset_that_waits_for_data_is_repeated_as_it_was() {
    let (mut r, _, number) = deferred();
    for _ in 0..5 {
        assert_eq!(next_request(&mut r).0, number);
        r.give(&[&answer(number, result::IN_PROGRESS)]);
    }
    // What left before everything was acknowledged may be answered twice and late.
    let first = r.first_tsn;
    r.give(&[&sack(first)]);
    r.give(&[&answer(number, result::IN_PROGRESS)]);
    r.give(&[&answer(number, result::IN_PROGRESS)]);
    assert_eq!(next_request(&mut r).0, number);
    r.give(&[&answer(number, result::PERFORMED)]);
    assert_eq!(numbers(&r.take()).last(), Some(&(first.next(), 1, 0)));
}

/// Shows: ext/R13.
#[test]
fn where_the_next_number_is_not_taken_the_first_request_is_repeated() {
    for (what, next) in [(result::BAD_SEQUENCE, 1), (result::ALREADY_IN_PROGRESS, 2)] {
        let (mut r, id, number) = in_vain();
        let first = r.first_tsn;
        assert_eq!(next_request(&mut r).0, number.wrapping_add(1));
        r.give(&[&answer(number.wrapping_add(1), what)]);
        for _ in 0..5 {
            assert_eq!(next_request(&mut r), (number, first, vec![0, 1]));
            r.give(&[&answer(number, result::IN_PROGRESS)]);
        }
        assert_eq!(errors(&r, id), 0);
        assert_eq!(numbers(&r.take()), [], "the peer may still carry it out: stream 1 waits");
        r.give(&[&answer(number, result::PERFORMED)]);
        assert_eq!(numbers(&r.take()), [(first.next(), 1, 0)]);
        r.give(&[&sack(first.next())]);
        reset(&mut r, id, &[], true, false).expect("taken");
        assert_eq!(next_request(&mut r).0, number.wrapping_add(next));
    }
}
