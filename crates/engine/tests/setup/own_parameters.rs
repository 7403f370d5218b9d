//! Optional parameters of the user's own in INIT and INIT ACK, as the media hint of Cheng et al. 2011 §III is one.

use crate::common::raw::*;
use crate::common::*;
use anabranch_engine::{AssocConfig, Event, OwnParameter};
use anabranch_wire::{Encode, Parameter, Params, RawParameter};

const HINT: u16 = 0xbf43;
const MPEG: [u8; 5] = [1, 3, 0, 1, 2];

fn with(list: &[OwnParameter]) -> AssocConfig {
    changed(assoc_config("media"), |c| c.extensions.own_parameters = list.to_vec())
}

fn said() -> AssocConfig {
    with(&[OwnParameter::said(HINT, &MPEG[..])])
}

fn known() -> AssocConfig {
    with(&[OwnParameter::known(HINT)])
}

fn heard_of(events: &[Event]) -> Vec<(u16, Vec<u8>)> {
    let one = |e: &Event| match e {
        Event::PeerParameter { kind, value } => Some((*kind, value.to_vec())),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

fn raw(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Parameter::Unknown(RawParameter { kind, value, whole: &[] }).encode(&mut out);
    out
}

/// Values of a parameter in an INIT or INIT ACK.
fn values(sent: &Sent, kind: u16) -> Vec<Vec<u8>> {
    let (_, params) = init_of(sent);
    Params::new(&params).iter_raw().flatten().filter(|p| p.kind == kind).map(|p| p.value.to_vec()).collect()
}

#[test]
fn what_one_side_says_the_other_hears_and_repeats_when_it_knows_it() {
    let hint = vec![(HINT, MPEG.to_vec())];
    let stranger = with(&[OwnParameter::known(0x9001)]);
    for (ours, theirs, server_hears, client_hears) in [
        (said(), known(), true, true),
        (said(), said(), true, true),
        (said(), assoc_config("media"), false, false),
        (said(), stranger, false, false),
        (known(), said(), false, false),
        (assoc_config("media"), known(), false, false),
    ] {
        let mut b = Bench::connected_pair(3, &ours, &theirs, &[(link(10, 20), link(10, 20))]);
        for (side, hears) in [(Side::Client, client_hears), (Side::Server, server_hears)] {
            let wanted = if hears { hint.clone() } else { vec![] };
            assert_eq!(heard_of(b.events(side)), wanted, "{side:?}");
            assert_eq!(b.assoc(side).peer_parameter(HINT), hears.then_some(&MPEG[..]));
            let at = |wanted: fn(&Event) -> bool| b.events(side).iter().position(wanted);
            let (up, heard_of) = (at(|e| *e == Event::Connected), at(|e| matches!(e, Event::PeerParameter { .. })));
            assert!(heard_of.is_none_or(|heard_of| heard_of > up.expect("up")), "{side:?}");
        }
    }
}

/// The answer keeps no state and repeats what came, not what we would say ourselves; only its cookie remembers it.
#[test]
fn an_answer_repeats_what_the_init_said() {
    let mut r = Raw::with(&said(), |_| ());
    let theirs = raw(HINT, &[1, 2, 0, 1, 1]);
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &theirs)]);
    let answer = r.take_one();
    assert_eq!(values(&answer, HINT), [[1, 2, 0, 1, 1]]);
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    let id = r.only();
    assert_eq!(heard_of(&r.events_of(id)), [(HINT, vec![1, 2, 0, 1, 1])]);
    // And nothing where nothing was said.
    let mut r = Raw::with(&said(), |_| ());
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &[])]);
    assert_eq!(values(&r.take_one(), HINT), Vec::<Vec<u8>>::new());
}

/// Whatever an INIT holds, no more than the first short value of each known type comes back.
#[test]
fn hostile_parameters_cost_no_more_than_honest_ones() {
    let many: Vec<u8> = (0x9000..0x9080).flat_map(|k| raw(k, &[7; 16])).collect();
    let cases = [
        (raw(HINT, &[9; 200]), vec![]),
        (raw(HINT, &[9; 17]), vec![]),
        (raw(HINT, &[9; 16]), vec![vec![9; 16]]),
        (raw(HINT, &[]), vec![vec![]]),
        ([raw(HINT, &[1]), raw(HINT, &[2])].concat(), vec![vec![1]]),
        ([many.clone(), raw(HINT, &[3])].concat(), vec![vec![3]]),
        (many, vec![]),
    ];
    for (params, repeated) in cases {
        let mut r = Raw::with(&known(), |_| ());
        r.give_tagged(0, &[&init(init_fields(PEER_TAG), &params)]);
        let answer = r.take_one();
        assert_eq!(values(&answer, HINT), repeated);
        assert!(answer.bytes.len() < 400, "{}", answer.bytes.len());
        r.tag = init_of(&answer).0.tag;
        r.echo(&cookie_of(&answer));
        let id = r.only();
        let heard: Vec<_> = repeated.into_iter().map(|v| (HINT, v)).collect();
        assert_eq!(heard_of(&r.events_of(id)), heard);
    }
}

#[test]
fn a_peer_that_answers_with_another_value_is_heard() {
    let mut r = Raw::with(&said(), |e| e.accept = false);
    let id = r.connect(&said());
    let first = r.take_one();
    assert_eq!(values(&first, HINT), [MPEG]);
    r.answer_init(&first, init_fields(PEER_TAG), b"cookie", &raw(HINT, &[1, 1, 0, 0, 0]));
    assert_eq!(r.take_one().kinds(), [anabranch_wire::kind::COOKIE_ECHO]);
    r.give(&[&chunk(anabranch_wire::kind::COOKIE_ACK, 0, &[])]);
    assert_eq!(heard_of(&r.events_of(id)), [(HINT, vec![1, 1, 0, 0, 0])]);
}

#[test]
fn a_list_that_strangers_would_not_skip_begins_no_association() {
    let mut r = Raw::with(&known(), |e| e.accept = false);
    for bad in [OwnParameter::known(0xc0de), OwnParameter::known(0x8000), OwnParameter::said(HINT, vec![0; 17])] {
        let (now, to, from) = (r.now, r.to, r.from);
        assert!(r.endpoint.connect(now, with(&[bad]), to, from, PEER_PORT).is_err());
    }
}
